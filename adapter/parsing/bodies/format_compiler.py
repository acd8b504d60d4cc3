"""Compile a `FormatSpec` to a `Format`, a table that refers to the body parsers of this folder.

If several families share a marker, the compiler uses the parser that knows all of them and their models' typical
errors. Otherwise it builds a parser with the markers of the spec.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
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
from adapter.parsing.bodies.described_call import DescribedCall, build_pairs_reader, build_yaml_reader
from adapter.parsing.bodies.format_spec import FormatSpec
from adapter.parsing.bodies.gemma_call import GemmaCall
from adapter.parsing.bodies.name_then_json import NameThenJsonReader, build_word_reader
from adapter.parsing.bodies.python_scanner import build_python_or_json_reader, read_list, read_one_call
from adapter.parsing.bodies.react_lines import build_labeled_reader
from adapter.parsing.bodies.xml_function import read_inline_function, read_xml_function
from adapter.parsing.bodies.xml_function_openers import read_bare_function
from adapter.parsing.bodies.xml_invoke import XmlInvokeReader
from adapter.parsing.bodies.xml_invoke_spelling import XmlInvokeTags
from adapter.parsing.format import BodyReader, BodyResult, BodySource, CallOpener, Format
from adapter.parsing.stream_buffer import Reader
from adapter.parsing.tagged_json import TaggedJson, require_json, spell_out_name
from adapter.tools.call_shapes import extract_calls

_NAME, _KEY = "name_of_tool", "key_of_it"

MAX_MARKER = 200
"""Maximum length of a marker; longer text is content next to calls."""


MAX_BRACKETS = 50
"""Maximum number of brackets from which the JSON around a name is searched."""


class UnsupportedLayoutError(Exception):
    """Raised for a spec that no parser supports. ``str(error)`` names the unsupported part."""


@dataclass(frozen=True, slots=True)
class CompiledReaders:
    """The part of a format's table that depends on its body.

    ``closers``: markers that are never content on their own. ``tokens``: additional markers that must not be stripped.
    """

    openers: tuple[CallOpener, ...] = ()
    bare: BodyReader | None = None
    head: BodyReader | None = None
    closers: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()


def compile_format(spec: FormatSpec) -> Format:
    """Return the format that ``spec`` describes. Raises UnsupportedLayoutError."""
    readers = _COMPILERS[spec.body](spec)
    closers = tuple(dict.fromkeys(marker for marker in readers.closers if is_marker(marker)))
    openers = readers.openers
    too_long = [opener.marker for opener in openers if len(opener.marker) > MAX_MARKER]
    if too_long:
        raise UnsupportedLayoutError(
            f"a marker has {len(too_long[0]):,} characters; the maximum is {MAX_MARKER}: "
            f"{too_long[0][:MAX_MARKER]!r}..."
        )
    if spec.keeps_space:
        openers = tuple(opener._replace(keeps_space=True) for opener in openers)
    reasoning = {"<think>": "</think>", **spec.reasoning}
    tokens = (
        *readers.tokens,
        *(opener.marker for opener in openers),
        *closers,
        *spec.reasoning,
        *spec.reasoning.values(),
    )
    return Format(
        name=spec.name,
        openers=openers,
        read_bare=readers.bare,
        read_header=readers.head,
        encode_calls=spec.encode_calls,
        encode_result=spec.encode_result,
        reasoning=reasoning,
        answer_tags=spec.answer_tags,
        starts_in_reasoning=spec.starts_in_reasoning,
        stray_closers=closers,
        end_tokens=spec.ends,
        other_role_markers=spec.next_turns,
        result_markers=spec.results,
        stop_sequences=spec.stops,
        special_tokens=tuple(dict.fromkeys(token.strip() for token in tokens if is_marker(token.strip()))),
    )


def is_marker(text: str) -> bool:
    """Return whether ``text`` is unlikely in prose, because it contains a bracket, a bar or a similar character."""
    return (
        len(text) > 2 and re.search(r"[^\w\s.,:;!?'\"(){}-]", text) is not None and re.search(r"\w", text) is not None
    )


# ------------------------------------------------------------------- JSON with the name in it


def _compile_json(spec: FormatSpec) -> CompiledReaders:
    encoded = spec.encode_calls([(_NAME, {_KEY: "value"})])
    start, end, value = find_json_around(encoded, _NAME)
    key = spec.arguments_key or "arguments"
    reshape = None if spec.arguments_key else spell_out_name
    is_list = isinstance(value, list)
    opening, closing, section = encoded[:start].strip(), encoded[end:].strip(), ("", "")
    if start >= len(spec.section[0]) and spec.section[0].strip():
        section = (spec.section[0].strip(), spec.section[1].strip())
        opening = encoded[len(spec.section[0]) : start].strip()
        closing = encoded[end : len(encoded) - len(spec.section[1])].strip()
    own_fixes = {"several-in-one-tag"} | _find_own_fixes(value, key)
    shared = own_fixes == {"several-in-one-tag"} and key == "arguments" and not spec.is_text
    if shared and section == ("", "") and (opening, closing) in _SHARED_JSON:
        return CompiledReaders(_SHARED_JSON[opening, closing], closers=(closing,))
    if shared and section == (tool_calls_tag.OPEN, tool_calls_tag.CLOSE) and opening in ("", tool_call_tag.OPEN):
        openers = (*tool_calls_tag.OPENERS, *(tool_call_tag.OPENERS if opening else ()))
        return CompiledReaders(openers, closers=(section[1], closing))
    if opening == "" and section == ("", ""):
        if reshape is not None:
            raise UnsupportedLayoutError("the JSON of a call has the tool's name as its key, but no marker before it")
        return CompiledReaders(bare=_ignore_fixes(UntaggedJson(key, after_marker=False), own_fixes))
    read: BodyReader
    if closing:
        read = TaggedJson(opening or section[0], closing, key, may_list=is_list or section != ("", ""), reshape=reshape)
    elif reshape is not None:
        raise UnsupportedLayoutError(
            f"the JSON after {opening!r} has the tool's name as its key, but no closing marker after it"
        )
    else:
        ends = tuple(dict.fromkeys(filter(None, (opening, section[1], *spec.ends))))
        read = UntaggedJson(key, after_marker=True, ends=ends)
    read, mark = require_json(_ignore_fixes(read, own_fixes)), opening or section[0]
    return _wrap_in_section(section, mark, (closing,), read)


_SHARED_JSON = {
    (tool_call_tag.OPEN, tool_call_tag.CLOSE): tool_call_tag.OPENERS,
    (tool_calls_tag.OPEN, tool_calls_tag.CLOSE): tool_calls_tag.OPENERS,
}


def find_json_around(text: str, word: str) -> tuple[int, int, Json]:
    """Return the start, end and value of the outermost JSON object or list that contains ``word``.

    Raises UnsupportedLayoutError.
    """
    decoder = json.JSONDecoder()
    name_start = text.index(word)
    for match in islice(re.finditer(r"[{\[]", text[:name_start]), MAX_BRACKETS):
        try:
            value, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if end > name_start:
            return match.start(), end, value
    raise UnsupportedLayoutError("the name is not inside JSON")


def _find_own_fixes(value: Json, key: str) -> set[str]:
    """Return the repairs that would be reported for a call in the family's normal spelling."""
    try:
        return {fix for call in extract_calls(value, key) for fix in call.fixes}
    except FormatError:
        return set()


