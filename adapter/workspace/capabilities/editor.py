"""An editor in memory, and the operations on whatever editor the session has.

The editor holds what is open, the cursor and the selection. Files are read and
changed by the workspace, through its gate and after approval, as by any edit.
"""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING

from adapter.core.callbacks import require_answer, require_finished
from adapter.core.errors import ToolError
from adapter.core.text.diffs import unified_diff
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.text.lines import split_lines, to_lf, without_end
from adapter.editing.document import TextDocument
from adapter.tools.operations import (
    EditorState,
    FilePatched,
    GetEditorState,
    GetSelection,
    GoToLine,
    InsertAtCursor,
    OpenInEditor,
    Outcome,
    ReplaceSelection,
    SelectedText,
    Stat,
)
from adapter.workspace.capabilities.host import Editor, EditorRange
from adapter.workspace.changes.encoding_detection import check_new_characters
from adapter.workspace.changes.plan import Plan
from adapter.workspace.changes.text_codec import decode_for_editing, encode
from adapter.workspace.files import edit_files
from adapter.workspace.files.read_file import BYTE_ORDER_MARK, text_of

if TYPE_CHECKING:
    from adapter.workspace.context import WorkspaceContext


class MemoryEditor:
    """Open files as tabs, one of them active, with a cursor and a selection each. Nothing is shown to anybody."""

    def __init__(self) -> None:
        self._tabs: list[str] = []
        self._active = -1
        self._cursors: dict[str, tuple[int, int]] = {}
        self._selections: dict[str, EditorRange] = {}

    def state(self) -> EditorState:
        if self._active < 0:
            return EditorState()
        path = self._tabs[self._active]
        selected = self._selections.get(path)
        return EditorState(
            active_file=path,
            open_files=tuple(self._tabs),
            active_tab_index=self._active,
            cursor_line=self._cursors[path][0],
            cursor_column=self._cursors[path][1],
            selection_start_line=selected.start_line if selected else None,
            selection_end_line=selected.end_line if selected else None,
        )

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
        """Select in the active file, as a user would; without ``end_column`` the whole of ``end_line``."""
        if self._active < 0:
            raise ToolError("no file is open; open one, then select in it")
        path = self._tabs[self._active]
        end = (end_line, end_column) if end_column is not None else (end_line + 1, 1)
        if end_line < start_line or (start_line, start_column) > end or min(start_line, start_column, *end) < 1:
            raise ToolError(
                f"lines {start_line} to {end_line} are no selection; lines count from 1, the end comes last"
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
    """The editor of a host. Raises UsageError for an answer that is not of the documented type."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor

    def state(self) -> EditorState:
        state = self._editor.state()
        require_answer(self._editor.state, "Host.editor", state, EditorState, "an EditorState")
        return state

    def open(self, path: str, line: int | None = None) -> None:
        require_finished(self._editor.open, "Host.editor", self._editor.open(path, line))  # type: ignore[func-returns-value]

    def goto(self, line: int, column: int = 1) -> None:
        require_finished(self._editor.goto, "Host.editor", self._editor.goto(line, column))  # type: ignore[func-returns-value]

    def selection(self) -> EditorRange | None:
        span = self._editor.selection()
        require_answer(self._editor.selection, "Host.editor", span, (EditorRange, NoneType), "a Span or None")
        return span

    def changed(self, path: str, line: int, column: int) -> None:
        answer: object = self._editor.changed(path, line, column)  # type: ignore[func-returns-value]
        require_finished(self._editor.changed, "Host.editor", answer)


EditorOperation = GetEditorState | GetSelection | OpenInEditor | GoToLine | ReplaceSelection | InsertAtCursor


def plan(desk: WorkspaceContext, editor: Editor, operation: EditorOperation) -> Plan:
    """Raises ToolError when there is no such file, line, selection or cursor."""
    match operation:
        case GetEditorState():
            return Plan("look at the editor", lambda: _state(desk, editor))
        case GetSelection():
            return Plan("look at the selection", lambda: _selected(desk, editor), paths=(_selection(editor).path,))
        case OpenInEditor(path=path, line=line):
            return Plan(f"open {escape_for_display(path)} in the editor", lambda: _open(desk, editor, path, line))
        case GoToLine():
            return Plan(f"go to line {operation.line}", lambda: _goto(desk, editor, operation.line, operation.column))
        case ReplaceSelection(content=content):
            return _replace(desk, editor, _selection(editor), content, "replace the selection in")
        case InsertAtCursor(content=content):
            line, column = _cursor(editor)
            path = _active(editor)
            return _replace(
                desk, editor, EditorRange(path, line, column, line, column), content, "insert at the cursor in"
            )


def _state(desk: WorkspaceContext, editor: Editor) -> EditorState:
    state = editor.state()
    gone = []
    for path in state.open_files:
        try:
            edit_files.get_info(desk.root, Stat(path))
        except ToolError:
            gone.append(f"{path} is open, but does not exist any more")
    if not gone:
        return state
    fields = (state.cursor_line, state.cursor_column, state.selection_start_line, state.selection_end_line)
    return EditorState(state.active_file, state.open_files, state.active_tab_index, *fields, notes=tuple(gone))


def _open(desk: WorkspaceContext, editor: Editor, path: str, line: int | None) -> EditorState:
    file = text_of(desk, path)
    if line is not None:
        _check_line(file.path, line, file.end_line)
    editor.open(file.path, line)
    return editor.state()


def _goto(desk: WorkspaceContext, editor: Editor, line: int, column: int | None) -> EditorState:
    path = _active(editor)
    file = text_of(desk, path)
    _check_line(path, line, file.end_line)
    length = len(without_end([*split_lines(file.text), ""][line - 1]))
    wanted = 1 if column is None else column
    if not 1 <= wanted <= length + 1:
        raise ToolError(f"column {wanted} is not in line {line} of {path}: columns go from 1 to {length + 1} there")
    editor.goto(line, wanted)
    return editor.state()


def _selected(desk: WorkspaceContext, editor: Editor) -> SelectedText:
    span = _selection(editor)
    text = text_of(desk, span.path).text
    start, end = _offsets(text, span)
    last = span.end_line if span.end_column > 1 else max(span.end_line - 1, span.start_line)
    return SelectedText(span.path, text[start:end], span.start_line, last)


def _replace(desk: WorkspaceContext, editor: Editor, span: EditorRange, content: str, verb: str) -> Plan:
    """The change of a file where ``span`` is; line ends become those of the file."""
    change, line, column = _spliced(desk, span, content)

    def commit() -> Outcome:
        outcome = change.commit(desk)
        editor.changed(span.path, line, column)
        return outcome

    return Plan(f"{verb} {escape_for_display(span.path)}, line {span.start_line}", commit, change.diff, (span.path,))


def _spliced(desk: WorkspaceContext, span: EditorRange, content: str) -> tuple[edit_files.FileChange, int, int]:
    file = edit_files.find_file(desk.root, span.path, must_exist=True)
    decoded = decode_for_editing(file.data or b"", span.path, desk.encoding)
    mark = BYTE_ORDER_MARK if decoded.text.startswith(BYTE_ORDER_MARK) else ""
    text = decoded.text.removeprefix(mark)
    start, end = _offsets(text, span)
    new = to_lf(content).replace("\n", TextDocument(text).common_end) if text else content
    after = mark + text[:start] + new + text[end:]
    diff = unified_diff(decoded.text, after, span.path)
    lines = to_lf(text[:start] + new).split("\n")
    outcome = FilePatched(span.path, 1, diff)
    if decoded.guessed:
        check_new_characters(file.data or b"", decoded.encoding, decoded.text, after, span.path)
    data = encode(after, decoded.encoding, span.path)
    change = edit_files.FileChange(f"edit {file.shown}", ((file, data),), diff, outcome, {})
    return change, len(lines), len(lines[-1]) + 1


def _offsets(text: str, span: EditorRange) -> tuple[int, int]:
    """Where the span begins and ends in ``text``. Raises ToolError when the file has no such place any more."""
    lines = [*split_lines(text), ""]
    offsets = []
    for line, column in ((span.start_line, span.start_column), (span.end_line, span.end_column)):
        if line > len(lines) or column > len(without_end(lines[line - 1])) + 1:
            raise ToolError(
                f"line {line}, column {column} is not in {span.path} any more: it has {len(lines)} lines now. "
                "Use goto_line or open_file to place the cursor anew"
            )
        offsets.append(sum(map(len, lines[: line - 1])) + column - 1)
    return offsets[0], offsets[1]


def _check_line(path: str, line: int, total: int) -> None:
    if not 1 <= line <= max(total, 1):
        raise ToolError(f"line {line} is not in {path}: lines go from 1 to {max(total, 1)}")


def _active(editor: Editor) -> str:
    path = editor.state().active_file
    if path is None:
        raise ToolError("no file is open in the editor; open one with open_file")
    return path


def _cursor(editor: Editor) -> tuple[int, int]:
    _active(editor)
    state = editor.state()
    return state.cursor_line or 1, state.cursor_column or 1


def _selection(editor: Editor) -> EditorRange:
    _active(editor)
    span = editor.selection()
    if span is None:
        raise ToolError("nothing is selected in the editor; edit the file by its text with apply_edit instead")
    return span
