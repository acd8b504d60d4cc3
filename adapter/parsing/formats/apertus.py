"""Apertus: a JSON list between ``<|tools_prefix|>`` and ``<|tools_suffix|>``, the tool's name as the key.

Format: the chat template of swiss-ai/Apertus-8B-Instruct-2509::

    <|inner_prefix|>reasoning<|inner_suffix|>
    <|tools_prefix|>[{"get_weather": {"city": "Oslo"}}, {"get_time": {}}]<|tools_suffix|>

Results are returned as a list within the assistant's turn.
"""

from __future__ import annotations

from adapter.core.events import JsonObject
from adapter.core.json.encode import dump_json
from adapter.parsing.call_encoders import build_result_encoder
from adapter.parsing.format import CallOpener, Format
from adapter.parsing.tagged_json import TaggedJson, expand_named_object, require_json

OPEN, CLOSE = "<|tools_prefix|>", "<|tools_suffix|>"
THINK, END_THINK, END = "<|inner_prefix|>", "<|inner_suffix|>", "<|assistant_end|>"


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    return OPEN + dump_json([{name: arguments} for name, arguments in calls]) + CLOSE


FORMAT = Format(
    name="apertus",
    aliases=("apertus2509",),
    openers=(CallOpener(OPEN, require_json(TaggedJson(OPEN, CLOSE, may_list=True, reshape=expand_named_object))),),
    encode_calls=encode_calls,
    encode_result=build_result_encoder("[", "]"),
    reasoning={THINK: END_THINK},
    stray_closers=(CLOSE,),
    end_tokens=(END,),
    other_role_markers=("<|user_start|>", "<|system_start|>", "<|developer_start|>"),
    stop_sequences=(END,),
    special_tokens=(OPEN, CLOSE, THINK, END_THINK),
    model_patterns=(r"apertus",),
    template_fingerprints=(OPEN,),
)
