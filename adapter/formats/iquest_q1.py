"""IQuest Q1: the pairs of GLM 4.7 in ``<iquest_tool_call>`` tags.

Format: the detector that sgl-project/sglang has for the family
(function_call/iquest_q1_detector.py); see `key_value_body`::

    <iquest_tool_call>NAME<arg_key>KEY</arg_key><arg_value>value</arg_value></iquest_tool_call>
"""

from __future__ import annotations

from adapter.reading.bodies.key_value_body import KeyValueBody, PairTags, encode_arguments
from adapter.reading.format import Format, Opener
from adapter.values.events import JsonObject

TAGS = PairTags(open="<iquest_tool_call>", close="</iquest_tool_call>")


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    return "".join(f"{TAGS.open}{name}{encode_arguments(TAGS, arguments)}{TAGS.close}" for name, arguments in calls)


def encode_result(_name: str, content: str, _call_id: str) -> str:
    return f"<tool_response>{content}</tool_response>"


FORMAT = Format(
    name="iquest_q1",
    aliases=("iquest",),
    openers=(Opener(TAGS.open, KeyValueBody(TAGS, own=("iquest_q1",)).read),),
    encode_calls=encode_calls,
    encode_result=encode_result,
    strays=(TAGS.close, TAGS.key_close, TAGS.value_close),
    special_tokens=(*TAGS.all, "<think>", "</think>"),
    models=(r"iquest.*q1",),
    template_marks=(TAGS.open,),
)
