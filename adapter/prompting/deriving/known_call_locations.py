"""Locate calls with known names and arguments in a string, for each notation that can be learned.

A locator returns a call's span and the strings between its parts, or raises `CannotLearnError`, which quotes the text
that does not fit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeAlias

from adapter.core.errors import FormatError
from adapter.core.events import JsonObject
from adapter.core.yaml_subset import decode_yaml
from adapter.parsing.bodies import gemma_encoder, python_encoder
from adapter.parsing.bodies.python_parser import read_calls
from adapter.parsing.format_spec import ID, NUMBER
from adapter.tools.tool_set import ToolSet

MAX_TRIES = 50
"""Maximum number of positions tried as the start or end of one call."""
MAX_GAP = 200
"""Maximum number of characters between a name, a key and a value."""

Call: TypeAlias = tuple[str, JsonObject]


class CannotLearnError(Exception):
    """Raised if a notation does not fit the examples. The message quotes the text that does not fit."""


@dataclass(frozen=True, slots=True)
class CallSpan:
    """The offsets of a call, and the ``texts`` between its name, keys and values."""

    start: int
    end: int
    texts: tuple[str, ...] = ()
    head: str = ""
    """The JSON before the name."""
    key: str = "arguments"
    """The JSON key of the arguments."""
    quote: str = ""
    """The quote around strings."""
    is_text: bool = False
    """True if the arguments are JSON inside a JSON string."""


Locator: TypeAlias = Callable[[str, int, str, JsonObject], CallSpan]
"""Locates one call. Takes the text, the offset at which to begin, and the call's name and arguments."""


def locate_calls(text: str, calls: list[Call], locate: Locator) -> list[CallSpan]:
    """Return the spans of the successive ``calls`` in ``text``. Raises CannotLearnError if one is not found."""
    spans: list[CallSpan] = []
    for number, (name, arguments) in enumerate(calls):
        span = locate(text, spans[-1].end if spans else 0, name, arguments)
        texts = tuple(_hide_id(each, number) for each in span.texts)
        spans.append(replace(span, texts=texts, head=_hide_id(span.head, number)))
    return spans


def _hide_id(text: str, number: int) -> str:
    """Replace the id in a call's JSON with a placeholder. ``number`` is the call's position."""

    def hide(match: re.Match[str]) -> str:
        return f'{match[1]}{NUMBER if match[2] == str(number) else ID}"'

    return re.sub(r"(\"(?:id|call_id|tool_call_id)\"\s*:\s*\")([^\"]*)\"", hide, text)


def _find_occurrences(text: str, start: int, name: str) -> Iterator[int]:
    pattern = re.compile(rf"(?<![\w]){re.escape(name)}(?!\w)")
    return (found.start() for found in islice(pattern.finditer(text, start), MAX_TRIES))


def find_json(text: str, start: int, arguments: JsonObject) -> Iterator[tuple[int, int, bool]]:
    """Yield the spans of JSON equal to ``arguments``, and whether it is inside a JSON string."""
    decoder = json.JSONDecoder()
    for found in islice(re.finditer(r"[{\"]", text[start:]), MAX_TRIES * 10):
        begin = start + found.start()
        try:
            value, end = decoder.raw_decode(text, begin)
            is_text = isinstance(value, str) and value.lstrip().startswith("{")
            if (json.loads(value) if is_text else value) == arguments:
                yield begin, end, is_text
        except (ValueError, RecursionError):
            continue


# ------------------------------------------------------------------- JSON


def locate_json(text: str, start: int, name: str, arguments: JsonObject) -> CallSpan:
    for at in _find_occurrences(text, start, name):
        if text[at - 1 : at] != '"' or text[at + len(name) : at + len(name) + 1] != '"':
            continue
        found = next((each for each in find_json(text, at, arguments) if each[0] - at < MAX_GAP + len(name)), None)
        outer = _find_call_object(text, start, at)
        if outer is None:
            continue
        begin, end = outer
        if found is None or found[1] > end:
            piece = text[begin : min(end, begin + MAX_GAP)]
            raise CannotLearnError(f"the arguments are not one JSON object after the name: {piece!r}")
        head, middle, tail = text[begin:at], text[at + len(name) : found[0]], text[found[1] : end]
        key = re.search(r"\"([^\"]*)\"\s*:\s*\Z", middle)
        return CallSpan(begin, end, (middle, tail), head, key[1] if key else "", "", found[2])
    raise CannotLearnError(f"the name {name!r} is not in a JSON object")


def _find_call_object(text: str, start: int, at: int) -> tuple[int, int] | None:
    """Return the span of the call with its name at ``at``: the outermost JSON object that contains no list of calls."""
    decoder = json.JSONDecoder()
    for found in islice(re.finditer(r"\{", text[start:at]), MAX_TRIES):
        begin = start + found.start()
        try:
            value, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            continue
        is_wrapper = isinstance(value, dict) and any(isinstance(inner, list) for inner in value.values())
        if end > at and not is_wrapper:
            return begin, end
    return None


