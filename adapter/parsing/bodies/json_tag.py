"""Parse calls written as JSON in a pair of tags, for formats that differ only in their tags.

::

    <tool_calls>[{"name": ..., "arguments": {...}}, ...]</tool_calls>      a list of calls
    <longcat_tool_call>                                                    a call in each pair
    {"name": ..., "arguments": {...}}
    </longcat_tool_call>

`tagged_json` parses the body. Without JSON after it, an opening tag is text.
"""

from __future__ import annotations

from adapter.parsing.format import CUT, TEXT, BodyReader, BodyResult, ReadContext
from adapter.parsing.marker_set import markers_for
from adapter.parsing.stream_buffer import Reader, StreamBuffer, skip_space, take_marker
from adapter.parsing.tagged_json import TaggedJson


def build_json_tag_reader(opening: str, closing: str) -> BodyReader:
    """Return a parser of one call, or of a list of calls, after ``opening``. A list is not reported as a repair."""
    read_json = TaggedJson(opening, closing)

    def read(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
        char = yield from skip_space(source, span)
        if not char and (context.at_line_start or source.was_cut):
            return CUT
        if char not in ("{", "["):
            return BodyResult() if (yield from take_marker(source, markers_for(closing), span)) else TEXT
        result = yield from read_json(source, span, context)
        return result.without_fixes("several-in-one-tag")

    return read
