"""The tools of Zaguan Blade, as its "Tool Calls Reference" documents them.

Names, arguments, defaults and result shapes are the document's; aliases are the
document's and those that models use instead. The six editor tools are offered
when the host has an editor.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

from pydantic import Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from adapter.customary import (
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
from adapter.dialects import wording
from adapter.dialects.base import Aliases, Dialect, Naming, NestedArguments, Rendered, ToolArguments, expect
from adapter.dialects.schema import REQUIRED_KEY
from adapter.edits.given import file_edits_in
from adapter.edits.notations import is_notation, read_patches
from adapter.errors import FormatError
from adapter.events import Json, JsonObject
from adapter.operations import (
    CommandOutput,
    Copy,
    Delete,
    Done,
    EditorState,
    FileInfo,
    FilesPatched,
    FileText,
    FindByName,
    GetEditorState,
    GetSelection,
    Glob,
    GoToLine,
    Grep,
    GrepHits,
    InsertAtCursor,
    Listing,
    MakeDirectory,
    Move,
    OpenInEditor,
    Operation,
    Outcome,
    Patch,
    Patched,
    PatchFiles,
    PatchNames,
    PatchText,
    Paths,
    ReadText,
    ReplaceSelection,
    RunCommand,
    SelectedText,
    Stat,
    Tree,
    WriteText,
    Written,
)

MAX_STRUCTURE_ENTRIES = 200
"""Of `get_workspace_structure`, as its document says."""
CONTEXT_LINES = 2


FilePath = Annotated[str, Field(description="File path (relative to workspace or absolute)"), Aliases(*PATH)]
AnyPath = Annotated[str, Field(description="Path"), Aliases(*PATH, *DIRECTORY)]
StartPath = Annotated[str, Field(description="Directory path"), Aliases(*DIRECTORY, *PATH)]
Source = Annotated[str, Field(description="Source path"), Aliases(*SOURCE)]
Destination = Annotated[
    str,
    Field(description="Destination path"),
    Aliases(*DESTINATION),
]

StartHint = Annotated[int | None, Field(description="First line (1-indexed), to tell equal places apart")]
EndHint = Annotated[int | None, Field(description="Last line (1-indexed), to tell equal places apart")]
ReplaceAll = SkipJsonSchema[bool]
"""Blade's edits have no such argument, but models know it from elsewhere: taken, and not shown."""


# ------------------------------------------------------------------------ files


class ReadFile(ToolArguments):
    """Read the complete contents of a file."""

    naming = Naming(
        "read_file", aliases=("read", "cat", "view", "view_file", "open", "get_file"), example={"path": "src/main.rs"}
    )
    path: FilePath

    def operation(self) -> Operation:
        return ReadText(self.path)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.whole_text(expect(outcome, FileText)), None


class ReadFileRange(ToolArguments):
    """Read a specific line range from a file with optional context."""

    naming = Naming(
        "read_file_range",
        aliases=("read_range", "read_lines", "view_range"),
        example={"path": "src/lib.rs", "start_line": 50, "end_line": 100, "context_lines": 3},
    )
    path: FilePath
    start_line: Annotated[int, Field(description="Start line (1-indexed)"), Aliases("start", "from_line", "line")] = 1
    end_line: Annotated[
        int | None, Field(description="End line (1-indexed, default: end of file)"), Aliases("end", "to_line")
    ] = None
    context_lines: Annotated[int, Field(description="Extra context lines before/after range"), Aliases("context")] = 0

    def operation(self) -> Operation:
        return ReadText(self.path, self.start_line, self.end_line, self.context_lines)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.numbered_text(expect(outcome, FileText)), None


class WriteFile(ToolArguments):
    """Write content to a file. Creates parent directories if needed."""

    naming = Naming(
        "write_file",
        second_names=("create_file",),
        aliases=("write", "create", "save_file", "write_to_file", "new_file"),
        effect="write",
        example={"path": "src/new_module.rs", "content": 'pub fn hello() {\n    println!("Hello!");\n}\n'},
    )
    path: FilePath
    content: Annotated[str, Field(description="Content to write"), Aliases(*CONTENT)]

    def operation(self) -> Operation:
        return WriteText(self.path, self.content)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.written_text(expect(outcome, Written)), None


_EDIT_FILE_NAMES = PatchNames("old_content", "new_content", start_line=None)