def locate_named_json(text: str, start: int, name: str, arguments: JsonObject) -> CallSpan:
    for begin, end, is_text in find_json(text, start, arguments):
        at = text.rfind(name, max(start, begin - MAX_GAP - len(name)), begin)
        if at >= 0:
            return CallSpan(at, end, (text[at + len(name) : begin],), is_text=is_text)
    raise CannotLearnError(f"the name {name!r} is not followed by its arguments as one JSON object")


# ------------------------------------------------------------------- Python, Gemma, YAML


def locate_python(text: str, start: int, name: str, arguments: JsonObject) -> CallSpan:
    for at in _find_occurrences(text, start, name):
        if not text.startswith("(", at + len(name)):
            continue
        for close in islice(re.finditer(r"\)", text[at:]), MAX_TRIES):
            end = at + close.end()
            try:
                result = read_calls(text[at:end], ToolSet(()), 0)
            except FormatError:
                continue
            if [(call.name, call.arguments) for call in result.calls] == [(name, arguments)]:
                return CallSpan(at, end, ("",))
    raise CannotLearnError(f"no call is written as Python: {python_encoder.encode_call(name, arguments)[:MAX_GAP]!r}")


def locate_gemma(text: str, start: int, name: str, arguments: JsonObject) -> CallSpan:
    for at in _find_occurrences(text, start, name):
        string = next((value for value in arguments.values() if isinstance(value, str) and value), None)
        match = re.compile(rf"\{{[^{{}}]*?\w:(\S+?){re.escape(string)}\1").search(text, at) if string else None
        quote = match[1] if match else '<|"|>'
        encoded = gemma_encoder.encode_call(name, arguments, quote)
        if text.startswith(encoded, at - len("call:")):
            return CallSpan(at - len("call:"), at - len("call:") + len(encoded), ("",), quote=quote if match else "")
    raise CannotLearnError(f"the text 'call:{name}{{...}}' does not occur")


def locate_yaml(text: str, start: int, name: str, arguments: JsonObject) -> CallSpan:
    for at in _find_occurrences(text, start, name):
        after = at + len(name)
        if not arguments:
            match = re.compile(r"[ \t]*\n(?:\s*[\w-]+:[ \t]*(?:\{\})?[ \t]*(?=\n))?").match(text, after)
            if match:
                return CallSpan(at, match.end())
            continue
        key = re.compile(rf"[\"']?{re.escape(next(iter(arguments)))}[\"']? *:").search(text, after, after + MAX_GAP)
        if key is None:
            continue
        line = text.rfind("\n", 0, key.start()) + 1
        if text[line : key.start()].strip():
            continue
        for close in islice(re.finditer(r"\n|\Z", text[line:]), MAX_TRIES):
            end = line + close.start()
            try:
                if decode_yaml(text[line:end]) == arguments:
                    return CallSpan(at, end, (text[after:line], text[line : key.start()]))
            except FormatError:
                continue
    raise CannotLearnError(f"the name {name!r} is not followed by its arguments as YAML, one per line")


# ------------------------------------------------------------------- pairs


def locate_pairs(text: str, start: int, name: str, arguments: JsonObject) -> CallSpan:
    """Locate a name, and then each key with its value. In the result, ``texts`` alternates between the text before a
    key and the text before its value."""
    best: CallSpan | None = None
    for at in _find_occurrences(text, start, name):
        span = _match_pairs(text, at, name, arguments)
        if span is not None and (best is None or sum(map(len, span.texts)) < sum(map(len, best.texts))):
            best = span
    if best is None:
        raise CannotLearnError(
            f"the name {name!r} is not followed by its keys and values: {', '.join(map(repr, arguments)) or 'none'}"
        )
    return best


def _match_pairs(text: str, at: int, name: str, arguments: JsonObject) -> CallSpan | None:
    position, texts = at + len(name), []
    for key, value in arguments.items():
        match = re.compile(rf"(?<!\w){re.escape(key)}(?!\w)").search(text, position, position + MAX_GAP + len(key))
        if match is None:
            return None
        texts.append(text[position : match.start()])
        spellings = (
            {value}
            if isinstance(value, str)
            else {json.dumps(value, ensure_ascii=False), json.dumps(value, separators=(",", ":")), str(value)}
        )
        begins = [(text.find(each, match.end(), match.end() + MAX_GAP + len(each)), each) for each in spellings]
        begin, spelling = min((each for each in begins if each[0] >= 0), default=(-1, ""))
        if begin < 0:
            return None
        texts.append(text[match.end() : begin])
        position = begin + len(spelling)
    return CallSpan(at, position, tuple(texts))