def _ignore_fixes(read: BodyReader, fixes: set[str]) -> BodyReader:
    """Return a reader like ``read`` that does not report ``fixes``, because they are this format's normal spelling."""

    def read_own(source: BodySource, span: list[str]) -> Reader[BodyResult]:
        return (yield from read(source, span)).remove_fixes(*fixes)

    return read_own


def _wrap_in_section(
    section: tuple[str, str], opening: str, closes: tuple[str, ...], read: BodyReader
) -> CompiledReaders:
    """Compile calls that begin with ``opening``, with the text of ``section`` around all calls."""
    read, closers = read if is_marker(opening) else build_word_reader(read), (*closes, section[1])
    if section[0] in ("", opening):
        return CompiledReaders((CallOpener(opening, read),), closers=closers)
    if not section[1]:
        raise UnsupportedLayoutError(f"{section[0]!r} opens a section that has no closing marker")
    call_section = CallSection(opens=(section[0],), closes=(section[1],), call_opens=(opening,), read_call=read)
    return CompiledReaders(call_section.openers, closers=closers)


# ------------------------------------------------------------------- the name, then JSON


def _compile_named_json(spec: FormatSpec) -> CompiledReaders:
    section = _strip_both(spec.section)
    head, middle, closing = spec.head.strip(), spec.middle, spec.tail.strip()
    if head.startswith(deepseek_tokens.CALL_BEGIN) and any(each in head + middle for each in deepseek_tokens.SEPARATOR):
        return CompiledReaders(deepseek_tokens.SECTION.openers, closers=deepseek_tokens.STRAYS)
    if head == "<function=":
        closers = ("</function>",)
        return CompiledReaders((CallOpener(head, read_bare_function),), closers=closers)
    opening, prefix = _split_marker_and_prefix(head)
    if not opening:
        raise UnsupportedLayoutError("the name and the JSON have no marker before them")
    is_numbered = middle.startswith(":{number}")
    separators = [each.strip() for each in re.split(r"\{id\}|\{number\}", middle.removeprefix(":"))]
    if "{id}" not in middle and not is_numbered and len(separators) > 1:
        raise UnsupportedLayoutError(f"the text between the name and the arguments contains a number: {middle!r}")
    separators = [each for each in separators if each]
    read = NameThenJsonReader(
        opening,
        closing,
        prefix=prefix,
        separators=separators,
        is_numbered=is_numbered,
        ends=tuple(filter(None, (section[1], *spec.ends))),
    )
    return _wrap_in_section(section, opening, (closing,), read)


