"""What several kinds of Maki's tools share."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from adapter.core.events import Json
from adapter.dialects.tool_class import Aliases
from adapter.tools.argument_synonyms import PATH

FilePath = Annotated[str, Field(description="Absolute path (or relative to the project root)"), Aliases(*PATH)]


def _unsigned(number: int) -> int:
    """What the document calls u64 and usize."""
    if number < 0:
        raise ValueError(f"{number} is negative")
    return number


Unsigned = Annotated[int, AfterValidator(_unsigned)]


def _lower(given: Json) -> Json:
    return given.strip().lower() if isinstance(given, str) else given
