"""Hunyuan A13B: a JSON list in ``<tool_calls>``, after ``<think>``; the answer in ``<answer>``.

Format: chat_template.jinja of tencent/Hunyuan-A13B-Instruct; see `json_tag`.
"""

from __future__ import annotations

from adapter.reading.bodies.json_tag import list_encoder
from adapter.reading.bodies.tool_calls_tag import CLOSE, OPEN, OPENERS
from adapter.reading.format import Format


def encode_result(_name: str, content: str, _call_id: str) -> str:
    return f"<tool_response>{content}</tool_response>"


FORMAT = Format(
    name="hunyuan_a13b",
    aliases=("hunyuan",),
    openers=OPENERS,
    encode_calls=list_encoder(OPEN, CLOSE),
    encode_result=encode_result,
    answers={"<answer>": "</answer>"},
    strays=(CLOSE,),
    ends=("<|eos|>",),
    stops=("<|eos|>",),
    special_tokens=(OPEN, CLOSE, "<think>", "</think>"),
    models=(r"hunyuan-?_?a13b", r"hunyuan-(?:[0-9.]+b|instruct)"),
    template_marks=('<tool_calls>[{"name"', "<tool_calls>\\n["),
)
