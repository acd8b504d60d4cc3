"""Parse a tool's name in an element, and its arguments in another, without any attribute.

::

    <name>NAME</name><input>{...}</input>
    <tool_name>NAME</tool_name><parameters><KEY>value</KEY></parameters>
    <NAME>{...}</NAME>
"""

from __future__ import annotations

import re

from adapter.parsing.bodies.argument_collection import ATTRIBUTES, PendingCall
from adapter.parsing.format import CUT, TEXT, BodyResult, BodySource
from adapter.parsing.marker_set import MarkerSet, get_marker_set
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader, StreamBuffer
from adapter.parsing.tagged_json import TaggedJson

_name_tags = MarkerSet("<name>", "<tool_name>", "<function>")
_argument_tags = MarkerSet("<input>", "<arguments>", "<parameters>", "<args>")
_ELEMENT = re.compile(rf"\s*<([\w.-]+){ATTRIBUTES}\s*>(.*?)</\1>", re.DOTALL)
_ELEMENTS = re.compile(rf"(?:\s*+<([\w.-]+){ATTRIBUTES}\s*>(?:(?!</\1>).)*+</\1>)*+\s*+", re.DOTALL)


def read_elements(source: BodySource, span: list[str], closing: str) -> Reader[BodyResult]:
    """Parse ``<name>NAME</name><input>{...}</input>``, ``<name>NAME</name>{...}``, or ``<NAME>{...}</NAME>``."""
    ahead: list[str] = []
    opened = yield from source.take_marker(_name_tags, ahead)
    name = yield from source.take_until("<" if opened else ">", NAME_LIMIT, ahead)
    name = (name or "").lstrip("<").strip()
    if not name or source.tools.match(name) is None:
        source.push_back("".join(ahead))
        return TEXT
    inner = name
    if opened:
        yield from source.take_until(">", NAME_LIMIT, ahead)
        yield from source.skip_space(ahead)
        argument = yield from source.take_marker(_argument_tags, ahead)
        inner = argument[1:-1]
    char = yield from source.skip_space(ahead)
    span.extend(ahead)
    if char == "<" and inner and opened:
        result = yield from _read_arguments(name, inner, source, span)
        yield from take_closing(source, span, closing)
        return result
    if char != "{":
        return TEXT
    if not inner:
        return (yield from TaggedJson(closing.replace("/", ""), closing, name=name)(source, span))
    result = yield from TaggedJson(f"<{inner}>", f"</{inner}>", name=name)(source, span)
    yield from take_closing(source, span, closing)
    return result


def _read_arguments(name: str, inner: str, source: BodySource, span: list[str]) -> Reader[BodyResult]:
    """Parse the arguments in ``<inner>``, each in an element of its own."""
    text, closing = yield from source.take_through(get_marker_set(f"</{inner}>"), span)
    if not closing:
        return CUT
    call = PendingCall(name, source.tools.match(name))
    if not _ELEMENTS.fullmatch(text):
        return BodyResult(error=f"the arguments of {name!r} cannot be read: expected <NAME>value</NAME> in <{inner}>")
    for key, value in _ELEMENT.findall(text):
        call.add_text(key, value)
    return call.build_result()


def take_closing(source: StreamBuffer, span: list[str], closing: str) -> Reader[None]:
    """Consume the tag ``closing`` if it is next."""
    _, follows = yield from source.peek_after_space(get_marker_set(closing))
    if follows:
        yield from source.take_through(get_marker_set(closing), span)
