"""Names of the parsers, for both engines."""

from __future__ import annotations

from adapter.parsing.formats import FORMATS

NAME = "adapter"
"""Name of the parsers that detect the format. Other parsers have this name with a format appended."""


def list_parser_names() -> dict[str, str | None]:
    """Map each parser name to its format. None means that the format is detected."""
    return {NAME: None} | {f"{NAME}_{format}": format for format in FORMATS}
