"""Reads calls written as Python, where they may come: ``[f(a=1), g(b='x')]``, or statements in a block.

While scanning for the end, quotes are followed, so that brackets and closing markers in strings are data;
what the text up to there says is for `python_text`.
"""

from __future__ import annotations

import re

from adapter.core.errors import FormatError
from adapter.core.json.strict import UnterminatedError
from adapter.parsing.bare_json import UntaggedJson
from adapter.parsing.bodies.python_parser import NAME, read_calls
from adapter.parsing.format import CUT_OFF, TEXT, BodyReader, BodyResult, ReadContext, try_readers
from adapter.parsing.json_scanner import skip_string
from adapter.parsing.marker_set import MarkerSet, markers_for
from adapter.parsing.stream_buffer import (
    Reader,
    StreamBuffer,
    peek_match,
    read_until,
    skip_space,
    take_marker,
    take_until,
)
from adapter.parsing.tagged_json import TaggedJson

OPENING_LIMIT = 200
"""Characters from a list's bracket to the parenthesis of its first call; more is no list of calls."""

_TRIPLE = ('"""', "'''")
_QUOTES = ('"', "'")
_STEPS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_SYNTAX = (*_TRIPLE, *_QUOTES, *_STEPS)
_LIST_BEGINS = re.compile(r"\[\s*([^\W\d][\w.-]*+)\s*\(")
_LIST_MAY_BEGIN = re.compile(r"\[\s*+(?:[^\W\d][\w.-]*+\s*+)?")
_NAMES_ARGUMENT = re.compile(r"\[\s*[^\W\d][\w.-]*+\s*\(\s*(?:\w+\s*=|\*\*)")
_bracket = MarkerSet("]")
_fence = MarkerSet("```python", "```")
_FIRST_CALL = re.compile(r"([^\W\d][\w.-]*+)\s*\(")
_MAY_CALL = re.compile(r"(?:[^\W\d][\w.-]*+\s*)?")
_WITH_ARGUMENTS = re.compile(r"([\w.-]+) with (?:the )?arguments:?\s*", re.IGNORECASE)


