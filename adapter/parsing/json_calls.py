"""Consume JSON that arrives in chunks, and convert its values to calls.

A bracket or closing marker inside a string is part of the string, so a call can write a file that contains
``</tool_call>``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress

from adapter.core.errors import FormatError
from adapter.core.events import Json
from adapter.core.json.strict import DecodedJson as Value
from adapter.core.json.strict import decode_strict
from adapter.parsing.format import CUT_OFF, NOT_CLOSED, BodyResult
from adapter.parsing.marker_set import MarkerSet, MarkerSpan
from adapter.parsing.stream_buffer import Reader, StreamBuffer, ValueSink
from adapter.tools.decoded_json_calls import DecodedCall, extract_calls, looks_like_call, parse_arguments
from adapter.tools.tool_set import ToolSet

MAX_SALVAGED = 100
"""Limit for the search for intact calls next to a malformed one: it stops after this many objects that are not
calls."""

_CALL_START = re.compile(
    r"(?:\A\s*+\[?+\s*+|[,;}\]]\s*+|(?<=\n)[ \t]*+)(?=\{\s*+\"[\w.-]++\"\s*+:)",
)
"""Matches the text before an object that may be a call."""
_BETWEEN_CALLS = ",;[] \t\r\n"

MAX_ATTEMPTS = 8
"""Maximum number of attempts to parse one malformed call. Each takes time linear in the call's length."""

ESCAPED_QUOTE = '\\"'
"""The string delimiter of models that escape a whole object as if it were inside a string."""

QUOTES = ('"', "'", ESCAPED_QUOTE)
BRACKETS = {"{": 1, "[": 1, "}": -1, "]": -1}
"""Maps each bracket to the change in nesting depth."""

_STRING_TEXT = {
    '"': r'(?:[^"\\]++|\\.)*+',
    "'": r"(?:[^'\\]++|\\.)*+",
    ESCAPED_QUOTE: r'(?:[^\\]++|\\[^"])*+',
}
_STRING_END = {quote: re.compile(text, re.DOTALL) for quote, text in _STRING_TEXT.items()}
_STOP_PATTERNS = {quote: re.compile(rf"{text}[{quote[-1]}\\]", re.DOTALL) for quote, text in _STRING_TEXT.items()}
_BEFORE_BREAK = re.compile(r"(?:[}\]\n]|\n```)\s*\Z")
_AFTER_BREAK = re.compile(r"[ \t]*(?:\n|\Z)|\s*[{\[]")
_CONTINUES = re.compile(r"[\s,]*[\"'\w]")
_NESTED_OBJECT = re.compile(r"[:\[]\s*\{\s*\"[\w.-]+\"\s*:\s*\"")
MEMBER = re.compile(r"[}\]\s]*+[,;]?+\s*+\{?+\s*+\"?+([\w.-]+)\"\s*:")
"""Matches the text after a JSON object if a further key shows that the object was closed too early."""
MAY_BE_MEMBER = re.compile(r"[}\]\s]*+[,;]?+\s*+\{?+\s*+\"?+[\w.-]*+(?:\"\s*+)?")
_LOOKBEHIND = 40
"""Number of characters before and after a marker that decide whether a JSON value ends there."""

MISPAIRED = frozenset({"unescaped-quote", "curly-quotes", "missing-comma", "unquoted-key", "single-quotes"})
"""Repairs that suggest that quotes were paired wrongly."""


def skip_string(source: StreamBuffer, consumed: list[str], quote: str) -> Reader[None]:
    """Consume the rest of a JSON string and its closing quote into ``consumed``. An unclosed string extends to the
    end."""
    pattern = _STRING_END[quote]
    sink = ValueSink(consumed, _STOP_PATTERNS[quote])
    while True:
        if sink.stop_pattern.match(source.text, source.position) is None and not source.final:
            sink.consume(source.consume_rest())
            yield from sink.wait(source)
            continue
        match = pattern.match(source.text, source.position)
        end = match.end() if match is not None else source.position
        closes = source.text.startswith(quote, end)
        end += len(quote) if closes else 0
        consumed.append(source.text[source.position : end])
        source.position = end  # a backslash at the very end waits for its character
        if closes:
            return
        if source.final:
            consumed.append(source.consume_rest())
            return
        yield from sink.wait(source)


