"""List the names that the parsers are registered with in both engines."""

from __future__ import annotations

from adapter.parsing.formats import FORMATS

NAME = "adapter"
"""Name of the parsers that detect the format. Parsers for one format append its name: ``adapter_hermes``."""


def list_parser_names() -> dict[str, str | None]:
    """Map each parser name to its format. None means that the format is detected."""
    return {NAME: None} | {f"{NAME}_{format}": format for format in FORMATS}
