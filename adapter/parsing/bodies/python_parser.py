"""Parse text that consists of calls written as Python.

::

    call   = NAME "(" (KEY "=" value | value | "**" dict) ("," ...)* ")"
    value  = string | number | True | False | None | list | tuple | dict

Nothing is ever evaluated. Values are literals, which this module parses, with limits on depth and size. A quote does
not close a string if no Python code could continue like the text after it: ``'Martha's Vineyard'``, ``'awk '{print $1}'
a.txt'``.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress

from adapter.core.errors import FormatError
from adapter.core.events import Json, JsonObject
from adapter.core.json.strict import (
    LITERAL_ESCAPE,
    MAX_DEPTH,
    MAX_DIGITS,
    UnterminatedError,
    is_encodable,
    keep_number_text,
    replace_surrogates,
)
from adapter.parsing.format import BodyResult
from adapter.tools.coercion import has_schema_type
from adapter.tools.decoded_json_calls import DecodedCall
from adapter.tools.tool_set import ToolSet

NAME = re.compile(r"[^\W\d]\w*(?:[.-]\w+)*")
"""Matches a tool's name. It may contain a hyphen, or be the method of an object."""

MAX_LATER = 20
"""Maximum number of positions at which a call after a damaged one may begin."""

QUOTE_CONTEXT = 80
"""Number of characters after a quote that determine whether the quote closes a string."""

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
"""Matches text after a quote that does not close its string, because no call can continue like that."""
_AFTER_BROKEN_VALUE = re.compile(
    r"""
    \s*
    (?: \Z | [\])}:] | ,\s*(?: \Z | [\])}\d\[({+-] | [rRuUbBfF]{0,2}['"] | (?:[Tt]rue|[Ff]alse|None|null)\b ) )
    """,
    re.VERBOSE,
)
"""Matches text that may follow a string with unescaped quotes."""
_AFTER_BROKEN_ARGUMENT = re.compile(
    r"""
    \s*
    (?:
        \Z
        | , \s* (?: \Z | \) | \*\* | [^\W\d]\w*\s*=(?!=) )
        | \) \s* (?: \Z | [\]),`] | </ | <\| | [;\n]\s*(?:\Z|[^\W\d][\w.]*\() )
    )
    """,
    re.VERBOSE,
)
"""Matches text that may follow such a string if the string is the value of a named argument."""

