"""JSON as models write it: strict first, then a tolerant reading that names each fix.

Valid JSON is never touched. A text that ends inside a string is never completed:
half a file must not become a file. When two readings are possible the text is
refused, not guessed at. Cost is linear in the text for any input.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass

from adapter.values.errors import FormatError
from adapter.values.events import Json

MAX_DEPTH = 64
"""Levels of nesting; real arguments use under ten, and the reader recurses."""

MAX_DIGITS = 400
"""Digits of an integer; converting more costs quadratic time in CPython."""


LONG = 4096
"""Characters from which on a faster decoder is worth its import."""


class UnterminatedError(FormatError):
    """The text ends inside a value."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A value, the offset just after it, and the fixes that reading it took."""

    value: Json
    end: int
    fixes: tuple[str, ...] = ()


def decode_strict(text: str, start: int = 0, before: str = "") -> Decoded | None:
    """The JSON value at ``start`` exactly as the standard reads it, or None when it is not valid JSON.

    ``before``: what usually stands after the value, a hint that makes reading a long one faster.
    """
    start = _SPACE.match(text, start).end()  # type: ignore[union-attr]
    found = _whole_value(text, start, text.find(before, start)) if before else None
    try:
        value, end = found or _STRICT.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    if not _is_shallow(value, text.count("[", start, end) + text.count("{", start, end)):
        return None
    if text.find("\\u", start, end) >= 0 and not is_encodable(json.dumps(value, ensure_ascii=False)):
        return Decoded(replace_surrogates(value), end, ("lone-surrogate",))
    return Decoded(value, end)


def _whole_value(text: str, start: int, end: int) -> tuple[Json, int] | None:
    """The value that fills ``text[start:end]``; None when it is short, or when that is not certain.

    jiter, which pydantic brings, reads a long string three times as fast as `json` and reads nothing differently
    that it does not refuse.
    """
    if end - start < LONG:
        return None
    from pydantic_core import from_json

    try:
        value = from_json(text[start:end], allow_inf_nan=False)
    except (ValueError, TypeError):
        return None
    return (value, end) if _has_usual_numbers(value) else None


def _has_usual_numbers(value: Json) -> bool:
    """Whether no number in ``value`` is one that the strict reading might refuse for its size."""
    match value:
        case dict():
            return all(map(_has_usual_numbers, value.values()))
        case list():
            return all(map(_has_usual_numbers, value))
        case float():
            return math.isfinite(value)
        case int():
            return value.bit_length() <= 64
        case _:
            return True


def decode_json(text: str, start: int = 0, *, closed: bool = True) -> Decoded:
    """The JSON value at ``start``, mended where that is certain.

    ``closed``: the value's end is known from outside (a closing marker), so that
    missing closing brackets may be added. Raises FormatError with the reason and
    the place; UnterminatedError when the text ends inside a string.
    """
    decoded = decode_strict(text, start)
    if decoded is not None:
        return decoded
    reader = _TolerantReader(text, start, closed)
    value = reader.value(0)
    if not closed and {"unescaped-quote", "missing-bracket"} <= reader.fixes.keys():
        # A cut text whose strings are read out of step looks just like this.
        raise UnterminatedError("brackets are missing after a stray quote")
    if not is_encodable(json.dumps(value, ensure_ascii=False)):
        value = replace_surrogates(value)
        reader.fix("lone-surrogate")
    return Decoded(value, reader.position, tuple(reader.fixes))


def decode_values(text: str, *, closed: bool = True) -> tuple[list[Decoded], tuple[str, ...]]:
    """All JSON values in ``text``, one after the other, and the fixes between them.

    Code fences around them, commas or semicolons between them and closing
    brackets that close nothing are passed over. Raises FormatError when there is
    anything else, or no value at all.
    """
    values: list[Decoded] = []
    fixes: dict[str, None] = {}
    position = 0
    while True:
        gap = _BETWEEN.match(text, position)
        assert gap is not None  # the pattern matches the empty string
        if "```" in gap.group():
            fixes["code-fence"] = None
        if values and ("}" in gap.group() or "]" in gap.group()):
            fixes["extra-bracket"] = None
        position = gap.end()
        if position >= len(text):
            break
        if text[position] not in "{[":
            raise FormatError(f"expected a JSON object, got {_excerpt(text, position)}")
        values.append(decode_json(text, position, closed=closed))
        position = values[-1].end
    if not values:
        raise FormatError("expected a JSON object, got nothing")
    return values, tuple(fixes)


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _bounded_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"an integer of {len(digits)} digits")
    return int(digits)


