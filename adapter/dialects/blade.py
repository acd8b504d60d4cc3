"""The tools of Zaguan Blade, from its "Tool Calls Reference".

Names, arguments, defaults and result formats follow the document. Aliases are those in the document and other common
names. The six editor tools are offered only if the host has an editor.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from operator import attrgetter
from typing import Annotated

from pydantic import model_validator
from pydantic.json_schema import SkipJsonSchema

from adapter.core.errors import FormatError
from adapter.core.events import Json, JsonObject
from adapter.dialects import result_formatting
from adapter.dialects.dialect import Dialect
from adapter.dialects.tool_class import (
    CommandText,
    NestedModel,
    Parameter,
    PathText,
    Rendered,
    ToolClass,
    ToolMetadata,
    render_as,
)
from adapter.editing.notations.parse_edits import parse_file_edits, parse_patches
from adapter.editing.notations.registry import is_known_notation
from adapter.tools import operations as ops
from adapter.tools.argument_synonyms import (
    COMMAND,
    CONTENT,
    DESTINATION,
    DIRECTORY,
    NEW_TEXT,
    OLD_TEXT,
    PATH,
    PATTERN,
    SOURCE,
    WORKING_DIRECTORY,
)

FilePath = Annotated[PathText, Parameter("File path (relative to workspace or absolute)", *PATH)]


class BladeReadFile(ToolClass):
    """Read the complete contents of a file."""

    naming = ToolMetadata("read_file", ops.ReadText, aliases=("read", "cat", "view", "view_file", "open", "get_file"))
    example = {"path": "src/main.rs"}
    path: FilePath


class ReadFileRange(ToolClass):
    """Read a line range from a file with optional context."""

    naming = ToolMetadata("read_file_range", ops.ReadText, aliases=("read_range", "read_lines", "view_range"))
    example = {"path": "src/lib.rs", "start_line": 50, "end_line": 100, "context_lines": 3}
    path: FilePath
    start_line: Annotated[int, Parameter("Start line (1-indexed)", "start", "from_line", "line")] = 1
    end_line: Annotated[int | None, Parameter("End line (1-indexed, default: end of file)", "end", "to_line")] = None
    context_lines: Annotated[int, Parameter("Extra context lines before/after range", "context")] = 0

    render = render_as(result_formatting.format_numbered_lines)


class GetFileInfo(ToolClass):
    """Get metadata about a file or directory."""

    naming = ToolMetadata("get_file_info", ops.Stat, aliases=("file_info", "stat", "file_stat"))
    example = {"path": "Cargo.toml"}
    path: Annotated[PathText, Parameter("Path to inspect", *PATH, *DIRECTORY)]

    def render(self, info: ops.FileInfo) -> Rendered:
        names = ("path", "size", "is_directory", "is_file", "readonly", "modified")
        fields = {name: getattr(info, name) for name in names}
        return json.dumps(fields, ensure_ascii=False), fields


MAX_STRUCTURE_ENTRIES = 200
"""Maximum number of entries in a result of `get_workspace_structure`, from Blade's document."""

CONTEXT_LINES = 2

StartPath = Annotated[PathText, Parameter("Directory path", *DIRECTORY, *PATH)]


class BladeListDirectory(ToolClass):
    """List directory contents with tree view."""

    naming = ToolMetadata(
        "list_directory", ops.Tree, second_names=("list_dir",), aliases=("ls", "list_files", "list", "tree")
    )
    example = {"path": "src", "max_depth": 2}
    path: StartPath = "."
    max_depth: Annotated[int, Parameter("Max traversal depth", "depth")] = 1


