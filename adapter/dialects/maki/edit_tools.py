"""Maki's tools that change files."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from adapter.dialects import result_formatting
from adapter.dialects.maki.parameters import FilePath
from adapter.dialects.tool_class import (
    Aliases,
    NestedModel,
    ToolClass,
    ToolMetadata,
    render_as,
)
from adapter.tools.argument_synonyms import CONTENT, NEW_TEXT, OLD_TEXT
from adapter.tools.operations import (
    FilePatched,
    FileWritten,
    Operation,
    ParameterNames,
    Patch,
    PatchText,
    WriteText,
)

OldString = Annotated[str, Field(description="Exact string to find"), Aliases(*OLD_TEXT)]


NewString = Annotated[str, Field(description="Replacement string"), Aliases(*NEW_TEXT)]


ReplaceAll = Annotated[bool, Field(description="Replace all occurrences"), Aliases("all")]


_NAMES = ParameterNames("old_string", "new_string", None, "replace_all")


class MakiWrite(ToolClass):
    """Overwrite a file with its complete new content. Creates parent directories if needed."""

    naming = ToolMetadata(
        "write",
        aliases=("write_file", "create_file", "create", "save_file", "write_to_file", "new_file"),
        effect="write",
        example={"path": "src/version.rs", "content": 'pub const VERSION: &str = "2";\n'},
    )
    path: FilePath
    content: Annotated[
        str,
        Field(description="Complete file content"),
        Aliases(*CONTENT),
    ]

    def to_operation(self) -> Operation:
        return WriteText(self.path, self.content)

    render = render_as(FileWritten, result_formatting.format_written)


class MakiEdit(ToolClass):
    """Replace an exact string in a file, which must be unique unless replace_all is set."""

    naming = ToolMetadata(
        "edit",
        aliases=(
            "edit_file",
            "apply_edit",
            "str_replace",
            "replace",
            "search_replace",
            "search_and_replace",
            "replace_in_file",
        ),
        effect="write",
        example={"path": "src/main.rs", "old_string": "let port = 8000;", "new_string": "let port = 9000;"},
    )
    path: FilePath
    old_string: OldString
    new_string: NewString
    replace_all: ReplaceAll = False

    def to_operation(self) -> Operation:
        patch = Patch(self.old_string, self.new_string, replace_all=self.replace_all, exact=True)
        return PatchText(self.path, (patch,), names=_NAMES)

    render = render_as(FilePatched, result_formatting.format_patched)


class EditItem(NestedModel):
    """One replacement in a list."""

    old_string: OldString
    new_string: NewString
    replace_all: ReplaceAll = False


class MultiEdit(ToolClass):
    """Apply several replacements to one file in order, all or none. Each sees the result of those before it."""

    naming = ToolMetadata(
        "multiedit",
        aliases=("edit_many", "multi_edit_file", "multi_replace"),
        effect="write",
        example={
            "path": "src/main.rs",
            "edits": [
                {"old_string": "let port = 8000;", "new_string": "let port = 9000;"},
                {"old_string": "old_name", "new_string": "new_name", "replace_all": True},
            ],
        },
    )
    path: FilePath
    edits: Annotated[
        list[EditItem],
        Field(description="Replacements, in order"),
        Aliases("patches", "replacements", "changes"),
    ]

    def to_operation(self) -> Operation:
        patches = tuple(
            Patch(one.old_string, one.new_string, replace_all=one.replace_all, exact=True) for one in self.edits
        )
        return PatchText(self.path, patches, basis="sequence", names=_NAMES)

    render = render_as(FilePatched, result_formatting.format_patched)
