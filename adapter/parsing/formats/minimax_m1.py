"""MiniMax M1: JSON objects, one per line, in ``<tool_calls>``.

Format: vLLM's parser for MiniMaxAI/MiniMax-M1-80k and MiniMax-Text-01, not compared with the template; see
`tool_calls_tag`.
"""

from __future__ import annotations

import json

from adapter.core.events import JsonObject
from adapter.parsing.bodies.tool_calls_tag import CLOSE, OPEN, OPENERS
from adapter.parsing.call_encoders import build_result_encoder
from adapter.parsing.format import Format


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    each = [json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False) for name, arguments in calls]
    return "\n".join((OPEN, *each, CLOSE))


FORMAT = Format(
    name="minimax_m1",
    aliases=("minimax_text_01", "minimax1"),
    openers=OPENERS,
    encode_calls=encode_calls,
    encode_result=build_result_encoder("tool name: {name}\ntool result: "),
    result_markers=("\ntool name:", "\ntool result:"),
    stray_closers=(CLOSE,),
    end_tokens=("<end_of_sentence>",),
    stop_sequences=("<end_of_sentence>",),
    special_tokens=(OPEN, CLOSE, "<think>", "</think>"),
    model_patterns=(r"minimax-?_?(?:m1|text)",),
    template_fingerprints=("<beginning_of_sentence>",),
)
