"""Plan operations on the session's editor.

The editor stores the open files, cursors and selections. The workspace reads and changes the files, with path checks
and approval as for any edit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.core.errors import ToolError
from adapter.core.text.diffs import render_unified_diff
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.text.lines import split_lines, strip_line_end, to_lf
from adapter.editing.document import BYTE_ORDER_MARK, TextDocument
from adapter.tools import operations as ops
from adapter.workspace.capabilities.host_capabilities import Editor, EditorRange
from adapter.workspace.changes.encoding_detection import check_new_characters
from adapter.workspace.changes.operation_plan import Plan
from adapter.workspace.changes.text_codec import decode_for_editing, encode
from adapter.workspace.files import file_changes, file_info
from adapter.workspace.files.read_file import read_text_file

if TYPE_CHECKING:
    from adapter.workspace.workspace_context import WorkspaceContext


def plan_editor_operation(context: WorkspaceContext, editor: Editor, operation: ops.EditorOperation) -> Plan:
    """Plan an editor operation. Raises ToolError if the file, line, selection or cursor does not exist."""
    match operation:
        case ops.GetEditorState():
            return Plan("read the editor's state", lambda: _read_state(context, editor))
        case ops.GetSelection():
            paths = (_require_selection(editor).path,)
            return Plan("read the selection", lambda: _read_selection(context, editor), paths=paths)
        case ops.OpenInEditor(path=path, line=line):
            return Plan(f"open {escape_for_display(path)} in the editor", lambda: _open(context, editor, path, line))
        case ops.GoToLine(line=line, column=column):
            return Plan(f"go to line {line}", lambda: _goto(context, editor, line, column))
        case ops.ReplaceSelection(content=content):
            return _replace(context, editor, _require_selection(editor), content, "replace the selection in")
        case ops.InsertAtCursor(content=content):
            path, state = _require_active_file(editor), editor.state()
            cursor = (state.cursor_line or 1, state.cursor_column or 1)
            return _replace(context, editor, EditorRange(path, *cursor, *cursor), content, "insert at the cursor in")


def _read_state(context: WorkspaceContext, editor: Editor) -> ops.EditorState:
    state = editor.state()
    missing = []
    for path in state.open_files:
        try:
            file_info.get_info(context.root, ops.Stat(path))
        except ToolError:
            missing.append(f"{path} is open, but no longer exists")
    return replace(state, notes=tuple(missing)) if missing else state


def _open(context: WorkspaceContext, editor: Editor, path: str, line: int | None) -> ops.EditorState:
    file = read_text_file(context, path)
    if line is not None:
        _check_line(file.path, line, file.end_line)
    editor.open(file.path, line)
    return editor.state()


def _goto(context: WorkspaceContext, editor: Editor, line: int, column: int | None) -> ops.EditorState:
    path = _require_active_file(editor)
    file = read_text_file(context, path)
    _check_line(path, line, file.end_line)
    length = len(strip_line_end([*split_lines(file.text), ""][line - 1]))
    column = 1 if column is None else column
    if not 1 <= column <= length + 1:
        raise ToolError(f"column {column} does not exist in line {line} of {path}: its columns are 1 to {length + 1}")
    editor.goto(line, column)
    return editor.state()


def _read_selection(context: WorkspaceContext, editor: Editor) -> ops.SelectedText:
    span = _require_selection(editor)
    text = read_text_file(context, span.path).text
    start, end = _find_offsets(text, span)
    last = span.end_line if span.end_column > 1 else max(span.end_line - 1, span.start_line)
    return ops.SelectedText(span.path, text[start:end], span.start_line, last)


def _replace(context: WorkspaceContext, editor: Editor, span: EditorRange, content: str, verb: str) -> Plan:
    """Plan to replace ``span`` with ``content``, converted to the file's line endings."""
    change, line, column = _splice(context, span, content)

    def commit() -> ops.Outcome:
        outcome = change.commit(context)
        editor.changed(span.path, line, column)
        return outcome

    return Plan(f"{verb} {escape_for_display(span.path)}, line {span.start_line}", commit, change.diff, (span.path,))


def _splice(context: WorkspaceContext, span: EditorRange, content: str) -> tuple[file_changes.FileChange, int, int]:
    """Return the change that replaces ``span``, and the line and column of the cursor after it."""
    file = file_changes.find_file(context.root, span.path, must_exist=True)
    decoded = decode_for_editing(file.data or b"", span.path, context.encoding)
    mark = BYTE_ORDER_MARK if decoded.text.startswith(BYTE_ORDER_MARK) else ""
    text = decoded.text.removeprefix(mark)
    start, end = _find_offsets(text, span)
    new = to_lf(content).replace("\n", TextDocument(text).common_end) if text else content
    after = mark + text[:start] + new + text[end:]
    diff = render_unified_diff(decoded.text, after, span.path)
    lines = to_lf(text[:start] + new).split("\n")
    outcome = ops.FilePatched(span.path, 1, diff)
    if decoded.guessed:
        check_new_characters(file.data or b"", decoded.encoding, decoded.text, after, span.path)
    data = encode(after, decoded.encoding, span.path)
    change = file_changes.FileChange(f"edit {file.display_path}", ((file, data),), diff, outcome, {})
    return change, len(lines), len(lines[-1]) + 1


def _find_offsets(text: str, span: EditorRange) -> tuple[int, int]:
    """Return the offsets of ``span`` in ``text``. Raises ToolError if the text has become too short for the span."""
    lines = [*split_lines(text), ""]
    offsets = []
    for line, column in ((span.start_line, span.start_column), (span.end_line, span.end_column)):
        columns = len(strip_line_end(lines[line - 1])) + 1 if line <= len(lines) else 0
        if column > columns:
            now = f"the line now has {columns} columns" if columns else f"it now has {len(lines)} lines"
            raise ToolError(
                f"line {line}, column {column} is no longer in {span.path}: {now}. "
                "Use goto_line or open_file to set the cursor again"
            )
        offsets.append(sum(map(len, lines[: line - 1])) + column - 1)
    return offsets[0], offsets[1]


def _check_line(path: str, line: int, total: int) -> None:
    if not 1 <= line <= max(total, 1):
        raise ToolError(f"line {line} does not exist in {path}: its lines are 1 to {max(total, 1)}")


def _require_active_file(editor: Editor) -> str:
    path = editor.state().active_file
    if path is None:
        raise ToolError("no file is open in the editor; open one with open_file")
    return path


def _require_selection(editor: Editor) -> EditorRange:
    _require_active_file(editor)
    span = editor.selection()
    if span is None:
        raise ToolError("nothing is selected in the editor; use apply_edit instead, with the text to be replaced")
    return span
