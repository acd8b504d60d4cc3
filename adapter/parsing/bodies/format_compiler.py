"""Makes a format of a description: a table over the readers of this folder.

Where several families share a marker, the reader that knows all of them is taken, with what it knows of the slips of
models. Else one is made with the description's own markers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from adapter.core.errors import FormatError
from adapter.core.events import Json
from adapter.parsing.bare_json import UntaggedJson
from adapter.parsing.bodies import (
    deepseek_tokens,
    harmony_messages,
    invoke_tags,
    tool_call_tag,
    tool_calls_tag,
    xml_named_function,
)
from adapter.parsing.bodies.arg_key_value import GLM, KeyValueReader, KeyValueTags
from adapter.parsing.bodies.call_section import CallSection
from adapter.parsing.bodies.format_spec import FormatSpec
from adapter.parsing.bodies.gemma_call import GemmaCall
from adapter.parsing.bodies.name_then_json import NameThenJsonReader, after_word
from adapter.parsing.bodies.python_scanner import python_or_json, read_list
from adapter.parsing.bodies.react_lines import labelled_reader
from adapter.parsing.bodies.xml_function import read_bare_function, read_inline_function, read_xml_function
from adapter.parsing.bodies.xml_invoke import XmlInvokeReader
from adapter.parsing.bodies.xml_invoke_tags import XmlInvokeTags
from adapter.parsing.format import BodyReader, BodyResult, CallOpener, Format, ReadContext
from adapter.parsing.stream_buffer import Reader, StreamBuffer
from adapter.parsing.tagged_json import TaggedJson, require_json
from adapter.tools.call_shapes import extract_calls

_NAME, _KEY = "name_of_tool", "key_of_it"

MAX_MARKER = 200
"""Characters of a marker; more is text that stands beside calls."""


MAX_BRACKETS = 50
"""Brackets at which the JSON around a name is looked for."""


class UnsupportedLayoutError(Exception):
    """``str(error)`` says which piece of the description no reader explains."""


@dataclass(frozen=True, slots=True)
class CompiledReaders:
    """What the table of a format has of its body. ``closers``: markers that are never content on their own; ``tokens``:
    others that must not be stripped."""

    openers: tuple[CallOpener, ...] = ()
    bare: BodyReader | None = None
    head: BodyReader | None = None
    closers: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()


def compile_format(description: FormatSpec) -> Format:
    """The format. Raises NoReaderError."""
    readers = _MAKERS[description.body](description)
    closers = tuple(dict.fromkeys(marker for marker in readers.closers if is_marker(marker)))
    openers = readers.openers
    too_long = [opener.marker for opener in openers if len(opener.marker) > MAX_MARKER]
    if too_long:
        raise UnsupportedLayoutError(f"a marker of {len(too_long[0]):,} characters: {too_long[0][:MAX_MARKER]!r}...")
    if description.keeps_space:
        openers = tuple(opener._replace(keeps_space=True) for opener in openers)
    reasoning = {"<think>": "</think>", **description.reasoning}
    tokens = (
        *readers.tokens,
        *(opener.marker for opener in openers),
        *closers,
        *description.reasoning,
        *description.reasoning.values(),
    )
    return Format(
        name=description.name,
        openers=openers,
        read_bare=readers.bare,
        read_header=readers.head,
        encode_calls=description.encode_calls,
        encode_result=description.encode_result,
        reasoning=reasoning,
        starts_in_reasoning=description.starts_in_reasoning,
        stray_closers=closers,
        end_tokens=description.ends,
        other_role_markers=description.next_turns,
        result_markers=description.results,
        stop_sequences=description.stops,
        special_tokens=tuple(dict.fromkeys(token.strip() for token in tokens if is_marker(token.strip()))),
    )


def is_marker(text: str) -> bool:
    """Whether nobody writes ``text`` as words: it has a bracket, a bar or the like."""
    return (
        len(text) > 2 and re.search(r"[^\w\s.,:;!?'\"(){}-]", text) is not None and re.search(r"\w", text) is not None
    )


# ------------------------------------------------------------------- JSON with the name in it


def _json(description: FormatSpec) -> CompiledReaders:
    written = description.encode_calls([(_NAME, {_KEY: "value"})])
    start, end, value = json_around(written, _NAME)
    key = description.arguments_key or "arguments"
    reshape = None if description.arguments_key else _name_as_key
    is_list = isinstance(value, list)
    opening, closing, section = written[:start].strip(), written[end:].strip(), ("", "")
    if start >= len(description.section[0]) and description.section[0].strip():
        section = (description.section[0].strip(), description.section[1].strip())
        opening = written[len(description.section[0]) : start].strip()
        closing = written[end : len(written) - len(description.section[1])].strip()
    own_fixes = {"several-in-one-tag"} | _own_fixes(value, key)
    shared = own_fixes == {"several-in-one-tag"} and key == "arguments" and not description.is_text
    if shared and section == ("", "") and (opening, closing) in _SHARED_JSON:
        return CompiledReaders(_SHARED_JSON[opening, closing], closers=(closing,))
    if shared and section == (tool_calls_tag.OPEN, tool_calls_tag.CLOSE) and opening in ("", tool_call_tag.OPEN):
        openers = (*tool_calls_tag.OPENERS, *(tool_call_tag.OPENERS if opening else ()))
        return CompiledReaders(openers, closers=(section[1], closing))
    if opening == "" and section == ("", ""):
        if reshape is not None:
            raise UnsupportedLayoutError("JSON without any marker that has the tool's name as its key")
        return CompiledReaders(bare=_without(UntaggedJson(key, after_marker=False), own_fixes))
    read: BodyReader
    if closing:
        read = TaggedJson(opening or section[0], closing, key, may_list=is_list or section != ("", ""), reshape=reshape)
    elif reshape is not None:
        raise UnsupportedLayoutError(f"the tool's name as the key of JSON that nothing closes after {opening!r}")
    else:
        ends = tuple(dict.fromkeys(filter(None, (opening, section[1], *description.ends))))
        read = UntaggedJson(key, after_marker=True, ends=ends)
    read, mark = require_json(_without(read, own_fixes)), opening or section[0]
    return _in_section(section, (mark,), (closing,), read if is_marker(mark) else after_word(read))


_SHARED_JSON = {
    (tool_call_tag.OPEN, tool_call_tag.CLOSE): tool_call_tag.OPENERS,
    (tool_calls_tag.OPEN, tool_calls_tag.CLOSE): tool_calls_tag.OPENERS,
}


def json_around(text: str, word: str) -> tuple[int, int, Json]:
    """Where the outermost JSON object or list with ``word`` in it begins and ends, and what it is.

    Raises NoReaderError.
    """
    decoder = json.JSONDecoder()
    place = text.index(word)
    for found in islice(re.finditer(r"[{\[]", text[:place]), MAX_BRACKETS):
        try:
            value, end = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            continue
        if end > place:
            return found.start(), end, value
    raise UnsupportedLayoutError("no JSON stands around the name")


def _name_as_key(value: Json) -> Json:
    """``{"NAME": {...}}`` in the common shape; anything else as it is."""
    if isinstance(value, list):
        return [_name_as_key(item) for item in value]
    if isinstance(value, dict) and len(value) == 1:
        (name, arguments), *_ = value.items()
        if isinstance(arguments, dict):
            return {"name": name, "arguments": arguments}
    return value


def _own_fixes(value: Json, key: str) -> set[str]:
    """What would be named a repair of calls that are written as the family writes them."""
    try:
        return {fix for call in extract_calls(value, key) for fix in call.fixes}
    except FormatError:
        return set()


def _without(read: BodyReader, fixes: set[str]) -> BodyReader:
    """Reads as ``read``: ``fixes`` are this format's own ways."""

    def kept(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in names if name not in fixes)

    def read_own(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
        reading = yield from read(source, span, context)
        calls = tuple(call._replace(fixes=kept(call.fixes)) for call in reading.calls)
        return reading._replace(calls=calls, fixes=kept(reading.fixes))

    return read_own


def _in_section(
    section: tuple[str, str], opens: tuple[str, ...], closes: tuple[str, ...], read: BodyReader
) -> CompiledReaders:
    closers = (*closes, section[1])
    if not section[0] or section[0] in opens:
        return CompiledReaders(tuple(CallOpener(marker, read) for marker in opens), closers=closers)
    if not section[1]:
        raise UnsupportedLayoutError(f"{section[0]!r} begins several calls and nothing ends them")
    made = CallSection(opens=(section[0],), closes=(section[1],), call_opens=opens, read_call=read)
    return CompiledReaders(made.openers, closers=closers)


# ------------------------------------------------------------------- the name, then JSON


def _named_json(description: FormatSpec) -> CompiledReaders:
    section = _stripped(description.section)
    head, middle, closing = description.head.strip(), description.middle, description.tail.strip()
    if head.startswith(deepseek_tokens.CALL_BEGIN) and any(each in head + middle for each in deepseek_tokens.SEPARATOR):
        return CompiledReaders(deepseek_tokens.SECTION.openers, closers=deepseek_tokens.STRAYS)
    if head == "<function=":
        closers = ("</function>",)
        return CompiledReaders((CallOpener(head, read_bare_function),), closers=closers)
    opening, prefix = _marker_and_prefix(head)
    if not opening:
        raise UnsupportedLayoutError("a name and JSON without any marker before them")
    is_numbered = middle.startswith(":{number}")
    separators = [each.strip() for each in re.split(r"\{id\}|\{number\}", middle.removeprefix(":"))]
    if "{id}" not in middle and not is_numbered and len(separators) > 1:
        raise UnsupportedLayoutError(f"a number in {middle!r} between name and arguments")
    separators = [each for each in separators if each]
    read = NameThenJsonReader(
        opening,
        closing,
        prefix=prefix,
        separators=separators,
        is_numbered=is_numbered,
        ends=tuple(filter(None, (section[1], *description.ends))),
    )
    return _in_section(section, (opening,), (closing,), read if is_marker(opening) else after_word(read))


def _marker_and_prefix(head: str) -> tuple[str, str]:
    """``head`` as the marker before a name and the word that belongs to the name (``functions.``)."""
    found = re.fullmatch(r"(.*\W)?([A-Za-z_]+\.)", head, re.DOTALL)
    return (found[1].rstrip(), found[2]) if found and found[1] and found[1].strip() else (head, "")


def _labels(description: FormatSpec) -> CompiledReaders:
    label, arguments = description.head.strip(), description.middle.strip()
    result = description.results[0] if description.results else "Observation:"
    return CompiledReaders((CallOpener(label, labelled_reader(arguments, result)),))


# ------------------------------------------------------------------- pairs


def _function(description: FormatSpec) -> CompiledReaders:
    assert description.pairs is not None
    is_inline = not description.pairs.openings["string"].endswith("\n")
    before = f"{description.section[0]}{description.head}".removesuffix("<function=").strip()
    after = description.pairs.last.partition("</function>")[2].strip() or description.section[1].strip()
    closers = ("</function>", "</parameter>", after)
    if not before:
        return CompiledReaders(
            (CallOpener("<function=", read_bare_function), xml_named_function.OPENER), closers=closers
        )
    if before == tool_call_tag.OPEN and not is_inline:
        openers = (*tool_call_tag.OPENERS, CallOpener("<function=", read_bare_function), xml_named_function.OPENER)
        return CompiledReaders(openers, closers=tool_call_tag.STRAYS)
    if " " in before or "\n" in before or not after:
        raise UnsupportedLayoutError(f"{before!r} before a function")
    read = read_inline_function if is_inline else read_xml_function
    made = CallSection(opens=(before,), closes=(after,), call_opens=("<function=", "<function "), read_call=read)
    return CompiledReaders(made.openers, closers=closers)


def _pairs(description: FormatSpec) -> CompiledReaders:
    pairs = description.pairs
    assert pairs is not None
    first, opening, following = pairs.first.split(), pairs.openings["string"].split(), pairs.following.split()
    if len(set(pairs.openings.values())) > 1:
        raise UnsupportedLayoutError(
            f"what stands between key and value depends on the value: {dict(pairs.openings)!r}"
        )
    if not (1 <= len(first) <= 2 and 1 <= len(_tags_in(pairs.openings["string"])) <= 2):
        raise UnsupportedLayoutError(
            f"{pairs.first!r} before the first key, {pairs.openings['string']!r} before a value"
        )
    head = description.head.strip()
    if not head or " " in head:
        raise UnsupportedLayoutError(f"{description.head!r} before the name")
    between = _tags_in(pairs.following)
    key_tags, value_tags = _tags_in(pairs.first), _tags_in(pairs.openings["string"])
    last = _tags_in(pairs.last)
    if len(between) < 2 or len(last) < 2 or not following or not opening:
        raise UnsupportedLayoutError(
            f"{pairs.following!r} between a value and the next key, {pairs.last!r} after the last value"
        )
    section = _stripped(description.section)
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
        raise UnsupportedLayoutError(f"keys and values between {', '.join(map(repr, tags.all))}, which are no markers")
    if replace(tags, separator=GLM.separator, section_close=GLM.section_close) == GLM:
        return CompiledReaders(
            (*tool_call_tag.OPENERS, *(tool_calls_tag.OPENERS if section[0] else ())), closers=tags.all
        )
    read = KeyValueReader(tags, own=(description.name,)).read
    return _in_section(section, (tags.open,), (tags.close, tags.value_close, tags.key_close), read)


def _tags_in(text: str) -> list[str]:
    """The tags that ``text`` consists of, white space aside; what is no tag is one, too."""
    return re.findall(r"<[^<>]*>|\[\[[^\[\]]*\]\]|\[[^\[\]]*\]|[^\s<\[]+", text)


_ELEMENT_HEAD = re.compile(r"\s*(?P<call>\S(?:.*\S)?)\s+(?P<name>[\w:.-]+)=\"", re.DOTALL)
_ELEMENT_FIRST = re.compile(r"\"(?P<end>[^\s\"<]*)\s*(?P<parameter>\S+)\s+(?P<key>[\w:.-]+)=\"")
_ELEMENT_OPENING = re.compile(r"\"(?:\s+[\w:.-]+=\"[^\"]*\")*(?P<end>\S*)\s*")
_ELEMENT_LAST = re.compile(r"\s*(?P<value></[^>]*>|\S+)\s*(?P<call></[^>]*>|\S+)\s*")


def _elements(description: FormatSpec) -> CompiledReaders:
    pairs = description.pairs
    assert pairs is not None
    head, first = _ELEMENT_HEAD.fullmatch(description.head), _ELEMENT_FIRST.fullmatch(pairs.first)
    last = _ELEMENT_LAST.fullmatch(pairs.last)
    if head is None or first is None or last is None:
        seen = f"{description.head!r} NAME {pairs.first!r} KEY ... {pairs.last!r}"
        raise UnsupportedLayoutError(f"{seen}: no element with attributes")
    opening = _ELEMENT_OPENING.fullmatch(pairs.openings["string"])
    if opening is None or opening["end"] != first["end"]:
        raise UnsupportedLayoutError(f"{pairs.openings['string']!r} between key and value: no end of a tag")
    section = _stripped(description.section)
    if head["call"] in _INVOKE and section[0] in invoke_tags.SECTION.opens:
        return CompiledReaders(invoke_tags.OPENERS, closers=invoke_tags.STRAYS)
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
    return _in_section(section, (head["call"],), (*tags.call_close, *tags.parameter_close), read)


_INVOKE = tuple(f"<{each}invoke" for each in invoke_tags.NAMESPACES)


# ------------------------------------------------------------------- Python and Gemma


def _python(description: FormatSpec) -> CompiledReaders:
    opening, closing = description.section
    if not opening.rstrip().endswith("[") or not closing.lstrip().startswith("]"):
        raise UnsupportedLayoutError(f"{opening!r} and {closing!r} around Python calls: no list")
    opening, closing = opening.rstrip()[:-1].strip(), closing.lstrip()[1:].strip()
    if not opening:
        return CompiledReaders(bare=read_list)
    if not closing:
        raise UnsupportedLayoutError(f"nothing closes the Python calls after {opening!r}")
    return CompiledReaders((CallOpener(opening, python_or_json(opening, closing)),), bare=read_list, closers=(closing,))


def _gemma(description: FormatSpec) -> CompiledReaders:
    opening, closing = description.head.strip(), description.tail.strip()
    if not opening or not closing or description.section != ("", ""):
        raise UnsupportedLayoutError(f"{opening!r} and {closing!r} around call:NAME")
    return CompiledReaders((CallOpener(opening, GemmaCall(opening, closing, description.quote)),), closers=(closing,))


def _channels(description: FormatSpec) -> CompiledReaders:
    if not (
        description.head.startswith(harmony_messages.ASSISTANT)
        and description.middle.endswith(harmony_messages.MESSAGE)
    ):
        raise UnsupportedLayoutError(f"the call begins within a line or header, with {description.head!r}")
    return CompiledReaders(
        harmony_messages.OPENERS, head=harmony_messages.read_rest_of_header, tokens=harmony_messages.TOKENS
    )


def _stripped(section: tuple[str, str]) -> tuple[str, str]:
    return section[0].strip(), section[1].strip()


_MAKERS: dict[str, Callable[[FormatSpec], CompiledReaders]] = {
    "json": _json,
    "named json": _named_json,
    "labels": _labels,
    "function": _function,
    "pairs": _pairs,
    "elements": _elements,
    "python": _python,
    "gemma": _gemma,
    "channels": _channels,
}
