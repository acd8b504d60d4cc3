"""Compile a `FormatSpec`, the description of a notation, to a `Format` that uses the parsers in this folder.

Markers that several model families share get the parser that handles all these families and their models' typical
errors. For other markers, a parser is built from the specification.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import chain, islice

from adapter.core.errors import FormatError
from adapter.core.events import Json
from adapter.parsing.bodies import deepseek_tokens, harmony_messages, key_value_compiler, tool_call_tag, tool_calls_tag
from adapter.parsing.bodies.bare_xml_function import read_unwrapped_function
from adapter.parsing.bodies.compiled_format import (
    CompiledFormat,
    UnsupportedLayoutError,
    compile_described,
    is_marker,
    strip_both,
    wrap_in_section,
)
from adapter.parsing.bodies.format_file_calls import DescribedCall, build_yaml_reader
from adapter.parsing.bodies.gemma_call import GemmaCall
from adapter.parsing.bodies.name_then_json import NameThenJsonReader
from adapter.parsing.bodies.python_scanner import build_python_or_json_reader, read_list, read_one_call
from adapter.parsing.bodies.react_lines import build_labeled_reader
from adapter.parsing.bracket_delimited_json import UntaggedJson
from adapter.parsing.format import BodyReader, BodyResult, BodySource, CallOpener, Format
from adapter.parsing.format_spec import FormatSpec
from adapter.parsing.stream_buffer import Reader
from adapter.parsing.tagged_json import TaggedJson, expand_named_object, require_json
from adapter.tools.decoded_json_calls import extract_calls

_NAME, _KEY = "name_of_tool", "key_of_it"

MAX_MARKER = 200
"""Maximum length of a marker, in characters. Anything longer is probably content next to a call."""


MAX_BRACKETS = 50
"""Maximum number of brackets that are tried as the start of the JSON around a tool's name."""


def compile_format(spec: FormatSpec) -> Format:
    """Return the format that ``spec`` describes. Raises UnsupportedLayoutError if no parser supports it."""
    readers = _COMPILERS[spec.body](spec)
    closers = tuple(dict.fromkeys(marker for marker in readers.closers if is_marker(marker)))
    broken = [opener._replace(marker=opener.marker.replace("\n", "\r\n")) for opener in readers.openers]
    openers = (*readers.openers, *(opener for opener in broken if "\r" in opener.marker))
    too_long = [opener.marker for opener in openers if len(opener.marker) > MAX_MARKER]
    if too_long:
        raise UnsupportedLayoutError(
            f"a marker has {len(too_long[0]):,} characters; the maximum is {MAX_MARKER}: "
            f"{too_long[0][:MAX_MARKER]!r}..."
        )
    pairs = chain.from_iterable((*spec.reasoning.items(), *spec.answer_tags.items()))
    if not all((*pairs, *spec.ends, *spec.next_turns, *spec.results, *spec.stops)):
        raise UnsupportedLayoutError("a marker is empty")
    markers = (*(opener.marker for opener in openers), *closers, *spec.markers)
    if odd := next((marker for marker in markers if len(marker.lower()) != len(marker)), ""):
        raise UnsupportedLayoutError(f"the marker {odd!r} is not supported: its lower case has another length")
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
        read_unmarked=readers.unmarked,
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


# ------------------------------------------------------------------- JSON with the name in it


