"""Parse calls in tags that no format defines, such as ``<tool_use>{...}</tool_use>``.

::

    <tool_use>{"name": NAME, "input": {...}}</tool_use>
    <functioncall {"name": NAME, "arguments": {...}}>
    <tool_use><name>NAME</name><input>{...}</input></tool_use>
    <tool name="NAME">{...}</tool>                         also with an element for each argument
    <tool name="NAME" KEY="value"/>
    <tool_use><tool_name>NAME</tool_name><parameters><KEY>value</KEY></parameters></tool_use>
    <Call><Function>NAME</Function><Parameters><KEY>value</KEY></Parameters></Call>
    <tool>NAME</tool><args>{...}</args>
    <tool>NAME</tool><tool_input>value</tool_input>        from LangChain's XML agent
    <tool_use><NAME>{...}</NAME></tool_use>                also in <TOOLCALL>
    <function_invocation><function=NAME>...</function></function_invocation>

The tags are ordinary words, so they count only at the start of a line and around a call to one of the session's tools.
"""

from __future__ import annotations

from functools import lru_cache, partial

from adapter.parsing.bodies.name_and_argument_elements import (
    NAME_ATTRIBUTE,
    consume_closing,
    read_after_name,
    read_elements,
)
from adapter.parsing.bodies.xml_invoke import XmlInvokeReader
from adapter.parsing.bodies.xml_invoke_tags import XmlInvokeTags
from adapter.parsing.format import CUT, CUT_OFF, TEXT, BodyReader, BodyResult, BodySource, CallOpener
from adapter.parsing.marker_set import MarkerSet, get_marker_set
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader, StreamBuffer
from adapter.parsing.tagged_json import TaggedJson

TAGS = (
    "tools", "tool_use", "use_tool", "ant_tool_use", "function_invocation", "tool", "tool_name", "tool-call",
    "function-call", "call", "action",
)  # fmt: skip

_strays = MarkerSet("</parameter>", "</function>", "</invoke>")


def _build_reader(tag: str) -> BodyReader:
    closing = f"</{tag}>"
    read_json = TaggedJson(f"<{tag}>", closing)

    def read(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        if not source.at_line_start:
            return TEXT
        source.may_be_text = True
        char = yield from source.skip_space(consumed)
        if char in ("{", "["):
            result = yield from read_json(source, consumed)
            if "missing-close-tag" in result.fixes and (yield from source.consume_marker(_strays, consumed)):
                yield from consume_closing(source, consumed, closing)
        elif char == "<":
            result = yield from read_elements(source, consumed, closing)
        else:
            result = yield from _read_after_own_name(closing, source, consumed)
        if result is CUT and char != "{" and source.is_empty:
            return CUT  # after a known tool's name
        return result.with_repairs("misspelt-open-tag") if result.calls_known_tools(source.tools) else TEXT

    return read


def _read_after_own_name(closing: str, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse ``NAME</tool><args>...</args>`` after ``<tool>``. The element ``tool`` contains only the name."""
    text = yield from source.consume_until("<", NAME_LIMIT, consumed)
    name = (text or "").strip()
    if source.tools.match(name) is None:
        return TEXT
    source.push_back("<")
    consumed[-1] = consumed[-1].removesuffix("<")
    if not (yield from source.consume_marker(get_marker_set(closing), consumed)):
        return TEXT
    return (yield from read_after_name(name, source, consumed, closing))


def _read_attributes(tag: str, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a call after ``<TAG `` whose attributes name the tool and may be its arguments."""
    if not source.at_line_start:
        return TEXT
    source.may_be_text = True
    if (yield from begins_with_json(source, consumed)):
        return (yield from read_json_in_tag(f"<{tag}", f"</{tag}>", source, consumed))
    result = yield from build_attribute_reader(tag)(source, consumed)
    text = "".join(consumed)
    name = NAME_ATTRIBUTE.search(text)
    is_damaged = text.endswith(f"</{tag}>") and text.partition(">")[2].lstrip().startswith("{")
    is_damaged = source.is_empty if result is CUT else is_damaged and result.error is not None
    if is_damaged and name is not None and source.tools.match(name[1]):
        return result
    if not result.calls_known_tools(source.tools):
        return TEXT
    for call in result.calls:
        tool, keys = source.tools[call.name], call.arguments.keys()
        is_listed = text.endswith("/>") and not (keys and {*tool.required} <= keys)  # as in a list of tools
        if is_listed or keys - tool.properties.keys():
            return TEXT
    return result.with_repairs("misspelt-open-tag")


def begins_with_json(source: StreamBuffer, consumed: list[str]) -> Reader[bool]:
    """Return whether JSON follows the ``<TAG `` just consumed. If attributes follow, put back the space before them."""
    if (yield from source.skip_space(consumed)) == "{":
        return True
    start = len(consumed[0].rstrip())
    source.push_back("".join(consumed)[start:])
    consumed[:] = [consumed[0][:start]]
    return False


@lru_cache(maxsize=64)
def build_attribute_reader(tag: str) -> XmlInvokeReader:
    """Return a parser for calls like ``<TAG name="NAME">...</TAG>``."""
    return XmlInvokeReader(
        XmlInvokeTags(
            call=(f"<{tag}",),
            call_close=(f"</{tag}>",),
            parameter=("<parameter",),
            parameter_close=("</parameter>",),
        )
    )


def read_json_in_tag(opening: str, closing: str, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse JSON inside an opening tag, as in ``<tool_call {...}>``, and consume the tag ``closing`` if it follows.
    ``opening`` is the start of the tag, which was just consumed."""
    source.may_be_text = True
    result = yield from TaggedJson(opening, ">")(source, consumed)
    if not result.calls_known_tools(source.tools):
        return CUT if result.error == CUT_OFF else TEXT
    yield from consume_closing(source, consumed, closing)
    return result.with_repairs("misspelt-open-tag")


OPENERS = (
    *(CallOpener(f"<{tag}>", _build_reader(tag)) for tag in TAGS),
    *(CallOpener(f"<{tag} ", partial(_read_attributes, tag)) for tag in (*TAGS, "function_call", "functioncall")),
)
