"""Parse calls whose header names the recipient: ``>>>NAME``, and then the arguments as one JSON object.

Functionary and other models write such calls. Their prompts end inside a header, so an answer may begin with the name.
"""

from __future__ import annotations

import re

from adapter.parsing.bracket_delimited_json import UntaggedJson
from adapter.parsing.format import CUT, BodyResult, BodySource
from adapter.parsing.marker_set import MarkerSet, get_marker_set
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader, StreamBuffer

_NAME = re.compile(r"[ \t]*([\w.:/-]*)(?:[ \t]*\r?(?=\n|\Z))?")


def consume_name(source: BodySource, consumed: list[str], endings: MarkerSet, *, any_name: bool) -> Reader[str]:
    """Consume a tool's name and the marker after it, one of ``endings``, and return the name. If there is no name or
    marker, consume nothing and return "". ``any_name``: whether to accept names of unknown tools."""
    while True:
        match = _NAME.match(source.text, source.position)
        assert match is not None
        name, end = match.group(1), match.end()
        rest = source.text[end : end + endings.longest]
        marker = endings.match(source.text, end)
        is_too_long = end - source.position > NAME_LIMIT
        if marker is not None and name and not is_too_long and (any_name or name in source.tools):
            consumed.append(source.text[source.position : marker[1]])
            source.position = marker[1]
            return name
        may_be_name = any_name or source.tools.has_prefix(name)
        may_continue = not rest or (marker is None and endings.may_start_with(rest))
        if source.final or is_too_long or not may_be_name or not may_continue:
            return ""
        yield


def consume_cut_name(source: StreamBuffer, consumed: list[str]) -> BodyResult | None:
    """If the text ends within a name, consume the name and return an error. Otherwise, return None."""
    match = _NAME.match(source.text, source.position)
    if not source.final or match is None or match.end() < len(source.text):
        return None
    consumed.append(source.consume_rest())
    return CUT


def read_arguments(name: str, source: BodySource, consumed: list[str], ends: tuple[str, ...]) -> Reader[BodyResult]:
    """Parse the arguments for the tool ``name``, up to one of ``ends``, which is not consumed."""
    result = yield from UntaggedJson("arguments", after_marker=True, name=name, ends=ends)(source, consumed)
    if not result.not_a_call:
        return result
    start = len(consumed)
    following = yield from source.skip_to(get_marker_set(*ends), consumed)
    if not following and not "".join(consumed[start:]).strip():
        return CUT
    return BodyResult(error=f"the text to {name!r} must be its arguments as one JSON object")
