"""The tools of a dialect as reading needs them: names and parameters, without the classes that know what they do.

`definitions.json` has what the classes say (``python -m tests.generate`` writes it): making them takes
longer than reading a megabyte of text.
"""

from __future__ import annotations

import json
from pkgutil import get_data

from adapter.core.events import JsonObject
from adapter.tools.tool import Tool, ToolSet

FIELDS = ("name", "description", "parameters", "unlisted", "aliases", "argument_aliases", "effect")


def load_tools(dialect: str) -> ToolSet | None:
    """The tools of ``dialect``, by its own name, which can be matched and not validated; None where no row is kept."""
    rows: dict[str, list[JsonObject]] = json.loads(get_data(__package__, "definitions.json") or b"{}")
    return ToolSet(Tool(**row) for row in rows[dialect]) if dialect in rows else None
