"""Compile a `FormatSpec` whose arguments are key-value pairs: choose a parser by the text around keys and values."""

from __future__ import annotations

import re
from dataclasses import replace

from adapter.parsing.bodies import invoke_tags, tool_call_tag, tool_calls_tag, xml_named_function
from adapter.parsing.bodies.arg_key_value import KeyValueReader
from adapter.parsing.bodies.bare_xml_function import read_unwrapped_function
from adapter.parsing.bodies.call_section import CallSection
from adapter.parsing.bodies.compiled_format import (
    CompiledFormat,
    UnsupportedLayoutError,
    compile_described,
    is_marker,
    strip_both,
    wrap_in_section,
)
from adapter.parsing.bodies.format_file_calls import DescribedCall, build_pairs_decoder
from adapter.parsing.bodies.key_value_tags import GLM, KeyValueTags
from adapter.parsing.bodies.xml_function import read_inline_function, read_xml_function
from adapter.parsing.bodies.xml_invoke import XmlInvokeReader
from adapter.parsing.bodies.xml_invoke_tags import XmlInvokeTags
from adapter.parsing.format import BodyReader, CallOpener
from adapter.parsing.format_spec import FormatSpec


def compile_function(spec: FormatSpec) -> CompiledFormat:
    assert spec.pairs is not None
    is_inline = not spec.pairs.openings["string"].endswith("\n")
    before = f"{spec.section[0]}{spec.head}".removesuffix("<function=").strip()
    after = spec.pairs.last.partition("</function>")[2].strip() or spec.section[1].strip()
    closers = ("</function>", "</parameter>", after)
    if not before:
        return CompiledFormat(
            (CallOpener("<function=", read_unwrapped_function), xml_named_function.OPENER), closers=closers
        )
    if before == tool_call_tag.OPEN and not is_inline:
        openers = (*tool_call_tag.OPENERS, CallOpener("<function=", read_unwrapped_function), xml_named_function.OPENER)
        return CompiledFormat(openers, closers=tool_call_tag.STRAYS)
    if " " in before or "\n" in before or not after:
        raise UnsupportedLayoutError(f"the text before a function is not supported: {before!r}")
    read = read_inline_function if is_inline else read_xml_function
    call_section = CallSection(
        opens=(before,), closes=(after,), call_opens=("<function=", "<function "), read_call=read
    )
    return CompiledFormat(call_section.openers, closers=closers)


def compile_pairs(spec: FormatSpec) -> CompiledFormat:
    pairs = spec.pairs
    assert pairs is not None
    key_tags, value_tags, between, last = map(
        _find_tags, (pairs.first, pairs.openings["string"], pairs.following, pairs.last)
    )
    if len(set(pairs.openings.values())) > 1:
        texts = ", ".join(map(repr, pairs.openings.values()))
        raise UnsupportedLayoutError(f"the text before a value depends on its type ({texts}); expected one text")
    if not (key_tags and len(pairs.first.split()) <= 2 and 1 <= len(value_tags) <= 2):
        raise UnsupportedLayoutError(
            f"unsupported text before the first key ({pairs.first!r}) and a value ({pairs.openings['string']!r})"
        )
    head = spec.head.strip()
    if not head or " " in head:
        raise UnsupportedLayoutError(f"the text before the name is not supported: {spec.head!r}")
    if len(between) < 2 or len(last) < 2:
        raise UnsupportedLayoutError(
            f"the text after a value is {pairs.following!r} before the next key, but {pairs.last!r} at the end"
        )
    section = strip_both(spec.section)
    tags = KeyValueTags(
        open=head,
        close="".join(last[1:]),
        key_open=key_tags[-1],
        key_close=value_tags[0] if len(value_tags) == 2 else "",
        value_open=value_tags[-1],
        value_close=between[0],
        separator=key_tags[0] if len(key_tags) == 2 else "",
        section_close=section[1],
    )
    if any(tag and not is_marker(tag) for tag in tags.all):
        raise UnsupportedLayoutError(
            f"keys and values are wrapped in {', '.join(map(repr, tags.all))}, which are not markers"
        )
    if replace(tags, separator=GLM.separator, section_close=GLM.section_close) == GLM:
        return CompiledFormat(
            (*tool_call_tag.OPENERS, *(tool_calls_tag.OPENERS if section[0] else ())), closers=tags.all
        )
    read = KeyValueReader(tags, own=(spec.name,)).read
    return wrap_in_section(section, tags.open, (tags.close, tags.value_close, tags.key_close), read)