def read_list(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
    """A list of calls where one may begin: it ends where its brackets balance. Takes nothing of other text."""
    name = yield from _first_name(source)
    if name is None or (context.tools and not context.tools.match(name)):
        return TEXT
    start = sum(map(len, span))
    is_whole = yield from _take_code(source, span, markers_for(*_SYNTAX), stops_balanced=True)
    text = "".join(span)[start:]
    if not is_whole:
        return BodyResult(error=CUT_OFF) if context.tools else TEXT
    try:
        return read_calls(text, context, start)
    except FormatError as error:
        is_meant = context.expected_format == "pythonic" and _NAMES_ARGUMENT.match(text)
        return BodyResult(error=_explain(error)) if is_meant else TEXT


class PythonBlock:
    """Reads calls up to the marker ``closing``. An instance is a `BodyReader`.

    ``fence``: what stands before ``closing`` where the calls are in a code fence.
    """

    def __init__(self, closing: str, fence: str = "") -> None:
        self.closing, self.fence = closing, fence
        self._close = markers_for(closing)
        self._tokens = markers_for(*_SYNTAX, closing)

    def __call__(self, source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
        start = sum(map(len, span))
        closed = yield from _take_code(source, span, self._tokens, stops_balanced=False)
        text = "".join(span)[start:]
        if not closed and (reading := self._read_hidden(text, source, span, start, context)):
            return reading
        if closed:
            span.append(closed)
        elif source.was_cut and source.is_empty:
            return self._refuse(CUT_OFF, text, context)
        try:
            reading = self._read(text, context, start)
        except UnterminatedError as error:
            return self._refuse(_explain(error) if closed else CUT_OFF, text, context)
        except FormatError as error:
            return self._refuse(_explain(error), text, context)
        return reading if closed else reading.adding("missing-close-tag")

    def _read_hidden(
        self, text: str, source: StreamBuffer, span: list[str], start: int, context: ReadContext
    ) -> BodyResult | None:
        """The calls before a marker that a stray quote hid; None where that leaves half a call, as in a cut string."""
        found = self._close.search(text, 0)
        if found is None:
            return None
        try:
            reading = self._read(text[: found[0]], context, start)
        except FormatError:
            return None
        span[:] = ["".join(span)[: start + found[1]]]
        source.push_back(text[found[1] :])
        return reading

    def _read(self, text: str, context: ReadContext, start: int) -> BodyResult:
        code = text.rstrip().removesuffix(self.fence) if self.fence else text
        return read_calls(code, context, start)

    def _refuse(self, error: str, text: str, context: ReadContext) -> BodyResult:
        """An error where a call was meant, else the block is code of no concern to us."""
        found = _FIRST_CALL.search(text)
        if found is None and not context.at_line_start:
            return TEXT  # the marker was only mentioned
        is_meant = found is None or not context.tools or context.tools.match(found.group(1).removeprefix("print"))
        return BodyResult(error=error) if is_meant else TEXT


def read_method(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
    """``NAME.call(...)`` or ``NAME(...)`` of a tool of the session: how Llama calls the tools it was trained with."""
    name = yield from called_first(source)
    if context.tools.match(name) is None and context.tools.match(name.removesuffix(".call")) is None:
        return TEXT
    start = sum(map(len, span))
    is_whole = yield from _take_code(source, span, markers_for(*_SYNTAX), stops_balanced=True)
    if not is_whole:
        return BodyResult(error=CUT_OFF)
    try:
        return read_calls("".join(span)[start:], context, start)
    except FormatError as error:
        return BodyResult(error=_explain(error))


def called_first(source: StreamBuffer) -> Reader[str]:
    """The name before the parenthesis that stands here, "" when it is no call. Takes nothing."""
    found = yield from peek_match(source, _FIRST_CALL, OPENING_LIMIT, _MAY_CALL.fullmatch)
    return found.group(1) if found else ""


read_after_python_tag = try_readers(read_list, UntaggedJson("parameters", after_marker=True), read_method)
"""Reads what follows ``<|python_tag|>``, in any of the ways in which Llama goes on."""


def python_or_json(opening: str, closing: str, arguments_key: str = "arguments") -> BodyReader:
    """Reads Python calls up to ``closing``, or the list of JSON objects that some models write in their place.

    Calls in a fence are MiniCPM's.
    """
    read_python, read_json = PythonBlock(closing), TaggedJson(opening, closing, arguments_key, may_list=True)
    read_fenced = PythonBlock(closing, fence="```")

    def read(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
        ahead: list[str] = []
        char = yield from skip_space(source, ahead)
        fence = (yield from take_marker(source, _fence)) if char == "`" else ""
        if fence:
            span.extend([*ahead, fence])
            reading = yield from read_fenced(source, span, context)
            return (
                reading if not reading.calls or context.expected_format == "minicpm" else reading.adding("foreign-body")
            )
        if char == "[":
            ahead.append(char)
            source.position += 1
            char = yield from skip_space(source, ahead)
        source.push_back("".join(ahead))
        return (yield from (read_json if char == "{" else read_python)(source, span, context))

    return read


def _explain(error: FormatError) -> str:
    return f"the call cannot be read: {error}. Write one call with literal values: NAME(ARGUMENT=VALUE)"


def _first_name(source: StreamBuffer) -> Reader[str | None]:
    """The name of the first call of the list that stands here, None when it is no list of calls. Takes nothing."""
    while True:
        ahead = source.text[source.position : source.position + OPENING_LIMIT]
        found = _LIST_BEGINS.match(ahead)
        if found is not None:
            return found.group(1)
        if source.final or len(ahead) == OPENING_LIMIT or (ahead and not _LIST_MAY_BEGIN.fullmatch(ahead)):
            return None
        yield


def _take_code(source: StreamBuffer, span: list[str], tokens: MarkerSet, *, stops_balanced: bool) -> Reader[str]:
    """Take code until brackets balance, or up to a marker that is no syntax. Returns the bracket (taken into
    ``span``) or the marker (not in it); "" at the end of the text."""
    depth = 0
    while True:
        token = yield from read_until(source, tokens, span)
        if token in _QUOTES:
            span.append(token)
            yield from _skip_quoted(source, span, token)
        elif token in _TRIPLE:
            span.append(token)
            yield from _skip_triple_quoted(source, span, token)
        elif token in _STEPS:
            span.append(token)
            depth = max(0, depth + _STEPS[token])
            if depth == 0 and stops_balanced:
                return token
        else:
            return token


def _skip_quoted(source: StreamBuffer, span: list[str], quote: str) -> Reader[None]:
    while True:
        yield from skip_string(source, span, quote)
        while source.is_empty and not source.final:
            yield
        if source.is_empty or not source.text[source.position].isalnum():
            return


def _skip_triple_quoted(source: StreamBuffer, span: list[str], quotes: str) -> Reader[None]:
    tokens = markers_for(quotes, "\\\\", "\\" + quotes[0])
    while (token := (yield from read_until(source, tokens, span))) not in ("", quotes):
        span.append(token)
    span.append(token)


def read_named_call(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
    """``NAME(...)]`` after ``[Calling tool:``, as some clients put calls into the history that a model sees."""
    if not context.at_line_start:
        return TEXT
    ahead: list[str] = []
    yield from skip_space(source, ahead)
    head = yield from take_until(source, "(", OPENING_LIMIT, ahead)
    name = (head or "").strip()
    if not NAME.fullmatch(name) or (context.tools and not context.tools.match(name)):
        source.push_back("".join(ahead))
        return (yield from _read_with_arguments(source, span, context))
    start = sum(map(len, span))
    source.push_back("(")
    span.extend([*ahead[:-1], ahead[-1][:-1]])
    is_whole = yield from _take_code(source, span, markers_for(*_SYNTAX), stops_balanced=True)
    if not is_whole:
        return BodyResult(error=CUT_OFF)
    text = "".join(span)[start:]
    yield from skip_space(source, span)
    closing = yield from take_marker(source, _bracket)
    span.append(closing)
    try:
        reading = read_calls(text, context, start)
    except FormatError as error:
        return BodyResult(error=_explain(error))
    if not closing and source.was_cut:
        return BodyResult(error=CUT_OFF)
    fixes = [fix for fix in reading.fixes if fix != "positional-arguments"]  # one object is this form's own way
    return reading._replace(fixes=(*fixes, "misspelt-open-tag", *(() if closing else ("missing-close-tag",))))


def _read_with_arguments(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
    """``NAME with arguments: {...}]``, the same in other words."""
    ahead: list[str] = []
    yield from skip_space(source, ahead)
    head = yield from take_until(source, "{", OPENING_LIMIT, ahead)
    worded = _WITH_ARGUMENTS.fullmatch(head or "")
    if worded is None or (context.tools and not context.tools.match(worded[1])):
        source.push_back("".join(ahead))
        return TEXT
    source.push_back("{")
    span.extend([*ahead[:-1], ahead[-1][:-1]])
    reading = yield from UntaggedJson("arguments", after_marker=True, name=worded[1])(source, span, context)
    yield from skip_space(source, span)
    span.append((yield from take_marker(source, _bracket)))
    return reading.repaired("misspelt-open-tag")
