"""Edits that land exactly where they were meant, or not at all.

The steps of one patch: `readings` with `marks` and `escapes` (interpretations of the two texts), `stages` (exact
matches), `already_applied` (whether the document has the result), `fuzzy_match` (candidates), `acceptance` (the table
of vetoes), `anchors` (changes that are sure although their context moved on), `splice` and `indent` (the replacement,
in the document's own bytes), `error_messages`. `locator` takes them in order for one patch, `hunk_locator` and
`whole_file_locator` for those of other notations, `patching` for all patches, and `grammar` checks that the file still
parses. Each patch becomes edits or a `rejection`. `document`, `search`, `steps`, `folding` and `similarity` are what
these work with; `notations` parses other ways to write patches.
"""

from adapter.editing.apply import AppliedPatch, PatchResult, patch_text

__all__ = ["AppliedPatch", "PatchResult", "document", "error_messages", "patch_text", "rejection", "revert", "splice"]
