"""Inkling: typed blocks. Blocks of one type contain a call.

Format: vLLM's encoder for Thinking Machines' Inkling (renderers/inkling). The prompt ends with ``<|message_model|>``,
so an answer begins inside a header::

    <|message_model|><|content_thinking|>reasoning<|end_message|>
    <|message_model|><|content_text|>I look.<|end_message|>
    <|message_model|>NAME<|content_invoke_tool_json|>{"name": NAME, "args": {...}}<|end_message|>
    <|content_model_end_sampling|>

There are no line breaks between the blocks. Results are returned in a block of the tool.
"""

from __future__ import annotations

from adapter.core.events import Json, JsonObject
from adapter.core.json.encode import dump_json
from adapter.parsing.bodies.recipient_header import consume_name
from adapter.parsing.call_encoders import build_result_encoder
from adapter.parsing.format import TEXT, BodyReader, BodyResult, BodySource, CallOpener, Format, OpaqueSection
from adapter.parsing.marker_set import get_marker_set
from adapter.parsing.stream_buffer import Reader
from adapter.parsing.tagged_json import TaggedJson, require_json

MODEL, TOOL = "<|message_model|>", "<|message_tool|>"
THINK, ANSWER, CALL = "<|content_thinking|>", "<|content_text|>", "<|content_invoke_tool_json|>"
END, STOP = "<|end_message|>", "<|content_model_end_sampling|>"

_BLOCKS = (MODEL, THINK, ANSWER, CALL)
_REASONING = OpaqueSection(is_reasoning=True, ends=(END, STOP), before=_BLOCKS, starts=(MODEL, ANSWER))
_CONTENT = OpaqueSection(is_reasoning=False, ends=(END, STOP), before=_BLOCKS, starts=(MODEL,))

_call = get_marker_set(CALL)
_read_json = require_json(TaggedJson(CALL, END, "args"))


def build_section_reader(section: OpaqueSection) -> BodyReader:
    """Return a parser for the header of a block that contains only text."""

    def read(source: BodySource, _span: list[str]) -> Reader[BodyResult]:
        yield from ()
        return BodyResult(section=section) if source.at_line_start else TEXT

    return read


def read_header(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a tool's name and the JSON call that follow ``<|message_model|>``. Return an empty result without a name,
    as in a block of another type."""
    name = yield from consume_name(source, consumed, _call, any_name=True)
    return (yield from _read_json(source, consumed)) if name else BodyResult()


def read_rest_of_header(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a tool's name at the start of an answer. The ``<|message_model|>`` before it is in the prompt."""
    name = yield from consume_name(source, consumed, _call, any_name=False)
    return (yield from _read_json(source, consumed)) if name else TEXT


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    return "".join(
        f'{MODEL}{name}{CALL}{{"name":{_compact(name)},"args":{_compact(arguments)}}}{END}' for name, arguments in calls
    )


def _compact(value: Json) -> str:
    return dump_json(value, sort_keys=True, separators=(",", ":"))


FORMAT = Format(
    name="inkling",
    aliases=("tml",),
    openers=(
        CallOpener(MODEL, read_header),
        CallOpener(CALL, _read_json),
        CallOpener(THINK, build_section_reader(_REASONING)),
        CallOpener(ANSWER, build_section_reader(_CONTENT)),
    ),
    read_header=read_rest_of_header,
    encode_calls=encode_calls,
    encode_result=build_result_encoder(f"{TOOL}{{name}}{ANSWER}", END),
    reasoning={},
    end_tokens=(END, STOP),
    other_role_markers=("<|message_user|>", "<|message_system|>"),
    result_markers=(TOOL,),
    stop_sequences=(STOP,),
    special_tokens=(*_BLOCKS, END, STOP),
    model_patterns=(r"inkling",),
    template_fingerprints=(MODEL,),
)
