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

from adapter.core.events import JsonObject
from adapter.parsing.bodies.call_section import CallSection
from adapter.parsing.encoding import result_encoder
from adapter.parsing.format import CUT_OFF, TEXT, BodyResult, Format, ReadContext
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import Reader, StreamBuffer, peek_marker, peek_match, read_until, skip_space
from adapter.parsing.tagged_json import TaggedJson
from adapter.tools.call_shapes import NAME_KEYS, DecodedCall
from adapter.tools.tool import ToolSet

SECTION_OPEN, SECTION_CLOSE = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
MISSPELT_OPEN, MISSPELT_CLOSE = "<|tool_call_section_begin|>", "<|tool_call_section_end|>"
CALL_OPEN, ARGUMENTS_OPEN, CALL_CLOSE = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"

ID_LIMIT = 300
"""Characters of an id; more is prose with a stray marker in it."""

_read_json = TaggedJson(CALL_OPEN, CALL_CLOSE)
_after_id = MarkerSet(ARGUMENTS_OPEN, CALL_CLOSE, CALL_OPEN, SECTION_CLOSE, MISSPELT_CLOSE, "{")
_in_section = MarkerSet(ARGUMENTS_OPEN, CALL_OPEN, SECTION_CLOSE, MISSPELT_CLOSE)
_ID = re.compile(r"(?:functions?[.:])?(?P<name>[^\s:<>{}]{1,200}?)(?::(?P<index>\d+))?")
_STRIPPED = re.compile(rf"\s*(?:functions\.)?(?P<name>[\w.-]{{1,200}}):\d+\s*{re.escape(ARGUMENTS_OPEN)}")
_MAY_BE_STRIPPED = re.compile(r"\s*+[\w.-]*+(?::\d*+\s*+(?:<[|\w]*+)?)?")
_SANITISED_ID = re.compile(r"functions?_(?P<name>.+?)_\d+|(?:functions?\.)?(?P<other>.+)[^\w\s.-]\d+")
"""As proxies spell it for servers that take no dots and colons, and with another sign before the index."""


