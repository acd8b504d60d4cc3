"""Parameter types and error results shared by several of ProxyAI's tools."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from adapter.core.errors import ToolError
from adapter.core.events import Json, JsonObject
from adapter.dialects.tool_class import Aliases
from adapter.tools.argument_synonyms import PATH

FilePath = Annotated[str, Field(description="Absolute path of the file"), Aliases(*PATH)]


def render_file_error(arguments: JsonObject, error: ToolError) -> Json:
    return {"filePath": arguments.get("file_path"), "error": str(error)}


def render_message(_arguments: JsonObject, error: ToolError) -> Json:
    return {"message": str(error)}
