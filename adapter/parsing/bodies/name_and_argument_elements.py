"""Parse calls with the tool's name in one element and its arguments in another, without attributes.

::

    <name>NAME</name><input>{...}</input>
    <tool_name>NAME</tool_name><parameters><KEY>value</KEY></parameters>
    <NAME>{...}</NAME>
    <tool>NAME</tool><tool_input>value</tool_input>        for a tool with one required parameter

An argument may also be ``<parameter name="KEY">value</parameter>``.
"""

from __future__ import annotations

import re

from adapter.parsing.bodies.tagged_arguments import ATTRIBUTES, PendingCall
from adapter.parsing.call_events import is_placeholder
from adapter.parsing.format import CUT, TEXT, BodyResult, BodySource
from adapter.parsing.marker_set import MarkerSet, get_marker_set
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader, StreamBuffer
from adapter.parsing.tagged_json import TaggedJson
from adapter.tools.tool import Tool

_name_tags = MarkerSet("<name>", "<tool_name>", "<tool>", "<function>", "<function_name>", "<invoke_name>")
_argument_tags = MarkerSet(
    "<input>", "<tool_input>", "<action_input>", "<arguments>", "<parameters>", "<args>", "<params>"
)
_FIRST_TAG = re.compile(rf"<([\w.-]+)({ATTRIBUTES})\s*>")
_MAY_BE_FIRST_TAG = re.compile(r"<[^<>]*+")
NAME_ATTRIBUTE = re.compile(r"(?:^|\s)name\s*=\s*[\"']([^\"']+)[\"']")
_ELEMENT = re.compile(rf"\s*<([\w.-]+)({ATTRIBUTES})\s*>(.*?)</\1>", re.DOTALL)
_ELEMENTS = re.compile(rf"(?:\s*+<([\w.-]+){ATTRIBUTES}\s*>(?:(?!</\1>).)*+</\1>)*+\s*+", re.DOTALL)


def read_elements(source: BodySource, consumed: list[str], closing: str) -> Reader[BodyResult]:
    """Parse ``<name>NAME</name><input>{...}</input>``, ``<name>NAME</name>{...}``, or ``<NAME>{...}</NAME>``."""
    ahead: list[str] = []
    opened = yield from source.consume_marker(_name_tags, ahead)
    name = yield from source.consume_until("<" if opened else ">", NAME_LIMIT, ahead)
    name = (name or "").lstrip("<").strip()
    if not name or source.tools.match(name) is None:
        source.push_back("".join(ahead))
        return TEXT
    if not opened:
        char = yield from source.skip_space(ahead)
        consumed.extend(ahead)
        if char != "{":
            return TEXT
        result = yield from TaggedJson(f"<{name}>", f"</{name}>", name=name)(source, consumed)
        yield from consume_closing(source, consumed, closing)
        return result
    yield from source.consume_until(">", NAME_LIMIT, ahead)
    consumed.extend(ahead)
    return (yield from read_after_name(name, source, consumed, closing))


def read_after_name(name: str, source: BodySource, consumed: list[str], closing: str) -> Reader[BodyResult]:
    """Parse the arguments of the tool ``name`` after the element with its name. They are in another element, or
    directly before ``closing``, the closing tag around the call."""
    yield from source.skip_space(consumed)
    inner = (yield from source.consume_marker(_argument_tags, consumed))[1:-1]
    char = yield from source.skip_space(consumed)
    end = f"</{inner}>" if inner else closing
    tool = source.tools.match(name)
    if char == "{":
        result = yield from TaggedJson(end.replace("/", ""), end, name=name)(source, consumed)
    elif char != "<":
        return (yield from _read_only_argument(name, end, source, consumed)) if inner and tool is not None else TEXT
    elif not inner:
        first = yield from source.peek_match(_FIRST_TAG, NAME_LIMIT, _MAY_BE_FIRST_TAG.fullmatch)
        if first is None or tool is None or _find_key(first[1], first[2], tool) not in tool.properties:
            return TEXT
        result = yield from _read_arguments(name, end, source, consumed)
        if not tool.accepts(result.calls[0].arguments.keys() if result.calls else tool.properties.keys()):
            return TEXT  # the description of a tool
    else:
        result = yield from _read_arguments(name, end, source, consumed)
    if inner:
        yield from consume_closing(source, consumed, closing)
    return result


def _read_only_argument(name: str, end: str, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the text up to the tag ``end`` as the value of the tool's only required parameter. If it is a placeholder,
    return `TEXT`."""
    text, closing = yield from source.consume_through(get_marker_set(end), consumed)
    call = PendingCall(name, source.tools.match(name))
    if not closing:
        return CUT
    call.add_loose_text(text)
    result = call.build_result()
    values = [(key, value) for each in result.calls for key, value in each.arguments.items()]
    is_example = any(isinstance(value, str) and is_placeholder(key, value) for key, value in values)
    return TEXT if is_example or not values else result


def _read_arguments(name: str, end: str, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse arguments in separate elements, up to the tag ``end``."""
    text, closing = yield from source.consume_through(get_marker_set(end), consumed)
    if not closing:
        return CUT
    call = PendingCall(name, source.tools.match(name))
    if not _ELEMENTS.fullmatch(text):
        return BodyResult(error=f"the arguments of {name!r} cannot be read: expected <NAME>value</NAME> before {end}")
    for key, attributes, value in _ELEMENT.findall(text):
        call.add_text(_find_key(key, attributes, call.tool), value)
    return call.build_result()


def _find_key(tag: str, attributes: str, tool: Tool | None) -> str:
    """Return the name of the parameter that an element sets, given the element's tag and attributes."""
    named = None if tool is not None and tag in tool.properties else NAME_ATTRIBUTE.search(attributes)
    return named[1] if named else tag


def consume_closing(source: StreamBuffer, consumed: list[str], closing: str) -> Reader[None]:
    """Consume the tag ``closing`` if it is next."""
    _, follows = yield from source.peek_after_space(get_marker_set(closing))
    if follows:
        yield from source.consume_through(get_marker_set(closing), consumed)
