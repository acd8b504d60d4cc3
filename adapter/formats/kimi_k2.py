"""Kimi K2: JSON arguments after an id that holds the name.

Format: chat_template.jinja of moonshotai/Kimi-K2-Instruct, Kimi-K2-Thinking and
Kimi-K2.5; calls are numbered through the conversation, results go back with
their id::

    <|tool_calls_section_begin|>
    <|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{...}<|tool_call_end|>
    <|tool_calls_section_end|>

all on one line. Servers and clients that rewrite ids lead the model to write
those of others (``functions_NAME_0``, ``call_abc123``); the name is then looked
for in the id and at last among the arguments.
"""

from __future__ import annotations

import json
import re

from adapter.events import JsonObject
from adapter.formats.base import CUT_OFF, TEXT, Context, Format, Reading
from adapter.formats.reading.json_body import TaggedJson
from adapter.formats.reading.section import Section
from adapter.formats.reading.shapes import NAME_KEYS, Decoded
from adapter.formats.reading.source import Markers, Reader, Source, collect, find_ahead
from adapter.tools import ToolSet

SECTION_OPEN, SECTION_CLOSE = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
MISSPELT_OPEN, MISSPELT_CLOSE = "<|tool_call_section_begin|>", "<|tool_call_section_end|>"
CALL_OPEN, ARGUMENTS_OPEN, CALL_CLOSE = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"

ID_LIMIT = 300
"""Characters of an id; more is prose with a stray marker in it."""

_after_id = Markers(ARGUMENTS_OPEN, CALL_CLOSE, CALL_OPEN, SECTION_CLOSE, MISSPELT_CLOSE, "{")
_ID = re.compile(r"(?:functions?[.:])?(?P<name>[^\s:<>{}]{1,200}?)(?::(?P<index>\d+))?")
_SANITISED_ID = re.compile(r"functions?_(?P<name>.+?)_\d+")


def read_call(source: Source, span: list[str], context: Context) -> Reader[Reading]:
    """A call after ``<|tool_call_begin|>``."""
    marker = yield from find_ahead(source, _after_id, ID_LIMIT)
    if not marker:
        return _cut_in_id(source, span)
    ahead: list[str] = []
    yield from collect(source, _after_id, ahead)
    id_text = "".join(ahead).strip()
    name, fixes = _name_in_id(id_text, context.tools)
    match marker.lower():
        case "<|tool_call_argument_begin|>":
            span.extend([*ahead, marker])
        case "{" if ":" in id_text or context.tools.match(name):
            span.extend(ahead)
            source.unread(marker)
            fixes.append("missing-inner-tag")
        case "<|tool_call_end|>":
            span.extend([*ahead, marker])
            return Reading(error=f"the call {id_text[:60]!r} has no arguments: expected {ARGUMENTS_OPEN} and JSON")
        case _:
            source.unread("".join([*ahead, marker]))
            return TEXT
    reading = yield from TaggedJson(CALL_OPEN, CALL_CLOSE, name=name)(source, span, context)
    return _named(reading, context.tools).adding(*fixes) if reading.calls else reading


def _cut_in_id(source: Source, span: list[str]) -> Reading:
    """No marker follows: the text ends in the id, or the call's marker was only mentioned."""
    rest = source.text[source.position :]
    if not source.final or any(char.isspace() for char in rest.strip()):
        return TEXT
    span.append(source.rest())
    return Reading(error=CUT_OFF)


def _name_in_id(id_text: str, tools: ToolSet) -> tuple[str, list[str]]:
    found = _ID.fullmatch(id_text)
    name = found["name"] if found else id_text
    if name in tools or (found and found["index"] is not None):
        return name, []
    sanitised = _SANITISED_ID.fullmatch(id_text)
    return (sanitised["name"], ["tool-name"]) if sanitised else (name, [])


def _named(reading: Reading, tools: ToolSet) -> Reading:
    """``reading`` with the name that stands among the arguments, where the id names no tool."""
    (call,) = reading.calls
    if tools.match(call.name) is not None:
        return reading
    for key in NAME_KEYS:
        name = call.arguments.get(key)
        if isinstance(name, str) and tools.match(name) is not None:
            rest = {other: value for other, value in call.arguments.items() if other != key}
            return Reading((Decoded(name, rest, call.fixes, call.end),), (*reading.fixes, "name-in-arguments"))
    return reading


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    written = (
        f"{CALL_OPEN}functions.{name}:{index}{ARGUMENTS_OPEN}{json.dumps(arguments, ensure_ascii=False)}{CALL_CLOSE}"
        for index, (name, arguments) in enumerate(calls)
    )
    return f"{SECTION_OPEN}{''.join(written)}{SECTION_CLOSE}"


def encode_result(_name: str, content: str, call_id: str) -> str:
    return f"## Return of {call_id}\n{content}"


_section = Section(
    opens=(SECTION_OPEN, MISSPELT_OPEN),
    closes=(SECTION_CLOSE, MISSPELT_CLOSE),
    call_opens=(CALL_OPEN,),
    read_call=read_call,
    misspelt=(MISSPELT_OPEN,),
    keeps_space=True,
)

FORMAT = Format(
    name="kimi_k2",
    aliases=("kimi",),
    openers=_section.openers,
    encode_calls=encode_calls,
    encode_result=encode_result,
    results=("\n## Return of ",),
    strays=(SECTION_CLOSE, MISSPELT_CLOSE, CALL_CLOSE),
    stops=("<|im_end|>",),
    special_tokens=(SECTION_OPEN, SECTION_CLOSE, CALL_OPEN, ARGUMENTS_OPEN, CALL_CLOSE, "<think>", "</think>"),
    models=(r"kimi-?_?k2(?![.p_-]?[5-9](?!\d))",),
    template_marks=("tool_declare<|im_middle|>", SECTION_OPEN),
)
