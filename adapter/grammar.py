r"""Constrained decoding: from tool definitions to what a server can enforce.

`gbnf` writes a llama.cpp grammar that admits exactly one call::

    <tool_call>
    {"name": "read_file", "arguments": {"path": "src/main.rs"}}
    </tool_call>

`json_schema` says the same for servers that take a JSON Schema
(``response_format``, Ollama's ``format``); there the call has no markers and
its arguments stand under ``parameters``, because Ollama sorts keys and a model
must choose the name before it writes the arguments.

Spacing is fixed to that of ``json.dumps``: where white space is free, small
models ramble in it. Strings are bounded: a string that never ends was the only
way in which a constrained 135M model failed to give a valid call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import assert_never

from adapter.errors import UsageError
from adapter.events import Json, JsonObject
from adapter.frames import Frame, frame_of
from adapter.number_ranges import MOST, decimals, integers
from adapter.patterns import string_of
from adapter.schema_shapes import (
    MAX_ITEMS,
    AnyOf,
    Anything,
    Array,
    Boolean,
    Choices,
    Literals,
    Null,
    Number,
    Object,
    Property,
    Reduction,
    Shape,
    Shaping,
    String,
    Table,
    Tuple,
    is_possible,
)
from adapter.tools import Tool, ToolSet

MAX_STRING = 1500
"""Characters. About what SmolLM2 writes in the 512 tokens that a call is usually given."""

MAX_GRAMMAR = 300_000
"""Characters. llama.cpp parses as much in a fraction of a second."""

MAX_CALLS = 8
"""In one answer. A small model that makes a list of calls does not end it by itself."""

LONGEST_REPETITION = 1999
"""llama.cpp refuses ``x{0,2000}`` and reads larger bounds as none (its MAX_REPETITION_THRESHOLD)."""


def gbnf(
    tools: ToolSet,
    *,
    format: str = "hermes",
    choices: Choices | None = None,
    max_string: int | None = MAX_STRING,
    max_text: int | None = MAX_STRING,
    allow_text: bool = False,
    reply: Tool | None = None,
    several: bool = False,
) -> str:
    """A grammar whose every text is one call of one of the tools with arguments of its schema.

    ``format``: how the call is written, where that format puts arguments as JSON; else as Hermes does.
    ``max_string``: characters per string; None, or more than `LONGEST_REPETITION`, leaves them unbounded.
    ``max_text``: the same for texts of any length, of which a piece would look whole (see `Reduction`).
    ``allow_text``: or any text that does not look like the start of a call. ``reply``: or a call of this tool
    alone. ``several``: up to `MAX_CALLS` calls; one that begins like a reply ends them, as models that have
    called what they wanted go on to talk about it. Raises UsageError when no tool is left to call,
    and for more than `MAX_GRAMMAR`.
    """
    frame = frame_of(format)
    grammar = _gbnf(tools, frame, Shaping(choices or {}, max_string, max_text), allow_text, reply, several)
    if len(grammar) > MAX_GRAMMAR:
        shallow = Shaping(choices or {}, max_string, max_text, max_depth=2)
        grammar = _gbnf(tools, frame, shallow, allow_text, reply, several)
    if len(grammar) > MAX_GRAMMAR:
        raise UsageError(
            f"a grammar for these {len(tools)} tools has {len(grammar)} characters, and more than {MAX_GRAMMAR} are "
            "more than a server should be asked to read; offer fewer tools, or shorter lists of choices"
        )
    return grammar


def _gbnf(tools: ToolSet, frame: Frame, shaping: Shaping, allow_text: bool, reply: Tool | None, several: bool) -> str:
    rules = _Rules(frame)

    def call_of(tools: ToolSet) -> str:
        calls = []
        for name, shape in _callable(tools, shaping).items():
            head, arguments = _quote(_encode(name)[1:-1] + frame.middle), rules.expression(shape, f"{name}-arguments")
            calls.append(rules.add(name, f"{head} {arguments}"))
        return rules.add("call", f"{_quote(frame.head)} ({_alternatives(calls)}) {_quote(frame.tail)}")

    if reply is not None and not _possible(tools, shaping):
        tools, reply, several = ToolSet([reply]), None, False
    root = call_of(tools)
    if several and frame.between is not None:
        end = f"({_quote(frame.between + frame.head + reply.name + frame.middle)})?" if reply else ""
        root = f"{root} ({_quote(frame.between)} {root}){{0,{MAX_CALLS - 1}}} {end}"
    if reply is not None:
        root = f"{call_of(ToolSet([reply]))} | {root}"
    if allow_text:
        root = f"{root} | text"
    return "\n".join([f"root ::= {root}", *(f"{name} ::= {body}" for name, body in rules.bodies.items()), ""])


def json_schema(
    tools: ToolSet,
    *,
    choices: Choices | None = None,
    max_string: int | None = MAX_STRING,
    max_text: int | None = MAX_STRING,
    reply: Tool | None = None,
) -> JsonObject:
    """A JSON Schema for ``{"name": ..., "parameters": {...}}``: one alternative per tool, no ``$ref``, no type lists.

    ``reply``: one more tool. Raises UsageError when no tool is left to call.
    """
    if reply is not None:
        tools = ToolSet([*tools.values(), reply])
    calls = [
        _as_schema(Object((Property("name", Literals((name,)), True), Property("parameters", shape, True))))
        for name, shape in _callable(tools, Shaping(choices or {}, max_string, max_text)).items()
    ]
    return calls[0] if len(calls) == 1 else {"anyOf": calls}


def _possible(tools: ToolSet, shaping: Shaping) -> dict[str, Shape]:
    """The arguments' shape of each tool that can be called at all."""
    shapes = {name: Reduction(name, tool.parameters, shaping).shape() for name, tool in tools.items()}
    return {name: shape for name, shape in shapes.items() if is_possible(shape)}


