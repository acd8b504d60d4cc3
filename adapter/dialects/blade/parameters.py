"""The path parameter shared by Blade's tools."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from adapter.dialects.tool_class import Aliases
from adapter.tools.argument_synonyms import PATH

FilePath = Annotated[str, Field(description="File path (relative to workspace or absolute)"), Aliases(*PATH)]
