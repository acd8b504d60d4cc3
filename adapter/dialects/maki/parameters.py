"""Parameter types shared by several of Maki's tools."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from adapter.core.events import Json
from adapter.dialects.tool_class import Aliases
from adapter.tools.argument_synonyms import PATH

FilePath = Annotated[str, Field(description="Absolute path (or relative to the project root)"), Aliases(*PATH)]


def lower_text(value: Json) -> Json:
    return value.strip().lower() if isinstance(value, str) else value
