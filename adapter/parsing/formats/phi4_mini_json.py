"""Phi-4-mini: ``functools[{"name": N, "arguments": {...}}, ...]``.

Format: the model card and chat template of microsoft/Phi-4-mini-instruct. Later revisions of the template request
``<|tool_call|>[...]<|/tool_call|>`` instead. Both are parsed. Results follow ``<|tool_response|>``.
"""

from __future__ import annotations

from adapter.parsing.bodies.tool_call_token import CLOSE, OPEN, read_calls, read_list
from adapter.parsing.call_encoders import build_list_encoder, build_result_encoder
from adapter.parsing.format import TEXT, BodyResult, BodySource, CallOpener, Format
from adapter.parsing.stream_buffer import Reader

WORD, RESULT, END = "functools[", "<|tool_response|>", "<|end|>"


def read_functools(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the list after ``functools``. FireFunction also writes it in the middle of a line, where all tools must be
    known."""
    yield from source.wait_for_character()
    ahead: list[str] = []
    char = yield from source.skip_space(ahead)
    source.push_back("".join(ahead))
    if char and char not in "{[]\"'":
        return TEXT  # prose
    word = consumed.pop()
    consumed.append(word[:-1])
    source.push_back(word[-1])
    source.may_be_text = not source.at_line_start
    result = yield from read_list(source, consumed)
    return result if source.at_line_start or result.calls_known_tools(source.tools) else TEXT


FORMAT = Format(
    name="phi4_mini_json",
    aliases=("phi4", "phi4_mini", "phi_4_mini", "functools"),
    openers=(CallOpener(WORD, read_functools), CallOpener("functools [", read_functools), CallOpener(OPEN, read_calls)),
    encode_calls=build_list_encoder("functools"),
    encode_result=build_result_encoder(RESULT),
    stray_closers=(CLOSE,),
    end_tokens=(END,),
    other_role_markers=("<|user|>", "<|system|>"),
    result_markers=(RESULT,),
    stop_sequences=(END,),
    special_tokens=(OPEN, CLOSE),
    model_patterns=(r"phi-?4",),
    template_fingerprints=("functools[", "<|/tool_call|>"),
)
