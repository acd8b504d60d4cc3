"""LFM2: a list of Python calls between ``<|tool_call_start|>`` and ``<|tool_call_end|>``.

Format: the model card and chat template of LiquidAI/LFM2-1.2B-Tool; a system prompt may ask for
JSON instead, so that a list of objects is read too. Results go back between
``<|tool_response_start|>`` and ``<|tool_response_end|>``.
"""

from __future__ import annotations

from adapter.formats import pythonic
from adapter.reading.bodies.python_calls import python_or_json
from adapter.reading.format import Format, Opener
from adapter.values.events import JsonObject

OPEN, CLOSE, RESULT = "<|tool_call_start|>", "<|tool_call_end|>", "<|tool_response_start|>"


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    return f"{OPEN}{pythonic.encode_calls(calls)}{CLOSE}"


def encode_result(_name: str, content: str, _call_id: str) -> str:
    return f"{RESULT}{content}<|tool_response_end|>"


FORMAT = Format(
    name="lfm2",
    aliases=("lfm", "liquid", "lfm2_thinking"),
    openers=(Opener(OPEN, python_or_json(OPEN, CLOSE)),),
    bare=pythonic.FORMAT.bare,
    encode_calls=encode_calls,
    encode_result=encode_result,
    strays=(CLOSE,),
    results=(RESULT,),
    stops=("<|im_end|>",),
    special_tokens=(OPEN, CLOSE),
    models=(r"lfm-?[23]",),
    template_marks=("<|tool_list_start|>", OPEN, '"List of tools: '),
)