def read_call(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
    """A call after ``<|tool_call_begin|>``."""
    marker = yield from peek_marker(source, _after_id, ID_LIMIT)
    if not marker:
        return _cut_in_id(source, span)
    ahead: list[str] = []
    yield from read_until(source, _after_id, ahead)
    id_text = "".join(ahead).strip()
    name, fixes = _name_in_id(id_text, context.tools)
    if not id_text and marker == "{":
        span.extend(ahead)
        source.push_back(marker)
        return (yield from _read_json(source, span, context)).adding("foreign-body")
    match marker.lower():
        case "<|tool_call_argument_begin|>":
            span.extend([*ahead, marker])
        case "{" if _ID.fullmatch(id_text) and (":" in id_text or context.tools.match(name)):
            span.extend(ahead)
            source.push_back(marker)
            fixes.append("missing-inner-tag")
        case "<|tool_call_end|>":
            span.extend([*ahead, marker])
            return BodyResult(error=f"the call {id_text[:60]!r} has no arguments: expected {ARGUMENTS_OPEN} and JSON")
        case _:
            source.push_back("".join([*ahead, marker]))
            return TEXT
    reading = yield from TaggedJson(CALL_OPEN, CALL_CLOSE, name=name)(source, span, context)
    return _named(reading, context.tools).adding(*fixes) if reading.calls else reading


def _cut_in_id(source: StreamBuffer, span: list[str]) -> BodyResult:
    """No marker follows: the text ends in the id, or the call's marker was only mentioned."""
    rest = source.text[source.position :]
    if not source.final or any(char.isspace() for char in rest.strip()):
        return TEXT
    span.append(source.rest())
    return BodyResult(error=CUT_OFF)


def _name_in_id(id_text: str, tools: ToolSet) -> tuple[str, list[str]]:
    found = _ID.fullmatch(id_text)
    name = found["name"] if found else id_text
    if name in tools or (found and found["index"] is not None):
        return name, []
    sanitised = _SANITISED_ID.fullmatch(id_text)
    if sanitised is None or (sanitised["other"] and sanitised["other"] not in tools):
        return name, []
    return sanitised["name"] or sanitised["other"], ["tool-name"]


def _named(reading: BodyResult, tools: ToolSet) -> BodyResult:
    """``reading`` with the name that stands among the arguments, where the id names no tool."""
    (call,) = reading.calls
    if tools.match(call.name) is not None:
        return reading
    for key in NAME_KEYS:
        name = call.arguments.get(key)
        if isinstance(name, str) and tools.match(name) is not None:
            rest = {other: value for other, value in call.arguments.items() if other != key}
            return BodyResult((DecodedCall(name, rest, call.fixes, call.end),), (*reading.fixes, "name-in-arguments"))
    if call.name.isdigit():
        fitting = [tool for tool in tools.values() if {*tool.required} <= call.arguments.keys() <= {*tool.properties}]
        if len(fitting) == 1 and call.arguments:
            return BodyResult((call._replace(name=fitting[0].name),), (*reading.fixes, "tool-name"))
    return reading


def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
    written = (
        f"{CALL_OPEN}functions.{name}:{index}{ARGUMENTS_OPEN}{json.dumps(arguments, ensure_ascii=False)}{CALL_CLOSE}"
        for index, (name, arguments) in enumerate(calls)
    )
    return f"{SECTION_OPEN}{''.join(written)}{SECTION_CLOSE}"


def read_unopened(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
    """A call in a section without its own opening marker: the id stands right behind the section's."""
    ahead: list[str] = []
    yield from skip_space(source, ahead)
    marker = yield from peek_marker(source, _in_section, ID_LIMIT)
    id_text = source.text[source.position :].partition(ARGUMENTS_OPEN)[0]
    is_unopened = marker.lower() == ARGUMENTS_OPEN and _ID.fullmatch(id_text.strip()) is not None
    source.push_back("".join(ahead))
    if not is_unopened:
        return (yield from _section.read(source, span, context))
    return (yield from read_call(source, span, context)).adding("missing-open-tag")


_section = CallSection(
    opens=(SECTION_OPEN, MISSPELT_OPEN),
    closes=(SECTION_CLOSE, MISSPELT_CLOSE),
    call_opens=(CALL_OPEN,),
    read_call=read_call,
    misspelt=(MISSPELT_OPEN,),
    keeps_space=True,
)


def read_stripped(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
    """A call at the very beginning whose openers the server stripped: its id and the arguments' marker are left."""
    undecided, context.may_be_text = context.may_be_text, True
    found = yield from peek_match(source, _STRIPPED, ID_LIMIT, lambda ahead: _may_be_stripped(ahead, context))
    context.may_be_text = undecided
    if found is None or context.tools.match(found["name"]) is None:
        return TEXT
    return (yield from read_call(source, span, context)).adding("missing-open-tag")


def _may_be_stripped(ahead: str, context: ReadContext) -> bool:
    """Whether ``ahead`` may go on as the id of a call of a tool of the session: any other word is not held back."""
    word = ahead.strip().removeprefix("functions.").partition(":")[0]
    begins_id = "functions.".startswith(ahead.strip()) or any(name.startswith(word) for name in context.tools)
    return begins_id and _MAY_BE_STRIPPED.fullmatch(ahead) is not None


OPENERS = tuple(
    opener._replace(read=read_unopened) if opener.marker in (SECTION_OPEN, MISSPELT_OPEN) else opener
    for opener in _section.openers
)

FORMAT = Format(
    name="kimi_k2",
    aliases=("kimi",),
    openers=OPENERS,
    read_without_markers=read_stripped,
    encode_calls=encode_calls,
    encode_result=result_encoder("## Return of {id}\n"),
    result_markers=("\n## Return of ",),
    stray_closers=(SECTION_CLOSE, MISSPELT_CLOSE, CALL_CLOSE),
    stop_sequences=("<|im_end|>",),
    special_tokens=(SECTION_OPEN, SECTION_CLOSE, CALL_OPEN, ARGUMENTS_OPEN, CALL_CLOSE, "<think>", "</think>"),
    model_patterns=(r"kimi-?_?k2(?![.p_-]?[5-9](?!\d))",),
    template_fingerprints=("tool_declare<|im_middle|>", SECTION_OPEN),
)
