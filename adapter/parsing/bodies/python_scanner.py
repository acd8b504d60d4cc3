"""Find the end of calls written as Python: ``[f(a=1), g(b='x')]``, or statements in a block.

The scanner tracks quotes, so that it ignores brackets and closing markers in strings. `python_parser` parses the calls.
"""

from __future__ import annotations

import re
from contextlib import suppress

from adapter.core.errors import FormatError
from adapter.core.json.strict import UnterminatedError
from adapter.parsing.bodies.python_literals import QUOTE_CONTEXT, closes_string
from adapter.parsing.bodies.python_parser import explain_error, read_calls
from adapter.parsing.bracket_delimited_json import UntaggedJson
from adapter.parsing.format import CUT, CUT_OFF, TEXT, BodyReader, BodyResult, BodySource, try_readers
from adapter.parsing.json_calls import skip_string
from adapter.parsing.marker_set import MarkerSet, get_marker_set
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader, StreamBuffer
from adapter.parsing.tagged_json import TaggedJson
from adapter.tools.decoded_json_calls import DecodedCall
from adapter.tools.tool_set import ToolSet

BARE_LISTS = "bare lists"
"""Member of `Format.body_variants`: the format writes lists of calls without markers, so a malformed list is an error
rather than text."""

_TRIPLE = ('"""', "'''")
_QUOTES = ('"', "'")
_STEPS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_SYNTAX = (*_TRIPLE, *_QUOTES, *_STEPS)
_LIST_BEGINS = re.compile(r"\[\s*([^\W\d][\w.-]*+)\s*\(")
_LIST_MAY_BEGIN = re.compile(r"\[\s*+(?:[^\W\d][\w.-]*+\s*+)?")
_NAMES_ARGUMENT = re.compile(r"\[\s*[^\W\d][\w.-]*+\s*\(\s*(?:\w+\s*=|\*\*)")
_BROKEN_MARKER = re.compile(r"[<\[|/\\]{1,3}\w*[^\w\s]{0,3}\s*\Z")
_fence = MarkerSet("```python", "```")
_FIRST_CALL = re.compile(r"([^\W\d][\w.-]*+)\s*\(")
_MAY_CALL = re.compile(r"(?:[^\W\d][\w.-]*+\s*)?")
_NEXT_METHOD = re.compile(r"\s*;\s*(?=([^\W\d][\w.-]*+)\s*\()")
_MAY_BE_NEXT_METHOD = re.compile(r"\s*+(?:;\s*+(?:[^\W\d][\w.-]*+\s*+)?)?")
_DECIDES = re.compile(r"\w|[ \t]*(?:\n|[^\s\w*]|\*\s*\S|\w+(?:\s*[^\s\w=]|\s+\w|\s*=\s*\w*\W))")


