"""Blade's tools that read and control the host's editor."""

from __future__ import annotations

import json
from dataclasses import asdict
from operator import attrgetter
from typing import Annotated

from adapter.core.events import JsonObject
from adapter.dialects.tool_class import Parameter, PathText, Rendered, ToolClass, ToolMetadata, render_as
from adapter.tools import operations as ops
from adapter.tools.argument_synonyms import CONTENT, PATH


def _build_state_fields(state: ops.EditorState) -> JsonObject:
    """Return the seven result fields in Blade's document."""
    return {name: value for name, value in asdict(state).items() if name != "notes"}


class EditorStateTool(ToolClass):
    """Get the editor's files, cursor and selection."""

    naming = ToolMetadata(
        "get_editor_state", ops.GetEditorState, aliases=("editor_state", "get_editor_context"), needs="editor"
    )

    def render(self, state: ops.EditorState) -> Rendered:
        fields = _build_state_fields(state)
        return json.dumps(fields, ensure_ascii=False), fields


class OpenFile(ToolClass):
    """Open a file in the editor."""

    naming = ToolMetadata("open_file", ops.OpenInEditor, aliases=("open_in_editor", "show_file"), needs="editor")
    example = {"path": "src/main.rs", "line": 42}
    path: Annotated[PathText, Parameter("File path to open", *PATH)]
    line: Annotated[int | None, Parameter("Line number to jump to (1-indexed)", "line_number")] = None

    def render(self, state: ops.EditorState) -> Rendered:
        return f"Opened {state.active_file}; the cursor is in line {state.cursor_line}.", _build_state_fields(state)


class GoToLineTool(ToolClass):
    """Go to a line in the active file."""

    naming = ToolMetadata("goto_line", ops.GoToLine, aliases=("go_to_line", "jump_to_line"), needs="editor")
    example = {"line": 100, "column": 15}
    line: Annotated[int, Parameter("Line number (1-indexed)", "line_number")]
    column: Annotated[int | None, Parameter("Column number (1-indexed)", "col", "character")] = None

    def render(self, state: ops.EditorState) -> Rendered:
        position = f"line {state.cursor_line}, column {state.cursor_column}"
        return f"The cursor is at {position} of {state.active_file}.", _build_state_fields(state)


class GetSelectionTool(ToolClass):
    """Get the selected text in the editor."""

    naming = ToolMetadata("get_selection", ops.GetSelection, aliases=("selection", "get_selected_text"), needs="editor")

    render = render_as(attrgetter("text"))


class ReplaceSelectionTool(ToolClass):
    """Replace the selection in the editor."""

    naming = ToolMetadata("replace_selection", ops.ReplaceSelection, needs="editor")
    example = {"content": "new replacement text"}
    content: Annotated[str, Parameter("Replacement content", *CONTENT)]


class InsertAtCursorTool(ToolClass):
    """Insert content at the cursor in the editor."""

    naming = ToolMetadata("insert_at_cursor", ops.InsertAtCursor, aliases=("insert_text",), needs="editor")
    example = {"content": "// TODO: implement this\n"}
    content: Annotated[str, Parameter("Content to insert", *CONTENT)]
