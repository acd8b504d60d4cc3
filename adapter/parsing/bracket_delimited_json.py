"""Parse JSON calls without a closing marker. Such a call ends where its brackets are balanced."""

from __future__ import annotations

import re

from adapter.core.errors import FormatError
from adapter.core.json.decode import decode_json
from adapter.core.json.strict import DecodedJson as Value
from adapter.core.json.strict import UnterminatedError, decode_strict
from adapter.parsing.fallback_readers import MAX_GIVEN_BACK
from adapter.parsing.format import CUT_OFF, TEXT, BodyResult, BodySource
from adapter.parsing.json_calls import (
    BRACKETS,
    MAX_ATTEMPTS,
    MAY_BE_MEMBER,
    MEMBER,
    MISPAIRED,
    QUOTES,
    build_calls_from_arguments,
    build_calls_from_json,
    check_hidden_calls,
    find_break,
    salvage_calls,
    scan_json_value,
)
from adapter.parsing.marker_set import get_marker_set
from adapter.parsing.stream_buffer import HEAD_LIMIT, NAME_LIMIT, SPACE, Reader, StreamBuffer
from adapter.parsing.unmarked_call_shapes import has_damaged_name, has_only_calls, names_tool
from adapter.tools.decoded_json_calls import ARGUMENT_KEYS, NAME_KEYS, NESTING_KEYS, TOOL_KEYS
from adapter.tools.tool_set import ToolSet

MAX_OPENING = 3
"""Maximum number of brackets before a call's first key. Known formats have at most two."""

CALL_KEYS = frozenset(
    (
        *(*NAME_KEYS, *TOOL_KEYS, *ARGUMENT_KEYS, *NESTING_KEYS, "tool_calls", "actions", "commands"),
        *("id", "jsonrpc", "thought", "thoughts", "thinking", "current_state", "content", "role"),
    )
)
"""Keys that may come first in a call's JSON. Before its calls, xLAM writes a thought, as do Agent Zero, AutoGPT and
browser-use."""

NAMED_LATER = rf'[^}}]{{0,{HEAD_LIMIT}}}?"(?i:{"|".join(NAME_KEYS)})"\s*:\s*"(?P<name>[^"\\]{{1,200}})"'
"""Pattern for the start of an object, up to the tool's name, if other members precede the name."""

_named_later = re.compile(NAMED_LATER)
_KEY_QUOTES = {'"': '"', "'": "'", "“": "”"}

UNBALANCED = "the call cannot be read: its quotes are not balanced"

FENCE_END = "\n```"
"""The end of a code fence. It also ends JSON whose last brackets are missing."""


