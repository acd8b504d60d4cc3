"""Reads calls written as Python: ``[f(a=1), g(b='x')]``, or statements in a block.

::

    call   = NAME "(" (KEY "=" value | value | "**" dict) ("," ...)* ")"
    value  = string | number | True | False | None | list | tuple | dict

Nothing is ever evaluated: values are literals, read by hand and bounded in depth
and size. While scanning for the end, quotes are followed, so that brackets and
closing markers in strings are data. A quote directly before a letter or digit
does not close a string, because no Python can go on so: ``'Martha's Vineyard'``.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

from adapter.reading.format import CUT_OFF, TEXT, BodyReader, Context, Reading, first_of
from adapter.reading.json_values import skip_string
from adapter.reading.markers import Markers, markers_for
from adapter.reading.source import Reader, Source, collect, skip_space, take_marker, take_until
from adapter.reading.tagged_json import TaggedJson
from adapter.reading.untagged_json import UntaggedJson
from adapter.tools.shapes import Decoded
from adapter.values.errors import FormatError
from adapter.values.events import Json, JsonObject
from adapter.values.strict_json import MAX_DEPTH, MAX_DIGITS, UnterminatedError, is_encodable, replace_surrogates

OPENING_LIMIT = 200
"""Characters from a list's bracket to the parenthesis of its first call; more is no list of calls."""

_TRIPLE = ('"""', "'''")
_QUOTES = ('"', "'")
_STEPS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_SYNTAX = (*_TRIPLE, *_QUOTES, *_STEPS)
_LIST_BEGINS = re.compile(r"\[\s*([^\W\d][\w.-]*+)\s*\(")
_LIST_MAY_BEGIN = re.compile(r"\[\s*+(?:[^\W\d][\w.-]*+\s*+)?")
_NAMES_ARGUMENT = re.compile(r"\[\s*[^\W\d][\w.-]*+\s*\(\s*(?:\w+\s*=|\*\*)")
_bracket = Markers("]")
_fence = Markers("```python", "```")
_FIRST_CALL = re.compile(r"([^\W\d][\w.-]*+)\s*\(")
_MAY_CALL = re.compile(r"(?:[^\W\d][\w.-]*+\s*)?")
_WITH_ARGUMENTS = re.compile(r"([\w.-]+) with (?:the )?arguments:?\s*", re.IGNORECASE)


# ------------------------------------------------------------------- in a stream


def read_list(source: Source, span: list[str], context: Context) -> Reader[Reading]:
    """A list of calls where one may begin: it ends where its brackets balance. Takes nothing of other text."""
    name = yield from _first_name(source)
    if name is None or (context.tools and not context.tools.match(name)):
        return TEXT
    start = sum(map(len, span))
    is_whole = yield from _take_code(source, span, markers_for(*_SYNTAX), stops_balanced=True)
    text = "".join(span)[start:]
    if not is_whole:
        return Reading(error=CUT_OFF) if context.tools else TEXT
    try:
        return _PythonReader(text, context, start).calls()
    except FormatError as error:
        is_meant = context.told == "pythonic" and _NAMES_ARGUMENT.match(text)
        return Reading(error=_explain(error)) if is_meant else TEXT


class PythonBlock:
    """Reads calls up to the marker ``closing``. An instance is a `BodyReader`.

    ``fence``: what stands before ``closing`` where the calls are in a code fence.
    """

    def __init__(self, closing: str, fence: str = "") -> None:
        self.closing, self.fence = closing, fence
        self._close = markers_for(closing)
        self._tokens = markers_for(*_SYNTAX, closing)

    def __call__(self, source: Source, span: list[str], context: Context) -> Reader[Reading]:
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

    def _read_hidden(self, text: str, source: Source, span: list[str], start: int, context: Context) -> Reading | None:
        """The calls before a marker that a stray quote hid; None where that leaves half a call, as in a cut string."""
        found = self._close.search(text, 0)
        if found is None:
            return None
        try:
            reading = self._read(text[: found.start()], context, start)
        except FormatError:
            return None
        span[:] = ["".join(span)[: start + found.end()]]
        source.unread(text[found.end() :])
        return reading

    def _read(self, text: str, context: Context, start: int) -> Reading:
        code = text.rstrip().removesuffix(self.fence) if self.fence else text
        return _PythonReader(code, context, start).calls()

    def _refuse(self, error: str, text: str, context: Context) -> Reading:
        """An error where a call was meant, else the block is code of no concern to us."""
        found = _FIRST_CALL.search(text)
        if found is None and not context.at_line_start:
            return TEXT  # the marker was only mentioned
        is_meant = found is None or not context.tools or context.tools.match(found.group(1).removeprefix("print"))
        return Reading(error=error) if is_meant else TEXT


