"""Parse Python literals in calls that models write.

::

    value  = string | number | True | False | None | list | tuple | dict

Nothing is evaluated, and depth and size are limited. A quote does not close a string if the text after it cannot be
Python: ``'Martha's Vineyard'``, ``'awk '{print $1}' a.txt'``.
"""

from __future__ import annotations

import re

from adapter.core.errors import FormatError
from adapter.core.events import Json, JsonObject
from adapter.core.json.strict import (
    ITEM_BOUNDARY,
    LAYOUT_ESCAPE,
    LITERAL_ESCAPE,
    MAX_DEPTH,
    MAX_DIGITS,
    PUNCTUATION_ESCAPE,
    UnterminatedError,
    add_member,
    keep_number_text,
)

QUOTE_CONTEXT = 80
"""Number of characters after a quote that decide whether it closes a string."""

_CONTINUES_STRING = re.compile(
    r"""
    (?! \s*\*\s*\d )                                      # 'x' * 3
    (?:
        [^\W_] | ['"{$/*~@!&|>?^-]                        # 'Martha's', 'awk '{print $1}''
        | [ \t]+
          (?! [rRuUbBfF]{0,2}['"]                         # 'x' 'y'
            | (?:and|or|if|for|in)\b
            | \w+\s*=\s*(?:['"\d\[{]|(?:True|False|None)\b) )  # 'x' key=1, a comma is missing
          [\w./{$*~@!&|>?^-]                              # 'echo 'a' b'
    )
    """,
    re.VERBOSE,
)
"""Matches text after a quote that does not close a string, because Python code cannot continue like that."""
_AFTER_BROKEN_VALUE = re.compile(
    r"""
    \s*
    (?: \Z | [\])}:] | ,\s*(?: \Z | [\])}\d\[({+-] | [rRuUbBfF]{0,2}['"] | (?:[Tt]rue|[Ff]alse|None|null)\b ) )
    """,
    re.VERBOSE,
)
"""Matches text that may follow the closing quote of a string with unescaped quotes."""
_AFTER_BROKEN_ARGUMENT = re.compile(
    r"""
    \s*
    (?:
        \Z
        | , \s* (?: \Z | \) | \*\* | [^\W\d]\w*\s*=(?!=) )
        | \) [\s)]* (?: \Z | [\],`] | </ | <\| | [;\n]\s*(?:\Z|[^\W\d][\w.]*\() )
    )
    """,
    re.VERBOSE,
)
"""Matches text that may follow the closing quote of a named argument's value, a string with unescaped quotes."""

_SKIP = re.compile(r"(?:\s++|#[^\n]*+|\\\n)*+")
_PREFIX = re.compile(r"([rRuUbBfF]{0,2})('''|\"\"\"|'|\")")
_NUMBER = re.compile(
    r"[+-]?(?:0[xX]_?[\da-fA-F][\da-fA-F_]*+|(?:\d[\d_]*+\.?+(?:\d[\d_]*+)?+|\.\d[\d_]*+)(?:[eE][+-]?\d++)?+)(?![\w.])"
)
_WORD = re.compile(r"[^\W\d]\w*")
_LITERALS = {"True": True, "False": False, "None": None}
_JSON_LITERALS = {"true": True, "false": False, "null": None}
_ESCAPES = {
    "\\": "\\", "'": "'", '"': '"', "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": "",
}  # fmt: skip
_CODE_ESCAPE = re.compile(r"x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([0-7]{1,3})")
_PLAIN = {quote: re.compile(rf"[^{quote}\\\n]+") for quote in "'\""}


def closes_string(following: str, *, is_argument: bool, is_broken: bool) -> bool:
    """Return whether a quote before ``following`` closes its string.

    Args:
        following: The next `QUOTE_CONTEXT` characters, or all remaining text.
        is_argument: Whether the string is a named argument's value.
        is_broken: Whether an earlier quote did not close the string. The text after this quote must then match exactly.
    """
    if is_broken:
        return (_AFTER_BROKEN_ARGUMENT if is_argument else _AFTER_BROKEN_VALUE).match(following) is not None
    return _CONTINUES_STRING.match(following) is None


