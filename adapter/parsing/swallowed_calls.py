"""Find an intact call in the text of a damaged call.

A parser that misses the end of a damaged call may consume later calls. The text is then parsed again from the next
intact call on. An intact call *inside an argument* of the damaged call is data. It is recognized by the text before it,
which begins or quotes a value, or by a second closing tag after it.
"""

from __future__ import annotations

import re

from adapter.parsing.argument_damage import UNCERTAIN_ENDS
from adapter.parsing.fallback_readers import MAX_GIVEN_BACK
from adapter.parsing.format import CUT_OFF, NOT_CLOSED, BodyResult, BodySource, CallOpener
from adapter.parsing.json_calls import VALUE_TAIL, ends_in_value
from adapter.parsing.marker_tables import MarkerTables
from adapter.parsing.stream_buffer import SPACE, Reader

MAX_MARKERS = 64
"""Maximum number of opening markers that are tried in one damaged call. Some formats write one before each argument."""

TEXT_LIMIT = 400
"""Maximum number of characters of prose between a damaged call and the next call."""

_PROSE = re.compile(r"\s*+[^\W\d_][^<>{}\[\]()=|`\"\\]*+")
_LAST_TOKEN = re.compile(r"(?:<[^<>]*>|```|\S)\s*\Z")
_ENDS_IN_TAG = re.compile(r"<[/|][^<>]*>\s*\Z|<[^<>]*\|>\s*\Z")
_INTACT = frozenset({"missing-open-tag"})
"""Repairs that an intact call may have. A later call in a section has this repair, because it is parsed here without
the section's opening marker."""


def give_back_next_call(
    source: BodySource, tables: MarkerTables, marker: str, raw: str, result: BodyResult
) -> Reader[tuple[str, BodyResult]]:
    """Check whether ``raw``, the text of a call that begins with ``marker``, contains a later, intact call.

    If so, put the text back from the intact call on, and return the damaged call's text and error. Otherwise, return
    ``raw`` and ``result``, the result of parsing it.
    """
    is_damaged = result.error is not None if not result.calls else not UNCERTAIN_ENDS.isdisjoint(result.fixes)
    if source.was_cut or source.reread_characters > MAX_GIVEN_BACK or not (is_damaged or result.error):
        return raw, result
    start = (yield from _find_intact_call(source, tables, raw, len(marker), result.error)) if is_damaged else None
    if start is None and (result.error is None or not (yield from source.is_next(tables.opening_markers))):
        return raw, result
    is_certain = start is None or (result.error is not None and not result.calls and result.error != CUT_OFF)
    start = _find_text_before(tables, raw[:start])
    source.reread_characters += len(raw) - start
    source.push_back(raw[start:])
    return raw[:start], result if is_certain else BodyResult(error=NOT_CLOSED)


def _find_text_before(tables: MarkerTables, damaged: str) -> int:
    """Return the offset of prose at the end of ``damaged``, the text before an intact call. It follows a closing marker
    or a blank line. Without such prose, return the length of ``damaged``."""
    tail, after_closer = damaged[-TEXT_LIMIT:], 0
    while (found := tables.all_closers.search(tail, after_closer)) is not None:
        after_closer = found[1]
    for start in (after_closer, tail.rfind("\n\n", 0, len(tail.rstrip(SPACE)))):
        if start > 0 and _PROSE.fullmatch(tail, start):
            return len(damaged) - len(tail) + start
    return len(damaged)


def _find_intact_call(
    source: BodySource, tables: MarkerTables, raw: str, end: int, error: str | None
) -> Reader[int | None]:
    """Return the offset of the first intact call in ``raw`` after ``end``, or of an opening marker at the end of
    ``raw``. Return None if there is neither. An intact call needs no repair and is not part of a value.

    ``error``: the error of the damaged call. If it is `CUT_OFF`, ``raw`` ends within a string, in which a closing
    marker is data.
    """
    start, is_cut = end, error == CUT_OFF
    for _ in range(MAX_MARKERS):
        found = tables.opening_markers.search(raw, end)
        if found is None:
            return None
        begin, end = found
        kind = raw[begin:end].lower()
        if not raw[end:].strip() and error is not None and not is_cut:
            return None if kind in tables.all_closers.literals else begin
        if ends_in_value(raw[max(0, begin - VALUE_TAIL) : begin]):
            return None
        length = yield from _measure_intact_call(source, tables.openers[kind], raw, begin, end)
        if length is None:
            if source.reread_characters > MAX_GIVEN_BACK:
                return None
            continue
        closing = _LAST_TOKEN.findall(raw[begin:length])[0].strip()
        if is_cut and len(closing) > 1 and closing in raw[start:begin]:
            return None
        if not (yield from _is_in_argument(source, tables, raw, length, closing)):
            return begin
    return None


def _is_in_argument(source: BodySource, tables: MarkerTables, raw: str, end: int, closing: str) -> Reader[bool]:
    """Return whether the intact call that ends at ``end`` is part of an argument of the damaged call ``raw``.

    If so, a second ``closing`` tag, or the damaged call's closing tag, follows this call and any further intact calls.
    """
    while (following := tables.opening_markers.search(raw, end)) is not None and closing not in raw[end : following[1]]:
        kind = raw[slice(*following)].lower()
        length = yield from _measure_intact_call(source, tables.openers[kind], raw, *following)
        if length is None:
            return kind in tables.all_closers.literals
        end = length
    rest = raw[end : following[1] if following else len(raw)]
    return closing in rest or (following is None and _ENDS_IN_TAG.search(rest) is not None)


def _measure_intact_call(source: BodySource, opener: CallOpener, raw: str, begin: int, end: int) -> Reader[int | None]:
    """Return the end of the call whose opening marker is ``raw[begin:end]``, or None if it is not intact. The call may
    extend into the text after ``raw``. The position in ``source`` does not change."""
    copy = BodySource(source.tools, source.openers, None, raw[end:])
    copy.expected_format, copy.tool_call_body = source.expected_format, source.tool_call_body
    copy.body_variants = source.body_variants
    copy.begin_body(at_line_start=True, after_call=True)
    consumed, received = [raw[begin:end]], source.offset
    reader = opener.read(copy, consumed)
    while True:
        copy.feed(source.get_since(received))
        received, copy.final, copy.finish_reason = source.end, source.final, source.finish_reason
        try:
            next(reader)
        except StopIteration as stop:
            result: BodyResult = stop.value
            break
        yield
    length = begin + sum(map(len, consumed))
    source.reread_characters += length - begin
    is_known = result.calls_known_tools(source.tools) if source.tools else bool(result.calls)
    fixes = {*result.fixes, *(fix for call in result.calls for fix in call.fixes)}
    return length if is_known and result.error is None and fixes <= _INTACT else None
