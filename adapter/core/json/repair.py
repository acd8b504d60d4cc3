"""A tolerant JSON parser that names each repair.

Text that ends inside a string is never completed, because a tool could then write half a file. Ambiguous text is
rejected. The time is linear in the length of the text.
"""

from __future__ import annotations

import re

from adapter.core.errors import FormatError
from adapter.core.events import Json
from adapter.core.json.repair_strings import (
    A_KEY,
    AFTER_ITEM,
    AFTER_KEY,
    AFTER_MEMBER,
    ESCAPED_QUOTE,
    GAP,
    QUOTES,
    StringRepairer,
)
from adapter.core.json.strict import (
    ITEM_BOUNDARY,
    MAX_DEPTH,
    MAX_DIGITS,
    RepeatedValues,
    UnterminatedError,
    add_member,
    keep_number_text,
    parse_finite_float,
    quote_excerpt,
)

_SKIP = re.compile(r"[ \t\r\n\f\v\ufeff\u200b\u2060]+|//[^\n]*|/\*.*?\*/|#[^\n]*|(?:\\[nrt])+", re.DOTALL)
_CLOSED_KEY = re.compile(r"\"(?=\s{0,99}:)")
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
_BARE = r"[^\W\d](?:[\w ./@~%&!?-]|:(?=\S))*?"
_BARE_MEMBER = re.compile(rf"{_BARE}(?=\s*(?:[}}\]]|,\s*(?:[}}\]]|{A_KEY})))", re.DOTALL)
_BARE_ITEM = re.compile(rf"{_BARE}(?=\s*[,\]])")
"""Match unquoted strings in an object and in a list: words, paths and addresses, but not expressions."""
_BARE_DIGITS = re.compile(
    r"(?:\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?|\d{1,2}:\d\d(?::\d\d)?"
    r"|\d+(?:\.\d+){2,}|\d+(?:\.\d+)?(?:%|(?![eE]\d)[A-Za-z]+))(?=\s*[,}\]])"
)
"""Matches strings without quotes that begin with a digit: dates, times, versions, addresses and quantities with a unit.
None of them can be evaluated as an expression."""
_NOT_TEXT = frozenset({
    "any", "array", "bool", "boolean", "dict", "double", "float", "inf", "infinity", "int", "integer", "list", "nan",
    "number", "object", "str", "string", "text", "value"
})  # fmt: skip
"""Unquoted words that are not accepted as strings, because they are placeholders in a schema or example."""
_AFTER_SCALAR = re.compile(rf"{GAP}(?:$|[,}}\]]|[\"'“”]|[A-Za-z_$][\w$.-]*[ \t\r\n]*:|\\[nrt])", re.DOTALL)
_REST_IS_SPACE = re.compile(r"\s*\Z")
_BRACKET = re.compile(r"[}\]]")


