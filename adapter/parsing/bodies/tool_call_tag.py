"""The ``<tool_call>`` envelope, which several families share with different bodies.

::

    <tool_call>                    <tool_call>                         <tool_call>NAME
    {"name": ..., ...}             <function=NAME> ... </function>     <arg_key>KEY</arg_key> ...
    </tool_call>                   </tool_call>                        </tool_call>

Which family wrote it shows in how the body begins, so every body is read,
whatever the told format is.
"""

from __future__ import annotations

import re

from adapter.parsing.bodies import unknown_tags
from adapter.parsing.bodies.arg_key_value import GLM, KeyValueReader
from adapter.parsing.bodies.python_scanner import PythonBlock, called_first, read_named_call
from adapter.parsing.bodies.xml_function import find_open_name, read_xml_function
from adapter.parsing.format import CUT_OFF, TEXT, BodyReader, BodyResult, CallOpener, ReadContext
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import (
    Reader,
    StreamBuffer,
    peek_marker,
    peek_match,
    read_until,
    skip_space,
    take_marker,
    take_match,
    take_until,
)
from adapter.parsing.tagged_json import TaggedJson

OPEN, CLOSE = "<tool_call>", "</tool_call>"
STRAYS = (CLOSE, "</function>", "</parameter>", "</invoke>")
"""Closing tags that models leave behind where no call was opened."""

PROSE_LIMIT = 2_000
"""Characters within which a body of no known shape must be closed; else the marker was only mentioned."""

WORDS_LIMIT = 80
"""Characters of words between the end of a function and the end of its envelope, on one line."""

ATTRIBUTES_LIMIT = 100
"""Characters of attributes in an opening tag; more is prose."""

_read_json = TaggedJson(OPEN, CLOSE)
_read_key_values = KeyValueReader(GLM)
_read_python = PythonBlock(CLOSE)
_closing = MarkerSet(CLOSE)
_after_prose = MarkerSet(OPEN, CLOSE, "<function=", "\n\n")
_function = MarkerSet("<function=")
_CLOSE_BEHIND_WORDS = re.compile(r"[^<\n]+</tool_call>", re.IGNORECASE)
_MAY_BE_WORDS = re.compile(r"[^<\n]*+(?:<[/a-z_]*)?", re.IGNORECASE)
_inner = MarkerSet(OPEN, CLOSE, "<function=", "<function ", "<parameter=", "```json", "```")


def read_tool_call(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
    """The body after ``<tool_call>``, whichever it is."""
    fixes: list[str] = []
    while True:
        char = yield from skip_space(source, span)
        if not char:
            # An opener with nothing after it, used as the closer of the call before.
            return BodyResult() if context.after_call and not source.was_cut else BodyResult(error=CUT_OFF)
        if char in "{[":
            fixes += _foreign("json", context)
            return (yield from _read_json(source, span, context)).adding(*fixes)
        marker = yield from take_marker(source, _inner)
        span.append(marker)
        match marker.lower():
            case "<function=" | "<function ":
                fixes += _foreign("function", context)
                reading = yield from read_xml_function(source, span, context)
                return (yield from _close(reading, source, span)).adding(*fixes)
            case "<parameter=":
                return (yield from _read_misspelt_function(source, span, context))
            case "</tool_call>":
                return BodyResult()  # empty: nothing was called
            case "":
                pairs = yield from _read_key_values(source, span, context)
                if pairs is not None:
                    return pairs.adding(*fixes, *_foreign("pairs", context))
                return (yield from _read_unknown(source, span, context))
            case "<tool_call>":
                fixes.append("text-in-tag")  # the opener written twice
            case _:
                continue  # a code fence within; its end will be found and named


def _foreign(body: str, context: ReadContext) -> list[str]:
    return ["foreign-body"] if context.tool_call_body not in (body, None) else []


def with_attributes(read: BodyReader) -> BodyReader:
    """Reads the rest of an opening tag, which the format writes without attributes, and then its body.

    One that names a tool, ``<tool_call name="NAME">{...}</tool_call>``, is followed by that tool's arguments alone.
    """

    def read_after_attributes(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
        attributes = yield from take_until(source, ">", ATTRIBUTES_LIMIT, span)
        if attributes is None or "=" not in attributes or "\n" in attributes or "<" in attributes:
            return TEXT
        named = unknown_tags.NAME_ATTRIBUTE.search(attributes)
        if named is not None and (yield from skip_space(source, span)) == "{":
            reading = yield from TaggedJson(OPEN, CLOSE, name=named[1])(source, span, context)
        else:
            reading = yield from read(source, span, context)
        return reading.repaired("misspelt-open-tag")

    return read_after_attributes


def _read_misspelt_function(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
    """``<parameter=NAME>`` where ``<function=NAME>`` belongs, as Qwen3.5 writes now and then."""
    reading = yield from read_xml_function(source, span, context)
    if any(context.tools and not context.tools.match(call.name) for call in reading.calls):
        return BodyResult(error=f"the text in {OPEN} is not a call: <parameter=...> without <function=NAME> before it")
    return (yield from _close(reading, source, span)).adding("misspelt-open-tag")


def _close(reading: BodyResult, source: StreamBuffer, span: list[str]) -> Reader[BodyResult]:
    """``reading`` of a function in the envelope, with the envelope's end, also behind a few words on its line."""
    if not reading.calls or span[-1].lower() == CLOSE or "missing-close-tag" in reading.fixes:
        return reading
    found = yield from peek_match(source, _CLOSE_BEHIND_WORDS, WORDS_LIMIT, _MAY_BE_WORDS.fullmatch)
    if found is not None:
        take_match(source, found, span)
        return reading.adding("text-in-tag")
    if source.was_cut and source.is_empty:
        return BodyResult(error=CUT_OFF)
    return reading.adding("missing-close-tag")


def _read_unknown(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
    """Neither JSON nor XML: a call as in Python of a tool of the session, or a broken call when it stands alone and is
    closed, else prose that names the marker."""
    if context.at_line_start and context.tools.match((yield from called_first(source))) is not None:
        return (yield from _read_python(source, span, context)).adding("foreign-body")
    if context.at_line_start and (yield from find_open_name(source, context)) is not None:
        reading = yield from read_xml_function(source, span, context)
        return (yield from _close(reading, source, span)).adding(*_foreign("function", context))
    marker = yield from peek_marker(source, _after_prose, PROSE_LIMIT)
    if marker.lower() == "<function=" and context.at_line_start:
        yield from read_until(source, _function, span)
        span.append(marker)
        context.may_be_text = True
        reading = yield from read_xml_function(source, span, context)
        return (yield from _close(reading, source, span)).adding("text-in-tag") if reading.calls else TEXT
    rest = source.text[source.position : source.position + PROSE_LIMIT + 1]
    if not marker and source.was_cut and rest.startswith("<") and len(rest) <= PROSE_LIMIT and context.at_line_start:
        span.append(source.rest())
        return BodyResult(error=CUT_OFF)  # a call in other tags, which are read only where these are not around them
    if marker.lower() != CLOSE or not context.at_line_start:
        return TEXT
    text: list[str] = []
    span_end = yield from read_until(source, _closing, text)
    span.extend([*text, span_end])
    return BodyResult(
        error=f"the text in {OPEN} is not a call: {''.join(text).strip()[:60]!r}. Write one JSON object there: "
        '{"name": "TOOL", "arguments": {...}}'
    )


OPENERS = (
    CallOpener(OPEN, read_tool_call),
    CallOpener("<tool_call ", with_attributes(read_tool_call)),
    CallOpener("[Calling tool:", read_named_call),
    *unknown_tags.OPENERS,
)
