"""Parse the ``<tool_call>`` tag, which several model families write around a call. The bodies differ.

::

    <tool_call>                    <tool_call>                         <tool_call>NAME
    {"name": ..., ...}             <function=NAME> ... </function>     <arg_key>KEY</arg_key> ...
    </tool_call>                   </tool_call>                        </tool_call>

All bodies are parsed, whichever of these formats is expected, because the start of a body shows its family.
"""

from __future__ import annotations

import re
from functools import partial

from adapter.parsing.bodies import generic_call_tags
from adapter.parsing.bodies.arg_key_value import KeyValueReader
from adapter.parsing.bodies.key_value_tags import GLM, TELECHAT
from adapter.parsing.bodies.name_and_argument_elements import read_elements
from adapter.parsing.bodies.xml_function import find_open_name, read_xml_function
from adapter.parsing.bodies.xml_invoke import find_name_key
from adapter.parsing.bodies.xml_named_function import read_wrapped_function
from adapter.parsing.fallback_readers import read_call_or_text
from adapter.parsing.format import CUT, TEXT, BodyReader, BodyResult, BodySource, CallOpener
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import Reader, StreamBuffer
from adapter.parsing.tagged_json import TaggedJson
from adapter.tools.decoded_json_calls import DecodedCall
from adapter.tools.tool_set import ToolSet
from adapter.tools.unbracketed_arguments import parse_plain_arguments

OPEN, CLOSE = "<tool_call>", "</tool_call>"
STRAYS = (CLOSE, "</function>", "</parameter>", "</invoke>")
"""Closing tags that models write without an open call."""

PROSE_LIMIT = 2_000
"""Maximum length of text in an unknown notation between ``<tool_call>`` tags that is reported as an invalid call, in
characters. Before longer text, the opening tag is only mentioned."""

WORDS_LIMIT = 80
"""Maximum number of characters between the end of a function and ``</tool_call>`` on the same line."""

_read_json = TaggedJson(OPEN, CLOSE)
_read_key_values = KeyValueReader(GLM)
_read_telechat_pairs = KeyValueReader(TELECHAT, own=("telechat4",))
read_unopened_pairs = _read_key_values.read_unopened
_read_attributes = generic_call_tags.build_attribute_reader("tool_call")
_closing, _ends = MarkerSet(CLOSE), MarkerSet(OPEN, CLOSE)
_JSON_REST = re.compile(r'[\w,"]*":')
_after_prose = MarkerSet(OPEN, CLOSE, "<function=", "\n\n")
_function = MarkerSet("<function=")
_other_tags = MarkerSet("<invoke ", "<function_calls>", "<minimax:tool_call>", "<tool_calls>", "<tool_use>")
_CLOSE_BEHIND_WORDS = re.compile(r"[^<\n]+</tool_call>", re.IGNORECASE)
_MAY_BE_WORDS = re.compile(r"[^<\n]*+(?:<[/a-z_]*)?", re.IGNORECASE)
_TELECHAT_PAIR = re.compile(r"[^\s<>{}]+\s*<param_key>")
_MAY_BE_TELECHAT_PAIR = re.compile(r"[^\s<>{}]*+\s*+(?:<(?:p[a-z_]*+)?)?")
_inner = MarkerSet(
    OPEN,
    CLOSE,
    "<function=",
    "<function ",
    "<parameter=",
    "```json",
    "```",
    "function\n",
    "function\r\n",
    "function=",
    "<invoke=",
    "<tool=",
    "<call=",
)


