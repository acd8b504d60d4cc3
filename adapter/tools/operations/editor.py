"""Operations on the user's editor, and their outcomes. Lines and columns are 1-based."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.tools.operations.outcome import Outcome


@dataclass(frozen=True, slots=True)
class GetEditorState:
    pass


@dataclass(frozen=True, slots=True)
class OpenInEditor:
    path: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class GoToLine:
    """Move the cursor in the active file."""

    line: int
    column: int | None = None


@dataclass(frozen=True, slots=True)
class GetSelection:
    pass


@dataclass(frozen=True, slots=True)
class ReplaceSelection:
    content: str


@dataclass(frozen=True, slots=True)
class InsertAtCursor:
    content: str


@dataclass(frozen=True, slots=True)
class EditorState(Outcome):
    """Open files, cursor and selection. ``active_tab_index``: 0-based index; -1 if no file is open."""

    active_file: str | None = None
    open_files: tuple[str, ...] = ()
    active_tab_index: int = -1
    cursor_line: int | None = None
    cursor_column: int | None = None
    selection_start_line: int | None = None
    selection_end_line: int | None = None


@dataclass(frozen=True, slots=True)
class SelectedText(Outcome):
    path: str
    text: str
    start_line: int
    end_line: int
