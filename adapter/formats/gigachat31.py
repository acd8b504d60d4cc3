"""GigaChat 3.1: ``<|function_call|>`` and JSON.

Format: that of ai-sage/GigaChat3.1-10B-A1.8B as users report it; see `gigachat3`, with which it shares the rest.
"""

from __future__ import annotations

import json

from adapter.formats import gigachat3
from adapter.formats.gigachat3 import SHORT
from adapter.values.events import JsonObject
from adapter.values.fields import replace


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    each = [json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False) for name, arguments in calls]
    return "".join(SHORT + call for call in each)


FORMAT = replace(
    gigachat3.FORMAT,
    name="gigachat31",
    aliases=("gigachat3_1",),
    encode_calls=encode_calls,
    models=(r"gigachat-?3\.[1-4]",),
    template_marks=(SHORT,),
)
