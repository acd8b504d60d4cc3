"""Edits that land where they were meant, or not at all.

The steps of one patch: `readings` with `marks` and `escapes` (what the model may
have meant), `stages` (where that stands), `alignment`, `objections` and `acceptance` (where it
stands roughly, and whether that is sure enough), `anchors` and `evidence` (lines to
change that are sure where the rest is not), `made` (whether it was made before), `splice` and
`indent` (what goes there, in the document's own bytes), `refusals` (what to say
when there is no place). `locating` takes them in order for one patch, `patching`
for all, and `grammar` asks whether the whole still parses. `document`,
`search`, `steps`, `folding` and `similarity` are what these work with,
`notations` reads other ways to write patches.
"""

from adapter.edits.patching import Match, PatchResult, patch_text

__all__ = ["Match", "PatchResult", "patch_text"]
