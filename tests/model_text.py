"""Text as models write it."""

from __future__ import annotations

import json
from typing import Any


def call(name: str, **arguments: Any) -> str:
    """Return a call in the format hermes."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"