class GetWorkspaceStructure(ToolClass):
    """Get a tree view of the workspace, at most 200 entries. Leaves out node_modules, target, .git and the like."""

    naming = ToolMetadata(
        "get_workspace_structure", aliases=("workspace_structure", "project_structure", "get_project_structure")
    )
    example = {"path": ".", "depth": 3, "limit": 100}
    path: Annotated[PathText, Parameter("Starting path", *DIRECTORY, *PATH)] = "."
    depth: Annotated[int, Parameter("Max depth", "max_depth")] = 2
    limit: Annotated[int, Parameter("Max entries (at most 200)", "max_entries")] = 50

    def to_operation(self) -> ops.Operation:
        return ops.Tree(self.path, self.depth, self._limit, skip_common=True, gitignore=True)

    def list_notes(self) -> tuple[str, ...]:
        if self.limit == self._limit:
            return ()
        return (f"limit {self.limit} is out of range (1-{MAX_STRUCTURE_ENTRIES}); using {self._limit}",)

    @property
    def _limit(self) -> int:
        return max(1, min(self.limit, MAX_STRUCTURE_ENTRIES))


class BladeFindFiles(ToolClass):
    """Find files by a part of their name."""

    naming = ToolMetadata("find_files", ops.FindByName, aliases=("find", "find_file", "search_files", "file_search"))
    example = {"pattern": "test", "path": "src", "max_depth": 5}
    pattern: Annotated[str, Parameter("Substring to match in filenames", "query", "name", "filename", "substring")]
    path: Annotated[PathText, Parameter("Starting path", *DIRECTORY)] = "."
    max_depth: Annotated[int | None, Parameter("Max search depth", "depth")] = None


class FindFilesGlob(ToolClass):
    """Find files using glob patterns."""

    naming = ToolMetadata("find_files_glob", ops.Glob, second_names=("glob",), aliases=("glob_search", "find_glob"))
    example = {"pattern": "**/*.tsx", "path": "src"}
    pattern: Annotated[str, Parameter("Glob pattern (e.g., **/*.rs)", "glob", "query")]
    path: Annotated[PathText, Parameter("Base path for search", *DIRECTORY)] = "."
    case_sensitive: Annotated[bool, Parameter("Case-sensitive matching")] = False


class BladeGrepSearch(ToolClass):
    """Search file contents using regex patterns. Gives filepath:line_number:line_content."""

    naming = ToolMetadata(
        "grep_search",
        ops.Grep,
        second_names=("rg",),
        aliases=("grep", "ripgrep", "search", "search_file_content", "search_code"),
    )
    example = {"pattern": "fn\\s+main", "path": "src"}
    pattern: Annotated[str, Parameter("Regex pattern to search", *PATTERN)]
    path: Annotated[PathText, Parameter("Directory to search", *DIRECTORY, *PATH)] = "."


class CodebaseSearch(ToolClass):
    """Search with regex in files such as *.rs,*.toml, with context lines around matches."""

    naming = ToolMetadata("codebase_search", aliases=("search_codebase", "code_search"))
    example = {"query": "struct.*Config", "file_pattern": "*.rs", "max_results": 20}
    query: Annotated[str, Parameter("Regex pattern to search", *PATTERN)]
    file_pattern: Annotated[
        str | None, Parameter("Filter files (e.g., *.rs,*.toml)", "include", "glob", "file_patterns")
    ] = None
    max_results: Annotated[int, Parameter("Maximum results", "limit")] = 50

    def to_operation(self) -> ops.Operation:
        patterns = tuple(part.strip() for part in (self.file_pattern or "").split(",") if part.strip())
        return ops.Grep(self.query, ".", patterns, CONTEXT_LINES, self.max_results)

    render = render_as(result_formatting.format_matches_with_context, "query")


Source = Annotated[PathText, Parameter("Source path", *SOURCE, "path", "file_path", "file", "filename")]

Destination = Annotated[PathText, Parameter("Destination path", *DESTINATION)]

StartHint = Annotated[int | None, Parameter("First line (1-indexed), to select one of several matches")]

EndHint = Annotated[int | None, Parameter("Last line (1-indexed), to select one of several matches")]

ReplaceAll = SkipJsonSchema[bool]
"""Type of an argument that is not in Blade's document. Prompts do not list it, but it is accepted, because models know
it from other programs."""


