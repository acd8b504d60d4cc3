"""Parse JSON strings that a model wrote with wrong quotes, escapes or line breaks, and name each repair."""

from __future__ import annotations

import json
import re

from adapter.core.errors import FormatError
from adapter.core.json.strict import (
    LAYOUT_ESCAPE,
    LITERAL_ESCAPE,
    PUNCTUATION_ESCAPE,
    UnterminatedError,
    quote_excerpt,
)

_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_QUOTE_ESCAPES = {"'": "'", "`": "`"}  # not JSON, but unambiguous

# Maps the character that opens a string to the characters that may close it, and the repair to record.
QUOTES = {
    '"': ('"”“', None),
    "'": ("'", "single-quotes"),
    "`": ("`", "backtick-string"),
    "“": ('”“"', "curly-quotes"),
    "”": ('”“"', "curly-quotes"),
}
ESCAPED_QUOTE = '\\"'
_PLAIN = {opening: re.compile(f"[^{re.escape(closing)}\\\\\x00-\x1f]+") for opening, (closing, _) in QUOTES.items()}
_VALID = re.compile(r'(?:[^"”“\\\x00-\x1f]++|\\["\\/nrt])++')
"""Matches part of a JSON string that `json` decodes without repair."""

# Patterns for text that follows a real closing quote. `GAP` includes comments.
GAP = r"(?:[ \t\r\n]|\\[nrt]|//[^\n]{0,200}|/\*.{0,200}?\*/)*+"
A_KEY = (
    r"(?:\"(?:[^\"\\\n]|\\.){0,80}\"|\\\"[^\"\\\n]{0,80}\\\"|'(?:[^'\\\n]|\\.){0,80}'|[\"“”](?:[^\"“”\\\n]|\\.){0,80}[\"“”]"
    r"|[A-Za-z_$][\w$.-]{0,80})[ \t\r\n]*:"
)
_END = r"[}\]](?:[ \t\r\n}\]]|\\[nrt])*(?:$|[,;{#/]|```|\"[\w$.-]{1,80}\"[ \t\r\n]*:)"
AFTER_KEY = re.compile(rf"{GAP}:", re.DOTALL)
_LAST_KEY = rf"\"[\w$.-]{{1,80}}\"{GAP}{_END}"  # a key without a value at the end of the text
AFTER_MEMBER = re.compile(rf"{GAP}(?:$|{_END}|,{GAP}(?:{A_KEY}|[}}\]]|{_LAST_KEY})|{A_KEY})", re.DOTALL)
AFTER_ITEM = re.compile(rf"{GAP}(?:$|{_END}|,)", re.DOTALL)
_LETTER_ESCAPE = re.compile(r"(?<!\\)\\[bfnrtu]")
_WINDOWS_PATH = re.compile(r"(?:[A-Za-z]:\\{1,2}|\\\\(?=[\w.-]+\\))\w")
_ESCAPED_TEXT = re.compile(r"[^\"\\\x00-\x1f]+")
_JOINED = {quote: re.compile(rf"\s*\+\s*{quote}") for quote in "'\""}
_NEXT_ITEM = re.compile(r"\s+[\"']")
"""Matches the start of the next string in a list that lacks a comma."""
_UNICODE = re.compile(r"\\u[0-9a-fA-F]{4}(?:(?<=\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})?")


class StringRepairer:
    """Parses strings at ``position`` in ``text``, and records each repair. This is a base class of `JsonRepairer`."""

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.position = start
        self.fixes: dict[str, None] = {}
        self.unknown_escapes = 0

    def fix(self, name: str) -> None:
        self.fixes[name] = None

    def fail(self, expected: str) -> FormatError:
        return FormatError(f"expected {expected}, got {quote_excerpt(self.text, self.position)}")

    def parse_string(self, after: re.Pattern[str]) -> str:
        opening = self.text[self.position]
        if self.is_triple_quoted(after):
            return self.parse_triple_quoted(self.text[self.position : self.position + 3])
        is_escaped = opening == "\\"
        closing, fix = ("", "escaped-quotes") if is_escaped else QUOTES[opening]
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
            if is_escaped and self.text.startswith(ESCAPED_QUOTE, self.position):
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
                if joined is not None and not stray_quotes and after is not AFTER_KEY:
                    self.fix("joined-strings")
                    self.position = joined.end()
                    continue
                is_paired = not (stray_quotes % 2 and has_boundary) or after is AFTER_KEY
                is_item = after is AFTER_ITEM and not stray_quotes and _NEXT_ITEM.match(self.text, self.position)
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
        if count % 2 or count != value.count(ESCAPED_QUOTE) or f"\\{ESCAPED_QUOTE}" in value:
            return value
        self.fix("doubled-backslash")
        return value.replace(ESCAPED_QUOTE, '"')

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
        """Return whether a triple-quoted string begins here, rather than an ordinary string that begins with quotes."""
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
