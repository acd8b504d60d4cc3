"""Revert a change in a text that may have been edited since."""

from __future__ import annotations

from adapter.core.errors import EditError
from adapter.core.text.diffs import CONTEXT_LINES, find_changes
from adapter.core.text.lines import split_lines
from adapter.editing.apply import patch_text
from adapter.tools.operations import Patch


def revert_change(current: str, after: str, before: str) -> str:
    """Undo the change from ``before`` to ``after`` in ``current``, and keep later edits.

    Raises EditError unless every changed block, with its context lines, still occurs exactly once.
    """
    written, original = split_lines(after), split_lines(before)
    patches = []
    for change in find_changes(written, original):
        above = written[max(0, change.start - CONTEXT_LINES) : change.start]
        below = written[change.end : change.end + CONTEXT_LINES]
        old = [*above, *written[change.start : change.end], *below]
        new = [*above, *original[change.new_start : change.new_end], *below]
        patches.append(Patch("".join(old), "".join(new), change.start - len(above) + 1))
    result = patch_text(current, patches)
    inexact = [match for match in result.matches if match.strictness != "exact" or match.notes]
    if inexact:
        raise EditError(f"lines {inexact[0].start_line}-{inexact[0].end_line} have changed since the edit")
    return result.text
