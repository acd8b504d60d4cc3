"""An in-memory editor, and checks of a host's editor."""

from __future__ import annotations

from types import NoneType

from adapter.core.callback_checks import require_finished, require_result
from adapter.core.errors import ToolError
from adapter.tools import operations as ops
from adapter.workspace.capabilities.host_capabilities import Editor, EditorRange


class MemoryEditor:
    """An editor without a display. Its tabs are open files with a cursor and a selection each; one tab is active."""

    def __init__(self) -> None:
        self._tabs: list[str] = []
        self._active = -1
        self._cursors: dict[str, tuple[int, int]] = {}
        self._selections: dict[str, EditorRange] = {}

    def state(self) -> ops.EditorState:
        if self._active < 0:
            return ops.EditorState()
        path = self._tabs[self._active]
        selected = self._selections.get(path)
        lines = (selected.start_line, selected.end_line) if selected else (None, None)
        return ops.EditorState(path, tuple(self._tabs), self._active, *self._cursors[path], *lines)

    def open(self, path: str, line: int | None = None) -> None:
        if path not in self._tabs:
            self._tabs.append(path)
            self._cursors[path] = (1, 1)
        self._active = self._tabs.index(path)
        if line is not None:
            self._move(path, line, 1)

    def goto(self, line: int, column: int = 1) -> None:
        if self._active >= 0:
            self._move(self._tabs[self._active], line, column)

    def select(self, start_line: int, end_line: int, start_column: int = 1, end_column: int | None = None) -> None:
        """Set the selection in the active file. Without ``end_column``, it includes all of ``end_line``."""
        if self._active < 0:
            raise ToolError("no file is open in the editor; open one before selecting text")
        path = self._tabs[self._active]
        end = (end_line, end_column) if end_column is not None else (end_line + 1, 1)
        if end_line < start_line or (start_line, start_column) > end or min(start_line, start_column, *end) < 1:
            raise ToolError(
                f"invalid selection of lines {start_line} to {end_line}: "
                "lines count from 1, and the end must follow the start"
            )
        self._move(path, *end)
        self._selections[path] = EditorRange(path, start_line, start_column, *end)

    def selection(self) -> EditorRange | None:
        return self._selections.get(self._tabs[self._active]) if self._active >= 0 else None

    def changed(self, path: str, line: int, column: int) -> None:
        self.open(path)
        self._move(path, line, column)

    def _move(self, path: str, line: int, column: int) -> None:
        self._cursors[path] = (line, column)
        self._selections.pop(path, None)


class CheckedEditor:
    """Wraps a host's editor. Raises UsageError if a method returns a value of an undocumented type."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor

    def state(self) -> ops.EditorState:
        state = self._editor.state()
        require_result(self._editor.state, "Host.editor", state, ops.EditorState, "an EditorState")
        return state

    def open(self, path: str, line: int | None = None) -> None:
        require_finished(self._editor.open, "Host.editor", self._editor.open(path, line))  # type: ignore[func-returns-value]

    def goto(self, line: int, column: int = 1) -> None:
        require_finished(self._editor.goto, "Host.editor", self._editor.goto(line, column))  # type: ignore[func-returns-value]

    def selection(self) -> EditorRange | None:
        span = self._editor.selection()
        require_result(self._editor.selection, "Host.editor", span, (EditorRange, NoneType), "an EditorRange or None")
        return span

    def changed(self, path: str, line: int, column: int) -> None:
        answer: object = self._editor.changed(path, line, column)  # type: ignore[func-returns-value]
        require_finished(self._editor.changed, "Host.editor", answer)