class UntaggedJson:
    """Parses JSON calls from their first bracket. An instance is a `BodyReader`.

    Args:
        after_marker: Whether an opening marker precedes the JSON. If so, text that cannot be parsed is an error;
            otherwise, it is content.
        name: The tool, if the text before the JSON names it. The JSON then holds only the arguments.
        ends: Markers that end a call whose closing brackets are missing, unless they occur in a string. Without an
            opening marker, the default is the end of a code fence.
    """

    def __init__(
        self, arguments_key: str, *, after_marker: bool, name: str | None = None, ends: tuple[str, ...] = ()
    ) -> None:
        self.arguments_key, self.after_marker, self.name = arguments_key, after_marker, name
        ends = ends or (() if after_marker else (FENCE_END,))
        self._tokens = get_marker_set(*QUOTES, *BRACKETS, *ends)
        self._ends = get_marker_set(*ends) if ends else None

    def __call__(self, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        char = yield from source.skip_space(consumed)
        if char not in ("{", "[") or not (self.after_marker or (yield from self._begins_call(source))):
            return TEXT
        if self.after_marker:
            source.begin_json(source.offset, self.name, self.arguments_key)
        offset = sum(map(len, consumed))
        values, error = yield from self._consume_values(source, consumed)
        text = "".join(consumed)[offset:]
        rest = text[values[-1].end :] if values else text
        rest = rest if rest.strip(_BETWEEN_VALUES) else ""
        if rest and not source.was_cut:
            error = error or _explain(rest)
        if not self.after_marker and any(has_damaged_name(value, source.tools) for value in values):
            return self._salvage(text, UNBALANCED, source)
        if not self.after_marker and not has_only_calls(values, source.tools):
            is_call = not values and source.final and names_tool(text, source.tools)
            return self._salvage(text, error, source) if is_call else TEXT
        if not values:
            return self._salvage(text, error, source)
        try:
            if self.name is not None:
                result = build_calls_from_arguments(self.name, values, offset)
                return result._replace(error=error or CUT_OFF) if rest else result
            result = build_calls_from_json(values, self.arguments_key, source.tools, offset)
        except FormatError as fault:
            return (
                self._salvage(text, f"the call cannot be read: {fault}", source)
                if self.after_marker or len(values) > 1
                else TEXT
            )
        if not rest:
            return check_hidden_calls(result, text, self.arguments_key, source.tools)
        later = self._salvage(f",{rest.lstrip(_BETWEEN_VALUES)}", error, source)
        return result._replace(calls=(*result.calls, *later.calls), error=later.error)

    def _salvage(self, text: str, error: str | None, source: BodySource) -> BodyResult:
        """Return a result with ``error`` and, if the answer was not cut off, with the intact calls in ``text``."""
        if self.name is not None or source.was_cut:
            return BodyResult(error=error or CUT_OFF)
        return salvage_calls(text, error or CUT_OFF, self.arguments_key, source.tools)

    def _consume_values(self, source: BodySource, consumed: list[str]) -> Reader[tuple[list[Value], str | None]]:
        """Parse values separated by semicolons or commas, and stop at the first that cannot be parsed. Return the
        parsed values and the error, which is None if all text was parsed or the text was cut off."""
        values: list[Value] = []
        start = attempts = 0
        piece: list[str] = []
        fault = ""
        while attempts < MAX_ATTEMPTS:
            value = None if piece else _consume_complete(source, piece)
            if value is None:
                bracket = yield from scan_json_value(source, piece, self._tokens)
                if bracket not in BRACKETS:
                    self._give_back_end(source, bracket, piece)
                ended = bracket not in BRACKETS and not source.is_empty
                text = "".join(piece)
                missing = "" if bracket else _find_missing_brackets(text)
                if not bracket and self.name is None and not source.was_cut:
                    value = _decode_complete_call(text, missing)
                if not bracket and value is None and (source.was_cut or missing):
                    break  # cut off: its quotes must not be reinterpreted
                try:
                    value = value or decode_json(text, closed=ended)
                    if bracket not in BRACKETS and text[value.end :].strip(_AFTER_VALUE):
                        break
                    if MISPAIRED & {*value.fixes} and self._find_break(text[: value.end]):
                        break
                except FormatError as error:
                    if ended:
                        consumed.extend(piece)
                        return values, f"the call cannot be read: {error}"
                    if not bracket:
                        break
                    fault = f"the call cannot be read: {error}"
                    attempts += 1  # a stray quote: the brackets may balance further on
                    continue
                if bracket in BRACKETS and source.reread_characters <= MAX_GIVEN_BACK:
                    source.reread_characters += _give_back_next(source, piece, value.end)
            values.append(Value(value.value, start + value.end, value.fixes))
            gap: list[str] = []
            char = yield from source.skip_space(gap)
            member = yield from self._find_next_member(source, has_space=bool("".join(gap)) and not value.fixes)
            is_known = member is not None and isinstance(value.value, dict) and member[1] in value.value
            repeats = is_known and member is not None and "{" in member[0] and not value.fixes  # of a further call
            member = None if repeats else member
            goes_on = self.name is None and value.fixes and not "".join(gap) and (char.isalnum() or char == ":")
            if member is not None or goes_on:
                consumed.extend([*piece, *gap])
                if member is not None:
                    source.consume_match(member, consumed)
                yield from self._consume_later_members(source, consumed)
                place = "too early" if member is None else f"before {member[1]!r}"
                return values[:-1], f"the call cannot be read: its object is closed {place}"
            if char and char in ',:"' and self.name is not None and value.fixes:
                consumed.extend(piece)
                source.push_back("".join(gap))
                return values[:-1], "the call cannot be read: more text follows its object"
            if char and char in ";," and self.name is None:
                gap.append(char)
                source.position += 1
                char = yield from source.skip_space(gap)
            consumed.extend(piece)
            if char != "{" or (self.name is not None and not repeats):
                source.push_back("".join(gap))
                return values, None
            consumed.extend(gap)
            start += sum(map(len, (*piece, *gap)))
            piece = []
        is_whole = not source.was_cut and "".join(piece).rstrip().endswith(("}", "]"))
        fault = fault or (UNBALANCED if source.finish_reason else "")
        return values, self._end_at_break(source, piece, consumed) or (fault if is_whole else "") or None

    def _find_next_member(self, source: BodySource, *, has_space: bool) -> Reader[re.Match[str] | None]:
        """Return a match for a key that follows an object that was closed too early, or None."""
        member = yield from source.peek_match(MEMBER, NAME_LIMIT, MAY_BE_MEMBER.fullmatch)
        if member is None or (self.name is None and ("{" in member[0] or (has_space and member[0][0] not in ",}]"))):
            return None
        tool = source.tools.match(self.name or "")
        is_other = tool is not None and "{" in member[0] and member[1] not in tool.properties
        return None if is_other and "," not in member[0] else member

    def _consume_later_members(self, source: BodySource, consumed: list[str]) -> Reader[None]:
        """Consume the rest of an object that was closed too early, and the rest of the list around it."""
        while True:
            rest: list[str] = []
            bracket = yield from scan_json_value(source, rest, self._tokens)
            if bracket not in BRACKETS:
                source.push_back("".join(rest) + bracket)
                return
            consumed.extend(rest)
            gap: list[str] = []
            char = yield from source.skip_space(gap)
            is_closing = char != "" and char in "}]"
            if not is_closing and (self.name is not None or char != ","):
                is_closing = (yield from self._find_next_member(source, has_space=bool("".join(gap)))) is not None
            elif not is_closing:
                is_closing = (yield from source.peek_match(_ITEM, NAME_LIMIT, _MAY_BE_ITEM.fullmatch)) is not None
            if not is_closing:
                source.push_back("".join(gap))
                return
            consumed.extend(gap)

    def _find_break(self, text: str) -> int | None:
        """Return the offset where a value with unbalanced quotes probably ends: at a marker or else at a blank line.
        Return None if there is neither."""
        marker = find_break(text, self._ends) if self._ends else None
        if marker is not None:
            return marker[0]
        blank = _BLANK_LINE.search(text)
        return blank.start() if blank else None  # the next call begins a line

    def _end_at_break(self, source: StreamBuffer, piece: list[str], consumed: list[str]) -> str | None:
        """End a value that cannot be parsed at its probable end, and put back the text after it. Return the error, or
        None if the text was cut off."""
        text = "".join(piece)
        end = None if source.was_cut else self._find_break(text)
        if end is not None and (blank := _BLANK_LINE.search(text, 0, end)):
            end = blank.start()
        consumed.append(text[:end])
        if end is None:
            return None
        source.push_back(text[end:])
        return _explain(text[:end]) or UNBALANCED

    def _give_back_end(self, source: StreamBuffer, marker: str, piece: list[str]) -> None:
        """Put back the marker that ended a value. If a stray quote hid an earlier marker, also put back the text from
        that marker."""
        source.push_back(marker)
        text = "".join(piece)
        hidden = None if marker or self._ends is None else self._ends.search(text, 0)
        if hidden is None:
            return
        try:
            decode_json(text[: hidden[0]], closed=False)
        except FormatError:
            return  # the marker is inside a string that was cut off
        piece[:] = [text[: hidden[0]]]
        source.push_back(text[hidden[0] :])

    def _begins_call(self, source: BodySource) -> Reader[bool]:
        """Return whether the JSON at the current position may be a call, according to its first key. Otherwise, it is
        an answer, which can be displayed immediately. Nothing is consumed."""
        ahead: list[str] = []
        brackets = 0
        while (char := (yield from source.skip_space(ahead))) and char in "{[" and brackets < MAX_OPENING:
            brackets += 1
            ahead.append(char)
            source.position += 1
        key = None
        if char in _KEY_QUOTES:
            ahead.append(char)
            source.position += 1
            key = yield from source.consume_until(_KEY_QUOTES[char], 64, ahead)
        source.push_back("".join(ahead))
        if key is None or key in CALL_KEYS or key in source.tools:
            return key is not None
        named = yield from source.peek_match(_named_later, HEAD_LIMIT, lambda _: True)
        return named is not None and source.tools.match(named["name"]) is not None


def names_tool_later(text: str, start: int, tools: ToolSet) -> bool:
    """Return whether the JSON object at ``start`` has the name of a tool in a member other than its first."""
    named = _named_later.match(text, start, start + HEAD_LIMIT)
    return named is not None and tools.match(named["name"]) is not None


def _consume_complete(source: StreamBuffer, consumed: list[str]) -> Value | None:
    """Consume and return a list or object that is complete and valid, as most are. Return None for other text."""
    value = decode_strict(source.text, source.position)
    if value is None:
        return None
    start, source.position = source.position, value.end
    consumed.append(source.text[start : value.end])
    return Value(value.value, value.end - start, value.fixes)


def _give_back_next(source: StreamBuffer, piece: list[str], end: int) -> int:
    """Put back the text after a value that ends at ``end``, because a stray quote had added this text to the value.
    ``piece`` is the consumed text. Return the number of characters that were put back."""
    text = "".join(piece)
    rest = text[end:].lstrip(_AFTER_VALUE)
    if rest:
        piece[:] = [text[: len(text) - len(rest)]]
        source.push_back(rest)
    return len(rest)


_AFTER_VALUE = f"}}]{SPACE}"
_ITEM = re.compile(r",\s*+[\[{\"]")
_MAY_BE_ITEM = re.compile(r",\s*+")
_BETWEEN_VALUES = f",;{_AFTER_VALUE}"
_BLANK_LINE = re.compile(r"(?<=[}\]])[ \t]*\n(?=[ \t]*\n|[ \t]*[{\[])")
"""Matches a line break after a closing bracket, if a blank line or another value follows."""
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}"]', re.DOTALL)
_CLOSING = {"{": "}", "[": "]"}


