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
from typing import assert_never

from adapter.errors import UsageError
from adapter.events import Json, JsonObject
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
    String,
    Table,
    is_possible,
)
from adapter.tools import ToolSet

MAX_STRING = 1500
"""Characters. About what SmolLM2 writes in the 512 tokens that a call is usually given."""

LONGEST_REPETITION = 1999
"""llama.cpp refuses ``x{0,2000}`` and reads larger bounds as none (its MAX_REPETITION_THRESHOLD)."""


def gbnf(
    tools: ToolSet, *, choices: Choices | None = None, max_string: int | None = MAX_STRING, allow_text: bool = False
) -> str:
    """A grammar whose every text is one call of one of the tools with arguments of its schema.

    ``max_string``: characters per string; None, or more than `LONGEST_REPETITION`, leaves them unbounded.
    ``allow_text``: or any text that does not look like the start of a call.
    Raises UsageError when no tool is left to call.
    """
    rules = _Rules()
    calls = [
        rules.add(name, f"{_quote(_head(name))} {rules.expression(shape, f'{name}-arguments')} {_quote('}')}")
        for name, shape in _callable(tools, choices, max_string).items()
    ]
    call = rules.add("call", _alternatives(calls))
    marked = f'"<tool_call>\\n" {call} "\\n</tool_call>"'
    root = f"{marked} | text" if allow_text else marked
    return "\n".join([f"root ::= {root}", *(f"{name} ::= {body}" for name, body in rules.bodies.items()), ""])


def json_schema(tools: ToolSet, *, choices: Choices | None = None, max_string: int | None = MAX_STRING) -> JsonObject:
    """A JSON Schema for ``{"name": ..., "parameters": {...}}``: one alternative per tool, no ``$ref``, no type lists.

    Raises UsageError when no tool is left to call.
    """
    calls = [
        _as_schema(Object((Property("name", Literals((name,)), True), Property("parameters", shape, True))))
        for name, shape in _callable(tools, choices, max_string).items()
    ]
    return calls[0] if len(calls) == 1 else {"anyOf": calls}


def _callable(tools: ToolSet, choices: Choices | None, max_string: int | None) -> dict[str, Shape]:
    """The arguments' shape of each tool that can be called at all."""
    if max_string is not None and max_string > LONGEST_REPETITION:
        max_string = None
    shapes = {name: Reduction(name, tool.parameters, choices or {}, max_string).shape() for name, tool in tools.items()}
    possible = {name: shape for name, shape in shapes.items() if is_possible(shape)}
    if not possible:
        given = ", ".join(tools) or "none"
        raise UsageError(
            f"no tool can be called (tools: {given}): a grammar needs at least one whose required parameters "
            "have a choice left; pass more tools or fewer choices"
        )
    return possible


def _head(name: str) -> str:
    return f'{{"name": {_encode(name)}, "arguments": '


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
_NUMBERS = {(True, True): "integer", (True, False): "natural", (False, True): "number", (False, False): "unsigned"}


class _Rules:
    """The rules of one grammar, each under a name of its own."""

    def __init__(self) -> None:
        self.bodies = dict(_SHARED)

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
            case String(shortest, longest):
                return self._string(shortest, longest)
            case Number(integer, negative):
                return _NUMBERS[integer, negative]
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
                items = _sequence(self.expression(item, f"{hint}-item"), fewest, most) if most else ""
                return self.add(hint, f'"[" {items} "]"')
            case Table(value):
                pair = self.add(f"{hint}-pair", f'key ": " {self.expression(value, f"{hint}-value")}')
                return self.add(hint, f'"{{" {_sequence(pair, 0, MAX_ITEMS)} "}}"')
            case Object(properties):
                return self.add(hint, f'"{{" {self._pairs(properties, hint)} "}}"')
            case _:
                assert_never(shape)

    def _string(self, shortest: int, longest: int | None) -> str:
        if longest is None or longest > LONGEST_REPETITION:
            return self.add("string", r'"\"" char* "\""')
        return self.add(f"string-{shortest}-{longest}", rf'"\"" char{{{shortest},{longest}}} "\""')

    def _pairs(self, properties: tuple[Property, ...], hint: str) -> str:
        """The required properties in order, then any of the optional ones in order."""
        pairs = [
            f"{_quote(_encode(each.name) + ': ')} {self.expression(each.shape, f'{hint}-{each.name}')}"
            for each in properties
        ]
        needed = sum(each.required for each in properties)
        optional = [f'(", " {pair})?' for pair in pairs[needed:]]
        if needed or not pairs:
            return " ".join([' ", " '.join(pairs[:needed]), *optional])
        # Without a required one, each optional property may be the one that needs no comma before it.
        starts = [" ".join([pair, *optional[index + 1 :]]) for index, pair in enumerate(pairs)]
        return f"({_alternatives(starts)})?"


def _sequence(item: str, fewest: int, most: int) -> str:
    fewest, most = min(fewest, LONGEST_REPETITION), min(most, LONGEST_REPETITION)
    items = f'{item} (", " {item}){{{max(fewest - 1, 0)},{most - 1}}}'
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
        case String(shortest, longest):
            return {"type": "string"} | _given(minLength=shortest or None, maxLength=longest)
        case Number(integer, negative):
            return {"type": "integer" if integer else "number"} | ({} if negative else {"minimum": 0})
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
