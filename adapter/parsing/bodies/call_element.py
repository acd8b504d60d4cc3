"""Reads a call in one tag that begins with ``<call:``, as Gemma and Gemini write where their own tokens do not reach.

::

    <call:default_api:NAME{key:value,...}/>        as Gemma's own call (`gemma_call`); the end is also > or </call>
    <call:default_api:NAME>{JSON}</call>           the end also names the call

It counts at the beginning of a line, for a tool of the session.
"""

from __future__ import annotations

import re

from adapter.parsing.bodies.gemma_call import GemmaCall
from adapter.parsing.format import TEXT, BodyResult, CallOpener, ReadContext
from adapter.parsing.marker_set import markers_for
from adapter.parsing.stream_buffer import Reader, StreamBuffer, peek_match, skip_space, take_marker, take_match
from adapter.parsing.tagged_json import TaggedJson

OPEN = "<call:"

NAME_LIMIT = 200
"""Characters of a name; more is prose."""

_NAME = re.compile(r"([\w.:-]+)\s*([{>])")
_MAY_BE_NAME = re.compile(r"[\w.:-]*+\s*+")
_read_pairs = GemmaCall(OPEN, "/>", '<|"|>')


def read_call_element(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
    """What follows ``<call:``."""
    if not (context.at_line_start or context.after_call):
        return TEXT
    context.may_be_text = True
    named = yield from peek_match(source, _NAME, NAME_LIMIT, _MAY_BE_NAME.fullmatch)
    if named is None or context.tools.match(named[1]) is None:
        return TEXT
    if named[2] == "{":
        reading = yield from _read_pairs(source, span, context)
        if "missing-close-tag" in reading.fixes:
            closing = yield from take_marker(source, markers_for(">", "</call>", f"</call:{named[1]}>"))
            span.append(closing)
    else:
        take_match(source, named, span)
        if (yield from skip_space(source, span)) != "{":
            return TEXT
        tag = f"call:{named[1]}>"
        reading = yield from TaggedJson(f"<{tag}", f"</{tag}", name=named[1])(source, span, context)
    return reading.repaired("misspelt-open-tag")


OPENER = CallOpener(OPEN, read_call_element)