class BladeWriteFile(ToolClass):
    """Write content to a file. Creates parent directories if needed."""

    naming = ToolMetadata(
        "write_file",
        ops.WriteText,
        second_names=("create_file",),
        aliases=("write", "create", "save_file", "write_to_file", "new_file"),
    )
    example = {"path": "src/new_module.rs", "content": 'pub fn hello() {\n    println!("Hello!");\n}\n'}
    path: FilePath
    content: Annotated[str, Parameter("Content to write", *CONTENT)]


_EDIT_FILE_NAMES = ops.ParameterNames("old_content", "new_content", start_line=None)


class EditFile(ToolClass):
    """Replace old_content, which must occur once, by new_content."""

    naming = ToolMetadata(
        "edit_file",
        aliases=("edit", "replace", "str_replace", "search_replace", "search_and_replace", "replace_in_file"),
        effect="write",
    )
    example = {"path": "src/main.rs", "old_content": "fn old_function()", "new_content": "fn new_function()"}
    path: FilePath
    old_content: Annotated[str, Parameter("Text to find", *OLD_TEXT)]
    new_content: Annotated[str, Parameter("Replacement text", *NEW_TEXT)]
    replace_all: ReplaceAll = False

    def to_operation(self) -> ops.Operation:
        patch = ops.Patch(self.old_content, self.new_content, replace_all=self.replace_all)
        return ops.PatchText(self.path, (patch,), names=_EDIT_FILE_NAMES)


class PatchArguments(NestedModel):
    """One patch in a list."""

    old_text: Annotated[str, Parameter("Text to find", *OLD_TEXT)]
    new_text: Annotated[str, Parameter("Replacement text", *NEW_TEXT)]
    start_line: StartHint = None
    end_line: EndHint = None
    replace_all: ReplaceAll = False