def _find_tags(text: str) -> list[str]:
    """Split ``text`` into tags and words, without whitespace."""
    return re.findall(r"<[^<>]*>|\[\[[^\[\]]*\]\]|\[[^\[\]]*\]|[^\s<\[]+", text)


_ELEMENT_HEAD = re.compile(r"\s*(?P<call>\S(?:.*\S)?)\s+(?P<name>[\w:.-]+)=\"", re.DOTALL)
_ELEMENT_FIRST = re.compile(r"\"(?P<end>[^\s\"<]*)\s*(?P<parameter>\S+)\s+(?P<key>[\w:.-]+)=\"")
_ELEMENT_OPENING = re.compile(r"\"(?:\s+[\w:.-]+=\"[^\"]*\")*(?P<end>\S*)\s*")
_ELEMENT_LAST = re.compile(r"\s*(?P<value></[^>]*>|\S+)\s*(?P<call></[^>]*>|\S+)\s*")


def compile_elements(spec: FormatSpec) -> CompiledFormat:
    pairs = spec.pairs
    assert pairs is not None
    head, first = _ELEMENT_HEAD.fullmatch(spec.head), _ELEMENT_FIRST.fullmatch(pairs.first)
    last = _ELEMENT_LAST.fullmatch(pairs.last)
    if head is None or first is None or last is None:
        layout = f"{spec.head!r} NAME {pairs.first!r} KEY ... {pairs.last!r}"
        raise UnsupportedLayoutError(f"{layout} is not an element with attributes")
    opening = _ELEMENT_OPENING.fullmatch(pairs.openings["string"])
    if opening is None or opening["end"] != first["end"]:
        raise UnsupportedLayoutError(
            f"the text between key and value is not the end of a tag: {pairs.openings['string']!r}"
        )
    section = strip_both(spec.section)
    if head["call"] in _INVOKE and section[0] in invoke_tags.SECTION.opens:
        return CompiledFormat(invoke_tags.OPENERS, closers=invoke_tags.STRAYS)
    tags = XmlInvokeTags(
        call=(head["call"],),
        call_close=(last["call"],),
        parameter=(first["parameter"],),
        parameter_close=(last["value"],),
        section=tuple(filter(None, section[:1])),
        section_close=tuple(filter(None, section[1:])),
        end=first["end"],
        name=head["name"],
        key=first["key"],
    )
    read: BodyReader = XmlInvokeReader(tags)
    return wrap_in_section(section, head["call"], (*tags.call_close, *tags.parameter_close), read)


_INVOKE = tuple(f"<{each}invoke" for each in invoke_tags.NAMESPACES)


def compile_lines(spec: FormatSpec) -> CompiledFormat:
    pairs = spec.pairs
    assert pairs is not None
    value_close, opening, closing = pairs.value_close, pairs.openings["string"], pairs.closing.strip()
    if not value_close.strip(" ") or not opening.strip(" ") or not closing:
        raise UnsupportedLayoutError(
            f"the text before a value is {opening!r}, after it {pairs.following!r}, and after the last value "
            f"{pairs.last!r}; expected text between key and value, the same text after each value, and a closing marker"
        )
    after_name = (pairs.first, pairs.before_json, *filter(None, (pairs.none,)))
    begins_line = "\n" if not value_close.strip() else ""  # a value in a line may contain the closing marker
    head, closing_line = spec.head.strip(), f"{begins_line}{closing}"
    decode = build_pairs_decoder(
        pairs.build_splitter(), pairs.before_key, opening, value_close, f"{begins_line}{head}", closing_line
    )
    return compile_described(spec, DescribedCall(after_name, head, closing_line, decode), closing)