class LiteralReader:
    """Parses the Python literals in a text in one pass, nested ones recursively, and records each repair."""

    def __init__(self, text: str) -> None:
        self.text, self.position = text, 0
        self.fixes: dict[str, None] = {}

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

    def add_member(self, members: JsonObject, key: str, value: Json) -> None:
        if add_member(members, key, value):
            self.fixes["repeated-argument"] = None

    def parse_value(self, depth: int, *, is_argument: bool = False) -> Json:
        if depth > MAX_DEPTH:
            raise FormatError(f"the value is nested more than {MAX_DEPTH} levels deep")
        char = self.peek()
        if char == "{":
            return self.parse_dict_or_set(depth)
        if char in ("[", "("):
            return self.parse_sequence(depth, "]" if char == "[" else ")")
        if _PREFIX.match(self.text, self.position):
            return self.parse_strings(is_argument=is_argument)
        number = _NUMBER.match(self.text, self.position)
        if number is not None:
            return self.parse_number(number.group())
        word = _WORD.match(self.text, self.position)
        if word is None or word.group() not in _LITERALS | _JSON_LITERALS:
            raise self.fail("a literal value")
        self.position = word.end()
        if word.group() in _JSON_LITERALS:
            self.fixes["json-literal"] = None
        return (_LITERALS | _JSON_LITERALS)[word.group()]

    def parse_sequence(self, depth: int, closing: str) -> Json:
        self.position += 1
        if self.peek() == closing:
            self.position += 1
            return []
        first = self.parse_item(depth)
        if closing == ")" and self.peek() == closing:
            self.position += 1
            return first
        return [first, *self.parse_items(depth, closing)]

    def parse_item(self, depth: int) -> Json:
        item = self.parse_value(depth + 1)
        if "unescaped-quote" in self.fixes and isinstance(item, str) and ITEM_BOUNDARY.search(item):
            raise FormatError(f"the quotes of the list item {item[:40]!r} are not balanced")
        return item

    def parse_items(self, depth: int, closing: str) -> list[Json]:
        """Parse the items of a list, tuple or set after its first item, and the closing bracket."""
        items: list[Json] = []
        while self.peek() != closing:
            self.expect(",", f"a comma or {closing!r}")
            if self.peek() != closing:
                items.append(self.parse_item(depth))
        self.position += 1
        return items

    def parse_dict_or_set(self, depth: int) -> Json:
        """Parse a dict, or a set, which becomes a list."""
        self.position += 1
        if self.peek() in ("", "}"):
            return self.parse_dict(depth)
        first = self.parse_value(depth + 1)
        if self.peek() == ":":
            return self.parse_dict(depth, first)
        if self.peek() == ",":
            return [first, *self.parse_items(depth, "}")]
        self.expect("}", "a colon, a comma or '}'")
        return [first]

    def parse_dict(self, depth: int, first: Json = None) -> JsonObject:
        """Parse the rest of a dict after its opening brace or, if ``first`` is not None, after this first key."""
        members: JsonObject = {}
        while first is not None or self.peek() != "}":
            key, first = first if first is not None else self.parse_value(depth + 1), None
            if not isinstance(key, str):
                raise FormatError(f"expected a string as a key, got {key!r:.40}")
            self.expect(":", f"a colon after the key {key!r:.40}")
            self.add_member(members, key, self.parse_value(depth + 1))
            if self.peek() != "}":
                self.expect(",", "a comma or '}'")
        self.position += 1
        return members

    def parse_number(self, spelling: str) -> Json:
        if len(spelling) > MAX_DIGITS + 1:
            raise FormatError(f"a number has {len(spelling)} characters; the maximum is {MAX_DIGITS}")
        self.position += len(spelling)
        bare = spelling.lstrip("+-").replace("_", "").lower()
        sign = -1 if spelling.startswith("-") else 1
        if bare.startswith("0x"):
            return keep_number_text(sign * int(bare, 16), spelling)
        if bare.isdigit():
            return keep_number_text(sign * int(bare), spelling)
        value = sign * float(bare)
        if value - value != 0:
            raise FormatError(f"expected a finite number, got {spelling[:40]}")
        return keep_number_text(value, spelling)

    def parse_strings(self, *, is_argument: bool) -> str:
        """Parse one string, or several adjacent ones, which Python concatenates."""
        parts = []
        while (opening := _PREFIX.match(self.text, self.position)) is not None:
            parts.append(self.parse_string(opening, is_argument=is_argument))
            self.peek()
        if len(parts) > 1:
            self.fixes["joined-strings"] = None
        return "".join(parts)

    def parse_string(self, opening: re.Match[str], *, is_argument: bool) -> str:
        prefix, quotes = opening.group(1).lower(), opening.group(2)
        if len(quotes) == 3 and not self.is_triple_quoted(opening.end(), quotes, is_argument=is_argument):
            quotes = quotes[0]
        if "b" in prefix:
            raise self.fail("a plain string")
        is_formatted, is_broken, has_literal, start = "f" in prefix, False, False, self.position
        self.position = opening.start(2) + len(quotes)
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
                following = self.text[self.position : self.position + QUOTE_CONTEXT]
                if len(quotes) == 3 or closes_string(following, is_argument=is_argument, is_broken=is_broken):
                    text = "".join(parts)
                    if has_literal and not is_broken:
                        text = self.decode_literal(self.text[opening.start(2) : self.position], text, len(quotes))
                    if is_formatted and ("{" in text or "}" in text):
                        self.position = start
                        raise self.fail("a plain string")
                    return text
                is_broken, self.fixes["unescaped-quote"] = True, None
                parts.append(quotes)
            elif self.text[self.position] == "\\":
                parts.append(self.parse_escape(is_raw="r" in prefix))
                has_literal |= len(parts[-1]) == 2 and "r" not in prefix
            else:
                if len(quotes) == 1:
                    self.fixes["raw-control-character"] = None
                parts.append(self.text[self.position])
                self.position += 1

    def decode_literal(self, written: str, text: str, quotes: int) -> str:
        r"""Return the value of ``written``, a string with unknown escapes, as in ``"\\alpha \\theta"``. All its
        backslashes are literal. If some of them clearly begin escapes, return ``text``. ``quotes`` is the number of
        quotes at each end."""
        content = written[quotes:-quotes]
        return text if LAYOUT_ESCAPE.search(content) else PUNCTUATION_ESCAPE.sub(r"\1", content)

    def is_triple_quoted(self, start: int, quotes: str, *, is_argument: bool) -> bool:
        """Return whether three quotes before ``start`` open a triple-quoted string, rather than an ordinary string
        whose text begins with quotes."""
        end = self.text.find(quotes, start)
        following = self.text[end + 3 : end + 3 + QUOTE_CONTEXT]
        has_four = self.text.startswith(quotes[0], start)
        return not has_four or (end >= 0 and closes_string(following, is_argument=is_argument, is_broken=True))

    def parse_escape(self, *, is_raw: bool) -> str:
        r"""Parse an escape sequence. An unknown one is kept unchanged, as in Python, and so is ``\\alpha``."""
        char = self.text[self.position + 1 : self.position + 2]
        if not char:
            raise UnterminatedError("the text ends inside a string")
        code = _CODE_ESCAPE.match(self.text, self.position + 1)
        if is_raw or (code is None and char not in _ESCAPES) or LITERAL_ESCAPE.match(self.text, self.position):
            self.position += 2
            return "\\" + char
        if code is None:
            self.position += 2
            return _ESCAPES[char]
        self.position = code.end()
        number = int(code.group(4), 8) if code.group(4) else int(code.group()[1:], 16)
        if number > 0x10FFFF:
            raise FormatError(f"invalid escape \\{code.group()}: the last code point is \\U0010FFFF")
        return chr(number)
