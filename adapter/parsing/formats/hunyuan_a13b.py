"""Hunyuan A13B: a JSON list in ``<tool_calls>``, after ``<think>``; the answer in ``<answer>``.

Format: chat_template.jinja of tencent/Hunyuan-A13B-Instruct; see `tool_calls_tag`.
"""

from adapter.parsing.bodies.tool_calls_tag import CLOSE, OPEN, OPENERS
from adapter.parsing.call_encoders import build_list_encoder, build_result_encoder
from adapter.parsing.format import Format

FORMAT = Format(
    name="hunyuan_a13b",
    aliases=("hunyuan",),
    openers=OPENERS,
    encode_calls=build_list_encoder(OPEN, CLOSE),
    encode_result=build_result_encoder("<tool_response>", "</tool_response>"),
    answer_tags={"<answer>": "</answer>"},
    stray_closers=(CLOSE,),
    end_tokens=("<|eos|>",),
    stop_sequences=("<|eos|>",),
    special_tokens=(OPEN, CLOSE, "<think>", "</think>"),
    model_patterns=(r"hunyuan-?_?a13b", r"hunyuan-(?:[0-9.]+b|instruct)"),
    template_fingerprints=('<tool_calls>[{"name"', "<tool_calls>\\n["),
)