def read_method(source: Source, span: list[str], context: Context) -> Reader[Reading]:
    """``NAME.call(...)`` or ``NAME(...)`` of a tool of the session: how Llama calls the tools it was trained with."""
    name = yield from _called_first(source)
    if context.tools.match(name) is None and context.tools.match(name.removesuffix(".call")) is None:
        return TEXT
    start = sum(map(len, span))
    is_whole = yield from _take_code(source, span, markers_for(*_SYNTAX), stops_balanced=True)
    if not is_whole:
        return Reading(error=CUT_OFF)
    try:
        return _PythonReader("".join(span)[start:], context, start).calls()
    except FormatError as error:
        return Reading(error=_explain(error))


def _called_first(source: Source) -> Reader[str]:
    """The name before the parenthesis that stands here, "" when it is no call. Takes nothing."""
    while True:
        ahead = source.text[source.position : source.position + OPENING_LIMIT]
        found = _FIRST_CALL.match(ahead)
        if found is not None or source.final or len(ahead) == OPENING_LIMIT or not _MAY_CALL.fullmatch(ahead):
            return found.group(1) if found else ""
        yield


read_after_python_tag = first_of(read_list, UntaggedJson("parameters", after_marker=True), read_method)
"""Reads what follows ``<|python_tag|>``, in any of the ways in which Llama goes on."""


def python_or_json(opening: str, closing: str, arguments_key: str = "arguments") -> BodyReader:
    """Reads Python calls up to ``closing``, or the list of JSON objects that some models write in their place.

    Calls in a fence are MiniCPM's.
    """
    read_python, read_json = PythonBlock(closing), TaggedJson(opening, closing, arguments_key, may_list=True)
    read_fenced = PythonBlock(closing, fence="```")

    def read(source: Source, span: list[str], context: Context) -> Reader[Reading]:
        ahead: list[str] = []
        char = yield from skip_space(source, ahead)
        fence = (yield from take_marker(source, _fence)) if char == "`" else ""
        if fence:
            span.extend([*ahead, fence])
            reading = yield from read_fenced(source, span, context)
            return reading if not reading.calls or context.told == "minicpm" else reading.adding("foreign-body")
        if char == "[":
            ahead.append(char)
            source.position += 1
            char = yield from skip_space(source, ahead)
        source.unread("".join(ahead))
        return (yield from (read_json if char == "{" else read_python)(source, span, context))

    return read


def _explain(error: FormatError) -> str:
    return f"the call cannot be read: {error}. Write one call with literal values: NAME(ARGUMENT=VALUE)"


def _written(calls: list[Decoded]) -> str:
    """The arguments as JSON: an escape may stand for half of a surrogate pair."""
    return json.dumps([call.arguments for call in calls], ensure_ascii=False)


def _first_name(source: Source) -> Reader[str | None]:
    """The name of the first call of the list that stands here, None when it is no list of calls. Takes nothing."""
    while True:
        ahead = source.text[source.position : source.position + OPENING_LIMIT]
        found = _LIST_BEGINS.match(ahead)
        if found is not None:
            return found.group(1)
        if source.final or len(ahead) == OPENING_LIMIT or (ahead and not _LIST_MAY_BEGIN.fullmatch(ahead)):
            return None
        yield


def _take_code(source: Source, span: list[str], tokens: Markers, *, stops_balanced: bool) -> Reader[str]:
    """Take code until brackets balance, or up to a marker that is no syntax. Returns the bracket (taken into
    ``span``) or the marker (not in it); "" at the end of the text."""
    depth = 0
    while True:
        token = yield from collect(source, tokens, span)
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


def _skip_quoted(source: Source, span: list[str], quote: str) -> Reader[None]:
    while True:
        yield from skip_string(source, span, quote)
        while source.is_empty and not source.final:
            yield
        if source.is_empty or not source.text[source.position].isalnum():
            return


def _skip_triple_quoted(source: Source, span: list[str], quotes: str) -> Reader[None]:
    tokens = markers_for(quotes, "\\\\", "\\" + quotes[0])
    while (token := (yield from collect(source, tokens, span))) not in ("", quotes):
        span.append(token)
    span.append(token)