def _compile_json(spec: FormatSpec) -> CompiledFormat:
    encoded = spec.encode_calls([(_NAME, {_KEY: "value"})])
    start, end, value = _find_json_around_name(encoded)
    key = spec.arguments_key or "arguments"
    reshape = None if spec.arguments_key else expand_named_object
    is_list = isinstance(value, list)
    opening, closing, section = encoded[:start].strip(), encoded[end:].strip(), ("", "")
    if start >= len(spec.section[0]) and spec.section[0].strip():
        section = (spec.section[0].strip(), spec.section[1].strip())
        opening = encoded[len(spec.section[0]) : start].strip()
        closing = encoded[end : len(encoded) - len(spec.section[1])].strip()
    own_fixes = {"several-in-one-tag"} | _find_own_fixes(value, key)
    shared = own_fixes == {"several-in-one-tag"} and key == "arguments" and not spec.is_text
    if shared and section == ("", "") and (opening, closing) in _SHARED_JSON:
        return CompiledFormat(_SHARED_JSON[opening, closing], closers=(closing,))
    if shared and section == (tool_calls_tag.OPEN, tool_calls_tag.CLOSE) and opening in ("", tool_call_tag.OPEN):
        openers = (*tool_calls_tag.OPENERS, *(tool_call_tag.OPENERS if opening else ()))
        return CompiledFormat(openers, closers=(section[1], closing))
    if opening == "" and section == ("", ""):
        if reshape is not None:
            raise UnsupportedLayoutError("no marker precedes the JSON of a call, whose key is the tool's name")
        return CompiledFormat(unmarked=_ignore_fixes(UntaggedJson(key, after_marker=False), own_fixes))
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
    return wrap_in_section(section, mark, (closing,), read)


_SHARED_JSON = {
    (tool_call_tag.OPEN, tool_call_tag.CLOSE): tool_call_tag.OPENERS,
    (tool_calls_tag.OPEN, tool_calls_tag.CLOSE): tool_calls_tag.OPENERS,
}


def _find_json_around_name(text: str) -> tuple[int, int, Json]:
    """Return the start, end and value of the outermost JSON object or list around the tool's name in ``text``, an
    encoded call. Raises UnsupportedLayoutError if there is none."""
    decoder = json.JSONDecoder()
    name_start = text.index(_NAME)
    for match in islice(re.finditer(r"[{\[]", text[:name_start]), MAX_BRACKETS):
        try:
            value, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if end > name_start:
            return match.start(), end, value
    raise UnsupportedLayoutError("the name is not inside JSON")


def _find_own_fixes(value: Json, key: str) -> set[str]:
    """Return the repairs that would be reported for ``value``, a call written exactly as the format requires. ``key``
    is the format's key for the arguments."""
    try:
        return {fix for call in extract_calls(value, key) for fix in call.fixes}
    except FormatError:
        return set()