class JsonRepairer(StringRepairer):
    """Parses a JSON value that may be malformed, and records each repair. It passes over the text once, with one
    recursive call per nesting level."""

    def __init__(self, text: str, start: int, closed: bool) -> None:
        super().__init__(text, start)
        self.closed = closed
        self.repeated_key: str | None = None  # a key with two values in one object
        self.last_string = ""
        self.open_lists = 0

    def peek(self) -> str:
        """Skip spaces, comments and stray escapes, and return the next character, or "" at the end."""
        while (skipped := _SKIP.match(self.text, self.position)) is not None:
            if skipped.group().startswith("\\"):
                self.fix("escaped-newline")
            elif not skipped.group().isspace() and skipped.group()[0] in "/#":
                if _REST_IS_SPACE.match(self.text, skipped.end()) and _BRACKET.search(skipped.group()):
                    raise self.fail("the closing brackets before the comment")
                self.fix("comment")
            self.position = skipped.end()
        return self.text[self.position] if self.position < len(self.text) else ""

    def parse_value(self, depth: int, after: re.Pattern[str] = AFTER_ITEM) -> Json:
        if depth > MAX_DEPTH:
            raise FormatError(f"the value is nested more than {MAX_DEPTH} levels deep")
        char = self.peek()
        if char == "{":
            return self.parse_object(depth)
        if char == "[":
            return self.parse_array(depth)
        if self.is_at_string(char):
            self.last_string = self.parse_string(after)
            return self.last_string
        return self.parse_scalar(_BARE_ITEM if after is AFTER_ITEM else _BARE_MEMBER)

    def is_at_string(self, char: str) -> bool:
        return char in QUOTES if char != "\\" else self.text.startswith(ESCAPED_QUOTE, self.position)

    def parse_object(self, depth: int) -> Json:
        self.position += 1
        is_doubled = self.text.startswith("{", self.position)
        if is_doubled:  # as in a template
            self.fix("doubled-braces")
            self.position += 1
        members: dict[str, Json] = {}
        while True:
            char = self.peek()
            if self.take_closing_bracket("}", "]", char):
                self.position += is_doubled and self.text.startswith("}", self.position)
                return members
            if char == ",":
                self.position += 1
                continue
            if char == "{" and members and self.open_lists:  # the next item of the list
                self.fix("missing-bracket")
                return members
            key = self.parse_key(char)
            char = self.peek()
            if char in (",", "}") and char:
                self.fix("key-without-value")
                continue
            if char != ":":
                raise self.fail(f"a colon after the key {key!r}")
            self.position += 1
            self.peek()
            start = self.position
            value = self.parse_value(depth + 1, AFTER_MEMBER)
            self.skip_repeated_objects(start)
            if add_member(members, key, value):
                self.fix("repeated-argument")
                self.repeated_key = key if isinstance(members[key], RepeatedValues) else self.repeated_key
            self.take_separator("}")

    def skip_repeated_objects(self, start: int) -> None:
        """Skip copies of the object that was just parsed, from ``start`` on, that directly follow it."""
        while self.text.startswith("{", self.position) and self.text[start] == "{":
            written = self.text[start : self.position]
            if not self.text.startswith(written, self.position):
                break
            start, self.position = self.position, self.position + len(written)
            self.fix("repeated-argument")

    def parse_array(self, depth: int) -> Json:
        self.position += 1
        self.open_lists += 1
        items: list[Json] = []
        while True:
            char = self.peek()
            if self.take_closing_bracket("]", "}", char):
                self.open_lists -= 1
                return items
            if char == ",":
                self.position += 1
                continue
            items.append(self.parse_value(depth + 1, AFTER_ITEM))
            if "unescaped-quote" in self.fixes and isinstance(items[-1], str) and ITEM_BOUNDARY.search(items[-1]):
                raise FormatError(f"the quotes of the list item {items[-1][:40]!r} are not balanced")
            self.take_separator("]")

    def take_closing_bracket(self, closing: str, other: str, char: str) -> bool:
        """Take the ``closing`` bracket and return True if the list or object ends here. If that bracket is missing, the
        list or object ends before the bracket ``other`` or at the end of the text, which is recorded as a repair."""
        if char == closing:
            self.position += 1
            return True
        if char and char != other:
            return False
        if not char and not self.closed:
            raise UnterminatedError("the text ends before its brackets are closed")
        string, opening = self.last_string, "{" if closing == "}" else "["
        before = self.text[max(0, self.position - 20) : self.position].rstrip()
        if closing == "]" and before.endswith((",", "[")):
            raise self.fail("an item or a closing bracket")
        if before.endswith((f'{closing}"', f"{closing}'")) and string.count(closing) > string.count(opening):
            raise FormatError(f"the string {string[-20:]!r} ends in the bracket that is missing after it")
        self.fix("missing-bracket")
        return True

    def take_separator(self, closing: str) -> None:
        char = self.peek()
        if char == ",":
            self.position += 1
            if self.peek() == closing:
                self.fix("trailing-comma")
        elif char and char not in "}]":
            before = self.text[self.position - 20 : self.position].rstrip()
            is_in_string = self.last_string.endswith(",") and before.endswith((',"', ",'"))
            is_broken = ITEM_BOUNDARY.search(self.last_string) and "unescaped-quote" in self.fixes
            if is_in_string or (is_broken and before.endswith('"')):
                raise self.fail("a comma after the string, and not in it")
            self.fix("missing-comma")

    def parse_key(self, char: str) -> str:
        plain = _PLAIN_KEY.match(self.text, self.position)
        if plain is not None:
            self.position = plain.end()
            return plain.group(1)
        if self.is_at_string(char):
            start = self.position
            key = self.parse_string(AFTER_KEY)
            if '"' in key and '\\"' not in self.text[start : self.position]:
                raise FormatError(f"expected a key, got {quote_excerpt(self.text, start)}")
            return key
        word = _KEY.match(self.text, self.position)
        if word is None or self.text[self.position - 1] in QUOTES:  # a string that lost its closing quote
            raise self.fail("a key in double quotes")
        self.position = word.end()
        lost_quote = _CLOSED_KEY.match(self.text, self.position)
        if lost_quote is not None:  # the key lost its opening quote
            self.position = lost_quote.end()
        self.fix("unquoted-key")
        return word.group()

    def parse_scalar(self, bare: re.Pattern[str]) -> Json:
        if self.text.startswith(("...", "…"), self.position):
            raise FormatError("the value is a placeholder (...); write the real arguments")
        if digits := _BARE_DIGITS.match(self.text, self.position):
            return self.take_bare_string(digits)
        number = _NUMBER.match(self.text, self.position)
        if number is not None:
            return self.parse_number(number)
        word = _WORD.match(self.text, self.position)
        if word is None:
            if self.position >= len(self.text):
                raise UnterminatedError("the text ends where a value is expected")
            raise self.fail("a JSON value")
        spelling = word.group()
        if spelling in _LOOSE_LITERALS:
            self.fix("python-literal")
        elif spelling not in _LITERALS:
            text = bare.match(self.text, self.position)
            if text is None or text.group().lower() in _NOT_TEXT:
                raise self.fail("a JSON value (strings need double quotes)")
            return self.take_bare_string(text)
        self.position = word.end()
        return _LITERALS.get(spelling, _LOOSE_LITERALS.get(spelling))

    def take_bare_string(self, text: re.Match[str]) -> str:
        self.fix("unquoted-string")
        self.position = text.end()
        return text.group()

    def parse_number(self, number: re.Match[str]) -> Json:
        spelling = number.group()
        if not _AFTER_SCALAR.match(self.text, number.end()):
            raise self.fail("a plain number (expressions are not JSON)")
        if len(spelling) > MAX_DIGITS:
            raise FormatError(f"a number has {len(spelling)} characters; the maximum is {MAX_DIGITS}")
        exact = _JSON_NUMBER.fullmatch(spelling)
        if exact is None:
            self.fix("number-spelling")
        bare = spelling.lstrip("+-")
        self.position = number.end()
        base = 16 if bare.lower().startswith("0x") else 10
        try:
            if base == 16 or bare.replace("_", "").isdigit():
                return keep_number_text(int(spelling, base), spelling)
            return parse_finite_float(spelling)
        except ValueError as error:
            raise FormatError(f"expected a number, got {spelling[:40]!r}") from error
