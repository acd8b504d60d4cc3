"""Reads a complete text of calls written as Python.

::

    call   = NAME "(" (KEY "=" value | value | "**" dict) ("," ...)* ")"
    value  = string | number | True | False | None | list | tuple | dict

Nothing is ever evaluated: values are literals, read by hand and bounded in depth
and size. A quote directly before a letter or digit does not close a string,
because no Python can go on so: ``'Martha's Vineyard'``.
"""

from __future__ import annotations

import json
import re

from adapter.core.errors import FormatError
from adapter.core.events import Json, JsonObject
from adapter.core.json.strict import MAX_DEPTH, MAX_DIGITS, UnterminatedError, is_encodable, replace_surrogates
from adapter.parsing.format import BodyResult, ReadContext
from adapter.tools.call_shapes import DecodedCall

NAME = re.compile(r"[^\W\d]\w*(?:[.-]\w+)*")
"""A tool's, also one of an object or with a hyphen."""

_SKIP = re.compile(r"(?:\s++|#[^\n]*+|\\\n)*+")
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
_PLAIN = {quote: re.compile(rf"[^{quote}\\\n]+") for quote in "'\""}


def read_calls(text: str, context: ReadContext, offset: int) -> BodyResult:
    """All calls of ``text``, in lists or as statements; ``offset``: where it begins in its span.

    Raises FormatError when there is anything else, and UnterminatedError when it ends too early.
    """
    return _PythonReader(text, context, offset).calls()


class _PythonReader:
    """One pass over a text of calls, recursing once per level of nesting."""

    def __init__(self, text: str, context: ReadContext, offset: int) -> None:
        self.text, self.context, self.offset = text, context, offset
        self.position = 0
        self.fixes: dict[str, None] = {}

    def calls(self) -> BodyResult:
        calls: list[DecodedCall] = []
        depth = prints = 0
        while (char := self.peek()) or depth:
            if char in "[" and char and depth == 0:
                depth += 1
                self.position += 1
            elif char == "]" and depth:
                depth -= 1
                self.position += 1
                if calls:
                    calls[-1] = calls[-1]._replace(end=self.offset + self.position)
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
            calls = [call._replace(arguments=own) for call, own in zip(calls, arguments, strict=True)]
            self.fixes["lone-surrogate"] = None
        return BodyResult(tuple(calls), tuple(self.fixes))

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

    def call(self) -> DecodedCall:
        name = NAME.match(self.text, self.position)
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
        return DecodedCall(called, arguments, end=self.offset + self.position)

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


def _written(calls: list[DecodedCall]) -> str:
    """The arguments as JSON: an escape may stand for half of a surrogate pair."""
    return json.dumps([call.arguments for call in calls], ensure_ascii=False)
