"""The ``<tool_calls>`` section, which several families share with different bodies.

::

    <tool_calls>[{"name": ..., "arguments": {...}}, ...]</tool_calls>      Hunyuan A13B, Jamba, Apriel
    <tool_calls>                                                           MiniMax M1: an object a line
    {"name": ..., "arguments": {...}}
    </tool_calls>
    <tool_calls>                                                           Hunyuan 3: see `tool_call_tag`
    <tool_call>NAME ... </tool_call>
    </tool_calls>

Which family wrote it shows in how the body begins, so every body is read,
whatever the told format is.
"""

from __future__ import annotations

from adapter.parsing.bodies.json_tag import json_tag_reader
from adapter.parsing.bodies.tool_call_tag import OPEN as CALL_OPEN
from adapter.parsing.bodies.tool_call_tag import read_tool_call
from adapter.parsing.format import CUT_OFF, BodyResult, CallOpener, ReadContext
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import Reader, StreamBuffer, skip_space, take_marker

OPEN, CLOSE = "<tool_calls>", "</tool_calls>"

_read_json = json_tag_reader(OPEN, CLOSE)
_call = MarkerSet(CALL_OPEN)


def read_tool_calls(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
    """The body after ``<tool_calls>``: JSON up to its end, or the first of the calls in tags of their own."""
    yield from skip_space(source, span)
    opening = yield from take_marker(source, _call)
    if opening:
        span.append(opening)
        return (yield from read_tool_call(source, span, context))
    rest = source.text[source.position :]
    if source.final and rest and CALL_OPEN.startswith(rest.lower()):
        span.append(source.rest())
        return BodyResult(error=CUT_OFF)
    return (yield from _read_json(source, span, context))


OPENERS = (CallOpener(OPEN, read_tool_calls),)