class ApplyEdit(ToolClass):
    """Apply search/replace edits: one by old_text and new_text, or several at once by patches.

    All patches are checked before any is applied; if one fails, nothing is changed. Without a path, patches is one
    text for several files: a unified diff, or a "*** Begin Patch" envelope, which may add, move and delete files.
    """

    naming = ToolMetadata(
        "apply_edit",
        second_names=("apply_patch",),
        aliases=("multi_edit", "multiedit", "patch_file", "apply_diff"),
        effect="write",
    )
    example = {"path": "src/lib.rs", "old_text": "let x = 5;", "new_text": "let x = 10;"}
    path: Annotated[
        PathText | None, Parameter("File path (relative to workspace or absolute)", *PATH, is_required=True)
    ] = None
    old_text: Annotated[str | None, Parameter("Text to find and replace", *OLD_TEXT)] = None
    new_text: Annotated[str | None, Parameter("Replacement text", *NEW_TEXT)] = None
    start_line: StartHint = None
    end_line: EndHint = None
    replace_all: ReplaceAll = False
    patches: Annotated[
        list[PatchArguments] | SkipJsonSchema[str] | None,
        Parameter("Several patches, instead of old_text and new_text", "edits", "patch", "diff", "input"),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _accept_notation(cls, value: Json) -> Json:
        """Accept a diff, an envelope or SEARCH/REPLACE blocks instead of the list of patches, or as its only item."""
        patches = value.get("patches") if isinstance(value, dict) else None
        if isinstance(patches, list) and len(patches) == 1:
            patches = patches[0]
        return {**value, "patches": patches} if isinstance(patches, str) and is_known_notation(patches) else value

    @model_validator(mode="after")
    def _check_form(self) -> ApplyEdit:
        single = self.old_text is not None or self.new_text is not None
        if isinstance(self.patches, str):
            self._check_text(self.patches)
        elif not self.path:
            raise ValueError("'path' is missing (string)")
        if single and self.patches and not self._are_equal(self.patches):
            raise ValueError("pass either old_text and new_text, or patches, not both")
        if not single and not self.patches:
            raise ValueError("pass old_text and new_text, or a list of at least one patch")
        if single and (self.old_text is None or self.new_text is None):
            raise ValueError(f"{'old_text' if self.old_text is None else 'new_text'} is missing")
        return self

    def _are_equal(self, patches: list[PatchArguments] | str) -> bool:
        """Return whether ``patches`` is only the patch that old_text and new_text already describe."""
        only = patches[0] if isinstance(patches, list) and len(patches) == 1 else None
        return only is not None and (only.old_text, only.new_text) == (self.old_text, self.new_text)

    def _check_text(self, text: str) -> None:
        if self.path and not is_known_notation(text):
            raise ValueError(f"patches must be a list or the text of a patch, got {text[:60]!r}")
        try:
            parse_patches(text) if self.path else parse_file_edits(text)
        except FormatError as error:
            raise ValueError(str(error)) from error

    def to_operation(self) -> ops.Operation:
        if isinstance(self.patches, str):
            if self.path:
                return ops.PatchText(self.path, parse_patches(self.patches))
            return ops.PatchFiles(parse_file_edits(self.patches))
        if self.patches:
            value = tuple(ops.Patch(**dict(item)) for item in self.patches)
        else:
            value = (
                ops.Patch(self.old_text or "", self.new_text or "", self.start_line, self.end_line, self.replace_all),
            )
        return ops.PatchText(self.path or "", value)


class DeleteFile(ToolClass):
    """Delete a file, or a directory if recursive is true."""

    naming = ToolMetadata(
        "delete_file", ops.Delete, aliases=("delete", "remove", "remove_file", "rm", "delete_directory")
    )
    example = {"path": "temp/old_file.txt"}
    path: Annotated[PathText, Parameter("Path to delete", *PATH, *DIRECTORY)]
    recursive: Annotated[bool, Parameter("Required for directories")] = False


class MoveFile(ToolClass):
    """Move or rename a file."""

    naming = ToolMetadata("move_file", ops.Move, aliases=("move", "rename", "rename_file", "mv"))
    example = {"source": "src/old_name.rs", "destination": "src/new_name.rs"}
    source: Source
    destination: Destination


class CopyFile(ToolClass):
    """Copy a file, or a directory with its contents."""

    naming = ToolMetadata("copy_file", ops.Copy, aliases=("copy", "cp", "copy_directory"))
    example = {"source": "templates/base.html", "destination": "src/templates/base.html"}
    source: Source
    destination: Destination


class CreateDirectory(ToolClass):
    """Create a directory, and its parents if needed."""

    naming = ToolMetadata(
        "create_directory", ops.MakeDirectory, aliases=("mkdir", "make_directory", "create_dir", "create_folder")
    )
    example = {"path": "src/modules/new_feature"}
    path: Annotated[PathText, Parameter("Directory path to create", *DIRECTORY, *PATH)]


class RunCommandLine(ToolClass):
    """Execute a shell command. The user is asked first."""

    naming = ToolMetadata(
        "run_command",
        ops.RunCommand,
        aliases=("bash", "shell", "sh", "terminal", "execute", "execute_command", "run_shell_command", "run"),
    )
    example = {"command": "cargo build --release", "cwd": "."}
    command: Annotated[CommandText, Parameter("Shell command to execute", *COMMAND)]
    cwd: Annotated[PathText, Parameter("Working directory", *WORKING_DIRECTORY, is_required=True)] = "."

    def render(self, run: ops.CommandOutput) -> Rendered:
        return result_formatting.format_command(run), {"exit_code": run.exit_code, "timed_out": run.timed_out}

    def list_notes(self) -> tuple[str, ...]:
        return () if "cwd" in self.model_fields_set else ("cwd was missing; '.' (the workspace root) was used",)


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


DIALECT = Dialect(
    name="blade",
    title="Zaguan Blade",
    classes=(
        *(BladeReadFile, ReadFileRange, BladeWriteFile, EditFile, ApplyEdit, DeleteFile, MoveFile, CopyFile),
        *(GetFileInfo, CreateDirectory, BladeListDirectory, GetWorkspaceStructure, BladeFindFiles, FindFilesGlob),
        *(BladeGrepSearch, CodebaseSearch),
        *(EditorStateTool, OpenFile, GoToLineTool, GetSelectionTool, ReplaceSelectionTool, InsertAtCursorTool),
        RunCommandLine,
    ),
)