_NEXT_CALL = re.compile(r"(?:[,;]\s*+|\n[^\S\n]*+)([^\W\d]\w*+(?:[.-]\w++)*+)\s*+\(")
_NORMAL_FIXES = frozenset({"missing-bracket", "json-literal"})
"""Repairs of calls after a damaged one: a list's closing bracket has no opening one there."""
_SKIP = re.compile(r"(?:\s++|#[^\n]*+|\\\n)*+")
_KEY = re.compile(r"([^\W\d]\w*)\s*=(?!=)")
_ASSIGNMENT = re.compile(r"[^\W\d]\w*\s*=(?!=)")
_PRINT = re.compile(r"print\s*\(")
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
        is_argument: Whether the string is the value of a named argument.
        is_broken: Whether an earlier quote did not close the string, so that the text after this quote must match
            exactly.
    """
    if is_broken:
        return (_AFTER_BROKEN_ARGUMENT if is_argument else _AFTER_BROKEN_VALUE).match(following) is not None
    return _CONTINUES_STRING.match(following) is None


def read_calls(text: str, tools: ToolSet, offset: int) -> BodyResult:
    """Return all calls in ``text``, which contains lists or statements. ``offset`` is the position of the text in the
    call.

    If a later call cannot be parsed, the result has the calls before it and an error. Raises FormatError if the first
    call cannot be parsed, and UnterminatedError if the text ends too early.
    """
    return _PythonReader(text, tools, offset).parse_calls()


def explain_error(error: FormatError) -> str:
    return f"the call cannot be read: {error}. Write one call with literal values: NAME(ARGUMENT=VALUE)"


class _PythonReader:
    """Parses the calls of a text in one pass, with one recursion per level of nesting."""

    def __init__(self, text: str, tools: ToolSet, offset: int) -> None:
        self.text, self.tools, self.offset = text, tools, offset
        self.position = 0
        self.fixes: dict[str, None] = {}
        self.attempts, self.depth = MAX_LATER, 0

    def parse_calls(self) -> BodyResult:
        calls: list[DecodedCall] = []
        depth, prints = self.depth, 0
        while char := self.peek():
            if char == "[" and depth == 0:
                depth += 1
                self.position += 1
            elif char == "]" and depth:
                depth -= 1
                self.position += 1
            elif char == ")" and prints:
                prints -= 1
                self.position += 1
            elif char and char in ",;":
                self.position += 1
            elif self.is_argument_of(calls):
                name, key = calls.pop().name, self.text[self.position :].partition("=")[0].strip()
                later = self.parse_later_calls(self.position, depth)
                fault = FormatError(f"the call of {name!r} is closed before {key!r}")
                return BodyResult((*calls, *later.calls), (*self.fixes, *later.fixes), explain_error(fault))
            elif wrapper := _PRINT.match(self.text, self.position) or _ASSIGNMENT.match(self.text, self.position):
                prints += wrapper.group().endswith("(")
                self.position = wrapper.end()
                self.fixes["text-in-tag"] = None
            else:
                start, fixes, self.fixes = self.position, self.fixes, {}
                try:
                    calls.append(self.parse_call())
                    later = self.parse_swallowed_calls(start, depth)
                    if not later.calls:
                        self.fixes = fixes | self.fixes
                        continue
                    calls.pop()
                    fault = FormatError("its quotes are not balanced")
                except FormatError as error:
                    fault = error
                    calls = calls[:-1] if char in "\\\"'" else calls  # a string that ended too early
                    later = self.parse_later_calls(start, depth)
                may_be_string = isinstance(fault, UnterminatedError) or "unescaped-quote" in fixes | self.fixes
                if not later.calls and (not calls or may_be_string):
                    raise fault  # the error may be the rest of a string that seemed to end
                return BodyResult((*calls, *later.calls), (*fixes, *later.fixes), explain_error(fault))
        if prints:
            raise UnterminatedError("the text ends before its parentheses are closed")
        if not calls:
            raise self.fail("a call")
        if depth:
            self.fixes["missing-bracket"] = None
        if not is_encodable(self.text) or ("\\" in self.text and not is_encodable(_to_json(calls))):
            arguments = [replace_surrogates(call.arguments) for call in calls]
            calls = [call._replace(arguments=own) for call, own in zip(calls, arguments, strict=True)]
            self.fixes["lone-surrogate"] = None
        return BodyResult(tuple(calls), tuple(self.fixes))

    def is_argument_of(self, calls: list[DecodedCall]) -> bool:
        """Return whether another argument of the last call follows, because the call was closed too early."""
        key, tool = _KEY.match(self.text, self.position), self.tools.match(calls[-1].name) if calls else None
        return key is not None and tool is not None and key[1] in tool.properties and key[1] not in calls[-1].arguments

    def parse_later_calls(self, start: int, depth: int) -> BodyResult:
        """Parse the calls after the damaged call at ``start``. They begin at the first call from which the rest of the
        text can be parsed without repairs. ``depth``: number of open lists."""
        for match in _NEXT_CALL.finditer(self.text, start + 1):
            if self.attempts <= 0:
                break
            self.attempts -= 1
            if self.tools and self.tools.match(match[1]) is None:
                continue
            reader = _PythonReader(self.text[match.start(1) :], self.tools, self.offset + match.start(1))
            reader.attempts, reader.depth = 0, depth
            with suppress(FormatError):
                result = reader.parse_calls()
                if result.error is None and set(result.fixes) <= _NORMAL_FIXES:
                    return result
        return BodyResult()

    def parse_swallowed_calls(self, start: int, depth: int) -> BodyResult:
        """Parse the calls that are inside a string of the call at ``start``, because that string was not closed."""
        is_broken = "unescaped-quote" in self.fixes and _NEXT_CALL.search(self.text, start + 1, self.position)
        return self.parse_later_calls(start, depth) if is_broken else BodyResult()

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

    def parse_call(self) -> DecodedCall:
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
                members = self.parse_dict(0)
                self.note_repeated(arguments.keys() & members.keys())
                arguments |= members
            elif key is not None:
                self.position = key.end()
                self.note_repeated(arguments.keys() & {key.group(1)})
                arguments[key.group(1)] = self.parse_value(0, is_argument=True)
            elif char:
                positional.append(self.parse_value(0))
            if self.peek() != ")":
                self.skip_comma(name.group())
        self.position += 1
        tool_name = self.resolve_name(name.group())
        if positional:
            arguments = self.name_positional(tool_name, positional) | arguments
        return DecodedCall(tool_name, arguments, end=self.offset + self.position)

    def note_repeated(self, keys: set[str]) -> None:
        if keys:
            self.fixes["repeated-argument"] = None

    def skip_comma(self, name: str) -> None:
        """Skip the comma after an argument of ``name``. It may be missing before the name of a parameter."""
        key, tool = _KEY.match(self.text, self.position), self.tools.match(name)
        if key is not None and (tool is None or key.group(1) in tool.properties):
            self.fixes["missing-comma"] = None
        else:
            self.expect(",", "a comma or the closing parenthesis")

    def resolve_name(self, name: str) -> str:
        """Return the tool's name. For ``NAME.call``, this is ``NAME``, as for Llama's built-in tools."""
        owner = name.removesuffix(".call")
        is_method = owner != name and self.tools.match(name) is None and self.tools.match(owner)
        return owner if is_method else name

    def name_positional(self, name: str, values: list[Json]) -> JsonObject:
        """Assign positional values to the tool's parameters, in the order in which the tool declares them.

        A single dict whose keys are parameters contains all arguments. So does a dict for a tool without parameters.
        """
        tool = self.tools.match(name)
        only = values[0]
        keys = tool.properties if tool is not None else {}
        if isinstance(only, dict) and len(values) == 1 and (not keys or only.keys() <= keys.keys()):
            self.fixes["positional-arguments"] = None
            return only
        named = dict(zip(tool.properties, values, strict=False)) if tool else {}
        if tool is None or len(named) < len(values) or any(map(_is_misplaced, values, tool.properties.values())):
            raise FormatError(f"expected named arguments in the call of {name!r}, got positional ones")
        self.fixes["positional-arguments"] = None
        return named

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
        first = self.parse_value(depth + 1)
        if closing == ")" and self.peek() == closing:
            self.position += 1
            return first
        return [first, *self.parse_items(depth, closing)]

    def parse_items(self, depth: int, closing: str) -> list[Json]:
        """Parse the items after the first one, and the closing bracket."""
        items: list[Json] = []
        while self.peek() != closing:
            self.expect(",", f"a comma or {closing!r}")
            if self.peek() != closing:
                items.append(self.parse_value(depth + 1))
        self.position += 1
        return items

    def parse_dict_or_set(self, depth: int) -> Json:
        """Parse a dict, or a set, which becomes a list because JSON has no sets."""
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
        """Parse the members after the opening brace, or after the key ``first``."""
        members: JsonObject = {}
        while first is not None or self.peek() != "}":
            key, first = first if first is not None else self.parse_value(depth + 1), None
            if not isinstance(key, str):
                raise FormatError(f"expected a string as a key, got {key!r:.40}")
            self.expect(":", f"a colon after the key {key!r:.40}")
            self.note_repeated(members.keys() & {key})
            members[key] = self.parse_value(depth + 1)
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
            if len(bare) > 1 and bare[0] == "0":
                self.fixes["number-spelling"] = None
            return keep_number_text(sign * int(bare), spelling)
        value = sign * float(bare)
        if value - value != 0:
            raise FormatError(f"expected a finite number, got {spelling[:40]}")
        return keep_number_text(value, spelling)

    def parse_strings(self, *, is_argument: bool) -> str:
        """Parse one string, or several adjacent strings, which Python concatenates."""
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
        """Return the content of the string ``written`` with unknown escapes, as in ``"\\alpha \\theta"``: all of its
        backslashes are literal, unless some clearly begin escapes. Its usual value is ``text``."""
        from adapter.core.json.repair import LAYOUT_ESCAPE, PUNCTUATION_ESCAPE

        content = written[quotes:-quotes]
        return text if LAYOUT_ESCAPE.search(content) else PUNCTUATION_ESCAPE.sub(r"\1", content)

    def is_triple_quoted(self, start: int, quotes: str, *, is_argument: bool) -> bool:
        """Return whether a triple-quoted string, and not one whose text begins with quotes, begins at ``start``."""
        end = self.text.find(quotes, start)
        following = self.text[end + 3 : end + 3 + QUOTE_CONTEXT]
        has_four = self.text.startswith(quotes[0], start)
        return not has_four or (end >= 0 and closes_string(following, is_argument=is_argument, is_broken=True))

    def parse_escape(self, *, is_raw: bool) -> str:
        """Parse an escape sequence. An unknown sequence is kept unchanged, as in Python, and so is ``\\alpha``."""
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


def _is_misplaced(value: Json, schema: Json) -> bool:
    """Return whether ``value`` is a list or an object that the parameter with this schema cannot hold."""
    return isinstance(value, dict | list) and not has_schema_type(value, schema)


def _to_json(calls: list[DecodedCall]) -> str:
    """Return the arguments as JSON, in which half of a surrogate pair can be detected."""
    return json.dumps([call.arguments for call in calls], ensure_ascii=False)
