"""Granite 20B function calling: ``<function_call>`` before each JSON call.

Format: the model card of ibm-granite/granite-20b-functioncalling and vLLM's chat template for it; nothing
closes a call. ``no_function`` is what the prompt asks for where no tool fits. Results go back after
``<function_response>``.
"""

from __future__ import annotations

import json

from adapter.reading.format import Format, Opener
from adapter.reading.tagged_json import only_json
from adapter.reading.untagged_json import UntaggedJson
from adapter.values.events import JsonObject

OPEN, CLOSE, RESULT, END = "<function_call>", "</function_call>", "<function_response>", "<|endoftext|>"

_read_json = only_json(UntaggedJson("arguments", after_marker=True, ends=(OPEN, CLOSE, RESULT, END)))


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    each = [json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False) for name, arguments in calls]
    return "".join(f"{OPEN} {call}" for call in each)


def encode_result(_name: str, content: str, _call_id: str) -> str:
    return f"{RESULT} {content}"


FORMAT = Format(
    name="granite_20b_fc",
    aliases=("granite_20b",),
    openers=(Opener(OPEN, _read_json),),
    encode_calls=encode_calls,
    encode_result=encode_result,
    strays=(CLOSE,),
    results=(RESULT,),
    stops=(END,),
    special_tokens=(OPEN,),
    models=(r"granite-?20b",),
    template_marks=("<function_call> {",),
)
