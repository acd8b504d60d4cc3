"""Parse ``call:NAME{key:value,...}``, which Gemma 4 and FunctionGemma write after their opening token.

::

    object = "{" (key ":" value ("," key ":" value)*)? "}"
    key    = bare text | string
    value  = string | number | true | false | null | "[" (value ("," value)*)? "]" | object
    string = QUOTE any text QUOTE | a JSON string

QUOTE is a token of the family (``<|"|>`` or ``<escape>``), so strings need no escapes. A string that contains QUOTE
must be a JSON string, in which tokens have no meaning. Models also write pairs of QUOTE as quotation marks within a
string.
"""

from __future__ import annotations

import json
import math
import re
from functools import partial

from adapter.core.errors import FormatError
from adapter.core.events import Json, JsonObject
from adapter.core.json.strict import (
    MAX_DEPTH,
    MAX_DIGITS,
    UnterminatedError,
    add_member,
    decode_strict,
    is_encodable,
    keep_number_text,
    replace_surrogates,
)
from adapter.parsing.format import CUT, CUT_OFF, TEXT, BodyResult, BodySource
from adapter.parsing.json_calls import VALUE_TAIL, ends_in_value, find_break
from adapter.parsing.marker_set import get_marker_set
from adapter.parsing.stream_buffer import NAME_LIMIT, Reader, StreamBuffer
from adapter.parsing.tagged_json import TaggedJson
from adapter.tools.decoded_json_calls import DecodedCall
from adapter.tools.tool_set import ToolSet

VALUE_LIMIT = 2_000
"""Maximum length of a string that lacks its opening or closing quote, in characters."""

_API = "default_api"
"""Namespace that Gemini, and models trained on its output, write before a name."""
_NEXT_HEAD = re.compile(r"\s*+(?:[,;]\s*+)?call:([\w.:/-]+)(?=[{(])(?![{(]¤)")
_BARE_HEAD = re.compile(r"\s*call:([\w.:/-]+)\s*[{(](?!¤)")  # ¤ marks an escaped result
_MAY_BE_HEAD = re.compile(r"\s*+(?:c|ca|cal|call|call:[\w.:/-]*+\s*+)?")
_WORD_ALONE = re.compile(r"call\s*:\s*(?=\{\s*[\"'])", re.IGNORECASE)
_MAY_BE_WORD_ALONE = re.compile(r"c|ca|cal|call\s*+(?::\s*+(?:\{\s*+)?)?", re.IGNORECASE)
"""Matches any start of ``call:{``, a call without the tool's name or with the name in the JSON."""

_NAMED_HEAD = re.compile(r"\s*(?:default_api[.:])?([\w.:/-]+?)\{\s*(\w+)\s*:")
_MAY_BE_NAMED = re.compile(r"\s*+[\w.:/-]*+(?:\{\s*+\w*+\s*+)?")
_HEAD = re.compile(r"\s*(?:call\s*:)?\s*([\w.:/-]+)\s*", re.IGNORECASE)


