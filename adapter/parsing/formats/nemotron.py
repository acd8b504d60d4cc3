"""Nemotron Nano and Super: a JSON list in ``<TOOLCALL>``.

Format: the chat templates of nvidia/NVIDIA-Nemotron-Nano-9B-v2 and
Llama-3_3-Nemotron-Super-49B-v1_5. Nemotron 3 writes `qwen3_coder`.
"""

from __future__ import annotations

from adapter.parsing.bodies.name_and_argument_elements import read_elements
from adapter.parsing.call_encoders import build_list_encoder, build_result_encoder
from adapter.parsing.format import BodyResult, BodySource, CallOpener, Format
from adapter.parsing.stream_buffer import Reader
from adapter.parsing.tagged_json import TaggedJson, require_json

OPEN, CLOSE = "<TOOLCALL>", "</TOOLCALL>"


_read_json = require_json(TaggedJson(OPEN, CLOSE, may_list=True), CLOSE)


def read_calls(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the list in ``<TOOLCALL>``, or an element named after the tool, which other models write there."""
    yield from source.skip_space(consumed)
    start = len(consumed)
    result = yield from read_elements(source, consumed, CLOSE)
    if result.calls:
        return result.with_repairs("foreign-body")
    source.give_back(consumed, start)
    return (yield from _read_json(source, consumed))


FORMAT = Format(
    name="nemotron",
    aliases=("nemotron_json", "nemotron_nano_v2"),
    openers=(CallOpener(OPEN, read_calls),),
    encode_calls=build_list_encoder(OPEN, CLOSE),
    encode_result=build_result_encoder("<TOOL_RESPONSE>[", "]</TOOL_RESPONSE>"),
    stray_closers=(CLOSE,),
    end_tokens=("<SPECIAL_12>",),
    stop_sequences=("<SPECIAL_12>", "<|eot_id|>"),
    special_tokens=(OPEN, CLOSE, "<think>", "</think>"),
    model_patterns=(r"nemotron-?_?(?:nano|super|ultra)(?!.*-3-)",),
    template_fingerprints=("<TOOLCALL>",),
)
