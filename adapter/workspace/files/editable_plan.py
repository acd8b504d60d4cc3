"""A planned change of one file of text as a draft, which a person may change before it is made."""

from __future__ import annotations

from dataclasses import replace

from adapter.core.errors import ToolError
from adapter.core.text.diffs import unified_diff
from adapter.tools.operations import FileWritten
from adapter.tools.operations.permissions import FileDraft
from adapter.workspace.changes.text_codec import decode, encode
from adapter.workspace.files.edit_files import FileChange


def editable_draft(change: FileChange) -> FileDraft | None:
    """None where the change is of several files, deletes one, or is of what is no text in an encoding that is known."""
    if len(change.files) != 1:
        return None
    ((file, after),) = change.files
    if after is None:
        return None
    try:
        before, text = decode(file.data or b"", file.shown), decode(after, file.shown)
    except ToolError:
        return None
    return None if before.guessed or text.guessed else FileDraft(file.shown, before.text, text.text)


def replace_draft_text(change: FileChange, text: str) -> FileChange:
    """The change of one file with ``text`` as what it will hold. Raises ToolError for what its encoding has not."""
    ((file, after),) = change.files
    shown = file.shown
    data = encode(text, decode(after or b"", shown).encoding, shown)
    before = decode(file.data or b"", shown).text
    diff = unified_diff(before, text, shown)
    outcome = change.outcome
    outcome = replace(outcome, diff=diff)
    if isinstance(outcome, FileWritten):
        outcome = replace(outcome, size=len(data))
    diffs = (diff,) if change.diffs else ()
    return replace(change, files=((file, data),), diff=diff, outcome=outcome, diffs=diffs)
