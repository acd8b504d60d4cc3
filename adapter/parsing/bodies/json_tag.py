"""Formats that write calls as JSON in a pair of tags, and differ in nothing else.

::

    <tool_calls>[{"name": ..., "arguments": {...}}, ...]</tool_calls>      a list of calls
    <longcat_tool_call>                                                    a call in each pair
    {"name": ..., "arguments": {...}}
    </longcat_tool_call>

The tags are read by `tagged_json`; without JSON after it an opening tag is text.
"""

from __future__ import annotations

from adapter.parsing.format import CUT_OFF, TEXT, BodyReader, BodyResult, ReadContext
from adapter.parsing.marker_set import markers_for
from adapter.parsing.stream_buffer import Reader, StreamBuffer, skip_space, take_marker
from adapter.parsing.tagged_json import TaggedJson


def json_tag_reader(opening: str, closing: str) -> BodyReader:
    """Reads one call, or a list of them, after ``opening``; several are what these tags are for."""
    read_json = TaggedJson(opening, closing)

    def read(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
        char = yield from skip_space(source, span)
        if not char and (context.at_line_start or source.was_cut):
            return BodyResult(error=CUT_OFF)
        if char not in ("{", "["):
            empty = yield from take_marker(source, markers_for(closing))
            span.append(empty)
            return BodyResult() if empty else TEXT
        reading = yield from read_json(source, span, context)
        return reading.without_fix("several-in-one-tag")

    return read