def scan_json_value(source: StreamBuffer, consumed: list[str], tokens: MarkerSet) -> Reader[str]:
    """Consume text into ``consumed`` until the brackets are balanced, and return the closing bracket.

    A marker of ``tokens`` outside strings also ends the value. It is consumed and returned, but not added to
    ``consumed``. If the text ends first, return "".
    """
    depth = 0
    while True:
        marker = yield from source.read_until(tokens, consumed)
        if marker in QUOTES:
            consumed.append(marker)
            yield from skip_string(source, consumed, marker)
            continue
        step = BRACKETS.get(marker)
        if step is None:
            return marker
        consumed.append(marker)
        depth = max(0, depth + step)
        if depth == 0 and step < 0:
            return marker


VALUE_TAIL = 200
"""Number of characters before a marker that decide whether the marker is part of a value."""
_BEGINS_VALUE = re.compile(r"(?:[\w\"'][ \t]*[:=][ \t]*[\"']?|<!\[CDATA\[[^\]]*)\Z")


def find_break(text: str, ends: MarkerSet) -> MarkerSpan | None:
    """Return the marker of ``ends`` at which a JSON value with unbalanced quotes probably ends, or None. Such a marker
    follows a closing bracket or line break, or precedes a line break, another marker or the end of the text."""
    marker = ends.search(text, 0)
    while marker is not None:
        begin, end = marker
        following = ends.search(text, end)
        gap = text[end : following[0] if following else end + _LOOKBEHIND]
        before = text[max(0, begin - _LOOKBEHIND) : begin + (text[begin] == "\n")]
        if _BEFORE_BREAK.search(before) or _AFTER_BREAK.match(gap):
            return marker
        marker = following
    return None


def ends_in_value(text: str) -> bool:
    """Return whether the next marker is part of a value, because ``text`` ends where a value begins or inside a quoted
    value. ``text`` is the last `VALUE_TAIL` characters."""
    line = text[text.rfind("\n") + 1 :]
    return _BEGINS_VALUE.search(text) is not None or (line[-1:] in (" ", "\t") and line.count('"') % 2 == 1)


def build_calls_from_json(values: Sequence[Value], arguments_key: str, tools: ToolSet, offset: int) -> BodyResult:
    """Return the calls in ``values``, decoded JSON. ``offset`` is the position of the JSON in the call's text. Raises
    FormatError for a value that is not a valid call."""
    calls: list[DecodedCall] = []
    fixes: list[str] = []
    for value in values:
        decoded = extract_calls(value.value, arguments_key, tools)
        if decoded:
            name, arguments, more, _ = decoded[-1]
            decoded[-1] = DecodedCall(name, arguments, more, offset + value.end)
        calls += decoded
        fixes += value.fixes
    return BodyResult(calls=tuple(calls), fixes=tuple(fixes))


def salvage_calls(
    text: str, error: str, arguments_key: str, tools: ToolSet, reshape: Callable[[Json], Json] | None = None
) -> BodyResult:
    """Return a result with ``error`` and the valid calls in ``text``, which also contains a malformed call. ``reshape``
    converts a value from the format's structure to ``{"name": ..., "arguments": ...}``."""
    calls, is_broken = _find_valid_calls(text, arguments_key, tools, reshape)
    if calls and not is_broken and error == CUT_OFF and not text.rstrip().endswith(","):  # only a bracket is missing
        return BodyResult(calls=tuple(calls)).with_repairs("missing-bracket")
    return BodyResult(calls=tuple(calls), error=error)


