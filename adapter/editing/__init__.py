"""Apply edits exactly where they belong, or reject them and explain why.

`apply` handles all patches of a call. For each patch, `matching.locator` tries the following in order:

- `repairs.interpretations` removes diff markers, line numbers, code fences and escapes that models add to both texts.
- `matching.strategies` finds exact matches, and `already_applied` detects earlier edits.
- `fuzzy_match` finds candidates, and `acceptance` rejects the unsafe ones by a table of vetoes.
- `stale_context` locates changes whose context has changed.

`replacement_text` then builds the replacement in the document's own bytes, with `repairs.reindent`. `hunk_locator` and
`whole_file_rewrite` do the same for hunks and rewritten files. The result is a `Resolution`: edits, or a rejection that
`error_messages` explains. `syntax_check` verifies that the file still parses. `notebook` patches the sources of a
notebook's cells. `notations` parses the formats in which models write edits. `three_way_merge` merges an edit of an
earlier version of a file.
"""

from adapter.editing.apply import AppliedPatch, PatchResult, patch_text

__all__ = [
    "AppliedPatch", "PatchResult", "document", "error_messages", "file_content", "patch_text", "replacement_text",
    "resolved_edits", "revert", "syntax_check", "three_way_merge",
]  # fmt: skip
