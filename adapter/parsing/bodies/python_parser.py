"""Parse text that consists of calls written as Python.

::

    call   = NAME "(" (KEY "=" value | value | "**" dict) ("," ...)* ")"

Nothing is evaluated. `python_literals` parses the values.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress

from adapter.core.errors import FormatError
from adapter.core.events import Json, JsonObject
from adapter.core.json.strict import UnterminatedError, is_encodable, replace_surrogates
from adapter.parsing.bodies.python_literals import LiteralReader
from adapter.parsing.format import BodyResult
from adapter.tools.coercion import has_schema_type
from adapter.tools.decoded_json_calls import DecodedCall
from adapter.tools.tool_set import ToolSet

NAME = re.compile(r"[^\W\d]\w*(?:[.-]\w+)*")
"""Matches a tool's name, which may contain a hyphen or be an object's method."""

MAX_LATER = 20
"""Maximum number of positions after a damaged call that are tried as the start of another call."""

_NEXT_CALL = re.compile(r"(?:[,;]\s*+|\n[^\S\n]*+)([^\W\d]\w*+(?:[.-]\w++)*+)\s*+\(")
_NORMAL_FIXES = frozenset({"missing-bracket", "json-literal"})
"""Repairs that calls after a damaged one may need, because they are parsed without the opening bracket of their
list."""
_KEY = re.compile(r"([^\W\d]\w*)\s*=(?!=)")
_ASSIGNMENT = re.compile(r"[^\W\d]\w*\s*=(?!=)")
_PRINT = re.compile(r"print\s*\(")


def read_calls(text: str, tools: ToolSet, offset: int) -> BodyResult:
    """Return all calls in ``text``, Python code with lists of calls or statements. ``offset`` is the code's position
    in the text from the opening marker on.

    If a later call cannot be parsed, the result has the calls before it and an error. Raises FormatError if the first
    call cannot be parsed, and UnterminatedError if the text ends too early.
    """
    return _PythonReader(text, tools, offset).parse_calls()


def explain_error(error: FormatError) -> str:
    return f"the call cannot be read: {error}. Write one call with literal values: NAME(ARGUMENT=VALUE)"


class _PythonReader(LiteralReader):
    """Parses the Python calls in a text in one pass."""

    def __init__(self, text: str, tools: ToolSet, offset: int) -> None:
        super().__init__(text)
        self.tools, self.offset = tools, offset
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
        """Return whether another argument of the last of ``calls`` comes next, because the call was closed too
        early."""
        key, tool = _KEY.match(self.text, self.position), self.tools.match(calls[-1].name) if calls else None
        return key is not None and tool is not None and key[1] in tool.properties and key[1] not in calls[-1].arguments

    def parse_later_calls(self, start: int, depth: int) -> BodyResult:
        """Parse the calls after the damaged call at ``start``. Skip calls until all remaining text needs no repairs.
        ``depth`` is the number of open lists."""
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
        """Parse the calls inside an unclosed string of the call at ``start``."""
        is_broken = "unescaped-quote" in self.fixes and _NEXT_CALL.search(self.text, start + 1, self.position)
        return self.parse_later_calls(start, depth) if is_broken else BodyResult()

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
                for parameter, value in self.parse_dict(0).items():
                    self.add_member(arguments, parameter, value)
            elif key is not None:
                self.position = key.end()
                self.add_member(arguments, key.group(1), self.parse_value(0, is_argument=True))
            elif char:
                positional.append(self.parse_value(0))
            if self.peek() != ")":
                self.skip_comma(name.group())
        self.position += 1
        tool_name = self.resolve_name(name.group())
        if positional:
            arguments = self.name_positional(tool_name, positional) | arguments
        return DecodedCall(tool_name, arguments, end=self.offset + self.position)

    def skip_comma(self, name: str) -> None:
        """Skip the comma after an argument in a call of ``name``. If a parameter's name follows, the comma may be
        missing."""
        key, tool = _KEY.match(self.text, self.position), self.tools.match(name)
        if key is not None and (tool is None or key.group(1) in tool.properties):
            self.fixes["missing-comma"] = None
        else:
            self.expect(",", "a comma or the closing parenthesis")

    def resolve_name(self, name: str) -> str:
        """Return the tool's name, which is ``NAME`` for ``NAME.call``, Llama's notation for built-in tools."""
        owner = name.removesuffix(".call")
        is_method = owner != name and self.tools.match(name) is None and self.tools.match(owner)
        return owner if is_method else name

    def name_positional(self, name: str, values: list[Json]) -> JsonObject:
        """Assign positional values to the tool's parameters, in the declared order. A single dict contains all
        arguments if its keys are parameters, or if the tool has no parameters."""
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


def _is_misplaced(value: Json, schema: Json) -> bool:
    """Return whether ``value`` is a list or object that the parameter's ``schema`` does not allow."""
    return isinstance(value, dict | list) and not has_schema_type(value, schema)


def _to_json(calls: list[DecodedCall]) -> str:
    """Return the arguments as JSON. A lone surrogate can be detected in it."""
    return json.dumps([call.arguments for call in calls], ensure_ascii=False)
