"""Blade's tools that change files or run commands."""

from __future__ import annotations

from typing import Annotated

from pydantic import model_validator
from pydantic.json_schema import SkipJsonSchema

from adapter.core.errors import FormatError
from adapter.core.events import Json
from adapter.dialects import result_formatting
from adapter.dialects.blade.read_tools import FilePath
from adapter.dialects.tool_class import CommandText, NestedModel, Parameter, PathText, Rendered, ToolClass, ToolMetadata
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
    SOURCE,
    WORKING_DIRECTORY,
)

Source = Annotated[PathText, Parameter("Source path", *SOURCE, "path", "file_path", "file", "filename")]
Destination = Annotated[PathText, Parameter("Destination path", *DESTINATION)]
StartHint = Annotated[int | None, Parameter("First line (1-indexed), to select one of several matches")]
EndHint = Annotated[int | None, Parameter("Last line (1-indexed), to select one of several matches")]
ReplaceAll = SkipJsonSchema[bool]
"""Type of an argument that is not in Blade's document. Prompts do not list it, but calls may have it, because models
know it from other programs."""


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
        """Accept a diff, an envelope or SEARCH/REPLACE blocks instead of a list of patches, or as its only item."""
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
        """Return whether ``patches`` only repeats the patch in old_text and new_text."""
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
            return ops.PatchText(self.path or "", tuple(ops.Patch(**dict(item)) for item in self.patches))
        texts = self.old_text or "", self.new_text or ""
        return ops.PatchText(self.path or "", (ops.Patch(*texts, self.start_line, self.end_line, self.replace_all),))


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