def read_tool_call(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse the body after ``<tool_call>``, in the notation of any family."""
    fixes: list[str] = []
    while True:
        char = yield from source.skip_space(consumed)
        if not char:
            # An opening marker in place of the previous call's closing one.
            return BodyResult() if source.after_call and not source.was_cut else CUT
        if char in "{[":
            fixes += _find_foreign_fixes("json", source)
            return (yield from _read_json(source, consumed)).with_repairs(*fixes)
        marker = yield from source.consume_marker(_inner, consumed)
        match marker.lower():
            case "<function=" | "<function " | "function=" | "<invoke=" | "<tool=" | "<call=" as tag:
                is_misspelt = not tag.startswith("<function")
                fixes += [*_find_foreign_fixes("function", source), *(["misspelt-inner-tag"] if is_misspelt else [])]
                read = read_wrapped_function if tag == "<function " else read_xml_function
                return (yield from _close((yield from read(source, consumed)), source, consumed)).with_repairs(*fixes)
            case "<parameter=":
                return (yield from _read_misspelt_function(source, consumed))
            case "</tool_call>":
                return BodyResult()  # empty: nothing was called
            case "":
                pairs = yield from _read_pairs(source, consumed)
                if pairs is not None:
                    return pairs.with_repairs(*fixes, *_find_foreign_fixes("pairs", source))
                elements = yield from _read_elements(source, consumed)
                if not elements.not_a_call:
                    return elements.with_repairs(*fixes)
                return (yield from _read_unknown(source, consumed))
            case "<tool_call>":
                fixes.append("text-in-tag")  # the opening marker is doubled
            case _:
                continue  # a code fence, whose end is reported later, or Step-Audio 2's word before the name


def _read_pairs(source: BodySource, consumed: list[str]) -> Reader[BodyResult | None]:
    """Parse a name and pairs in GLM's or TeleChat's tags. If there are none, consume nothing and return None."""
    is_telechat = source.expected_format == "telechat4" or (
        yield from source.peek_match(_TELECHAT_PAIR, WORDS_LIMIT, _MAY_BE_TELECHAT_PAIR.fullmatch)
    )
    pairs = (yield from _read_telechat_pairs(source, consumed)) if is_telechat else None
    return pairs or (yield from _read_key_values(source, consumed))


def _read_elements(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse an element with the name of a known tool, and the arguments after it. If there is no such element, consume
    nothing and return `TEXT`."""
    read = partial(read_elements, closing=CLOSE)
    result = yield from read_call_or_text(read, source, consumed, keeps_error=source.at_line_start)
    return result.with_fixes("foreign-body")


def _find_foreign_fixes(body: str, source: BodySource) -> list[str]:
    return ["foreign-body"] if source.tool_call_body not in (body, None) else []


def with_attributes(read: BodyReader) -> BodyReader:
    """Wrap ``read`` to parse attributes in the opening tag, which the format does not define, and the body after them.

    If an attribute names a tool, as in ``<tool_call name="NAME">{...}</tool_call>``, the body holds only the arguments,
    which may also be attributes.
    """

    def read_after_attributes(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        if (yield from generic_call_tags.begins_with_json(source, consumed)):
            return (yield from generic_call_tags.read_json_in_tag("<tool_call", CLOSE, source, consumed))
        opening = consumed[-1]
        attributes = yield from _read_attributes.consume_attributes(source, consumed)
        if not attributes:
            return TEXT
        result, key = TEXT, find_name_key("name", attributes, source.tools)
        if key:
            read_tag = partial(_read_attributes.read_tag, key, attributes, opening)
            result = yield from read_call_or_text(read_tag, source, consumed, keeps_error=True)
        if result.not_a_call:
            result = yield from read(source, consumed)
        return result.with_fixes("misspelt-open-tag")

    return read_after_attributes


def _read_misspelt_function(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse ``<parameter=NAME>`` in place of ``<function=NAME>``, an occasional error of Qwen3.5."""
    result = yield from read_xml_function(source, consumed)
    if any(source.tools and not source.tools.match(call.name) for call in result.calls):
        return BodyResult(error=f"the text in {OPEN} is not a call: expected <function=NAME> before <parameter=...>")
    return (yield from _close(result, source, consumed)).with_repairs("misspelt-open-tag")


def _close(result: BodyResult, source: StreamBuffer, consumed: list[str]) -> Reader[BodyResult]:
    """Consume ``</tool_call>`` after a function, and a few words before the tag. Return ``result``, with a repair if
    there are words or the tag is missing."""
    if not result.calls or consumed[-1].lower() == CLOSE or "missing-close-tag" in result.fixes:
        return result
    _, closing = yield from source.peek_after_space(_closing)
    if closing:
        yield from source.consume_through(_closing, consumed)
        return result
    match = yield from source.peek_match(_CLOSE_BEHIND_WORDS, WORDS_LIMIT, _MAY_BE_WORDS.fullmatch)
    if match is not None:
        source.consume_match(match, consumed)
        return result.with_repairs("text-in-tag")
    if source.was_cut and source.is_empty:
        return CUT
    return result.with_repairs("missing-close-tag")


def _begins_with_fused_name(source: BodySource) -> bool:
    """Return whether a known tool's name and JSON come next without a space between them, as GLM 5.2 writes."""
    return any(
        source.text.startswith(name, source.position) and _JSON_REST.match(source.text, source.position + len(name))
        for name in source.tools
    )


def _read_unknown(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse text after ``<tool_call>`` that is neither JSON nor XML. It is a malformed call if the tag begins a line
    and is closed. Otherwise, the tag is part of prose."""
    if source.at_line_start and (yield from find_open_name(source)) is not None:
        result = yield from read_xml_function(source, consumed)
        return (yield from _close(result, source, consumed)).with_repairs(*_find_foreign_fixes("function", source))
    if (yield from source.is_next(_other_tags)):
        return TEXT  # a call that begins with a marker of its own
    marker = yield from source.peek_marker(_after_prose, PROSE_LIMIT)
    if marker.lower() == "<function=" and source.at_line_start:
        yield from source.consume_through(_function, consumed)
        source.may_be_text = True
        result = yield from read_xml_function(source, consumed)
        return (yield from _close(result, source, consumed)).with_repairs("text-in-tag") if result.calls else TEXT
    if not marker and source.at_line_start and source.consume_cut_tags(PROSE_LIMIT, consumed):
        return CUT
    if not source.at_line_start or (marker.lower() != CLOSE and not _begins_with_fused_name(source)):
        return TEXT
    value: list[str] = []
    closing = yield from source.read_until(_ends, value)
    text = "".join(value)
    consumed.append(text)
    if closing.lower() == CLOSE:
        consumed.append(closing)
        if call := _find_plain_call(text, source.tools):
            return BodyResult((call,), ("foreign-body", "plain-arguments"))
    else:
        source.push_back(closing)
    return BodyResult(
        error=f"the text in {OPEN} is not a call: {text.strip()[:60]!r}. Write one JSON object there: "
        '{"name": "TOOL", "arguments": {...}}'
    )


def _find_plain_call(text: str, tools: ToolSet) -> DecodedCall | None:
    """Return the call in ``NAME KEY=VALUE, ...`` if it has all required arguments, or None."""
    name, _, rest = text.strip().partition(" ")
    tool = tools.match(name)
    plain = parse_plain_arguments(rest, tool) if tool is not None and rest else None
    if tool is None or plain is None or plain[1] != "plain-arguments" or not {*tool.required} <= plain[0].keys():
        return None
    return DecodedCall(tool.name, plain[0])


OPENERS = (
    CallOpener(OPEN, read_tool_call),
    CallOpener("<tool_call ", with_attributes(read_tool_call)),
    *generic_call_tags.OPENERS,
)