def _callable(tools: ToolSet, shaping: Shaping) -> dict[str, Shape]:
    possible = _possible(tools, shaping)
    if not possible:
        given = ", ".join(tools) or "none"
        raise UsageError(
            f"no tool can be called (tools: {given}): a grammar needs at least one whose required parameters "
            "have a choice left; pass more tools or fewer choices"
        )
    return possible


# ------------------------------------------------------------------------ GBNF

# Rules that every grammar carries. Of JSON's escapes only those that prose and
# code need: \b, \f and \uXXXX are what models write when they mean a regular
# expression, and would silently become something else.
_SHARED = {
    "char": r'[^"\\\x00-\x1F\x7F] | "\\" ["\\nrt]',
    "natural": '"0" | [1-9] [0-9]{0,14}',
    "integer": '"-"? natural',
    "unsigned": 'natural ("." [0-9]{1,9})?',
    "number": '"-"? unsigned',
    "boolean": '"true" | "false"',
    "null": '"null"',
    "key": r'"\"" [a-zA-Z0-9_.-]{1,40} "\""',
    "text": rf"[^<{{\x00-\x20] [^\x00]{{0,{LONGEST_REPETITION}}}",
    "scalar": r'"\"" char{0,400} "\"" | number | boolean | null',
    "flat": 'scalar | "[" (scalar (", " scalar){0,15})? "]" | "{" (key ": " scalar (", " key ": " scalar){0,15})? "}"',
    "anything": 'flat | "[" (flat (", " flat){0,15})? "]" | "{" (key ": " flat (", " key ": " flat){0,15})? "}"',
}
_NUMBERS = {(True, None): "integer", (True, 0): "natural", (False, None): "number", (False, 0): "unsigned"}
"""By whether they are integers, and the lowest, where there is no highest."""