class EditFile(ToolArguments):
    """Replace text in a file: old_content, which must occur once, by new_content."""

    naming = Naming(
        "edit_file",
        aliases=("edit", "replace", "str_replace", "search_replace", "search_and_replace", "replace_in_file"),
        effect="write",
        example={
            "path": "src/main.rs",
            "old_content": "fn old_function()",
            "new_content": "fn new_function()",
        },
    )
    path: FilePath
    old_content: Annotated[str, Field(description="Text to find"), Aliases(*OLD_TEXT)]
    new_content: Annotated[str, Field(description="Replacement text"), Aliases(*NEW_TEXT)]
    replace_all: ReplaceAll = False

    def operation(self) -> Operation:
        patch = Patch(self.old_content, self.new_content, replace_all=self.replace_all)
        return PatchText(self.path, (patch,), names=_EDIT_FILE_NAMES)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.patched_text(expect(outcome, Patched)), None


class PatchArguments(NestedArguments):
    """One patch of a list."""

    old_text: Annotated[str, Field(description="Text to find"), Aliases(*OLD_TEXT)]
    new_text: Annotated[str, Field(description="Replacement text"), Aliases(*NEW_TEXT)]
    start_line: StartHint = None
    end_line: EndHint = None
    replace_all: ReplaceAll = False