def _split_marker_and_prefix(head: str) -> tuple[str, str]:
    """Split ``head`` into the marker before a name and the prefix of the name (``functions.``)."""
    match = re.fullmatch(r"(.*\W)?([A-Za-z_]+\.)", head, re.DOTALL)
    return (match[1].rstrip(), match[2]) if match and match[1] and match[1].strip() else (head, "")


def _compile_labels(spec: FormatSpec) -> CompiledReaders:
    label, arguments = spec.head.strip(), spec.middle.strip()
    result = spec.results[0] if spec.results else "Observation:"
    return CompiledReaders((CallOpener(label, build_labeled_reader(arguments, result)),))


# ------------------------------------------------------------------- pairs


def _compile_function(spec: FormatSpec) -> CompiledReaders:
    assert spec.pairs is not None
    is_inline = not spec.pairs.openings["string"].endswith("\n")
    before = f"{spec.section[0]}{spec.head}".removesuffix("<function=").strip()
    after = spec.pairs.last.partition("</function>")[2].strip() or spec.section[1].strip()
    closers = ("</function>", "</parameter>", after)
    if not before:
        return CompiledReaders(
            (CallOpener("<function=", read_bare_function), xml_named_function.OPENER), closers=closers
        )
    if before == tool_call_tag.OPEN and not is_inline:
        openers = (*tool_call_tag.OPENERS, CallOpener("<function=", read_bare_function), xml_named_function.OPENER)
        return CompiledReaders(openers, closers=tool_call_tag.STRAYS)
    if " " in before or "\n" in before or not after:
        raise UnsupportedLayoutError(f"the text before a function is not supported: {before!r}")
    read = read_inline_function if is_inline else read_xml_function
    call_section = CallSection(
        opens=(before,), closes=(after,), call_opens=("<function=", "<function "), read_call=read
    )
    return CompiledReaders(call_section.openers, closers=closers)


