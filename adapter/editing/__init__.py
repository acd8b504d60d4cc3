"""Apply edits exactly where they belong, or reject them with a reason.

`apply` handles all patches of a call. For one patch, `matching.locator` tries in order: `repairs.interpretations` (with
`diff_markers` and `unescape`) of the two texts, `matching.strategies` (exact matches), `already_applied`, `fuzzy_match`
(candidates), `acceptance` (a table of vetoes), `anchors` (changes located without their context), and `splice` with
`repairs.reindent` (the replacement, in the document's own bytes). `hunk_locator` and `whole_file_rewrite` do the same
for hunks and rewritten files. Each patch becomes edits or a `rejection`, explained by `error_messages`; `syntax_check`
verifies that the file still parses. `notebook` patches notebooks by the sources of their cells. `notations` parses the
other formats in which models write edits.
"""

from adapter.editing.apply import AppliedPatch, PatchResult, patch_text

__all__ = [
    "AppliedPatch",
    "PatchResult",
    "document",
    "edit_resolution",
    "error_messages",
    "patch_text",
    "replacement_text",
    "revert",
    "syntax_check",
]
