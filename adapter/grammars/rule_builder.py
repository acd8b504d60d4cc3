r"""The rules of a llama.cpp grammar (GBNF) for JSON values of given shapes.

Spacing is that of ``json.dumps``, or of the format: where white space is free, small models ramble in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from decimal import Decimal
from itertools import combinations
from typing import assert_never

from adapter.core.events import Json
from adapter.grammars.call_layout import JsonCallLayout
from adapter.grammars.number_ranges import MOST, decimal_range_rule, integer_range_rule, open_range_rule
from adapter.grammars.regex_to_gbnf import string_rule_for_pattern
from adapter.grammars.schema_ir import (
    MAX_ITEMS,
    AnyShape,
    ArrayShape,
    Boolean,
    EnumShape,
    MapShape,
    Null,
    NumberShape,
    ObjectShape,
    Property,
    Shape,
    StringShape,
    TupleShape,
    UnionShape,
)

LONGEST_REPETITION = 1999
"""llama.cpp refuses ``x{0,2000}`` and reads larger bounds as none (its MAX_REPETITION_THRESHOLD)."""

MAX_ORDERED = 4
"""Required properties of an object that may come in any order: each further one doubles their rules."""

ESCAPE = r'"\\" ["\\nrt]'

# Rules that every grammar carries. Of JSON's escapes only those that prose and
# code need: \b, \f and \uXXXX are what models write when they mean a regular
# expression, and would silently become something else.
_SHARED = {
    "char": rf'[^"\\\x00-\x1F\x7F] | {ESCAPE}',
    "natural": '"0" | [1-9] [0-9]{0,14}',
    "integer": '"-"? natural',
    "unsigned": 'natural ("." [0-9]{1,17})? ([eE] [-+]? [0-9]{1,2})?',
    "number": '"-"? unsigned',
    "boolean": '"true" | "false"',
    "null": '"null"',
    "key": r'"\"" [a-zA-Z0-9_.-]{1,40} "\""',
    "spaces": r"[ \t\r\n]{0,20}",
    "text": rf"[^<{{\x00-\x20] [^\x00]{{0,{LONGEST_REPETITION}}}",
    "scalar": r'"\"" char{0,400} "\"" | number | boolean | null',
    "flat": 'scalar | "[" (scalar (", " scalar){0,15})? "]" | "{" (key ": " scalar (", " key ": " scalar){0,15})? "}"',
    "anything": 'flat | "[" (flat (", " flat){0,15})? "]" | "{" (key ": " flat (", " key ": " flat){0,15})? "}"',
}
_NUMBERS = {(True, None): "integer", (True, 0): "natural", (False, None): "number", (False, 0): "unsigned"}
"""By whether they are integers, and the lowest, where there is no highest."""


class GrammarBuilder:
    """The rules of one grammar, each under a name of its own."""

    def __init__(self, frame: JsonCallLayout) -> None:
        self._start(frame.colon, frame.comma)
        self._middle, self.tail = frame.middle, gbnf_literal(frame.tail)

    def _start(self, colon: str, comma: str) -> None:
        self._colon, self._comma = gbnf_literal(colon), gbnf_literal(comma)
        self.bodies = {
            name: body.replace('": "', self._colon).replace('", "', self._comma) for name, body in _SHARED.items()
        }

    def call(self, name: str, shape: Shape) -> str:
        """What follows the frame's head."""
        return f"{gbnf_literal(gbnf_json_literal(name)[1:-1] + self._middle)} {self.expression(shape, f'{name}-arguments')}"

    def bare(self, name: str, shape: Shape) -> str:
        """Of a call in JSON that somebody has begun in a spacing of their own, the name and what follows."""
        arguments = self.expression(shape, f"{name}-arguments")
        return (
            rf'{gbnf_literal(gbnf_json_literal(name))} spaces "," spaces "\"arguments\"" spaces ":" spaces {arguments}'
        )

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
            case EnumShape(values):
                return self.add(hint, alternatives(self._literal(value) for value in values))
            case StringShape(shortest, longest, pattern):
                written = None if pattern is None else string_rule_for_pattern(pattern, shortest, longest)
                if written is not None:
                    return self.add(f"{hint}-pattern", rf'"\"" {written} "\""')
                return self._string(shortest, longest)
            case NumberShape():
                return self._number(shape, hint)
            case Boolean():
                return "boolean"
            case Null():
                return "null"
            case AnyShape():
                return "anything"
            case UnionShape(shapes):
                parts = [self.expression(each, f"{hint}-{number}") for number, each in enumerate(shapes, 1)]
                return self.add(hint, alternatives(parts))
            case ArrayShape(item, fewest, most):
                items = self._sequence(self.expression(item, f"{hint}-item"), fewest, most) if most else ""
                return self.add(hint, f'"[" {items} "]"')
            case TupleShape(items):
                return self.add(hint, f'"[" {self._row(items, hint)} "]"')
            case MapShape(value):
                pair = self.add(f"{hint}-pair", f"key {self._colon} {self.expression(value, f'{hint}-value')}")
                return self.add(hint, f'"{{" {self._sequence(pair, 0, MAX_ITEMS)} "}}"')
            case ObjectShape(properties):
                return self.add(hint, f'"{{" {self._pairs(properties, hint)} "}}"')
            case _:
                assert_never(shape)

    def _row(self, items: tuple[Shape, ...], hint: str) -> str:
        return f" {self._comma} ".join(self.expression(each, f"{hint}-{n}") for n, each in enumerate(items, 1))

    def _number(self, number: NumberShape, hint: str) -> str:
        if number.highest is None and number.lowest in (None, 0):
            return _NUMBERS[number.integer, None if number.lowest is None else 0]
        lowest = Decimal(-MOST) if number.lowest is None else number.lowest
        highest = Decimal(MOST) if number.highest is None else number.highest
        if number.integer:
            return self.add(hint, integer_range_rule(int(lowest), int(highest)))
        return self.add(
            hint, alternatives([decimal_range_rule(lowest, highest), *open_range_rule(number.lowest, number.highest)])
        )

    def _literal(self, value: Json) -> str:
        return gbnf_literal(gbnf_json_literal(value))

    def _string(self, shortest: int, longest: int | None) -> str:
        if longest is None or longest > LONGEST_REPETITION:
            return self.add("string", r'"\"" char* "\""')
        return self.add(f"string-{shortest}-{longest}", rf'"\"" char{{{shortest},{longest}}} "\""')

    def _pairs(self, properties: tuple[Property, ...], hint: str) -> str:
        """The required properties, in any order where they are few; then any of the optional ones in order."""
        pairs = [
            f"{self._literal(each.name)} {self._colon} {self.expression(each.shape, f'{hint}-{each.name}')}"
            for each in properties
        ]
        needed = sum(each.required for each in properties)
        in_order = self._in_order(pairs, needed, self._comma, hint)
        return in_order if needed or not pairs else f"({in_order})?"

    def _in_order(self, pairs: list[str], needed: int, comma: str, hint: str) -> str:
        """The first ``needed`` of ``pairs``, then any of the others; where none is needed, at least one of them."""
        optional = [f"({comma} {pair})?" for pair in pairs[needed:]]
        if 1 < needed <= MAX_ORDERED:
            return " ".join([self._any_order(pairs[:needed], comma, hint), *optional])
        if needed or not pairs:
            return " ".join([f" {comma} ".join(pairs[:needed]), *optional])
        # Without a required one, each optional property may be the one that needs no comma before it.
        # What follows it has a rule of its own, or the grammar would grow with the square of their number.
        follow = [""]
        for index, each in reversed(list(enumerate(optional))):
            follow.insert(0, self.add(f"{hint}-from-{index}", f"{each} {follow[0]}".strip()))
        return alternatives(f"{pair} {follow[index + 1]}".strip() for index, pair in enumerate(pairs))

    def _any_order(self, pairs: list[str], comma: str, hint: str) -> str:
        """All of ``pairs``, in any order: a rule for each set of those that are left."""
        named = [self.add(f"{hint}-needed-{number}", pair) for number, pair in enumerate(pairs, 1)]
        ways: dict[frozenset[int], str] = {frozenset(): ""}
        for count in range(1, len(named) + 1):
            for left in map(frozenset, combinations(range(len(named)), count)):
                separator = comma if count < len(named) else ""
                parts = (f"{separator} {named[first]} {ways[left - {first}]}".strip() for first in sorted(left))
                which = "-".join(str(number + 1) for number in sorted(left))
                ways[left] = self.add(f"{hint}-left-{which}", alternatives(parts))
        return ways[frozenset(range(len(named)))]

    def _sequence(self, item: str, fewest: int, most: int) -> str:
        fewest, most = min(fewest, LONGEST_REPETITION), min(most, LONGEST_REPETITION)
        items = f"{item} ({self._comma} {item}){{{max(fewest - 1, 0)},{most - 1}}}"
        return items if fewest else f"({items})?"


def alternatives(expressions: Iterable[str]) -> str:
    return " | ".join(expressions)


def gbnf_json_literal(value: Json) -> str:
    """Canonical JSON, which is also valid UTF-8: half surrogate pairs stay escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return re.sub(r"[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text)


def gbnf_literal(text: str) -> str:
    """Text as a GBNF literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