def read_named_call(source: Source, span: list[str], context: Context) -> Reader[Reading]:
    """``NAME(...)]`` after ``[Calling tool:``, as some clients put calls into the history that a model sees."""
    if not context.at_line_start:
        return TEXT
    ahead: list[str] = []
    yield from skip_space(source, ahead)
    head = yield from take_until(source, "(", OPENING_LIMIT, ahead)
    name = (head or "").strip()
    if not _NAME.fullmatch(name) or (context.tools and not context.tools.match(name)):
        source.unread("".join(ahead))
        return (yield from _read_with_arguments(source, span, context))
    start = sum(map(len, span))
    source.unread("(")
    span.extend([*ahead[:-1], ahead[-1][:-1]])
    is_whole = yield from _take_code(source, span, markers_for(*_SYNTAX), stops_balanced=True)
    if not is_whole:
        return Reading(error=CUT_OFF)
    text = "".join(span)[start:]
    yield from skip_space(source, span)
    closing = yield from take_marker(source, _bracket)
    span.append(closing)
    try:
        reading = _PythonReader(text, context, start).calls()
    except FormatError as error:
        return Reading(error=_explain(error))
    if not closing and source.was_cut:
        return Reading(error=CUT_OFF)
    fixes = [fix for fix in reading.fixes if fix != "positional-arguments"]  # one object is this form's own way
    return replace(reading, fixes=(*fixes, "misspelt-open-tag", *(() if closing else ("missing-close-tag",))))


def _read_with_arguments(source: Source, span: list[str], context: Context) -> Reader[Reading]:
    """``NAME with arguments: {...}]``, the same in other words."""
    ahead: list[str] = []
    yield from skip_space(source, ahead)
    head = yield from take_until(source, "{", OPENING_LIMIT, ahead)
    worded = _WITH_ARGUMENTS.fullmatch(head or "")
    if worded is None or (context.tools and not context.tools.match(worded[1])):
        source.unread("".join(ahead))
        return TEXT
    source.unread("{")
    span.extend([*ahead[:-1], ahead[-1][:-1]])
    reading = yield from UntaggedJson("arguments", after_marker=True, name=worded[1])(source, span, context)
    yield from skip_space(source, span)
    span.append((yield from take_marker(source, _bracket)))
    return reading.adding("misspelt-open-tag") if reading.calls else reading


# ---------------------------------------------------------------- a complete text

_SKIP = re.compile(r"(?:\s++|#[^\n]*+|\\\n)*+")
_NAME = re.compile(r"[^\W\d]\w*(?:[.-]\w+)*")
_KEY = re.compile(r"([^\W\d]\w*)\s*=(?!=)")
_ASSIGNMENT = re.compile(r"[^\W\d]\w*\s*=(?!=)")
_PRINT = re.compile(r"print\s*\(")
_PREFIX = re.compile(r"([rRuUbBfF]{0,2})('''|\"\"\"|'|\")")
_NUMBER = re.compile(r"[+-]?(?:0[xX][\da-fA-F_]+|(?:\d[\d_]*)?\.?\d[\d_]*(?:[eE][+-]?\d+)?|\d[\d_]*\.)(?![\w.])")
_WORD = re.compile(r"[^\W\d]\w*")
_LITERALS = {"True": True, "False": False, "None": None}
_JSON_LITERALS = {"true": True, "false": False, "null": None}
_ESCAPES = {
    "\\": "\\", "'": "'", '"': '"', "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v",
    "\n": "",
}  # fmt: skip
_CODE_ESCAPE = re.compile(r"x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([0-7]{1,3})")
_PLAIN = {quote: re.compile(rf"[^{quote}\\\n]+") for quote in _QUOTES}


