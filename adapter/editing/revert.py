"""A change taken back from a text that was changed again since."""

from __future__ import annotations

from adapter.core.errors import EditError
from adapter.core.text.diffs import CONTEXT_LINES, changes
from adapter.core.text.lines import split_lines
from adapter.editing.apply import patch_text
from adapter.tools.operations import Patch


def revert_change(current: str, after: str, before: str) -> str:
    """``current`` with what turned ``before`` into ``after`` undone, and all else kept.

    Raises EditError unless every place that was changed still stands there, with the
    lines around it, exactly and once.
    """
    written, original = split_lines(after), split_lines(before)
    patches = []
    for change in changes(written, original):
        above = written[max(0, change.start - CONTEXT_LINES) : change.start]
        below = written[change.end : change.end + CONTEXT_LINES]
        old = [*above, *written[change.start : change.end], *below]
        new = [*above, *original[change.new_start : change.new_end], *below]
        patches.append(Patch("".join(old), "".join(new), change.start - len(above) + 1))
    result = patch_text(current, patches)
    loose = [match for match in result.matches if match.strictness != "exact" or match.notes]
    if loose:
        raise EditError(f"lines {loose[0].start_line}-{loose[0].end_line} are not exactly as they were left")
    return result.text
