"""Parse calls written as JSON in a pair of tags, for formats that differ only in their tags.

::

    <tool_calls>[{"name": ..., "arguments": {...}}, ...]</tool_calls>      a list of calls
    <longcat_tool_call>                                                    a call in each pair
    {"name": ..., "arguments": {...}}
    </longcat_tool_call>

`tagged_json` parses the body. Without JSON after it, an opening tag is text.
"""

from __future__ import annotations

from adapter.parsing.format import CUT, TEXT, BodyReader, BodyResult, BodySource
from adapter.parsing.marker_set import markers_for
from adapter.parsing.stream_buffer import Reader
from adapter.parsing.tagged_json import TaggedJson


def build_json_tag_reader(opening: str, closing: str) -> BodyReader:
    """Return a parser of one call, or of a list of calls, after ``opening``. A list is not reported as a repair."""
    read_json = TaggedJson(opening, closing)

    def read(source: BodySource, span: list[str]) -> Reader[BodyResult]:
        char = yield from source.skip_space(span)
        if not char and (source.at_line_start or source.was_cut):
            return CUT
        if char not in ("{", "["):
            return BodyResult() if (yield from source.take_marker(markers_for(closing), span)) else TEXT
        result = yield from read_json(source, span)
        return result.without_fixes("several-in-one-tag")

    return read