class ApplyEdit(ToolArguments):
    """Apply search/replace edits: one by old_text and new_text, or several at once by patches.

    All patches are checked before any is applied; if one fails, nothing is changed. Without a path, patches is one
    text for several files: a unified diff, or a "*** Begin Patch" envelope, which may add, move and delete files.
    """

    naming = Naming(
        "apply_edit",
        second_names=("apply_patch",),
        aliases=("multi_edit", "multiedit", "patch_file", "apply_diff"),
        effect="write",
        example={"path": "src/lib.rs", "old_text": "let x = 5;", "new_text": "let x = 10;"},
    )
    path: Annotated[
        str | None,
        Field(description="File path (relative to workspace or absolute)", json_schema_extra={REQUIRED_KEY: True}),
        Aliases(*PATH),
    ] = None
    old_text: Annotated[str | None, Field(description="Text to find and replace"), Aliases(*OLD_TEXT)] = None
    new_text: Annotated[str | None, Field(description="Replacement text"), Aliases(*NEW_TEXT)] = None
    start_line: StartHint = None
    end_line: EndHint = None
    replace_all: ReplaceAll = False
    patches: Annotated[
        list[PatchArguments] | SkipJsonSchema[str] | None,
        Field(description="Several patches, instead of old_text and new_text"),
        Aliases("edits", "patch", "diff", "input"),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _notation_as_patches(cls, given: Json) -> Json:
        """A diff, an envelope or SEARCH/REPLACE blocks in place of the list; without a path they stay as they are."""
        written = given.get("patches") if isinstance(given, dict) else None
        if isinstance(written, list) and len(written) == 1:
            written = written[0]
        if not isinstance(written, str) or not is_notation(written):
            return given
        try:
            if not given.get("path"):
                return {**given, "patches": written}
            return {**given, "patches": [asdict(patch) for patch in read_patches(written)]}
        except FormatError as error:
            raise ValueError(str(error)) from error

    @model_validator(mode="after")
    def _one_form(self) -> ApplyEdit:
        single = self.old_text is not None or self.new_text is not None
        if isinstance(self.patches, str):
            self._check_text(self.patches)
        elif not self.path:
            raise ValueError("'path' is missing (string)")
        if single and self.patches:
            raise ValueError("give either old_text and new_text, or patches, not both")
        if not single and not self.patches:
            raise ValueError("give old_text and new_text, or a list of patches with at least one patch")
        if single and (self.old_text is None or self.new_text is None):
            raise ValueError(f"{'old_text' if self.old_text is None else 'new_text'} is missing")
        return self

    def _check_text(self, text: str) -> None:
        if self.path:
            raise ValueError(f"patches is {text[:60]!r}: expected a list, or the text of a patch")
        try:
            file_edits_in(text)
        except FormatError as error:
            raise ValueError(str(error)) from error

    def operation(self) -> Operation:
        if isinstance(self.patches, str):
            return PatchFiles(file_edits_in(self.patches))
        if self.patches:
            given = tuple(Patch(**dict(item)) for item in self.patches)
        else:
            given = (Patch(self.old_text or "", self.new_text or "", self.start_line, self.end_line, self.replace_all),)
        return PatchText(self.path or "", given)

    def render(self, outcome: Outcome) -> Rendered:
        if isinstance(outcome, FilesPatched):
            return wording.files_patched_text(outcome), None
        return wording.patched_text(expect(outcome, Patched)), None


class DeleteFile(ToolArguments):
    """Delete a file or directory."""

    naming = Naming(
        "delete_file",
        aliases=("delete", "remove", "remove_file", "rm", "delete_directory"),
        effect="delete",
        example={"path": "temp/old_file.txt"},
    )
    path: Annotated[str, Field(description="Path to delete"), Aliases(*PATH, *DIRECTORY)]
    recursive: Annotated[bool, Field(description="Required for directories")] = False

    def operation(self) -> Operation:
        return Delete(self.path, self.recursive)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.deleted_text(expect(outcome, Done)), None


class MoveFile(ToolArguments):
    """Move or rename a file."""

    naming = Naming(
        "move_file",
        aliases=("move", "rename", "rename_file", "mv"),
        effect="write",
        example={"source": "src/old_name.rs", "destination": "src/new_name.rs"},
    )
    source: Source
    destination: Destination

    def operation(self) -> Operation:
        return Move(self.source, self.destination)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.moved_text(expect(outcome, Done)), None


class CopyFile(ToolArguments):
    """Copy a file or directory (recursive for directories)."""

    naming = Naming(
        "copy_file",
        aliases=("copy", "cp", "copy_directory"),
        effect="write",
        example={"source": "templates/base.html", "destination": "src/templates/base.html"},
    )
    source: Source
    destination: Destination

    def operation(self) -> Operation:
        return Copy(self.source, self.destination)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.copied_text(expect(outcome, Done)), None


class GetFileInfo(ToolArguments):
    """Get metadata about a file or directory."""

    naming = Naming("get_file_info", aliases=("file_info", "stat", "file_stat"), example={"path": "Cargo.toml"})
    path: Annotated[str, Field(description="Path to inspect"), Aliases(*PATH, *DIRECTORY)]

    def operation(self) -> Operation:
        return Stat(self.path)

    def render(self, outcome: Outcome) -> Rendered:
        info = asdict(expect(outcome, FileInfo))
        fields = {name: info[name] for name in ("path", "size", "is_directory", "is_file", "readonly", "modified")}
        return json.dumps(fields, ensure_ascii=False), fields


class CreateDirectory(ToolArguments):
    """Create a directory (and parent directories if needed)."""

    naming = Naming(
        "create_directory",
        aliases=("mkdir", "make_directory", "create_dir", "create_folder"),
        effect="write",
        example={"path": "src/modules/new_feature"},
    )
    path: Annotated[str, Field(description="Directory path to create"), Aliases(*DIRECTORY, *PATH)]

    def operation(self) -> Operation:
        return MakeDirectory(self.path)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.made_text(expect(outcome, Done)), None


# ------------------------------------------------------- directories and search


class ListDirectory(ToolArguments):
    """List directory contents with tree view."""

    naming = Naming(
        "list_directory",
        second_names=("list_dir",),
        aliases=("ls", "list_files", "list", "tree"),
        example={"path": "src", "max_depth": 2},
    )
    path: StartPath = "."
    max_depth: Annotated[int, Field(description="Max traversal depth"), Aliases("depth")] = 1

    def operation(self) -> Operation:
        return Tree(self.path, self.max_depth)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.tree_text(expect(outcome, Listing)), None


class GetWorkspaceStructure(ToolArguments):
    """Get a tree view of the workspace structure. Leaves out node_modules, target, .git and the like."""

    naming = Naming(
        "get_workspace_structure",
        aliases=("workspace_structure", "project_structure", "get_project_structure"),
        example={"path": ".", "depth": 3, "limit": 100},
    )
    path: Annotated[str, Field(description="Starting path"), Aliases(*DIRECTORY, *PATH)] = "."
    depth: Annotated[int, Field(description="Max depth"), Aliases("max_depth")] = 2
    limit: Annotated[int, Field(description="Max entries (at most 200)"), Aliases("max_entries")] = 50

    def operation(self) -> Operation:
        return Tree(
            self.path, self.depth, max(1, min(self.limit, MAX_STRUCTURE_ENTRIES)), skip_common=True, gitignore=True
        )

    def render(self, outcome: Outcome) -> Rendered:
        return wording.tree_text(expect(outcome, Listing)), None

    def notes(self) -> tuple[str, ...]:
        if self.limit <= MAX_STRUCTURE_ENTRIES:
            return ()
        return (f"limit {self.limit} was cut to {MAX_STRUCTURE_ENTRIES}, the most that is possible",)


class FindFiles(ToolArguments):
    """Find files by name pattern (substring match)."""

    naming = Naming(
        "find_files",
        aliases=("find", "find_file", "search_files", "file_search"),
        example={"pattern": "test", "path": "src", "max_depth": 5},
    )
    pattern: Annotated[
        str, Field(description="Substring to match in filenames"), Aliases("query", "name", "filename", "substring")
    ]
    path: Annotated[str, Field(description="Starting path"), Aliases(*DIRECTORY)] = "."
    max_depth: Annotated[int | None, Field(description="Max search depth"), Aliases("depth")] = None

    def operation(self) -> Operation:
        return FindByName(self.pattern, self.path, self.max_depth)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.paths_text(expect(outcome, Paths), self.pattern), None


class FindFilesGlob(ToolArguments):
    """Find files using glob patterns."""

    naming = Naming(
        "find_files_glob",
        second_names=("glob",),
        aliases=("glob_search", "find_glob"),
        example={"pattern": "**/*.tsx", "path": "src"},
    )
    pattern: Annotated[str, Field(description="Glob pattern (e.g., **/*.rs)"), Aliases("glob", "query")]
    path: Annotated[str, Field(description="Base path for search"), Aliases(*DIRECTORY)] = "."
    case_sensitive: Annotated[bool, Field(description="Case-sensitive matching")] = False

    def operation(self) -> Operation:
        return Glob(self.pattern, self.path, self.case_sensitive)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.paths_text(expect(outcome, Paths), self.pattern), None


class GrepSearch(ToolArguments):
    """Search file contents using regex patterns. Gives filepath:line_number:line_content."""

    naming = Naming(
        "grep_search",
        second_names=("rg",),
        aliases=("grep", "ripgrep", "search", "search_file_content", "search_code"),
        example={"pattern": "fn\\s+main", "path": "src"},
    )
    pattern: Annotated[str, Field(description="Regex pattern to search"), Aliases(*PATTERN)]
    path: Annotated[str, Field(description="Directory to search"), Aliases(*DIRECTORY, *PATH)] = "."

    def operation(self) -> Operation:
        return Grep(self.pattern, self.path)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.grep_text(expect(outcome, GrepHits), self.pattern), None


class CodebaseSearch(ToolArguments):
    """Search codebase with context lines around matches."""

    naming = Naming(
        "codebase_search",
        aliases=("search_codebase", "code_search"),
        example={"query": "struct.*Config", "file_pattern": "*.rs", "max_results": 20},
    )
    query: Annotated[str, Field(description="Regex pattern to search"), Aliases(*PATTERN)]
    file_pattern: Annotated[
        str | None, Field(description="Filter files (e.g., *.rs,*.toml)"), Aliases("include", "glob", "file_patterns")
    ] = None
    max_results: Annotated[int, Field(description="Maximum results"), Aliases("limit")] = 50

    def operation(self) -> Operation:
        patterns = tuple(part.strip() for part in (self.file_pattern or "").split(",") if part.strip())
        return Grep(self.query, ".", patterns, CONTEXT_LINES, self.max_results)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.context_text(expect(outcome, GrepHits), self.query), None


# ----------------------------------------------------------------------- editor


def _state_fields(outcome: Outcome) -> JsonObject:
    """The seven documented fields."""
    fields = asdict(expect(outcome, EditorState))
    fields.pop("notes")
    return fields


class EditorStateTool(ToolArguments):
    """Get the editor's active file, open files, cursor and selection."""

    naming = Naming("get_editor_state", aliases=("editor_state", "get_editor_context"), needs="editor")

    def operation(self) -> Operation:
        return GetEditorState()

    def render(self, outcome: Outcome) -> Rendered:
        fields = _state_fields(outcome)
        return json.dumps(fields, ensure_ascii=False), fields


class OpenFile(ToolArguments):
    """Open a file in the editor."""

    naming = Naming(
        "open_file",
        aliases=("open_in_editor", "show_file"),
        effect="state",
        example={"path": "src/main.rs", "line": 42},
        needs="editor",
    )
    path: Annotated[str, Field(description="File path to open"), Aliases(*PATH)]
    line: Annotated[int | None, Field(description="Line number to jump to (1-indexed)"), Aliases("line_number")] = None

    def operation(self) -> Operation:
        return OpenInEditor(self.path, self.line)

    def render(self, outcome: Outcome) -> Rendered:
        state = expect(outcome, EditorState)
        return f"Opened {state.active_file}; the cursor is in line {state.cursor_line}.", _state_fields(outcome)


class GoToLineTool(ToolArguments):
    """Navigate to a specific line in the active file."""

    naming = Naming(
        "goto_line",
        aliases=("go_to_line", "jump_to_line"),
        effect="state",
        example={"line": 100, "column": 15},
        needs="editor",
    )
    line: Annotated[int, Field(description="Line number (1-indexed)"), Aliases("line_number")]
    column: Annotated[int | None, Field(description="Column number (1-indexed)"), Aliases("col", "character")] = None

    def operation(self) -> Operation:
        return GoToLine(self.line, self.column)

    def render(self, outcome: Outcome) -> Rendered:
        state = expect(outcome, EditorState)
        place = f"line {state.cursor_line}, column {state.cursor_column}"
        return f"The cursor is in {place} of {state.active_file}.", _state_fields(outcome)


class GetSelectionTool(ToolArguments):
    """Get the currently selected text in the editor."""

    naming = Naming("get_selection", aliases=("selection", "get_selected_text"), needs="editor")

    def operation(self) -> Operation:
        return GetSelection()

    def render(self, outcome: Outcome) -> Rendered:
        return expect(outcome, SelectedText).text, None


class ReplaceSelectionTool(ToolArguments):
    """Replace the current selection in the editor with new content."""

    naming = Naming("replace_selection", effect="write", example={"content": "new replacement text"}, needs="editor")
    content: Annotated[str, Field(description="Replacement content"), Aliases(*CONTENT)]

    def operation(self) -> Operation:
        return ReplaceSelection(self.content)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.patched_text(expect(outcome, Patched)), None


class InsertAtCursorTool(ToolArguments):
    """Insert content at the cursor position in the editor."""

    naming = Naming(
        "insert_at_cursor",
        aliases=("insert_text",),
        effect="write",
        example={"content": "// TODO: implement this\n"},
        needs="editor",
    )
    content: Annotated[str, Field(description="Content to insert"), Aliases(*CONTENT)]

    def operation(self) -> Operation:
        return InsertAtCursor(self.content)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.patched_text(expect(outcome, Patched)), None


# --------------------------------------------------------------------- commands


class RunCommandLine(ToolArguments):
    """Execute a shell command. The user is asked first."""

    naming = Naming(
        "run_command",
        aliases=("bash", "shell", "sh", "terminal", "execute", "execute_command", "run_shell_command", "run"),
        effect="execute",
        example={"command": "cargo build --release", "cwd": "."},
    )
    command: Annotated[str, Field(description="Shell command to execute"), Aliases(*COMMAND)]
    cwd: Annotated[
        str,
        Field(description="Working directory", json_schema_extra={REQUIRED_KEY: True}),
        Aliases(*WORKING_DIRECTORY),
    ] = "."

    def operation(self) -> Operation:
        return RunCommand(self.command, self.cwd)

    def render(self, outcome: Outcome) -> Rendered:
        run = expect(outcome, CommandOutput)
        return wording.command_text(run), {"exit_code": run.exit_code, "timed_out": run.timed_out}

    def notes(self) -> tuple[str, ...]:
        return () if "cwd" in self.model_fields_set else ("cwd was missing, so '.' (the workspace root) was used",)


DIALECT = Dialect(
    name="blade",
    title="Zaguan Blade",
    classes=(
        ReadFile,
        ReadFileRange,
        WriteFile,
        EditFile,
        ApplyEdit,
        DeleteFile,
        MoveFile,
        CopyFile,
        GetFileInfo,
        CreateDirectory,
        ListDirectory,
        GetWorkspaceStructure,
        FindFiles,
        FindFilesGlob,
        GrepSearch,
        CodebaseSearch,
        EditorStateTool,
        OpenFile,
        GoToLineTool,
        GetSelectionTool,
        ReplaceSelectionTool,
        InsertAtCursorTool,
        RunCommandLine,
    ),
)
