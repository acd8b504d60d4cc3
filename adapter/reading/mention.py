"""Tells a marker that prose only names from one that opens a call, once its reader has failed.

``Put the call in <tool_call>.`` and ``[TOOL_CALLS]NAME{...} is the old form`` stand in a sentence
and hold nothing of a call; what stands at the beginning of a line was meant, however broken it is.
"""

from __future__ import annotations

import re

from adapter.reading.format import Reading
from adapter.tools.definition import ToolSet

LIMIT = 400
"""Characters that a failed reader may have taken of what is prose: they are read again."""

_BEGINS_JSON = re.compile(r"\s*[{\[]\s*[\"'\w{\[“]")
_INNER_TOKEN = re.compile(r"</|<[|｜]|[|｜]>|<\w+[=>]|\[\w+\]")
_WORD = re.compile(r"[\w.-]+")


def is_mention(marker: str, body: str, reading: Reading, tools: ToolSet) -> bool:
    """Whether ``body``, read after a ``marker`` that stands within a line, is the rest of a sentence."""
    if len(body) > LIMIT:
        return False
    if reading.calls:
        return "missing-close-tag" in reading.fixes and all(
            not call.arguments and (tools.match(call.name) is None) for call in reading.calls
        )
    if reading.error is None:
        return False
    body = body.replace(marker, " ")
    if _BEGINS_JSON.match(body) or _INNER_TOKEN.search(body):
        return False
    return not any(tools.match(word) for word in _WORD.findall(body))