class _PythonReader:
    """One pass over the text, recursing once per level of nesting. ``offset``: where the text begins in its span."""

    def __init__(self, text: str, context: Context, offset: int) -> None:
        self.text, self.context, self.offset = text, context, offset
        self.position = 0
        self.fixes: dict[str, None] = {}

    def calls(self) -> Reading:
        """All calls of the text, in lists or as statements. Raises FormatError when there is anything else."""
        calls: list[Decoded] = []
        depth = prints = 0
        while (char := self.peek()) or depth:
            if char in "[" and char and depth == 0:
                depth += 1
                self.position += 1
            elif char == "]" and depth:
                depth -= 1
                self.position += 1
                if calls:
                    calls[-1] = replace(calls[-1], end=self.offset + self.position)
            elif char == ")" and prints:
                prints -= 1
                self.position += 1
            elif char and char in ",;":
                self.position += 1
            elif wrapper := _PRINT.match(self.text, self.position) or _ASSIGNMENT.match(self.text, self.position):
                prints += wrapper.group().endswith("(")
                self.position = wrapper.end()
                self.fixes["text-in-tag"] = None
            else:
                calls.append(self.call())
        if prints:
            raise UnterminatedError("the text ends before its parentheses are closed")
        if not calls:
            raise FormatError("there is no call")
        if not is_encodable(self.text) or ("\\" in self.text and not is_encodable(_written(calls))):
            arguments = [replace_surrogates(call.arguments) for call in calls]
            calls = [replace(call, arguments=own) for call, own in zip(calls, arguments, strict=True)]
            self.fixes["lone-surrogate"] = None
        return Reading(tuple(calls), tuple(self.fixes))

    def peek(self) -> str:
        self.position = _SKIP.match(self.text, self.position).end()  # type: ignore[union-attr]
        return self.text[self.position] if self.position < len(self.text) else ""

    def fail(self, expected: str) -> FormatError:
        rest = self.text[self.position : self.position + 30]
        if not rest:
            return UnterminatedError(f"expected {expected}, got the end of the text")
        return FormatError(f"expected {expected}, got {rest!r} at character {self.position + 1}")

    def expect(self, char: str, what: str) -> None:
        if self.peek() != char:
            raise self.fail(what)
        self.position += 1

    def call(self) -> Decoded:
        name = _NAME.match(self.text, self.position)
        if name is None:
            raise self.fail("the name of a tool")
        self.position = name.end()
        self.expect("(", f"a parenthesis after {name.group()!r}")
        arguments: JsonObject = {}
        positional: list[Json] = []
        while (char := self.peek()) != ")":
            key = _KEY.match(self.text, self.position)
            if self.text.startswith("**", self.position):
                self.position += 2
                if self.peek() != "{":
                    raise self.fail("a dict after **")
                self.position += 1
                arguments |= self.dictionary(0)
            elif key is not None:
                self.position = key.end()
                arguments[key.group(1)] = self.value(0)
            elif char:
                positional.append(self.value(0))
            if self.peek() != ")":
                self.expect(",", "a comma or the closing parenthesis")
        self.position += 1
        called = self.called(name.group())
        if positional:
            arguments = self.named(called, positional) | arguments
        return Decoded(called, arguments, end=self.offset + self.position)

    def called(self, name: str) -> str:
        """The tool's name; Llama's own tools are objects with one method."""
        owner = name.removesuffix(".call")
        is_method = owner != name and self.context.tools.match(name) is None and self.context.tools.match(owner)
        return owner if is_method else name

    def named(self, name: str, values: list[Json]) -> JsonObject:
        """Values without names, named in the order in which the tool declares its parameters.

        One dict that names some of them is all the arguments.
        """
        tool = self.context.tools.match(name)
        only = values[0]
        if isinstance(only, dict) and len(values) == 1 and (tool is None or only.keys() <= {*tool.properties}):
            self.fixes["positional-arguments"] = None
            return only
        if tool is None or len(values) > len(tool.properties):
            raise FormatError(f"{name!r} was called without naming its arguments")
        self.fixes["positional-arguments"] = None
        return dict(zip(tool.properties, values, strict=False))

    def value(self, depth: int) -> Json:
        if depth > MAX_DEPTH:
            raise FormatError(f"nested more than {MAX_DEPTH} levels deep")
        char = self.peek()
        if char == "{":
            return self.dictionary_or_set(depth)
        if char in ("[", "("):
            return self.sequence(depth, "]" if char == "[" else ")")
        if _PREFIX.match(self.text, self.position):
            return self.strings()
        number = _NUMBER.match(self.text, self.position)
        if number is not None:
            return self.number(number.group())
        word = _WORD.match(self.text, self.position)
        if word is None or word.group() not in _LITERALS | _JSON_LITERALS:
            raise self.fail("a literal value")
        self.position = word.end()
        if word.group() in _JSON_LITERALS:
            self.fixes["json-literal"] = None
        return (_LITERALS | _JSON_LITERALS)[word.group()]

    def sequence(self, depth: int, closing: str) -> Json:
        self.position += 1
        if self.peek() == closing:
            self.position += 1
            return []
        first = self.value(depth + 1)
        if closing == ")" and self.peek() == closing:
            self.position += 1
            return first
        return [first, *self.items(depth, closing)]

    def items(self, depth: int, closing: str) -> list[Json]:
        """What follows the first item, with the closing bracket."""
        items: list[Json] = []
        while self.peek() != closing:
            self.expect(",", f"a comma or {closing!r}")
            if self.peek() != closing:
                items.append(self.value(depth + 1))
        self.position += 1
        return items

    def dictionary_or_set(self, depth: int) -> Json:
        """A set, which JSON does not have, is a list."""
        self.position += 1
        if self.peek() in ("", "}"):
            return self.dictionary(depth)
        first = self.value(depth + 1)
        if self.peek() == ":":
            return self.dictionary(depth, first)
        if self.peek() == ",":
            return [first, *self.items(depth, "}")]
        self.expect("}", "a colon, a comma or '}'")
        return [first]

    def dictionary(self, depth: int, first: Json = None) -> JsonObject:
        """The members after the opening brace, or after the ``first`` key."""
        members: JsonObject = {}
        while first is not None or self.peek() != "}":
            key, first = first if first is not None else self.value(depth + 1), None
            if not isinstance(key, str):
                raise FormatError(f"expected a string as a key, got {key!r:.40}")
            self.expect(":", f"a colon after the key {key!r:.40}")
            members[key] = self.value(depth + 1)
            if self.peek() != "}":
                self.expect(",", "a comma or '}'")
        self.position += 1
        return members

    def number(self, spelling: str) -> Json:
        if len(spelling) > MAX_DIGITS + 1:
            raise FormatError(f"a number of {len(spelling)} characters; at most {MAX_DIGITS} are read")
        self.position += len(spelling)
        bare = spelling.lstrip("+-").replace("_", "").lower()
        sign = -1 if spelling.startswith("-") else 1
        if bare.startswith("0x"):
            return sign * int(bare, 16)
        if bare.isdigit():
            return sign * int(bare)
        value = sign * float(bare)
        if value - value != 0:
            raise FormatError(f"{spelling[:40]} is no finite number")
        return value

    def strings(self) -> str:
        """One string, or several side by side, which Python joins."""
        parts = []
        while (opening := _PREFIX.match(self.text, self.position)) is not None:
            parts.append(self.string(opening))
            self.peek()
        return "".join(parts)

    def string(self, opening: re.Match[str]) -> str:
        prefix, quotes = opening.group(1).lower(), opening.group(2)
        if "b" in prefix:
            raise self.fail("a plain string")
        is_formatted, start = "f" in prefix, self.position
        self.position = opening.end()
        parts: list[str] = []
        while True:
            run = _PLAIN[quotes[0]].match(self.text, self.position)
            if run is not None:
                parts.append(run.group())
                self.position = run.end()
            if self.position >= len(self.text):
                raise UnterminatedError("the text ends inside a string")
            if self.text.startswith(quotes, self.position):
                self.position += len(quotes)
                after = self.text[self.position : self.position + 1]
                if len(quotes) == 3 or not after.isalnum():
                    text = "".join(parts)
                    if is_formatted and ("{" in text or "}" in text):
                        self.position = start
                        raise self.fail("a plain string")
                    return text
                self.fixes["unescaped-quote"] = None
                parts.append(quotes)
            elif self.text[self.position] == "\\":
                parts.append(self.escape(is_raw="r" in prefix))
            else:
                if len(quotes) == 1:
                    self.fixes["raw-control-character"] = None
                parts.append(self.text[self.position])
                self.position += 1

    def escape(self, *, is_raw: bool) -> str:
        """The escape sequence here; one that Python does not know stays as it is, as in Python."""
        char = self.text[self.position + 1 : self.position + 2]
        if not char:
            raise UnterminatedError("the text ends inside a string")
        code = _CODE_ESCAPE.match(self.text, self.position + 1)
        if is_raw or (code is None and char not in _ESCAPES):
            self.position += 2
            return "\\" + char
        if code is None:
            self.position += 2
            return _ESCAPES[char]
        self.position = code.end()
        number = int(code.group(4), 8) if code.group(4) else int(code.group()[1:], 16)
        if number > 0x10FFFF:
            raise FormatError(f"\\{code.group()} is no character")
        return chr(number)