def read_list(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse a list of Python calls, ``[f(a=1), g()]``, up to its last bracket. For other text, consume nothing."""
    match = yield from source.peek_match(
        _LIST_BEGINS, NAME_LIMIT, lambda ahead: not ahead or _LIST_MAY_BEGIN.fullmatch(ahead)
    )
    if match is None or (source.tools and not source.tools.match(match[1])):
        return TEXT
    start = len(consumed)
    result = yield from _read_balanced(source, consumed)
    if result is CUT:
        return CUT if source.tools else TEXT
    is_own = result.calls or BARE_LISTS in source.body_variants
    return TEXT if result.error and not (is_own and _NAMES_ARGUMENT.match("".join(consumed[start:]))) else result


def _read_balanced(source: BodySource, consumed: list[str], offset: int | None = None) -> Reader[BodyResult]:
    """Consume code until its brackets are balanced, and parse the calls in it. Only the last bracket may be missing.

    If a bracket within a list is missing, the list ends before a blank line. ``offset``: the length of the text in
    ``consumed``, if it is known.
    """
    start = len(consumed)
    offset = sum(map(len, consumed)) if offset is None else offset
    is_balanced = yield from _consume_code(source, consumed, get_marker_set(*_SYNTAX), stops_balanced=True)
    if not is_balanced and source.was_cut:
        return CUT
    text = "".join(consumed[start:])
    head, bracket, rest = ("", "", "") if is_balanced else text.partition("]\n\n")
    if bracket:
        with suppress(FormatError):
            result = read_calls(f"{head}]", source.tools, offset)
            source.push_back(f"\n\n{rest}")
            consumed[start:] = [f"{head}]"]
            return result
    try:
        return read_calls(text, source.tools, offset)
    except FormatError as error:
        return BodyResult(error=explain_error(error)) if is_balanced else CUT


class PythonBlock:
    """Parses Python calls up to the marker ``closing``. An instance is a `BodyReader`.

    - ``fence``: the closing backticks of a code fence around the calls, or "".
    - ``opening``: the marker that opens the next block, which also ends this one, or "".
    """

    def __init__(self, closing: str, fence: str = "", opening: str = "") -> None:
        self.closing, self.fence = closing, fence
        self._close = get_marker_set(closing)
        self._tokens = get_marker_set(*_SYNTAX, closing, *([opening] if opening else []))

    def __call__(self, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        start = sum(map(len, consumed))
        closed = yield from _consume_code(source, consumed, self._tokens, stops_balanced=False)
        text = "".join(consumed)[start:]
        if closed and closed.lower() != self.closing.lower():
            source.push_back(closed)
            closed = ""
        if not closed and (result := self._read_hidden(text, source, consumed, start)):
            return result
        if closed:
            consumed.append(closed)
        elif source.was_cut and source.is_empty:
            return self._reject(CUT_OFF, text, source)
        try:
            result = self._read(text, source.tools, start)
        except FormatError as error:
            is_cut = isinstance(error, UnterminatedError) and not closed
            return self._reject(CUT_OFF if is_cut else explain_error(error), text, source)
        if result.error and not closed:
            if paragraph := self._read_paragraph(text, source, consumed, start):
                return paragraph
            end = result.calls[-1].end if result.calls else None
            if end is not None and "(" not in text[end - start :]:  # text follows the calls
                source.push_back(text[end - start :])
                consumed[:] = ["".join(consumed)[:end]]
                result = result._replace(error=None)
        return result if closed else result.with_repairs("missing-close-tag")

    def _read_hidden(self, text: str, source: BodySource, consumed: list[str], start: int) -> BodyResult | None:
        """Parse the calls before a closing marker that a stray quote hid. Return None without such a marker or on an
        error."""
        marker = self._close.search(text, 0)
        if marker is None:
            return None
        try:
            result = self._read(text[: marker[0]], source.tools, start)
        except FormatError:
            return None
        consumed[:] = ["".join(consumed)[: start + marker[1]]]
        source.push_back(text[marker[1] :])
        return result

    def _read_paragraph(self, text: str, source: BodySource, consumed: list[str], start: int) -> BodyResult | None:
        """Parse the calls before a damaged closing marker and a blank line. Return None if they cannot be parsed."""
        head, blank, _ = text.partition("\n\n")
        if not blank or source.was_cut:
            return None
        try:
            result = self._read(_BROKEN_MARKER.sub("", head), source.tools, start)
        except FormatError:
            return None
        if result.error is not None:
            return None
        consumed[:] = ["".join(consumed)[: start + len(head)]]
        source.push_back(text[len(head) :])
        return result.with_repairs("misspelt-close-tag")

    def _read(self, text: str, tools: ToolSet, start: int) -> BodyResult:
        code = text.rstrip().removesuffix(self.fence) if self.fence else text
        return read_calls(code, tools, start)

    def _reject(self, error: str, text: str, source: BodySource) -> BodyResult:
        """Return a result with ``error`` if ``text`` was meant as a call, or `TEXT` if it is unrelated code."""
        match = _FIRST_CALL.search(text)
        if match is None and not source.at_line_start:
            return TEXT  # the marker was only mentioned
        is_intended = match is None or not source.tools or source.tools.match(match.group(1).removeprefix("print"))
        return BodyResult(error=error) if is_intended else TEXT


def read_method(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse ``NAME.call(...)`` or ``NAME(...)`` for known tools: Llama's notation for built-in tools. Semicolons
    separate calls."""
    if not _is_method((yield from peek_call_name(source)), source.tools):
        return TEXT
    calls, fixes = list[DecodedCall](), list[str]()
    offset = sum(map(len, consumed))
    while True:
        start = source.offset
        result = yield from _read_balanced(source, consumed, offset)
        calls += result.calls
        fixes += result.fixes
        following = None
        if result.error is None:
            following = yield from source.peek_match(_NEXT_METHOD, NAME_LIMIT, _MAY_BE_NEXT_METHOD.fullmatch)
        if following is None or not _is_method(following[1], source.tools):
            return result._replace(calls=tuple(calls), fixes=tuple(fixes))
        source.consume_match(following, consumed)
        offset += source.offset - start


def _is_method(name: str, tools: ToolSet) -> bool:
    return tools.match(name) is not None or tools.match(name.removesuffix(".call")) is not None


def read_one_call(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
    """Parse ``NAME(...)`` after a marker, up to the closing parenthesis."""
    yield from source.skip_space(consumed)
    if not (yield from peek_call_name(source)):
        return CUT if source.is_empty and source.at_line_start else TEXT
    return (yield from _read_balanced(source, consumed))


def peek_call_name(source: StreamBuffer) -> Reader[str]:
    """Return the function's name if a Python call comes next, or "". Nothing is consumed."""
    match = yield from source.peek_match(_FIRST_CALL, NAME_LIMIT, _MAY_CALL.fullmatch)
    return match.group(1) if match else ""


read_after_python_tag = try_readers(read_list, UntaggedJson("parameters", after_marker=True), read_method)
"""Parser for the text after ``<|python_tag|>``, in any of Llama's notations."""


def build_python_or_json_reader(
    opening: str, closing: str, arguments_key: str = "arguments", *, has_fence: bool = False
) -> BodyReader:
    """Return a parser for Python calls up to ``closing``, or for the JSON list that some models write instead.
    ``has_fence``: whether the format requires a code fence around the calls."""
    read_python = PythonBlock(closing, opening=opening)
    read_json = TaggedJson(opening, closing, arguments_key, may_list=True)
    read_fenced = PythonBlock(closing, fence="```", opening=opening)

    def read(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        ahead: list[str] = []
        char = yield from source.skip_space(ahead)
        fence = (yield from source.consume_marker(_fence)) if char == "`" else ""
        if fence:
            consumed.extend([*ahead, fence])
            result = yield from read_fenced(source, consumed)
            return result if has_fence else result.with_fixes("foreign-body")
        if char == "[":
            ahead.append(char)
            source.position += 1
            char = yield from source.skip_space(ahead)
        source.push_back("".join(ahead))
        return (yield from (read_json if char == "{" else read_python)(source, consumed))

    return read


def _consume_code(source: StreamBuffer, consumed: list[str], tokens: MarkerSet, *, stops_balanced: bool) -> Reader[str]:
    """Consume code up to a marker that is not part of Python or, if ``stops_balanced``, until brackets are balanced.
    Return the last bracket (added to ``consumed``), the marker (not added), or "" at the end of the text."""
    depth = 0
    while True:
        token = yield from source.read_until(tokens, consumed)
        if token in _QUOTES:
            consumed.append(token)
            yield from _skip_quoted(source, consumed, token)
        elif token in _TRIPLE:
            consumed.append(token)
            yield from _skip_triple_quoted(source, consumed, token)
        elif token in _STEPS:
            consumed.append(token)
            depth = max(0, depth + _STEPS[token])
            if depth == 0 and stops_balanced:
                return token
        else:
            return token


def _skip_quoted(source: StreamBuffer, consumed: list[str], quote: str) -> Reader[None]:
    is_argument = len(consumed) > 1 and consumed[-2].rstrip().endswith("=")
    is_broken = False
    while True:
        yield from skip_string(source, consumed, quote)
        following = yield from _peek_after_quote(source, is_whole=is_broken)
        if closes_string(following, is_argument=is_argument, is_broken=is_broken):
            return
        is_broken = True


def _peek_after_quote(source: StreamBuffer, *, is_whole: bool) -> Reader[str]:
    """Return the text that decides whether the quote just consumed closes its string. ``is_whole``: whether to wait for
    all `QUOTE_CONTEXT` characters, even if fewer suffice for an ordinary string."""
    while True:
        ahead = source.text[source.position : source.position + QUOTE_CONTEXT]
        if source.final or len(ahead) == QUOTE_CONTEXT or (not is_whole and _DECIDES.match(ahead)):
            return ahead
        yield


def _skip_triple_quoted(source: StreamBuffer, consumed: list[str], quotes: str) -> Reader[None]:
    tokens = get_marker_set(quotes, "\\\\", "\\" + quotes[0])
    while (token := (yield from source.read_until(tokens, consumed))) not in ("", quotes):
        consumed.append(token)
    consumed.append(token)
