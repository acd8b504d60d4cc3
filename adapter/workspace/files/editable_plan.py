"""Let the user edit the planned change of one text file before approval."""

from __future__ import annotations

from dataclasses import replace

from adapter.core.errors import ToolError
from adapter.core.text.diffs import render_unified_diff
from adapter.tools.operations import FileWritten
from adapter.tools.operations.permissions import FileDraft
from adapter.workspace.changes.text_codec import decode, encode
from adapter.workspace.files.edit_files import FileChange


def build_editable_draft(change: FileChange) -> FileDraft | None:
    """Return the new text of a change for the user to edit.

    None if the change has several files or a deletion, or if the file is binary or its encoding is a guess.
    """
    if len(change.files) != 1:
        return None
    ((file, after),) = change.files
    if after is None:
        return None
    try:
        before, text = decode(file.data or b"", file.display_path), decode(after, file.display_path)
    except ToolError:
        return None
    return None if before.guessed or text.guessed else FileDraft(file.display_path, before.text, text.text)


def replace_draft_text(change: FileChange, text: str) -> FileChange:
    """Replace the new content in the change of one file. Raises ToolError if the encoding lacks a character of it."""
    ((file, after),) = change.files
    shown = file.display_path
    data = encode(text, decode(after or b"", shown).encoding, shown)
    before = decode(file.data or b"", shown).text
    diff = render_unified_diff(before, text, shown)
    outcome = replace(change.outcome, diff=diff)
    if isinstance(outcome, FileWritten):
        outcome = replace(outcome, size=len(data))
    diffs = (diff,) if change.diffs else ()
    return replace(change, files=((file, data),), diff=diff, outcome=outcome, diffs=diffs)