def _compile_pairs(spec: FormatSpec) -> CompiledReaders:
    pairs = spec.pairs
    assert pairs is not None
    first, opening, following = pairs.first.split(), pairs.openings["string"].split(), pairs.following.split()
    if len(set(pairs.openings.values())) > 1:
        raise UnsupportedLayoutError(f"the text between key and value depends on the value: {dict(pairs.openings)!r}")
    if not (1 <= len(first) <= 2 and 1 <= len(_find_tags(pairs.openings["string"])) <= 2):
        raise UnsupportedLayoutError(
            f"the text {pairs.first!r} before the first key and {pairs.openings['string']!r} before a value "
            "is not supported"
        )
    head = spec.head.strip()
    if not head or " " in head:
        raise UnsupportedLayoutError(f"the text before the name is not supported: {spec.head!r}")
    between = _find_tags(pairs.following)
    key_tags, value_tags = _find_tags(pairs.first), _find_tags(pairs.openings["string"])
    last = _find_tags(pairs.last)
    if len(between) < 2 or len(last) < 2 or not following or not opening:
        raise UnsupportedLayoutError(
            f"the text after a value is {pairs.following!r} before the next key, but {pairs.last!r} at the end"
        )
    section = _strip_both(spec.section)
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
            f"keys and values are between {', '.join(map(repr, tags.all))}, which are not markers"
        )
    if replace(tags, separator=GLM.separator, section_close=GLM.section_close) == GLM:
        return CompiledReaders(
            (*tool_call_tag.OPENERS, *(tool_calls_tag.OPENERS if section[0] else ())), closers=tags.all
        )
    read = KeyValueReader(tags, own=(spec.name,)).read
    return _wrap_in_section(section, tags.open, (tags.close, tags.value_close, tags.key_close), read)


def _find_tags(text: str) -> list[str]:
    """Return the tags that ``text`` consists of, without whitespace. A word between tags counts as a tag."""
    return re.findall(r"<[^<>]*>|\[\[[^\[\]]*\]\]|\[[^\[\]]*\]|[^\s<\[]+", text)


_ELEMENT_HEAD = re.compile(r"\s*(?P<call>\S(?:.*\S)?)\s+(?P<name>[\w:.-]+)=\"", re.DOTALL)
_ELEMENT_FIRST = re.compile(r"\"(?P<end>[^\s\"<]*)\s*(?P<parameter>\S+)\s+(?P<key>[\w:.-]+)=\"")
_ELEMENT_OPENING = re.compile(r"\"(?:\s+[\w:.-]+=\"[^\"]*\")*(?P<end>\S*)\s*")
_ELEMENT_LAST = re.compile(r"\s*(?P<value></[^>]*>|\S+)\s*(?P<call></[^>]*>|\S+)\s*")


def _compile_elements(spec: FormatSpec) -> CompiledReaders:
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
    section = _strip_both(spec.section)
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
    return _wrap_in_section(section, head["call"], (*tags.call_close, *tags.parameter_close), read)


_INVOKE = tuple(f"<{each}invoke" for each in invoke_tags.NAMESPACES)


# ------------------------------------------------------------------- Python and Gemma


def _compile_python(spec: FormatSpec) -> CompiledReaders:
    opening, closing = spec.section
    if spec.head.strip():
        return _compile_marked_python(spec)
    if not opening.rstrip().endswith("[") or not closing.lstrip().startswith("]"):
        raise UnsupportedLayoutError(f"{opening!r} and {closing!r} around Python calls do not make a list")
    opening, closing = opening.rstrip()[:-1].strip(), closing.lstrip()[1:].strip()
    if not opening:
        return CompiledReaders(bare=read_list)
    if not closing:
        raise UnsupportedLayoutError(f"the Python calls after {opening!r} have no closing marker")
    return CompiledReaders(
        (CallOpener(opening, build_python_or_json_reader(opening, closing)),), bare=read_list, closers=(closing,)
    )


