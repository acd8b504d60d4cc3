"""Calls whose header names the recipient: ``>>>NAME``, then the arguments as one JSON object.

Functionary writes them so, and other models whose prompts end within a header, so that an output may
begin with a bare name.
"""

from __future__ import annotations

import re

from adapter.parsing.bare_json import UntaggedJson
from adapter.parsing.format import CUT_OFF, BodyResult, ReadContext
from adapter.parsing.marker_set import MarkerSet, markers_for
from adapter.parsing.stream_buffer import Reader, StreamBuffer, read_until

NAME_LIMIT = 200
"""Characters of a name; more is prose."""

_NAME = re.compile(r"[ \t]*([\w.:/-]*)")


def take_name(
    source: StreamBuffer, span: list[str], context: ReadContext, endings: MarkerSet, *, any_name: bool
) -> Reader[str]:
    """Take a name that stands here with one of ``endings`` right after it. Returns it; "" and nothing taken else.

    ``any_name``: also one that is no tool of this session.
    """
    while True:
        found = _NAME.match(source.text, source.position)
        assert found is not None
        name, end = found.group(1), found.end()
        rest = source.text[end : end + endings.longest]
        marker = endings.match(source.text, end)
        if marker is not None and name and (any_name or name in context.tools):
            span.append(source.text[source.position : marker[1]])
            source.position = marker[1]
            return name
        may_be = any_name or any(tool.startswith(name) for tool in context.tools)
        may_go_on = not rest or (marker is None and endings.may_start_with(rest))
        if source.final or end - source.position > NAME_LIMIT or not may_be or not may_go_on:
            return ""
        yield


def cut_name(source: StreamBuffer, span: list[str]) -> BodyResult | None:
    """The error where the text ends within a name, which is taken; None where it goes on."""
    found = _NAME.match(source.text, source.position)
    if not source.final or found is None or found.end() < len(source.text):
        return None
    span.append(source.rest())
    return BodyResult(error=CUT_OFF)


def read_arguments(
    name: str, source: StreamBuffer, span: list[str], context: ReadContext, ends: tuple[str, ...]
) -> Reader[BodyResult]:
    """The arguments of ``name``, up to one of ``ends``, which is left to read."""
    reading = yield from UntaggedJson("arguments", after_marker=True, name=name, ends=ends)(source, span, context)
    if not reading.not_a_call:
        return reading
    body: list[str] = []
    following = yield from read_until(source, markers_for(*ends), body)
    source.push_back(following)
    span.extend(body)
    if not following and not "".join(body).strip():
        return BodyResult(error=CUT_OFF)
    return BodyResult(error=f"the text to {name!r} must be its arguments as one JSON object")
