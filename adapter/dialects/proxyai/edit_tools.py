"""ProxyAI's tools that change files."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from adapter.dialects import result_formatting
from adapter.dialects.proxyai.parameters import FilePath, render_file_error
from adapter.dialects.tool_class import Aliases, Rendered, ToolClass, ToolMetadata, require_outcome
from adapter.tools.argument_synonyms import CONTENT, NEW_TEXT, OLD_TEXT
from adapter.tools.operations import (
    FilePatched,
    FileWritten,
    Operation,
    Outcome,
    ParameterNames,
    Patch,
    PatchText,
    WriteText,
)
from adapter.tools.schema_simplify import REQUIRED_KEY

PREVIEW_CHARACTERS = 200
"""Maximum length of the previews of an edit's old and new text, in characters."""


class ProxyAIEdit(ToolClass):
    """Replace an exact text in a file, which must occur once unless replace_all is given. The user is asked first."""

    naming = ToolMetadata(
        "Edit",
        aliases=("Replace", "ReplaceText", "str_replace", "search_replace", "edit_file"),
        effect="write",
        example={
            "file_path": "/project/src/main.py",
            "old_string": "retries = 3",
            "new_string": "retries = 5",
            "short_description": "Raise the number of retries",
        },
        label="short_description",
        failure=render_file_error,
    )
    file_path: FilePath
    old_string: Annotated[str, Field(description="Text to replace, exactly as in the file"), Aliases(*OLD_TEXT)]
    new_string: Annotated[str, Field(description="Text to put there; may be empty"), Aliases(*NEW_TEXT)]
    short_description: Annotated[
        str,
        Field(description="What the edit does, shown to the user", json_schema_extra={REQUIRED_KEY: True}),
        Aliases("description"),
    ] = ""
    replace_all: Annotated[bool, Field(description="Replace every occurrence"), Aliases("replaceAll", "all")] = False

    def to_operation(self) -> Operation:
        patch = Patch(self.old_string, self.new_string, replace_all=self.replace_all, exact=True)
        names = ParameterNames("old_string", "new_string", None, "replace_all")
        return PatchText(self.file_path, (patch,), names=names)

    def render(self, outcome: Outcome) -> Rendered:
        patched = require_outcome(outcome, FilePatched)
        count = len(patched.places)
        message = f"Replaced {count} occurrence{'' if count == 1 else 's'} in {patched.path}."
        fields = {
            "filePath": self.file_path,
            "replacementsMade": count,
            "message": message,
            "oldStringPreview": _shorten_preview(self.old_string),
            "newStringPreview": _shorten_preview(self.new_string),
            "editLocations": [
                {"line": place.line, "column": place.column, "context": place.context} for place in patched.places
            ],
        }
        return message, fields


def _shorten_preview(text: str) -> str | None:
    return text if len(text) <= PREVIEW_CHARACTERS else text[: PREVIEW_CHARACTERS - 3] + "..."


class ProxyAIWrite(ToolClass):
    """Create a file, or overwrite one with new contents. The user is asked first."""

    naming = ToolMetadata(
        "Write",
        aliases=("WriteFile", "create_file", "save_file"),
        effect="write",
        example={"file_path": "/project/notes.txt", "content": "first line\n"},
        failure=render_file_error,
    )
    file_path: FilePath
    content: Annotated[str, Field(description="The whole contents of the file"), Aliases(*CONTENT)]

    def to_operation(self) -> Operation:
        return WriteText(self.file_path, self.content)

    def render(self, outcome: Outcome) -> Rendered:
        written = require_outcome(outcome, FileWritten)
        message = result_formatting.format_written(written)
        fields = {
            "filePath": self.file_path,
            "bytesWritten": written.size,
            "isNewFile": written.created,
            "message": message,
        }
        return message, fields
