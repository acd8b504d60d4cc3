"""Load the names and parameters of a dialect's tools without importing their classes.

`definitions.json` is generated from the classes (``python -m tests.generate``), because importing the classes takes
longer than parsing a megabyte of text.
"""

from __future__ import annotations

import json
from pkgutil import get_data

from adapter.core.events import JsonObject
from adapter.tools.tool import Tool, ToolSet

FIELDS = ("name", "description", "parameters", "unlisted", "aliases", "argument_aliases", "effect")


def load_tools(dialect: str) -> ToolSet | None:
    """Return the tools of ``dialect`` for matching calls, without validation. Return None if the dialect is not in
    `definitions.json`."""
    rows: dict[str, list[JsonObject]] = json.loads(get_data(__package__, "definitions.json") or b"{}")
    return ToolSet(Tool(**row) for row in rows[dialect]) if dialect in rows else None
