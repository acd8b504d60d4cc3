"""Recognize tools that can do damage."""

from __future__ import annotations

import re

from adapter.tools.tool import Tool

_RISKY = re.compile(r"(?i)delete|remove|unlink|erase|drop|move|rename|overwrite|run|shell|exec|kill")


def is_risky(tool: Tool) -> bool:
    """Return whether a tool deletes, moves or overwrites data, or executes commands."""
    return tool.effect in ("delete", "execute") or bool(_RISKY.search(tool.name))