def _finite(spelling: str) -> float:
    value = float(spelling)
    if value in (float("inf"), float("-inf")):
        raise ValueError("too large")
    return value


def _is_shallow(value: Json, brackets: int) -> bool:
    """Whether ``value``, written with so many opening brackets, is nested at most MAX_DEPTH levels deep.

    Without this bound it would depend on the caller's stack whether a text can be read.
    """
    if brackets <= MAX_DEPTH:
        return True
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, dict | list)
        ]
        if not level:
            return True
    return False


_STRICT = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_bounded_int, parse_float=_finite)
_SPACE = re.compile(r"[ \t\r\n\ufeff\u200b\u2060]*")
_BETWEEN = re.compile(r"(?:[ \t\r\n\ufeff\u200b\u2060,;}\]]|```[A-Za-z]*)*")
_SKIP = re.compile(r"[ \t\r\n\f\v\ufeff\u200b\u2060]+|//[^\n]*|/\*.*?\*/|#[^\n]*|(?:\\[nrt])+", re.DOTALL)
_KEY = re.compile(r"[A-Za-z_$][\w$.-]*")
_PLAIN_KEY = re.compile(r'"([\w$.-]{1,80})"')
_WORD = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|(?:\d[\d_]*)?\.?\d+(?:[eE][+-]?\d+)?|\d+\.)")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_LITERALS = {"true": True, "false": False, "null": None}
_LOOSE_LITERALS = {
    "True": True, "TRUE": True, "False": False, "FALSE": False,
    "None": None, "NULL": None, "Null": None, "undefined": None,
}  # fmt: skip
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_QUOTE_ESCAPES = {"'": "'", "`": "`"}  # not JSON, and never meant otherwise

# Delimiters by the character that opens a string: the characters that may close it, and the fix to name.
_QUOTES = {
    '"': ('"”“', None),
    "'": ("'", "single-quotes"),
    "`": ("`", "backtick-string"),
    "“": ('”“"', "curly-quotes"),
    "”": ('”“"', "curly-quotes"),
}
_PLAIN = {opening: re.compile(f"[^{re.escape(closing)}\\\\\x00-\x1f]+") for opening, (closing, _) in _QUOTES.items()}
_VALID = re.compile(r'(?:[^"”“\\\x00-\x1f]++|\\["\\/bfnrt])++')
"""A part of a JSON string that `json` reads as it is."""

# What may follow a quote that really closes a string. `gap` admits comments.
_GAP = r"(?:[ \t\r\n]|\\[nrt]|//[^\n]{0,200}|/\*.{0,200}?\*/)*+"
_A_KEY = (
    r"(?:\"(?:[^\"\\\n]|\\.){0,80}\"|'(?:[^'\\\n]|\\.){0,80}'|[\"“”](?:[^\"“”\\\n]|\\.){0,80}[\"“”]"
    r"|[A-Za-z_$][\w$.-]{0,80})[ \t\r\n]*:"
)
_END = r"[}\]](?:[ \t\r\n}\]]|\\[nrt])*(?:$|[,;{#/]|```|\"[\w$.-]{1,80}\"[ \t\r\n]*:)"
_AFTER_KEY = re.compile(rf"{_GAP}:", re.DOTALL)
_LAST_KEY = rf"\"[\w$.-]{{1,80}}\"{_GAP}{_END}"  # a key without a value before the end
_AFTER_MEMBER = re.compile(rf"{_GAP}(?:$|{_END}|,{_GAP}(?:{_A_KEY}|[}}\]]|{_LAST_KEY})|{_A_KEY})", re.DOTALL)
_AFTER_ITEM = re.compile(rf"{_GAP}(?:$|{_END}|,)", re.DOTALL)
_AFTER_SCALAR = re.compile(rf"{_GAP}(?:$|[,}}\]]|[\"'“”]|[A-Za-z_$][\w$.-]*[ \t\r\n]*:|\\[nrt])", re.DOTALL)