def _ignore_fixes(read: BodyReader, fixes: set[str]) -> BodyReader:
    """Return a parser that calls ``read`` and removes the repairs ``fixes``, because this is how the format writes
    calls."""

    def read_own(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        return (yield from read(source, consumed)).remove_fixes(*fixes)

    return read_own


# ------------------------------------------------------------------- the name, then JSON


def _compile_named_json(spec: FormatSpec) -> CompiledFormat:
    section = strip_both(spec.section)
    head, middle, closing = spec.head.strip(), spec.middle, spec.tail.strip()
    if head.startswith(deepseek_tokens.CALL_BEGIN) and any(each in head + middle for each in deepseek_tokens.SEPARATOR):
        return CompiledFormat(deepseek_tokens.SECTION.openers, closers=deepseek_tokens.STRAYS)
    if head == "<function=":
        closers = ("</function>",)
        return CompiledFormat((CallOpener(head, read_unwrapped_function),), closers=closers)
    opening, prefix = _split_marker_and_prefix(head)
    if not opening:
        raise UnsupportedLayoutError("no marker precedes the tool's name and its JSON arguments")
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
    return wrap_in_section(section, opening, (closing,), read)


def _split_marker_and_prefix(head: str) -> tuple[str, str]:
    """Split ``head`` into the marker before a name and the prefix of the name, such as ``functions.``."""
    match = re.fullmatch(r"(.*\W)?([A-Za-z_]+\.)", head, re.DOTALL)
    return (match[1].rstrip(), match[2]) if match and match[1] and match[1].strip() else (head, "")


def _compile_labels(spec: FormatSpec) -> CompiledFormat:
    label, arguments = spec.head.strip(), spec.middle.strip()
    if not label or not arguments:
        raise UnsupportedLayoutError(f"{label!r} before the name and {arguments!r} before the arguments are not labels")
    result = spec.results[0] if spec.results else "Observation:"
    return CompiledFormat((CallOpener(label, build_labeled_reader((arguments,), result)),))


# ------------------------------------------------------------------- Python and Gemma


def _compile_python(spec: FormatSpec) -> CompiledFormat:
    opening, closing = spec.section
    if spec.head.strip():
        return _compile_marked_python(spec)
    if not opening.rstrip().endswith("[") or not closing.lstrip().startswith("]"):
        raise UnsupportedLayoutError(f"{opening!r} and {closing!r} around Python calls do not form a list")
    opening, closing = opening.rstrip()[:-1].strip(), closing.lstrip()[1:].strip()
    if not opening:
        return CompiledFormat(unmarked=read_list)
    if not closing:
        raise UnsupportedLayoutError(f"the Python calls after {opening!r} have no closing marker")
    return CompiledFormat(
        (CallOpener(opening, build_python_or_json_reader(opening, closing)),), unmarked=read_list, closers=(closing,)
    )


def _compile_marked_python(spec: FormatSpec) -> CompiledFormat:
    """Compile Python calls with a marker before each call: ``CALL: f(x=1)``."""
    opening, closing = spec.head.strip(), spec.tail.strip()
    read = build_python_or_json_reader(opening, closing) if closing else read_one_call
    return wrap_in_section(strip_both(spec.section), opening, (closing,), read)


def _compile_gemma(spec: FormatSpec) -> CompiledFormat:
    opening, closing = spec.head.strip(), spec.tail.strip()
    if not opening or not closing or spec.section != ("", ""):
        raise UnsupportedLayoutError(
            "call:NAME needs a marker before and after it, and no section around all calls; got "
            f"{opening!r}, {closing!r} and the section {spec.section!r}"
        )
    if len(spec.quote) < 2:
        raise UnsupportedLayoutError(
            f"call:NAME needs a quote of at least two characters around strings, such as <escape>; got {spec.quote!r}"
        )
    return CompiledFormat((CallOpener(opening, GemmaCall(opening, closing, spec.quote)),), closers=(closing,))


def _compile_channels(spec: FormatSpec) -> CompiledFormat:
    if not (spec.head.startswith(harmony_messages.ASSISTANT) and spec.middle.endswith(harmony_messages.MESSAGE)):
        raise UnsupportedLayoutError(
            f"a call in channels must begin with {harmony_messages.ASSISTANT!r} and have {harmony_messages.MESSAGE!r} "
            f"before its arguments; got {spec.head!r} and {spec.middle!r}"
        )
    return CompiledFormat(
        harmony_messages.OPENERS, head=harmony_messages.read_rest_of_header, tokens=harmony_messages.TOKENS
    )


def _compile_yaml(spec: FormatSpec) -> CompiledFormat:
    closing = spec.tail.strip()
    if not closing:
        raise UnsupportedLayoutError("nothing marks the end of the YAML: the text after the arguments is empty")
    after_name = (spec.middle, "\n")
    read = DescribedCall(
        after_name, spec.head.strip(), f"\n{closing}", build_yaml_reader(spec.middle), needs_closing=True
    )
    return compile_described(spec, read, closing)


_COMPILERS: dict[str, Callable[[FormatSpec], CompiledFormat]] = {
    "json": _compile_json,
    "named json": _compile_named_json,
    "labels": _compile_labels,
    "function": key_value_compiler.compile_function,
    "pairs": key_value_compiler.compile_pairs,
    "elements": key_value_compiler.compile_elements,
    "python": _compile_python,
    "gemma": _compile_gemma,
    "channels": _compile_channels,
    "yaml": _compile_yaml,
    "lines": key_value_compiler.compile_lines,
}
