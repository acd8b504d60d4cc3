"""LM Studio's own: JSON between ``[TOOL_REQUEST]`` and ``[END_TOOL_REQUEST]``.

Format: LM Studio's documentation of tool use, "default tool use support", which it asks of every
model whose template has no tools. Results go back as a user's message.
"""

from __future__ import annotations

import json

from adapter.reading.format import Format, Opener
from adapter.reading.tagged_json import TaggedJson, only_json
from adapter.values.events import JsonObject

OPEN, CLOSE = "[TOOL_REQUEST]", "[END_TOOL_REQUEST]"


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    each = [json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False) for name, arguments in calls]
    return "\n".join(f"{OPEN}{call}{CLOSE}" for call in each)


def encode_result(_name: str, content: str, _call_id: str) -> str:
    return content


FORMAT = Format(
    name="tool_request",
    aliases=("lmstudio", "lm_studio"),
    openers=(Opener(OPEN, only_json(TaggedJson(OPEN, CLOSE))),),
    encode_calls=encode_calls,
    encode_result=encode_result,
    strays=(CLOSE,),
    template_marks=(OPEN,),
)