def _compile_marked_python(spec: FormatSpec) -> CompiledReaders:
    """Compile Python calls with a marker before each: ``CALL: f(x=1)``."""
    opening, closing = spec.head.strip(), spec.tail.strip()
    read = build_python_or_json_reader(opening, closing) if closing else read_one_call
    return _wrap_in_section(_strip_both(spec.section), opening, (closing,), read)


def _compile_gemma(spec: FormatSpec) -> CompiledReaders:
    opening, closing = spec.head.strip(), spec.tail.strip()
    if not opening or not closing or spec.section != ("", ""):
        raise UnsupportedLayoutError(f"{opening!r} and {closing!r} around call:NAME are not supported")
    return CompiledReaders((CallOpener(opening, GemmaCall(opening, closing, spec.quote)),), closers=(closing,))


def _compile_channels(spec: FormatSpec) -> CompiledReaders:
    if not (spec.head.startswith(harmony_messages.ASSISTANT) and spec.middle.endswith(harmony_messages.MESSAGE)):
        raise UnsupportedLayoutError(f"the call begins within a line or header, with {spec.head!r}")
    return CompiledReaders(
        harmony_messages.OPENERS, head=harmony_messages.read_rest_of_header, tokens=harmony_messages.TOKENS
    )


# ------------------------------------------------------------------- YAML and other pairs


def _compile_yaml(spec: FormatSpec) -> CompiledReaders:
    closing = spec.tail.strip()
    if not closing:
        raise UnsupportedLayoutError("nothing marks the end of the YAML: the text after the arguments is empty")
    after_name = (spec.middle, "\n")
    read = DescribedCall(after_name, f"\n{closing}", build_yaml_reader(spec.middle), needs_closing=True)
    return _compile_described(spec, read, closing)


def _compile_lines(spec: FormatSpec) -> CompiledReaders:
    pairs = spec.pairs
    assert pairs is not None
    value_close = pairs.value_close
    closing = pairs.last[len(value_close) :].strip()
    first, opening = pairs.following[len(value_close) :], pairs.openings["string"]
    before_first = pairs.first.removesuffix(first) if first.strip() else pairs.first
    if not value_close.strip(" ") or not opening.strip(" ") or not closing:
        raise UnsupportedLayoutError(
            f"the text is {opening!r} before a value, {pairs.following!r} after it and {pairs.last!r} after the last "
            "value; expected text between key and value, the same text after each value, and a closing marker"
        )
    after_name = (pairs.first, *filter(None, (pairs.none,)))
    decode = build_pairs_reader(before_first, first, opening, value_close, pairs.none.strip().removesuffix(closing))
    begins_line = "\n" if not value_close.strip() else ""  # a value in a line may contain the closing marker
    return _compile_described(spec, DescribedCall(after_name, f"{begins_line}{closing}", decode), closing)


def _compile_described(spec: FormatSpec, read: BodyReader, closing: str) -> CompiledReaders:
    opening = spec.head.strip()
    if not re.search(r"\w", opening):
        raise UnsupportedLayoutError(f"the text before the name is {spec.head!r}, which is not a marker")
    closers = () if "{name}" in closing else (closing,)
    return _wrap_in_section(_strip_both(spec.section), opening, closers, read)


def _strip_both(section: tuple[str, str]) -> tuple[str, str]:
    return section[0].strip(), section[1].strip()


_COMPILERS: dict[str, Callable[[FormatSpec], CompiledReaders]] = {
    "json": _compile_json,
    "named json": _compile_named_json,
    "labels": _compile_labels,
    "function": _compile_function,
    "pairs": _compile_pairs,
    "elements": _compile_elements,
    "python": _compile_python,
    "gemma": _compile_gemma,
    "channels": _compile_channels,
    "yaml": _compile_yaml,
    "lines": _compile_lines,
}
