"""What several kinds of ProxyAI's tools share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from adapter.core.errors import ToolError
from adapter.core.events import Json, JsonObject
from adapter.dialects.tool_class import Aliases
from adapter.tools.argument_synonyms import PATH

FilePath = Annotated[str, Field(description="Absolute path of the file"), Aliases(*PATH)]


def _file_error(given: JsonObject, error: ToolError) -> Json:
    return {"filePath": given.get("file_path"), "error": str(error)}


def _message(_given: JsonObject, error: ToolError) -> Json:
    return {"message": str(error)}
