"""Take JSON from text that arrives in chunks, and convert its values to calls.

Quotes are tracked, so a bracket or a closing marker inside a string is data. A call can therefore write a file that
contains ``</tool_call>``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from adapter.core.errors import FormatError
from adapter.core.json.strict import DecodedJson as Value
from adapter.parsing.format import BodyResult, ReadContext
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import Reader, StreamBuffer, ValueSink, read_until
from adapter.tools.call_shapes import DecodedCall, extract_calls, parse_arguments

MAX_ATTEMPTS = 8
"""Maximum number of attempts to parse one malformed body. The cost of an attempt is linear in the body's length."""

QUOTES = ('"', "'")
BRACKETS = {"{": 1, "[": 1, "}": -1, "]": -1}
"""Change of the nesting depth at each bracket."""

_STRING_END = {quote: re.compile(rf"(?:[^{quote}\\]++|\\.)*+", re.DOTALL) for quote in QUOTES}
_STOP_PATTERNS = {quote: re.compile(rf"(?:[^{quote}\\]++|\\.)*+[{quote}\\]", re.DOTALL) for quote in QUOTES}


def skip_string(source: StreamBuffer, span: list[str], quote: str) -> Reader[None]:
    """Take the rest of a JSON string, with its closing quote, into ``span``; all text if the string never closes."""
    pattern = _STRING_END[quote]
    sink = ValueSink(span, _STOP_PATTERNS[quote])
    while True:
        if sink.stop_pattern.match(source.text, source.position) is None and not source.final:
            sink.take(source.rest())
            yield from sink.wait(source)
            continue
        found = pattern.match(source.text, source.position)
        end = found.end() if found is not None else source.position
        closes = source.text.startswith(quote, end)
        span.append(source.text[source.position : end + closes])
        source.position = end + closes  # a backslash at the very end waits for its character
        if closes:
            return
        if source.final:
            span.append(source.rest())
            return
        yield from sink.wait(source)


def scan_json_value(source: StreamBuffer, span: list[str], tokens: MarkerSet) -> Reader[str]:
    """Take text into ``span`` until brackets balance. Return the closing bracket.

    A marker of ``tokens`` outside strings also ends the value. It is returned and taken, but not added to ``span``.
    Returns "" if the text ends first.
    """
    depth = 0
    while True:
        marker = yield from read_until(source, tokens, span)
        if marker in QUOTES:
            span.append(marker)
            yield from skip_string(source, span, marker)
            continue
        step = BRACKETS.get(marker)
        if step is None:
            return marker
        span.append(marker)
        depth = max(0, depth + step)
        if depth == 0 and step < 0:
            return marker


def calls_from_json(values: Sequence[Value], arguments_key: str, context: ReadContext, offset: int) -> BodyResult:
    """Return the calls in ``values``. ``offset``: start of the values' text in the span. Raises FormatError."""
    calls: list[DecodedCall] = []
    fixes: list[str] = []
    for value in values:
        found = extract_calls(value.value, arguments_key, context.tools)
        if found:
            name, arguments, more, _ = found[-1]
            found[-1] = DecodedCall(name, arguments, more, offset + value.end)
        calls += found
        fixes += value.fixes
    return BodyResult(calls=tuple(calls), fixes=tuple(fixes))


def call_from_arguments(name: str, values: Sequence[Value], offset: int) -> BodyResult:
    """Return a call of the tool ``name``. ``values`` must be a single object: its arguments. Raises FormatError."""
    if len(values) != 1:
        raise FormatError(f"expected one JSON object with the arguments, got {len(values)}")
    arguments, fixes = parse_arguments(values[0].value)
    return BodyResult((DecodedCall(name, arguments, end=offset + values[0].end),), (*values[0].fixes, *fixes))