def _explain(text: str) -> str | None:
    """Return the error in ``text``, a JSON value, or None if it is valid or only incomplete."""
    try:
        decode_json(text, closed=False)
    except UnterminatedError:
        return None
    except FormatError as error:
        return f"the call cannot be read: {error}" if text.rstrip()[-1] in "]}" else None
    return None


def _find_missing_brackets(text: str) -> str:
    """Return the closing brackets that ``text`` lacks at its end to be valid JSON, or "" if it has other errors."""
    missing: list[str] = []
    for token in _STRING_OR_BRACKET.findall(text):
        if token in _CLOSING:
            missing.append(_CLOSING[token])
        elif token == '"' or (token in _CLOSING.values() and (not missing or missing.pop() != token)):
            return ""
    closing = "".join(reversed(missing))
    return closing if closing and decode_strict(text + closing) is not None else ""


def _decode_complete_call(text: str, missing: str) -> Value | None:
    """Decode ``text``, which lacks only the closing brackets ``missing``. Return None if its last call may be
    incomplete."""
    value = decode_strict(text + missing) if missing in ("}", "]", "}]") else None
    calls = value.value if value is not None and isinstance(value.value, list) else [value and value.value]
    if value is None or not calls or not isinstance(calls[-1], dict) or not calls[-1]:
        return None
    key, arguments = list(calls[-1].items())[-1]
    is_whole = missing == "]" or (key in ARGUMENT_KEYS and isinstance(arguments, dict))
    return Value(value.value, len(text), ("missing-bracket",)) if is_whole else None