class GemmaCall:
    """Parses ``call:NAME{...}`` after the token ``opening``, up to the token ``closing``. ``quote`` is the token around
    strings. An instance is a `BodyReader`."""

    def __init__(self, opening: str, closing: str, quote: str) -> None:
        self.opening, self.closing, self.quote = opening, closing, quote
        self._head_ends = get_marker_set("{", "(", "[", opening, closing)
        self._tokens = get_marker_set(quote, opening, closing)
        self._quote = get_marker_set(quote)
        self._ends = get_marker_set(opening, closing)
        self._read_json = TaggedJson(opening, closing)

    def __call__(self, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        char = yield from source.skip_space(consumed)
        if not char:
            return CUT
        word = yield from source.peek_match(_WORD_ALONE, NAME_LIMIT, _MAY_BE_WORD_ALONE.fullmatch)
        if word is not None:
            source.consume_match(word, consumed)
            char = "{"
        if char in "{[":
            return (yield from self._read_json(source, consumed)).with_repairs("foreign-body")
        end = yield from source.peek_marker(self._head_ends, NAME_LIMIT)
        rest = source.text[source.position : source.position + NAME_LIMIT + 1]
        if not end and len(rest) <= NAME_LIMIT and _HEAD.fullmatch(rest):
            consumed.append(source.consume_rest())
            return CUT
        head = _HEAD.match(rest)
        if head is None or not end:
            return TEXT
        source.consume_match(head, consumed)
        body: list[str] = []
        marker = yield from self._consume_body(source, body)
        text = "".join(body)
        start = len(consumed)
        result = self._decode(head.group(1), text, marker, source, consumed)
        if result.calls or source.was_cut or self._holds_calls(text, marker):
            return result
        found = find_break(text, self._ends)
        if found is None or (result.unfinished and text[: found[0]].rstrip()[-1:] not in ("}", ")")):
            return result
        source.give_back(consumed, start)  # an unpaired quote hid the end of the call
        source.position += found[1]
        return self._decode(head.group(1), text[: found[0]], text[found[0] : found[1]], source, consumed)

    def _holds_calls(self, text: str, marker: str) -> bool:
        """Return whether a string in ``text``, the text of a call that ends at ``marker``, seems to contain whole
        calls."""
        first = self._ends.search(text, 0)
        lowered, opening, closing = text.lower(), self.opening.lower(), self.closing.lower()
        is_opened = first is not None and lowered.startswith(opening, first[0]) and marker.lower() == closing
        return is_opened and lowered.count(opening) == lowered.count(closing)

    def read_unmarked(self, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        """Parse a call that lacks its opening token, because a server stripped it or the model omitted it.

        The call must be to one of the session's tools. If ``call:`` is also missing, the name must be exactly a tool's
        name, and the first argument one of its parameters.
        """
        match = yield from source.peek_call(_BARE_HEAD, NAME_LIMIT, _MAY_BE_HEAD.fullmatch)
        if match is None:
            may_continue = partial(_may_be_named, tools=source.tools)
            match = yield from source.peek_call(_NAMED_HEAD, NAME_LIMIT, may_continue)
            tool = source.tools.get(match[1]) if match is not None else None
            if match is None or tool is None or match[2] not in tool.properties:
                return TEXT
        return (yield from self(source, consumed)).with_fixes("missing-open-tag")

    def _consume_body(self, source: StreamBuffer, body: list[str]) -> Reader[str]:
        """Consume text up to a marker outside strings. Return the marker, or "" at the end of the text."""
        tail = ""
        while True:
            start = len(body)
            token = yield from source.read_until(self._tokens, body)
            tail = (tail + "".join(body[start:]))[-VALUE_TAIL:]
            if token.lower() == self.quote.lower():
                body.append(token)
                body.append((yield from source.read_until(self._quote, body)))
                tail = ""
            elif token.lower() == self.opening.lower() and ends_in_value(tail):
                body.append(token)  # a call in place of a value
            else:
                return token

    def _decode(self, name: str, text: str, marker: str, source: StreamBuffer, consumed: list[str]) -> BodyResult:
        is_closed = marker.lower() == self.closing.lower()
        reader, start = _GemmaReader(text, self.quote, is_closed or bool(marker)), sum(map(len, consumed))
        calls = list[DecodedCall]()
        following: re.Match[str] | None = None
        try:
            while not calls or following is not None:
                arguments = reader.parse_arguments()
                if not is_encodable(json.dumps(arguments, ensure_ascii=False)):
                    arguments = replace_surrogates(arguments)
                    reader.fixes["lone-surrogate"] = None
                calls.append(DecodedCall(name, arguments, end=start + reader.position))
                if following := _NEXT_HEAD.match(text, reader.position):
                    name, reader.position = following[1], following.end()
            rest = text[reader.position :]
            if rest.strip(" \n\r\t}])>") if marker else rest[:1] in ("'", '"'):
                calls.pop()
                raise reader.fail("the end of the call")
        except FormatError as error:
            consumed.append(text)
            if is_closed:
                consumed.append(marker)
            else:
                source.push_back(marker)  # it opens the next call
            is_cut = isinstance(error, UnterminatedError)
            message = CUT_OFF if is_cut and not marker else _explain(name, error)
            return BodyResult(tuple(calls), tuple(reader.fixes) if calls else (), message, unfinished=is_cut)
        fixes = list(reader.fixes)
        if marker and text[reader.position :].strip():
            fixes.append("extra-bracket")
        if not is_closed:
            consumed.append(text[: reader.position])
            source.push_back(text[reader.position :] + marker)
            source.consume_cut_marker(self.closing, consumed)
            if source.was_cut and (source.is_empty or not marker):
                return CUT
            fixes.append("missing-close-tag")
        else:
            consumed.extend([text, marker])
        return BodyResult(tuple(calls), tuple(fixes))


def _may_be_named(ahead: str, tools: ToolSet) -> bool:
    """Return whether ``ahead`` may be the start of a known tool's name and its first argument."""
    name = ahead.lstrip().partition("{")[0]
    if _API.startswith(name):
        return True
    name = name.removeprefix(_API)[1:] if name.startswith(_API) else name
    return tools.has_prefix(name) and _MAY_BE_NAMED.fullmatch(ahead) is not None


def _explain(name: str, error: FormatError) -> str:
    return f"the call of {name!r} cannot be read: {error}. Write it as call:NAME{{ARGUMENT:VALUE}}"


_SPACE = re.compile(r"\s*")
_BARE_KEY = re.compile(r"[^:={}\[\],\"]++(?=[:=])")
_NEXT_KEY = re.compile(r"\w+\s*:")
_NEXT_MEMBER = re.compile(r"[,{]\s*\w+\s*:")
_AFTER_VALUE = re.compile(r"\s*(?:[,}\])]|$)")
_AFTER_KEY = re.compile(r"\s*[:=]")
_AFTER_STRING = re.compile(rf"{_AFTER_VALUE.pattern}|\s*{_NEXT_KEY.pattern}")
_BARE = re.compile(r"[^,{}\[\]\"<>\n]+")
_BARE_MEMBER = re.compile(rf"{_BARE.pattern}(?:,(?!\s*[^\W\d][\w .-]{{0,60}}[:=])[^,{{}}\[\]\"<>\n]+)*+")
"""Matches an unquoted value in an object, up to the next key."""
_END_QUOTE = re.compile(r"[}\])\s]*+\Z|\s*+,\s*+(?:\w++\s*+[:=]|[}\]])")
"""Matches the text after the closing quote of a string that itself contains quotes."""
_OTHER_QUOTE = re.compile(r"([^\"'<>]*)[\"'](?=\s*,\s*\w+\s*:\s*\Z)")
"""Matches a string that ends with a different quote than it began with, up to the next string."""
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?(?=\s*(?:[,}\])]|$))")
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_PYTHON_WORDS = ("True", "False", "None")
_WORD = re.compile(rf"(?:{'|'.join(_WORDS)}){_AFTER_VALUE.pattern}")
_WRAPPED_OBJECT = re.compile(r"[{(]\s*(?=\{)")
_CLOSINGS = {"{": "}", "(": ")", "[": "]"}