class _TolerantReader:
    """One pass over the text, recursing once per level of nesting."""

    def __init__(self, text: str, start: int, closed: bool) -> None:
        self.text = text
        self.position = start
        self.closed = closed
        self.fixes: dict[str, None] = {}

    def fix(self, name: str) -> None:
        self.fixes[name] = None

    def fail(self, expected: str) -> FormatError:
        return FormatError(f"expected {expected}, got {_excerpt(self.text, self.position)}")

    def peek(self) -> str:
        """The next character that is not space, comment or stray escape; "" at the end."""
        while (skipped := _SKIP.match(self.text, self.position)) is not None:
            if skipped.group().startswith("\\"):
                self.fix("escaped-newline")
            elif not skipped.group().isspace() and skipped.group()[0] in "/#":
                self.fix("comment")
            self.position = skipped.end()
        return self.text[self.position] if self.position < len(self.text) else ""

    def value(self, depth: int, after: re.Pattern[str] = _AFTER_ITEM) -> Json:
        if depth > MAX_DEPTH:
            raise FormatError(f"nested more than {MAX_DEPTH} levels deep")
        char = self.peek()
        if char == "{":
            return self.object(depth)
        if char == "[":
            return self.array(depth)
        if char in _QUOTES and char:
            return self.string(after)
        return self.scalar()

    def object(self, depth: int) -> Json:
        self.position += 1
        members: dict[str, Json] = {}
        while True:
            char = self.peek()
            if self.closes("}", "]", char):
                return members
            if char == ",":
                self.position += 1
                continue
            key = self.key(char)
            char = self.peek()
            if char in (",", "}") and char:
                self.fix("key-without-value")
                continue
            if char != ":":
                raise self.fail(f"a colon after the key {key!r}")
            self.position += 1
            members[key] = self.value(depth + 1, _AFTER_MEMBER)
            self.separator("}")

    def array(self, depth: int) -> Json:
        self.position += 1
        items: list[Json] = []
        while True:
            char = self.peek()
            if self.closes("]", "}", char):
                return items
            if char == ",":
                self.position += 1
                continue
            items.append(self.value(depth + 1, _AFTER_ITEM))
            self.separator("]")

    def closes(self, own: str, other: str, char: str) -> bool:
        """Whether the container ends here; adds the bracket that is missing."""
        if char == own:
            self.position += 1
            return True
        if char == other:
            self.fix("missing-bracket")
            return True
        if char:
            return False
        if not self.closed:
            raise UnterminatedError("the text ends before its brackets are closed")
        self.fix("missing-bracket")
        return True

    def separator(self, closing: str) -> None:
        char = self.peek()
        if char == ",":
            comma = self.position
            self.position += 1
            if self.peek() == closing:
                self.fix("trailing-comma")
            elif not self.peek():
                self.position = comma  # a comma at the very end: let `closes` decide
                self.position += 1
        elif char and char not in "}]":
            self.fix("missing-comma")

    def key(self, char: str) -> str:
        plain = _PLAIN_KEY.match(self.text, self.position)
        if plain is not None:
            self.position = plain.end()
            return plain.group(1)
        if char in _QUOTES:
            return self.string(_AFTER_KEY)
        word = _KEY.match(self.text, self.position)
        if word is None:
            raise self.fail("a key in double quotes")
        self.position = word.end()
        self.fix("unquoted-key")
        return word.group()

    def string(self, after: re.Pattern[str]) -> str:
        opening = self.text[self.position]
        if self.text.startswith('"""', self.position) or self.text.startswith("'''", self.position):
            return self.triple_quoted(self.text[self.position : self.position + 3])
        closing, fix = _QUOTES[opening]
        plain = _VALID if opening == '"' else _PLAIN[opening]
        if fix:
            self.fix(fix)
        self.position += 1
        parts: list[str] = []
        while True:
            run = plain.match(self.text, self.position)
            if run is not None:
                text = run.group()
                parts.append(json.loads(f'"{text}"') if "\\" in text else text)
                self.position = run.end()
            if self.position >= len(self.text):
                raise UnterminatedError("the text ends inside a string")
            char = self.text[self.position]
            if char == "\\":
                parts.append(self.escape())
                continue
            self.position += 1
            if char in closing:
                if after.match(self.text, self.position):
                    if char != opening and fix is None:
                        self.fix("curly-quotes")
                    return "".join(parts)
                if char == opening:
                    self.fix("unescaped-quote")
            elif opening != "`":
                self.fix("raw-control-character")
            parts.append(char)

    def triple_quoted(self, quotes: str) -> str:
        self.fix("triple-quotes")
        self.position += 3
        parts: list[str] = []
        while True:
            end = self.text.find(quotes, self.position)
            if end < 0:
                raise UnterminatedError("the text ends inside a triple-quoted string")
            backslash = self.text.find("\\", self.position, end)
            if backslash < 0:
                parts.append(self.text[self.position : end])
                self.position = end + 3
                return "".join(parts)
            parts.append(self.text[self.position : backslash])
            self.position = backslash
            parts.append(self.escape())

    def escape(self) -> str:
        """The escape sequence here; an invalid one stays as it was written."""
        char = self.text[self.position + 1 : self.position + 2]
        if not char:
            raise UnterminatedError("the text ends inside a string")
        if char == "u":
            return self.unicode_escape()
        self.position += 2
        if char in _ESCAPES:
            return _ESCAPES[char]
        self.fix("invalid-escape")
        return _QUOTE_ESCAPES.get(char, "\\" + char)

    def unicode_escape(self) -> str:
        digits = _UNICODE.match(self.text, self.position)
        if digits is None:
            self.fix("invalid-escape")
            self.position += 2
            return "\\u"
        self.position = digits.end()
        value: str = json.loads(f'"{digits.group()}"')
        return value

    def scalar(self) -> Json:
        if self.text.startswith(("...", "…"), self.position):
            raise FormatError("the value is a placeholder (...); write the real arguments")
        number = _NUMBER.match(self.text, self.position)
        if number is not None:
            return self.number(number)
        word = _WORD.match(self.text, self.position)
        if word is None:
            if self.position >= len(self.text):
                raise UnterminatedError("the text ends where a value is expected")
            raise self.fail("a JSON value")
        spelling = word.group()
        if spelling in _LOOSE_LITERALS:
            self.fix("python-literal")
        elif spelling not in _LITERALS:
            raise self.fail("a JSON value (strings need double quotes)")
        self.position = word.end()
        return _LITERALS.get(spelling, _LOOSE_LITERALS.get(spelling))

    def number(self, number: re.Match[str]) -> Json:
        spelling = number.group()
        if not _AFTER_SCALAR.match(self.text, number.end()):
            raise self.fail("a plain number (expressions are not JSON)")
        if len(spelling) > MAX_DIGITS:
            raise FormatError(f"a number of {len(spelling)} characters; at most {MAX_DIGITS} are read")
        exact = _JSON_NUMBER.fullmatch(spelling)
        if exact is None:
            self.fix("number-spelling")
        bare = spelling.lstrip("+-")
        if bare.isdigit() and len(bare) > 1 and bare[0] == "0":
            raise self.fail(f"a number without leading zeros (write it as the string {json.dumps(bare)})")
        self.position = number.end()
        try:
            if bare.lower().startswith("0x"):
                return int(spelling, 16)
            return int(spelling) if bare.replace("_", "").isdigit() else _finite(spelling)
        except ValueError as error:
            raise FormatError(f"expected a number, got {spelling[:40]!r}") from error


_UNICODE = re.compile(r"\\u[0-9a-fA-F]{4}(?:(?<=\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})?")


def _excerpt(text: str, position: int) -> str:
    """What stands at ``position``, for a message."""
    if position >= len(text):
        return "the end of the text"
    piece = text[position : position + 30]
    return f"{piece!r} at character {position + 1}"


def is_encodable(text: str) -> bool:
    """Whether ``text`` can be written as UTF-8: a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def replace_surrogates(value: Json) -> Json:
    """``value`` with surrogate pairs joined and lone surrogates replaced, so that it can be written."""
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case list():
            return [replace_surrogates(item) for item in value]
        case dict():
            return {replace_surrogates(key): replace_surrogates(item) for key, item in value.items()}
        case _:
            return value
