"""Hermes: JSON in ``<tool_call>`` tags.

Format: the chat templates (tokenizer_config.json) of NousResearch Hermes 2 Pro and 3, and of Qwen2.5, Qwen3 and their
instruct and thinking releases. Results are returned as a user turn in ``<tool_response>`` tags.
"""

from __future__ import annotations

from adapter.core.events import JsonObject
from adapter.parsing.bodies.tool_call_tag import CLOSE, OPEN, OPENERS, STRAYS
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder, encode_json_call
from adapter.parsing.format import Format


def encode_call(name: str, arguments: JsonObject) -> str:
    return f"{OPEN}\n{encode_json_call(name, arguments)}\n{CLOSE}"


encode_calls = build_calls_encoder(encode_call, between="\n")


FORMAT = Format(
    name="hermes",
    tool_call_body="json",
    aliases=(
        "qwen",
        "qwen2",
        "qwen2_5",
        "qwen25",
        "qwen3",
        "hermes2",
        "hermes3",
        "nous",
        "tool_call",
        "trinity",
        "qwen3_thinking",
        "qwen3_vl_instruct",
        "qwen3_vl_thinking",
    ),
    openers=OPENERS,
    encode_calls=encode_calls,
    encode_result=build_result_encoder("<tool_response>\n", "\n</tool_response>"),
    stray_closers=STRAYS,
    stop_sequences=("<|im_end|>",),
    special_tokens=(OPEN, CLOSE, "<think>", "</think>"),
    model_patterns=(
        r"hermes",
        r"^(?!.*deepseek.*r1).*qwen-?(?:2|3(?!\.[5-9]))(?!.*coder)",
        r"^(?!.*deepseek.*r1).*qwen-?2\.5",
        r"qwq",
        r"bielik",
        r"exaone-?4",
        r"smollm",
        r"mimo-?7b",
        r"trinity",
        r"iquest-?_?coder.*40b-?_?(?:loop-?_?)?instruct",  # the smaller ones write Qwen3-Coder's format
        r"cogito(?!.*(?:671b|2\.1))",
    ),
    template_fingerprints=('<tool_call>\\n{"name"', '<tool_call>\n{"name"', "<tool_call></tool_call> XML tags"),
)