class _Rules:
    """The rules of one grammar, each under a name of its own."""

    def __init__(self, frame: Frame) -> None:
        self._colon, self._comma = _quote(frame.colon), _quote(frame.comma)
        self.bodies = {
            name: body.replace('": "', self._colon).replace('", "', self._comma) for name, body in _SHARED.items()
        }

    def add(self, hint: str, body: str) -> str:
        """The name under which ``body`` stands: like ``hint``, in the letters that GBNF allows in a name."""
        base = re.sub(r"[^a-zA-Z0-9]+", "-", hint).strip("-").lower() or "rule"
        name, number = base, 1
        while name == "root" or self.bodies.get(name, body) != body:
            number += 1
            name = f"{base}-{number}"
        self.bodies[name] = body
        return name

    def expression(self, shape: Shape, hint: str) -> str:
        """The name of a rule that admits what has this shape."""
        match shape:
            case Literals(values):
                return self.add(hint, _alternatives(_quote(_encode(value)) for value in values))
            case String(shortest, longest, pattern):
                written = None if pattern is None else string_of(pattern, shortest, longest)
                if written is not None:
                    return self.add(f"{hint}-pattern", rf'"\"" {written} "\""')
                return self._string(shortest, longest)
            case Number():
                return self._number(shape, hint)
            case Boolean():
                return "boolean"
            case Null():
                return "null"
            case Anything():
                return "anything"
            case AnyOf(shapes):
                parts = [self.expression(each, f"{hint}-{number}") for number, each in enumerate(shapes, 1)]
                return self.add(hint, _alternatives(parts))
            case Array(item, fewest, most):
                items = self._sequence(self.expression(item, f"{hint}-item"), fewest, most) if most else ""
                return self.add(hint, f'"[" {items} "]"')
            case Tuple(items):
                return self.add(hint, f'"[" {self._row(items, hint)} "]"')
            case Table(value):
                pair = self.add(f"{hint}-pair", f"key {self._colon} {self.expression(value, f'{hint}-value')}")
                return self.add(hint, f'"{{" {self._sequence(pair, 0, MAX_ITEMS)} "}}"')
            case Object(properties):
                return self.add(hint, f'"{{" {self._pairs(properties, hint)} "}}"')
            case _:
                assert_never(shape)

    def _row(self, items: tuple[Shape, ...], hint: str) -> str:
        return f" {self._comma} ".join(self.expression(each, f"{hint}-{n}") for n, each in enumerate(items, 1))

    def _number(self, number: Number, hint: str) -> str:
        if number.highest is None and number.lowest in (None, 0):
            return _NUMBERS[number.integer, None if number.lowest is None else 0]
        lowest = Decimal(-MOST) if number.lowest is None else number.lowest
        highest = Decimal(MOST) if number.highest is None else number.highest
        return self.add(hint, integers(int(lowest), int(highest)) if number.integer else decimals(lowest, highest))

    def _string(self, shortest: int, longest: int | None) -> str:
        if longest is None or longest > LONGEST_REPETITION:
            return self.add("string", r'"\"" char* "\""')
        return self.add(f"string-{shortest}-{longest}", rf'"\"" char{{{shortest},{longest}}} "\""')

    def _pairs(self, properties: tuple[Property, ...], hint: str) -> str:
        """The required properties in order, then any of the optional ones in order."""
        pairs = [
            f"{_quote(_encode(each.name))} {self._colon} {self.expression(each.shape, f'{hint}-{each.name}')}"
            for each in properties
        ]
        needed = sum(each.required for each in properties)
        optional = [f"({self._comma} {pair})?" for pair in pairs[needed:]]
        if needed or not pairs:
            return " ".join([f" {self._comma} ".join(pairs[:needed]), *optional])
        # Without a required one, each optional property may be the one that needs no comma before it.
        # What follows it has a rule of its own, or the grammar would grow with the square of their number.
        follow = [""]
        for index, each in reversed(list(enumerate(optional))):
            follow.insert(0, self.add(f"{hint}-from-{index}", f"{each} {follow[0]}".strip()))
        return f"({_alternatives(f'{pair} {follow[index + 1]}'.strip() for index, pair in enumerate(pairs))})?"

    def _sequence(self, item: str, fewest: int, most: int) -> str:
        fewest, most = min(fewest, LONGEST_REPETITION), min(most, LONGEST_REPETITION)
        items = f"{item} ({self._comma} {item}){{{max(fewest - 1, 0)},{most - 1}}}"
        return items if fewest else f"({items})?"


def _alternatives(expressions: Iterable[str]) -> str:
    return " | ".join(expressions)


def _encode(value: Json) -> str:
    """Canonical JSON, which is also valid UTF-8: half surrogate pairs stay escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return re.sub(r"[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text)


def _quote(text: str) -> str:
    """Text as a GBNF literal. JSON has already escaped what is below U+0020."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# ----------------------------------------------------------------- JSON Schema


def _as_schema(shape: Shape) -> JsonObject:
    match shape:
        case Literals(values):
            kind: JsonObject = {"type": "string"} if all(isinstance(value, str) for value in values) else {}
            return kind | ({"const": values[0]} if len(values) == 1 else {"enum": list(values)})
        case String(shortest, longest):  # patterns are refused by some, unless anchored at both ends
            return {"type": "string"} | _given(minLength=shortest or None, maxLength=longest)
        case Number(integer, lowest, highest):
            as_json = int if integer else float
            bounds = {"minimum": lowest, "maximum": highest}
            told = {keyword: as_json(bound) for keyword, bound in bounds.items() if bound is not None}
            return {"type": "integer" if integer else "number", **told}
        case Boolean():
            return {"type": "boolean"}
        case Null():
            return {"type": "null"}
        case Anything():
            return {}
        case AnyOf(shapes):
            return {"anyOf": [_as_schema(each) for each in shapes]}
        case Array(item, fewest, most):
            return {"type": "array", "items": _as_schema(item), "maxItems": most} | _given(minItems=fewest or None)
        case Tuple(items):
            count = len(items)
            return {"type": "array", "prefixItems": [*map(_as_schema, items)], "minItems": count, "maxItems": count}
        case Table(value):
            return {"type": "object", "additionalProperties": _as_schema(value)}
        case Object(properties):
            return {
                "type": "object",
                "properties": {each.name: _as_schema(each.shape) for each in properties},
                "required": [each.name for each in properties if each.required],
                "additionalProperties": False,
            }
        case _:
            assert_never(shape)


def _given(**keywords: int | None) -> JsonObject:
    return {keyword: value for keyword, value in keywords.items() if value is not None}
