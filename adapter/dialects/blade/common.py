"""What several kinds of Blade's tools share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from adapter.dialects.base import Aliases
from adapter.tools.customary import (
    DIRECTORY,
    PATH,
)

FilePath = Annotated[str, Field(description="File path (relative to workspace or absolute)"), Aliases(*PATH)]


AnyPath = Annotated[str, Field(description="Path"), Aliases(*PATH, *DIRECTORY)]
