"""A tolerant JSON parser that names each repair.

Text that ends inside a string is never completed, because a tool could then write half a file. Ambiguous text is
rejected. The time is linear in the length of the text.
"""

from __future__ import annotations

import json
import re

from adapter.core.errors import FormatError
from adapter.core.events import Json
from adapter.core.json.strict import (
    ITEM_BOUNDARY,
    LAYOUT_ESCAPE,
    LITERAL_ESCAPE,
    MAX_DEPTH,
    MAX_DIGITS,
    PUNCTUATION_ESCAPE,
    UnterminatedError,
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
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_QUOTE_ESCAPES = {"'": "'", "`": "`"}  # not JSON, but unambiguous

# Maps the character that opens a string to the characters that may close it, and the repair to record.
_QUOTES = {
    '"': ('"”“', None),
    "'": ("'", "single-quotes"),
    "`": ("`", "backtick-string"),
    "“": ('”“"', "curly-quotes"),
    "”": ('”“"', "curly-quotes"),
}
_ESCAPED_QUOTE = '\\"'
_PLAIN = {opening: re.compile(f"[^{re.escape(closing)}\\\\\x00-\x1f]+") for opening, (closing, _) in _QUOTES.items()}
_VALID = re.compile(r'(?:[^"”“\\\x00-\x1f]++|\\["\\/nrt])++')
"""Matches part of a JSON string that `json` decodes without repair."""

# Patterns for text that follows a real closing quote. `_GAP` includes comments.
_GAP = r"(?:[ \t\r\n]|\\[nrt]|//[^\n]{0,200}|/\*.{0,200}?\*/)*+"
_A_KEY = (
    r"(?:\"(?:[^\"\\\n]|\\.){0,80}\"|\\\"[^\"\\\n]{0,80}\\\"|'(?:[^'\\\n]|\\.){0,80}'|[\"“”](?:[^\"“”\\\n]|\\.){0,80}[\"“”]"
    r"|[A-Za-z_$][\w$.-]{0,80})[ \t\r\n]*:"
)
_END = r"[}\]](?:[ \t\r\n}\]]|\\[nrt])*(?:$|[,;{#/]|```|\"[\w$.-]{1,80}\"[ \t\r\n]*:)"
_AFTER_KEY = re.compile(rf"{_GAP}:", re.DOTALL)
_LAST_KEY = rf"\"[\w$.-]{{1,80}}\"{_GAP}{_END}"  # a key without a value at the end of the text
_AFTER_MEMBER = re.compile(rf"{_GAP}(?:$|{_END}|,{_GAP}(?:{_A_KEY}|[}}\]]|{_LAST_KEY})|{_A_KEY})", re.DOTALL)
_AFTER_ITEM = re.compile(rf"{_GAP}(?:$|{_END}|,)", re.DOTALL)
_BARE = r"[^\W\d](?:[\w ./@~%&!?-]|:(?=\S))*?"
_BARE_MEMBER = re.compile(rf"{_BARE}(?=\s*(?:[}}\]]|,\s*(?:[}}\]]|{_A_KEY})))", re.DOTALL)
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
_AFTER_SCALAR = re.compile(rf"{_GAP}(?:$|[,}}\]]|[\"'“”]|[A-Za-z_$][\w$.-]*[ \t\r\n]*:|\\[nrt])", re.DOTALL)


class JsonRepairer:
    """Parses a JSON value that may be malformed, and records each repair. It passes over the text once, with one
    recursive call per nesting level."""

    def __init__(self, text: str, start: int, closed: bool) -> None:
        self.text = text
        self.position = start
        self.closed = closed
        self.fixes: dict[str, None] = {}
        self.unknown_escapes = 0
        self.repeated_key: str | None = None  # a key with two values in one object
        self.last_string = ""
        self.open_lists = 0

    def fix(self, name: str) -> None:
        self.fixes[name] = None

    def fail(self, expected: str) -> FormatError:
        return FormatError(f"expected {expected}, got {quote_excerpt(self.text, self.position)}")

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

    def parse_value(self, depth: int, after: re.Pattern[str] = _AFTER_ITEM) -> Json:
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
        return self.parse_scalar(_BARE_ITEM if after is _AFTER_ITEM else _BARE_MEMBER)

    def is_at_string(self, char: str) -> bool:
        return char in _QUOTES if char != "\\" else self.text.startswith(_ESCAPED_QUOTE, self.position)

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
            value = self.parse_value(depth + 1, _AFTER_MEMBER)
            self.skip_repeated_objects(start)
            if key in members:
                self.fix("repeated-argument")
                self.repeated_key = self.repeated_key if members[key] == value else key
            members[key] = value
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
            items.append(self.parse_value(depth + 1, _AFTER_ITEM))
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
            key = self.parse_string(_AFTER_KEY)
            if '"' in key and '\\"' not in self.text[start : self.position]:
                raise FormatError(f"expected a key, got {quote_excerpt(self.text, start)}")
            return key
        word = _KEY.match(self.text, self.position)
        if word is None or self.text[self.position - 1] in _QUOTES:  # a string that lost its closing quote
            raise self.fail("a key in double quotes")
        self.position = word.end()
        lost_quote = _CLOSED_KEY.match(self.text, self.position)
        if lost_quote is not None:  # the key lost its opening quote
            self.position = lost_quote.end()
        self.fix("unquoted-key")
        return word.group()

    def parse_string(self, after: re.Pattern[str]) -> str:
        opening = self.text[self.position]
        if self.is_triple_quoted(after):
            return self.parse_triple_quoted(self.text[self.position : self.position + 3])
        is_escaped = opening == "\\"
        closing, fix = ("", "escaped-quotes") if is_escaped else _QUOTES[opening]
        plain = _ESCAPED_TEXT if is_escaped else _VALID if opening == '"' else _PLAIN[opening]
        if fix:
            self.fix(fix)
        start, unknown_escapes, stray_quotes, has_boundary = self.position, self.unknown_escapes, 0, False
        self.position += 1 + is_escaped
        parts: list[str] = []
        while True:
            run = plain.match(self.text, self.position)
            if run is not None:
                text = run.group()
                parts.append(json.loads(f'"{text}"') if "\\" in text else text)
                self.position = run.end()
            if self.position >= len(self.text):
                fault = "quotes are not balanced in" if stray_quotes else "text ends inside"
                raise UnterminatedError(f"the {fault} a string that begins with {quote_excerpt(self.text, start)}")
            char = self.text[self.position]
            if is_escaped and self.text.startswith(_ESCAPED_QUOTE, self.position):
                self.position += 2
                if not after.match(self.text, self.position):
                    raise FormatError(f"the quotes of the string {quote_excerpt(self.text, start)} are not balanced")
                return "".join(parts)
            if char == "\\":
                parts.append(self.decode_escape())
                continue
            self.position += 1
            if char in closing:
                joined = _JOINED[opening].match(self.text, self.position) if opening in _JOINED else None
                if joined is not None and not stray_quotes and after is not _AFTER_KEY:
                    self.fix("joined-strings")
                    self.position = joined.end()
                    continue
                is_paired = not (stray_quotes % 2 and has_boundary) or after is _AFTER_KEY
                is_item = after is _AFTER_ITEM and not stray_quotes and _NEXT_ITEM.match(self.text, self.position)
                if is_item or (is_paired and after.match(self.text, self.position)):
                    if char != opening and fix is None:
                        self.fix("curly-quotes")
                    if self.unknown_escapes > unknown_escapes:
                        return self.decode_literal(self.text[start + 1 : self.position - 1])
                    return self.unescape_quotes("".join(parts)) if stray_quotes else "".join(parts)
                if char == opening:
                    self.fix("unescaped-quote")
                    stray_quotes += 1
                    has_boundary |= self.is_at_boundary(start + 1)
            elif opening != "`":
                self.fix("raw-control-character")
            parts.append(char)

    def is_at_boundary(self, start: int) -> bool:
        """Return whether JSON punctuation is next to the quote just consumed. Such a quote may begin or end a string
        nested in the string at ``start``. That string then continues at least to the next such quote."""
        before = self.text[max(start, self.position - 20) : self.position - 1].rstrip()
        return before[-1:] in ",:{[" or self.text[self.position : self.position + 20].lstrip()[:1] in ",:}]\"'"

    def unescape_quotes(self, value: str) -> str:
        """Remove the backslashes before the quotes in ``value`` if the quotes are paired and each has one: the model
        escaped them twice."""
        count = value.count('"')
        if count % 2 or count != value.count(_ESCAPED_QUOTE) or f"\\{_ESCAPED_QUOTE}" in value:
            return value
        self.fix("doubled-backslash")
        return value.replace(_ESCAPED_QUOTE, '"')

    def decode_literal(self, raw: str) -> str:
        """Decode a string with an invalid escape: its backslashes are literal, except before quotes, slashes and
        backslashes. Raises FormatError if other backslashes clearly begin escapes."""
        is_path = _WINDOWS_PATH.match(raw)
        if not is_path and (layout := LAYOUT_ESCAPE.search(raw)):
            raise FormatError(
                f"the string {quote_excerpt(raw, 0)} has both escapes ({layout.group()}) and single backslashes; "
                "write a backslash as \\\\"
            )
        if is_path and _LETTER_ESCAPE.search(raw):
            self.fix("windows-path")
        return PUNCTUATION_ESCAPE.sub(r"\1", raw)

    def is_triple_quoted(self, after: re.Pattern[str]) -> bool:
        """Return whether a triple-quoted string begins here, rather than a string whose text begins with quotes."""
        quotes = self.text[self.position : self.position + 3]
        if quotes not in ('"""', "'''"):
            return False
        end = self.text.find(quotes, self.position + 3)
        has_four = self.text.startswith(quotes[0], self.position + 3)
        return not has_four or (end >= 0 and after.match(self.text, end + 3) is not None)

    def parse_triple_quoted(self, quotes: str) -> str:
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
            parts.append(self.decode_escape())

    def decode_escape(self) -> str:
        """Decode an escape sequence. An invalid one is kept verbatim."""
        char = self.text[self.position + 1 : self.position + 2]
        if not char:
            raise UnterminatedError("the text ends inside a string")
        if char == "u":
            return self.decode_unicode_escape()
        is_literal = LITERAL_ESCAPE.match(self.text, self.position) is not None
        self.position += 2
        if char in _ESCAPES and not is_literal:
            return _ESCAPES[char]
        self.fix("invalid-escape")
        self.unknown_escapes += char not in _QUOTE_ESCAPES
        return _QUOTE_ESCAPES.get(char, "\\" + char)

    def decode_unicode_escape(self) -> str:
        digits = _UNICODE.match(self.text, self.position)
        if digits is None:
            self.fix("invalid-escape")
            self.unknown_escapes += 1
            self.position += 2
            return "\\u"
        self.position = digits.end()
        value: str = json.loads(f'"{digits.group()}"')
        return value

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


_LETTER_ESCAPE = re.compile(r"(?<!\\)\\[bfnrtu]")
_WINDOWS_PATH = re.compile(r"(?:[A-Za-z]:\\{1,2}|\\\\(?=[\w.-]+\\))\w")
_ESCAPED_TEXT = re.compile(r"[^\"\\\x00-\x1f]+")
_REST_IS_SPACE = re.compile(r"\s*\Z")
_BRACKET = re.compile(r"[}\]]")
_JOINED = {quote: re.compile(rf"\s*\+\s*{quote}") for quote in "'\""}
_NEXT_ITEM = re.compile(r"\s+[\"']")
"""Matches the start of the next string in a list that lacks a comma."""
_UNICODE = re.compile(r"\\u[0-9a-fA-F]{4}(?:(?<=\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})?")
