"""Parse calls written as two labeled lines: the tool's name, and the arguments as JSON.

::

    Action: read_file                                  ✿FUNCTION✿: read_file
    Action Input: {"path": "a.py"}                     ✿ARGS✿: {"path": "a.py"}
    Observation: ...                                   ✿RESULT✿: ...

The model must stop at the third label. Any text that it writes after this label is invented.
"""

from __future__ import annotations

import re

from adapter.parsing.bare_json import UntaggedJson
from adapter.parsing.format import CUT_OFF, TEXT, BodyReader, BodyResult, ReadContext
from adapter.parsing.marker_set import markers_for
from adapter.parsing.stream_buffer import Reader, StreamBuffer, peek_marker, read_until, skip_space, take_marker
from adapter.tools.call_shapes import DecodedCall

NAME_LIMIT = 200
"""Maximum length of a tool's name; longer text after the first label is prose."""

_NAME = re.compile(r"[ \t]*`?([\w.:/-]+)`?[ \t]*")


def labeled_reader(arguments: str, result_label: str) -> BodyReader:
    """Return a parser of the name in the rest of its line, and of the arguments after their label."""
    label, line_end = markers_for(arguments), markers_for("\n", arguments)

    def read(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
        if not context.at_line_start or not (yield from peek_marker(source, line_end, NAME_LIMIT)):
            return TEXT
        ends = ("\n" + span[-1], "\n" + result_label)
        line: list[str] = []
        ending = yield from read_until(source, line_end, line)
        if ending != "\n":
            source.push_back(ending)
            ending = ""
        span.extend([*line, ending])
        name_match = _NAME.fullmatch("".join(line).rstrip("\r"))
        if name_match is None or (context.tools and not context.tools.match(name_match.group(1))):
            return TEXT
        yield from skip_space(source, span)
        if not (yield from take_marker(source, label, span)):
            return TEXT
        read_json = UntaggedJson("arguments", after_marker=True, name=name_match.group(1), ends=ends)
        result = yield from read_json(source, span, context)
        if not result.not_a_call:
            return result
        cut = source.final and source.is_empty
        tool = context.tools.match(name_match.group(1))
        if cut and not source.was_cut and tool is not None and not tool.properties:
            return BodyResult((DecodedCall(name_match.group(1), {}),), ("no-arguments",))
        return BodyResult(error=CUT_OFF if cut else f"after {arguments!r} must come one JSON object with the arguments")

    return read
