"""Parse calls in tags that no format defines, such as ``<tool_use>{...}</tool_use>``.

::

    <tool_use>{"name": NAME, "input": {...}}</tool_use>
    <functioncall {"name": NAME, "arguments": {...}}>
    <tool_use><name>NAME</name><input>{...}</input></tool_use>
    <tool name="NAME">{...}</tool>                         also with an element for each argument
    <tool_use><tool_name>NAME</tool_name><parameters><KEY>value</KEY></parameters></tool_use>
    <Call><Function>NAME</Function><Parameters><KEY>value</KEY></Parameters></Call>
    <tool_use><NAME>{...}</NAME></tool_use>                also in <TOOLCALL>
    <function_invocation><function=NAME>...</function></function_invocation>

The tags are ordinary words, so they count only at the beginning of a line and around a call of a tool of the session.
"""

from __future__ import annotations

import re

from adapter.parsing.bodies.argument_collection import ATTRIBUTES, PendingCall
from adapter.parsing.bodies.xml_function import read_xml_function
from adapter.parsing.format import CUT, CUT_OFF, TEXT, BodyReader, BodyResult, BodySource, CallOpener
from adapter.parsing.marker_set import MarkerSet, get_marker_set
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader, StreamBuffer
from adapter.parsing.tagged_json import TaggedJson

TAGS = (
    "tools",
    "tool_use",
    "use_tool",
    "ant_tool_use",
    "function_invocation",
    "tool",
    "tool-call",
    "function-call",
    "call",
)

NAME_ATTRIBUTE = re.compile(r"(?:^|\s)name\s*=\s*[\"']([^\"']+)[\"']")
_name_tags = MarkerSet("<name>", "<tool_name>", "<function>")
_function = MarkerSet("<function=")
_ELEMENT = re.compile(rf"\s*<([\w.-]+){ATTRIBUTES}\s*>(.*?)</\1>", re.DOTALL)
_ELEMENTS = re.compile(rf"(?:\s*+<([\w.-]+){ATTRIBUTES}\s*>(?:(?!</\1>).)*+</\1>)*+\s*+", re.DOTALL)
_strays = MarkerSet("</parameter>", "</function>", "</invoke>")
_argument_tags = MarkerSet("<input>", "<arguments>", "<parameters>", "<args>")


def _build_reader(tag: str, *, has_attributes: bool) -> BodyReader:
    closing = f"</{tag}>"
    read_json = TaggedJson(f"<{tag}>", closing)

    def read(source: BodySource, span: list[str]) -> Reader[BodyResult]:
        if not source.at_line_start:
            return TEXT
        source.may_be_text = True
        name = ""
        if has_attributes and (yield from source.skip_space(span)) == "{":
            return (yield from read_json_in_tag(f"<{tag}", closing, source, span))
        if has_attributes:
            attributes = yield from source.take_until(">", NAME_LIMIT, span)
            if attributes is None or "\n" in attributes or attributes.endswith("/"):
                return TEXT
            name_match = NAME_ATTRIBUTE.search(attributes)
            name = name_match[1] if name_match else ""
        char = yield from source.skip_space(span)
        if char in ("{", "[") and not name:
            result = yield from read_json(source, span)
            if "missing-close-tag" in result.fixes and (yield from source.take_marker(_strays, span)):
                yield from _take_closing(source, span, closing)
        elif char == "{" and source.tools.match(name):
            result = yield from TaggedJson(f"<{tag}>", closing, name=name)(source, span)
        elif char == "<" and (tool := source.tools.match(name)):
            result = yield from _read_arguments(name, tag, source, span)
            if any(call.arguments.keys() - tool.properties.keys() for call in result.calls):
                return TEXT
        elif char == "<" and not name and (yield from source.take_marker(_function, span)):
            result = yield from read_xml_function(source, span)
            yield from _take_closing(source, span, closing)
        elif char == "<" and not name:
            result = yield from read_elements(source, span, closing)
        else:
            return TEXT
        if result is CUT and char != "{" and source.is_empty:
            return CUT  # after the name of a tool of the session
        return result.with_repairs("misspelt-open-tag") if result.calls_known_tools(source.tools) else TEXT

    return read


def read_json_in_tag(opening: str, closing: str, source: BodySource, span: list[str]) -> Reader[BodyResult]:
    """Parse ``{...}>`` after ``opening``, and the closing tag that may follow."""
    source.may_be_text = True
    result = yield from TaggedJson(opening, ">")(source, span)
    if not result.calls_known_tools(source.tools):
        return CUT if result.error == CUT_OFF else TEXT
    yield from _take_closing(source, span, closing)
    return result.with_repairs("misspelt-open-tag")


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
        yield from _take_closing(source, span, closing)
        return result
    if char != "{":
        return TEXT
    if not inner:
        return (yield from TaggedJson(closing.replace("/", ""), closing, name=name)(source, span))
    result = yield from TaggedJson(f"<{inner}>", f"</{inner}>", name=name)(source, span)
    yield from _take_closing(source, span, closing)
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


def _take_closing(source: StreamBuffer, span: list[str], closing: str) -> Reader[None]:
    _, follows = yield from source.peek_after_space(get_marker_set(closing))
    if follows:
        yield from source.take_through(get_marker_set(closing), span)


OPENERS = (
    *(CallOpener(f"<{tag}>", _build_reader(tag, has_attributes=False)) for tag in TAGS),
    *(
        CallOpener(f"<{tag} ", _build_reader(tag, has_attributes=True))
        for tag in (*TAGS, "function_call", "functioncall")
    ),
)
