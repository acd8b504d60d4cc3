"""Blade's tools that run commands or use the user's editor."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

from adapter.core.events import JsonObject
from adapter.dialects import result_formatting
from adapter.dialects.tool_class import (
    CommandText,
    Parameter,
    PathText,
    Rendered,
    ToolClass,
    ToolMetadata,
    require_outcome,
)
from adapter.tools import operations as ops
from adapter.tools.argument_synonyms import COMMAND, CONTENT, PATH, WORKING_DIRECTORY


class RunCommandLine(ToolClass):
    """Execute a shell command. The user is asked first."""

    naming = ToolMetadata(
        "run_command",
        aliases=("bash", "shell", "sh", "terminal", "execute", "execute_command", "run_shell_command", "run"),
        effect="execute",
    )
    example = {"command": "cargo build --release", "cwd": "."}
    command: Annotated[CommandText, Parameter("Shell command to execute", *COMMAND)]
    cwd: Annotated[PathText, Parameter("Working directory", *WORKING_DIRECTORY, is_required=True)] = "."

    def to_operation(self) -> ops.Operation:
        return ops.RunCommand(self.command, self.cwd)

    def render(self, outcome: ops.Outcome) -> Rendered:
        run = require_outcome(outcome, ops.CommandOutput)
        return result_formatting.format_command(run), {"exit_code": run.exit_code, "timed_out": run.timed_out}

    def list_notes(self) -> tuple[str, ...]:
        return () if "cwd" in self.model_fields_set else ("cwd was missing; '.' (the workspace root) was used",)


def _build_state_fields(outcome: ops.Outcome) -> JsonObject:
    """Return the seven result fields in Blade's document."""
    fields = asdict(require_outcome(outcome, ops.EditorState))
    fields.pop("notes")
    return fields


class EditorStateTool(ToolClass):
    """Get the editor's files, cursor and selection."""

    naming = ToolMetadata("get_editor_state", aliases=("editor_state", "get_editor_context"), needs="editor")

    def to_operation(self) -> ops.Operation:
        return ops.GetEditorState()

    def render(self, outcome: ops.Outcome) -> Rendered:
        fields = _build_state_fields(outcome)
        return json.dumps(fields, ensure_ascii=False), fields


class OpenFile(ToolClass):
    """Open a file in the editor."""

    naming = ToolMetadata("open_file", aliases=("open_in_editor", "show_file"), effect="state", needs="editor")
    example = {"path": "src/main.rs", "line": 42}
    path: Annotated[PathText, Parameter("File path to open", *PATH)]
    line: Annotated[int | None, Parameter("Line number to jump to (1-indexed)", "line_number")] = None

    def to_operation(self) -> ops.Operation:
        return ops.OpenInEditor(self.path, self.line)

    def render(self, outcome: ops.Outcome) -> Rendered:
        state = require_outcome(outcome, ops.EditorState)
        return f"Opened {state.active_file}; the cursor is in line {state.cursor_line}.", _build_state_fields(outcome)


class GoToLineTool(ToolClass):
    """Go to a line in the active file."""

    naming = ToolMetadata("goto_line", aliases=("go_to_line", "jump_to_line"), effect="state", needs="editor")
    example = {"line": 100, "column": 15}
    line: Annotated[int, Parameter("Line number (1-indexed)", "line_number")]
    column: Annotated[int | None, Parameter("Column number (1-indexed)", "col", "character")] = None

    def to_operation(self) -> ops.Operation:
        return ops.GoToLine(self.line, self.column)

    def render(self, outcome: ops.Outcome) -> Rendered:
        state = require_outcome(outcome, ops.EditorState)
        position = f"line {state.cursor_line}, column {state.cursor_column}"
        return f"The cursor is at {position} of {state.active_file}.", _build_state_fields(outcome)


class GetSelectionTool(ToolClass):
    """Get the selected text in the editor."""

    naming = ToolMetadata("get_selection", aliases=("selection", "get_selected_text"), needs="editor")

    def to_operation(self) -> ops.Operation:
        return ops.GetSelection()

    def render(self, outcome: ops.Outcome) -> Rendered:
        return require_outcome(outcome, ops.SelectedText).text, None


class ReplaceSelectionTool(ToolClass):
    """Replace the selection in the editor."""

    naming = ToolMetadata("replace_selection", effect="write", needs="editor")
    example = {"content": "new replacement text"}
    content: Annotated[str, Parameter("Replacement content", *CONTENT)]

    def to_operation(self) -> ops.Operation:
        return ops.ReplaceSelection(self.content)


class InsertAtCursorTool(ToolClass):
    """Insert content at the cursor in the editor."""

    naming = ToolMetadata("insert_at_cursor", aliases=("insert_text",), effect="write", needs="editor")
    example = {"content": "// TODO: implement this\n"}
    content: Annotated[str, Parameter("Content to insert", *CONTENT)]

    def to_operation(self) -> ops.Operation:
        return ops.InsertAtCursor(self.content)
