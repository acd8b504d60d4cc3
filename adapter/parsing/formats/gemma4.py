"""Gemma 4: ``<|tool_call>call:NAME{key:value}<tool_call|>``, strings between ``<|"|>`` tokens.

Format: chat_template.jinja of google/gemma-4-31B-it. Reasoning is between ``<|channel>thought`` and ``<channel|>``. If
no reasoning is requested, the template opens and closes it in the prompt. The model stops at ``<|tool_response>``,
after which the result follows in the same turn.
"""

from __future__ import annotations

from functools import partial

from adapter.parsing.bodies import call_colon_tag
from adapter.parsing.bodies.gemma_call import GemmaCall
from adapter.parsing.bodies.gemma_encoder import encode_call
from adapter.parsing.call_encoders import build_calls_encoder, build_result_encoder
from adapter.parsing.format import TEXT, BodyResult, BodySource, CallOpener, Format
from adapter.parsing.stream_buffer import Reader
from adapter.parsing.tagged_json import TaggedJson

OPEN, CLOSE, QUOTE = "<|tool_call>", "<tool_call|>", '<|"|>'
RESULT, TURN, END = "<|tool_response>", "<|turn>", "<turn|>"

_read_call = GemmaCall(OPEN, CLOSE, QUOTE)
_read_after_closing = TaggedJson(CLOSE, "</tool_call|>")


def _read_json(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a known tool's JSON call after the closing token, which other prompts use as the opening token."""
    ahead: list[str] = []
    char = yield from source.skip_space(ahead)
    if char != "{" or not (source.at_line_start or source.after_call):
        source.push_back("".join(ahead))
        return TEXT
    consumed.extend(ahead)
    source.may_be_text = True
    result = yield from _read_after_closing(source, consumed)
    return result.with_repairs("misspelt-open-tag") if result.calls_known_tools(source.tools) else TEXT


FORMAT = Format(
    name="gemma4",
    aliases=("gemma4_no_thinking", "gemma_4"),
    openers=(
        CallOpener(OPEN, _read_call, keeps_space=True),
        *call_colon_tag.OPENERS,
        CallOpener(CLOSE, _read_json),
    ),
    read_stripped_start=_read_call.read_unmarked,
    encode_calls=build_calls_encoder(partial(encode_call, quote=QUOTE), OPEN, CLOSE),
    encode_result=build_result_encoder(f"{RESULT}response:{{name}}{{value:{QUOTE}", f"{QUOTE}}}<tool_response|>"),
    reasoning=dict.fromkeys(("<|channel>thought", "<|channel><|channel>thought", "<|channel>"), "<channel|>"),
    answer_tags={f"<|channel>{name}": "<channel|>" for name in ("content", "final", "response")},
    stray_closers=(CLOSE,),
    end_tokens=(END, "<eos>"),
    other_role_markers=(TURN,),
    result_markers=(RESULT,),
    stop_sequences=(END, RESULT),
    special_tokens=(OPEN, CLOSE, QUOTE, "<|channel>", "<channel|>", RESULT),
    model_patterns=(r"(?<!function)gemma-?4",),
    template_fingerprints=(OPEN,),
)