class _GemmaReader:
    """Parses the arguments of a call in one pass, recursively for nested values, and records each repair. ``closed``:
    whether missing closing brackets may be added."""

    def __init__(self, text: str, quote: str, closed: bool) -> None:
        self.text, self.quote, self.closed = text, quote, closed
        self.position = 0
        self.fixes: dict[str, None] = {}

    def fail(self, expected: str) -> FormatError:
        rest = self.text[self.position : self.position + 30]
        return FormatError(f"expected {expected}, got {rest!r}" if rest else f"expected {expected}, got the end")

    def peek(self) -> str:
        self.position = _SPACE.match(self.text, self.position).end()  # type: ignore[union-attr]
        return self.text[self.position] if self.position < len(self.text) else ""

    def parse_arguments(self) -> JsonObject:
        char = self.peek()
        if char == "(":
            self.fixes["foreign-body"] = None
        elif char == "":
            self.fixes["no-arguments"] = None
            return {}
        elif char != "{":
            raise self.fail("{ after the name")
        if wrapped := _WRAPPED_OBJECT.match(self.text, self.position):
            self.fixes["foreign-body"] = None
            self.position = wrapped.end()
            arguments = self.parse_object(0)
            self.consume_end(_CLOSINGS[char])
            return arguments
        return self.parse_object(0, _CLOSINGS[char])

    def parse_object(self, depth: int, closing: str = "}") -> JsonObject:
        self.position += 1
        members: JsonObject = {}
        while not self.consume_end(closing):
            key = self.parse_key()
            if self.peek() not in (":", "="):
                raise self.fail(f"a colon after the key {key!r:.40}")
            self.position += 1
            if add_member(members, key, self.parse_value(depth + 1, closing)):
                self.fixes["repeated-argument"] = None
            self.consume_comma(closing)
        return members

    def parse_array(self, depth: int) -> Json:
        self.position += 1
        items: list[Json] = []
        while not self.consume_end("]"):
            items.append(self.parse_value(depth + 1, "]"))
            self.consume_comma("]")
        return items

    def consume_end(self, closing: str) -> bool:
        """Consume the closing bracket, or record that it is missing. Return whether the object or list ends here."""
        char = self.peek()
        if char == closing:
            self.position += 1
            return True
        if not char:
            if not self.closed:
                raise UnterminatedError("the text ends before its brackets are closed")
            self.fixes["missing-bracket"] = None
        return not char

    def consume_comma(self, closing: str) -> None:
        char = self.peek()
        if char == ",":
            self.position += 1
        elif _NEXT_KEY.match(self.text, self.position):
            self.fixes["missing-comma"] = None
        elif char and char != closing:
            raise self.fail(f"a comma or {closing!r}")

    def parse_key(self) -> str:
        if self.text.startswith((self.quote, '"'), self.position):
            return self.parse_string(_AFTER_KEY)
        bare = _BARE_KEY.match(self.text, self.position)
        if bare is None:
            raise self.fail("the name of an argument")
        if "\n" in bare.group().strip():
            raise self.fail("the name of an argument")
        self.position = bare.end()
        return bare.group().strip()

    def parse_value(self, depth: int, closing: str) -> Json:
        if depth > MAX_DEPTH:
            raise FormatError(f"the value is nested more than {MAX_DEPTH} levels deep")
        char = self.peek()
        if char == "{":
            return self.parse_object(depth)
        if char == "[":
            return self.parse_array(depth)
        if self.text.startswith((self.quote, '"'), self.position):
            return self.parse_string(_AFTER_STRING)
        number = _NUMBER.match(self.text, self.position)
        if number is not None and len(number.group()) <= MAX_DIGITS + 1:
            self.position = number.end()
            value = int(number.group()) if number.group(1) is number.group(2) is None else float(number.group())
            if isinstance(value, float) and not math.isfinite(value):
                raise FormatError(f"{number.group()} is too large to be a number")
            return keep_number_text(value, number.group())
        is_word = _WORD.match(self.text, self.position) is not None
        if (
            not is_word
            and (text := self.consume_single_quoted() if char == "'" else self.consume_text_before_quote()) is not None
        ):
            return text
        bare = (_BARE if closing == "]" else _BARE_MEMBER).match(self.text, self.position)
        text = bare.group().partition(closing)[0].strip() if bare is not None else ""
        if not text:
            raise self.fail("a value") if char else UnterminatedError("the text ends where a value is expected")
        if text.startswith(("...", "…")):
            raise FormatError("the value is a placeholder (...); write the real arguments")
        self.position += len(text)
        if text in _PYTHON_WORDS:
            self.fixes["python-literal"] = None
        if text in _WORDS:
            return _WORDS[text]
        if not self.closed and not self.peek():
            raise UnterminatedError("the text ends inside a value")
        self.fixes["unquoted-string"] = None
        return text.strip("'")

    def consume_single_quoted(self) -> str | None:
        """Consume and return a string that begins with a single quote. A single quote or the format's quote closes it.
        Return None if it is not closed."""
        end = self.position + 1
        while (end := self.text.find("'", end, self.position + VALUE_LIMIT) + 1) > 0:
            if _AFTER_VALUE.match(self.text, end):
                start, self.position = self.position + 1, end
                self.fixes["single-quotes"] = None
                return self.text[start : end - 1]
        return self.consume_text_before_quote(1)

    def consume_text_before_quote(self, skipped: int = 0) -> str | None:
        """Consume and return a string that lacks its opening quote but has its closing one. Return None if the next
        quote belongs to another value. ``skipped`` is the length of a wrong quote in place of the opening quote."""
        end = self.text.find(self.quote, self.position, self.position + VALUE_LIMIT)
        opening = self.text[self.position : self.position + skipped]
        text = self.text[self.position + skipped : end].removesuffix(opening or self.quote)
        if end < 0 or _NEXT_MEMBER.search(text) or not _AFTER_VALUE.match(self.text, end + len(self.quote)):
            return None
        self.fixes["unquoted-string"] = None
        self.position = end + len(self.quote)
        return text

    def parse_string(self, following: re.Pattern[str]) -> str:
        if self.text.startswith(self.quote, self.position):
            start = self.position + len(self.quote)
            first = end = self.text.find(self.quote, start)
            if end < 0:
                raise UnterminatedError("the text ends inside a string")
            after = end + len(self.quote)
            if not following.match(self.text, after):
                if other := _OTHER_QUOTE.match(self.text, start, end):
                    self.fixes["unquoted-string"] = None
                    self.position = other.end()
                    return other[1]
                while end >= 0 and not _END_QUOTE.match(self.text, end + len(self.quote)):
                    end = self.text.find(self.quote, end + 1, start + VALUE_LIMIT)
                if end >= 0 and not re.search(rf"\w\s*[:=]\s*{re.escape(self.quote)}", self.text[start:end]):
                    self.fixes["unescaped-quote"], first = None, end
            self.position = first + len(self.quote)
            text = self.text[start:first]
            return text if text.count(self.quote) % 2 else text.replace(self.quote, '"')
        decoded = decode_strict(self.text, self.position)
        is_whole = decoded is not None and following.match(self.text, decoded.end)
        if not is_whole and (before := self.consume_text_before_quote(1)) is not None:
            return before
        if decoded is None:
            raise self.fail("a string")
        self.position = decoded.end
        value: str = decoded.value
        return value