def check_hidden_calls(
    result: BodyResult, text: str, arguments_key: str, tools: ToolSet, reshape: Callable[[Json], Json] | None = None
) -> BodyResult:
    """Check the calls in ``result``, which were parsed from ``text`` with repairs. If a repair lost a call or put it
    into another call's value, return an error and the valid calls; otherwise, return ``result``."""
    is_mispaired = not MISPAIRED.isdisjoint(result.fixes)
    may_hide = is_mispaired or ("missing-bracket" in result.fixes and not _NESTED_OBJECT.search(text, 2))
    if result.error is not None or not may_hide:
        return result
    valid, is_broken = _find_valid_calls(text, arguments_key, tools, reshape)
    known, found = ([(call.name, call.arguments) for call in calls] for calls in (result.calls, valid))
    is_hidden = any(call not in known for call in found)
    is_lost = is_broken and all(call in found for call in known)
    return BodyResult(calls=tuple(valid), error=NOT_CLOSED) if is_hidden or is_lost else result


def _find_valid_calls(
    text: str, arguments_key: str, tools: ToolSet, reshape: Callable[[Json], Json] | None
) -> tuple[list[DecodedCall], bool]:
    """Return the valid calls in ``text``, and whether it contains anything else.

    A call after a malformed call may be part of a value in that call, so it is valid only if nothing else follows. A
    call before an object that is not a call is malformed, because it was closed too early.
    """
    calls, later = list[DecodedCall](), list[DecodedCall]()
    is_broken, position, failures = False, 0, 0
    while failures < MAX_SALVAGED and (found := _CALL_START.search(text, position)):
        has_rest = bool(text[position : found.start()].strip(_BETWEEN_CALLS))
        if has_rest:
            is_broken, later = True, []
        value = decode_strict(text, found.end())
        position = found.end() + 1 if value is None else value.end
        item = value and (reshape(value.value) if reshape else value.value)
        is_call = looks_like_call(item) or (isinstance(item, dict) and len(item) == 1 and next(iter(item)) in tools)
        if value is not None and is_call and not _CONTINUES.match(text, position):
            (later if is_broken else calls).extend(_extract_known_calls(item, arguments_key, tools))
            continue
        if value is not None and not is_call and not has_rest:
            del calls[-1:]
        is_broken, later, failures = True, [], failures + 1
    has_rest = bool(text[position:].strip(_BETWEEN_CALLS))
    return [*calls, *([] if has_rest else later)], is_broken or has_rest


def _extract_known_calls(item: Json, arguments_key: str, tools: ToolSet) -> list[DecodedCall]:
    calls: list[DecodedCall] = []
    if looks_like_call(item):
        with suppress(FormatError):
            calls = extract_calls(item, arguments_key, tools)
    return [call._replace(end=None) for call in calls if not tools or tools.match(call.name)]


def build_calls_from_arguments(name: str, values: Sequence[Value], offset: int) -> BodyResult:
    """Return the calls to the tool ``name`` with the arguments ``values``. If ``values`` are several different objects
    with the same keys, each object is a call. Otherwise, see `build_call_from_arguments`."""
    keys = [{*value.value} if isinstance(value.value, dict) else None for value in values]
    if len(values) < 2 or keys != keys[:1] * len(keys) or any(value.value == values[0].value for value in values[1:]):
        return build_call_from_arguments(name, values, offset)
    results = [build_call_from_arguments(name, [value], offset) for value in values]
    fixes = dict.fromkeys(fix for result in results for fix in result.fixes)
    return BodyResult(tuple(call for result in results for call in result.calls), (*fixes, "several-in-one-tag"))


def build_call_from_arguments(name: str, values: Sequence[Value], offset: int) -> BodyResult:
    """Return a call to the tool ``name`` with the arguments in ``values``. Raises FormatError unless these are one
    object or several equal objects. ``offset`` is the position of the JSON in the call's text."""
    if not values or any(value.value != values[0].value for value in values):
        raise FormatError(f"expected one JSON object with the arguments, got {len(values)} values")
    arguments, fixes = parse_arguments(values[0].value)
    repeated = ("repeated-argument",) if len(values) > 1 else ()
    end = offset + values[-1].end
    return BodyResult((DecodedCall(name, arguments, end=end),), (*values[0].fixes, *fixes, *repeated))
