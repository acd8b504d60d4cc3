"""Inkling: typed blocks, of which one kind holds a call.

Format: the encoder of Thinking Machines' Inkling as vLLM has it (renderers/inkling). The prompt ends
with ``<|message_model|>``, so that the output begins within a header::

    <|message_model|><|content_thinking|>reasoning<|end_message|>
    <|message_model|><|content_text|>I look.<|end_message|>
    <|message_model|>NAME<|content_invoke_tool_json|>{"name": NAME, "args": {...}}<|end_message|>
    <|content_model_end_sampling|>

There are no line breaks between the blocks. Results go back in a block of the tool's.
"""

from __future__ import annotations

import json

from adapter.core.events import Json, JsonObject
from adapter.parsing.bodies.recipient import take_name
from adapter.parsing.encoding import result_encoder
from adapter.parsing.format import TEXT, BodyReader, Context, Format, Opener, Reading, Section
from adapter.parsing.marker_set import markers_for
from adapter.parsing.stream_buffer import Reader, Source
from adapter.parsing.tagged_json import TaggedJson, only_json

MODEL, TOOL = "<|message_model|>", "<|message_tool|>"
THINK, ANSWER, CALL = "<|content_thinking|>", "<|content_text|>", "<|content_invoke_tool_json|>"
END, STOP = "<|end_message|>", "<|content_model_end_sampling|>"

_BLOCKS = (MODEL, THINK, ANSWER, CALL)
_REASONING = Section(is_reasoning=True, ends=(END, STOP), before=_BLOCKS, starts=(MODEL, ANSWER))
_CONTENT = Section(is_reasoning=False, ends=(END, STOP), before=_BLOCKS, starts=(MODEL,))

_call = markers_for(CALL)
_read_json = only_json(TaggedJson(CALL, END, "args"))


def section_reader(section: Section) -> BodyReader:
    """Reads the header of a block that holds nothing but text."""

    def read(_source: Source, _span: list[str], context: Context) -> Reader[Reading]:
        yield from ()
        return Reading(section=section) if context.at_line_start else TEXT

    return read


def read_header(source: Source, span: list[str], context: Context) -> Reader[Reading]:
    """After ``<|message_model|>``: a tool's name and its call; a block of another kind has a header of its own."""
    name = yield from take_name(source, span, context, _call, any_name=True)
    return (yield from _read_json(source, span, context)) if name else Reading()


def read_rest_of_header(source: Source, span: list[str], context: Context) -> Reader[Reading]:
    """A tool's name at the very beginning: ``<|message_model|>`` stood in the prompt."""
    name = yield from take_name(source, span, context, _call, any_name=False)
    return (yield from _read_json(source, span, context)) if name else TEXT


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    return "".join(
        f'{MODEL}{name}{CALL}{{"name":{_compact(name)},"args":{_compact(arguments)}}}{END}' for name, arguments in calls
    )


def _compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


FORMAT = Format(
    name="inkling",
    aliases=("tml",),
    openers=(
        Opener(MODEL, read_header),
        Opener(CALL, _read_json),
        Opener(THINK, section_reader(_REASONING)),
        Opener(ANSWER, section_reader(_CONTENT)),
    ),
    head=read_rest_of_header,
    encode_calls=encode_calls,
    encode_result=result_encoder(f"{TOOL}{{name}}{ANSWER}", END),
    reasoning={},
    ends=(END, STOP),
    next_turns=("<|message_user|>", "<|message_system|>"),
    results=(TOOL,),
    stops=(STOP,),
    special_tokens=(*_BLOCKS, END, STOP),
    models=(r"inkling",),
    template_marks=(MODEL,),
)
