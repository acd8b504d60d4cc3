r"""Build the rules of a llama.cpp grammar (GBNF) for JSON values.

Spacing is fixed, as in ``json.dumps`` or in the format, because small models ramble when any whitespace is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from itertools import combinations
from typing import assert_never

from adapter.core.events import Json
from adapter.core.json.encode import dump_json
from adapter.grammars import schema_ir as ir
from adapter.grammars.call_layout import JsonCallLayout
from adapter.grammars.number_ranges import MAX_NUMBER, build_decimal_range, build_integer_range, build_open_range
from adapter.grammars.regex_to_gbnf import build_string_rule

LONGEST_REPETITION = 1999
"""Largest upper bound of a repetition. llama.cpp rejects or ignores a larger one, as in ``x{0,2000}``."""
MAX_ORDERED = 4
"""Maximum number of required properties that may be in any order. Each further one doubles the number of rules."""

ESCAPE = r'"\\" ["\\nrt]'

# Rules in every grammar. They admit only JSON escapes that prose and code need. Models that write \b, \f or \uXXXX
# usually mean a regular expression, which JSON decoding would silently change.
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
    "scalar": r'"\"" char{0,400} "\"" | number | boolean | null',
    "flat": 'scalar | "[" (scalar (", " scalar){0,15})? "]" | "{" (key ": " scalar (", " key ": " scalar){0,15})? "}"',
    "anything": 'flat | "[" (flat (", " flat){0,15})? "]" | "{" (key ": " flat (", " key ": " flat){0,15})? "}"',
}
_NUMBERS = {(True, None): "integer", (True, 0): "natural", (False, None): "number", (False, 0): "unsigned"}
"""Names of the rules for unbounded numbers, by (is integer, minimum)."""


class GrammarBuilder:
    """Collects the rules of one GBNF grammar in ``bodies``, by name."""

    def __init__(self, layout: JsonCallLayout) -> None:
        self._start(layout.colon, layout.comma)
        self._middle, self.tail = layout.middle, format_gbnf_literal(layout.tail)

    def _start(self, colon: str, comma: str) -> None:
        self._colon, self._comma = format_gbnf_literal(colon), format_gbnf_literal(comma)
        self.bodies = {
            name: body.replace('": "', self._colon).replace('", "', self._comma) for name, body in _SHARED.items()
        }

    def build_call(self, name: str, shape: ir.Shape) -> str:
        """Return the body of the rule for a call to one tool, without the layout's head and tail."""
        arguments = self.build_expression(shape, f"{name}-arguments")
        return f"{format_gbnf_literal(format_gbnf_json_literal(name)[1:-1] + self._middle)} {arguments}"

    def build_bare_call(self, name: str, shape: ir.Shape) -> str:
        """Return the rule for a JSON call without markers, in any spacing, from the name to the arguments."""
        arguments = self.build_expression(shape, f"{name}-arguments")
        quoted = format_gbnf_literal(format_gbnf_json_literal(name))
        return rf'{quoted} spaces "," spaces "\"arguments\"" spaces ":" spaces {arguments}'

    def add(self, hint: str, body: str) -> str:
        """Add a rule and return its name, which is derived from ``hint`` and valid in GBNF."""
        base = re.sub(r"[^a-zA-Z0-9]+", "-", hint).strip("-").lower() or "rule"
        name, number = base, 1
        while name == "root" or self.bodies.get(name, body) != body:
            number += 1
            name = f"{base}-{number}"
        self.bodies[name] = body
        return name

    def build_expression(self, shape: ir.Shape, hint: str) -> str:
        """Return the name of a rule that matches values of ``shape``. If the rule is new, its name is derived from
        ``hint``."""
        match shape:
            case ir.EnumShape(values):
                return self.add(hint, join_alternatives(self._build_literal(value) for value in values))
            case ir.StringShape(shortest, longest, pattern):
                pattern_rule = None if pattern is None else build_string_rule(pattern, shortest, longest)
                if pattern_rule is not None:
                    return self.add(f"{hint}-pattern", rf'"\"" {pattern_rule} "\""')
                return self._build_string(shortest, longest)
            case ir.NumberShape():
                return self._build_number(shape, hint)
            case ir.Boolean():
                return "boolean"
            case ir.Null():
                return "null"
            case ir.AnyShape():
                return "anything"
            case ir.UnionShape(shapes):
                parts = [self.build_expression(item, f"{hint}-{number}") for number, item in enumerate(shapes, 1)]
                return self.add(hint, join_alternatives(parts))
            case ir.ArrayShape(item, fewest, most):
                items = self._build_sequence(self.build_expression(item, f"{hint}-item"), fewest, most) if most else ""
                return self.add(hint, f'"[" {items} "]"')
            case ir.TupleShape(items):
                return self.add(hint, f'"[" {self._build_row(items, hint)} "]"')
            case ir.MapShape(value):
                pair = self.add(f"{hint}-pair", f"key {self._colon} {self.build_expression(value, f'{hint}-value')}")
                return self.add(hint, f'"{{" {self._build_sequence(pair, 0, ir.MAX_ITEMS)} "}}"')
            case ir.ObjectShape(properties):
                return self.add(hint, f'"{{" {self._build_pairs(properties, hint)} "}}"')
            case _:
                assert_never(shape)

    def _build_row(self, items: tuple[ir.Shape, ...], hint: str) -> str:
        return f" {self._comma} ".join(self.build_expression(item, f"{hint}-{n}") for n, item in enumerate(items, 1))

    def _build_number(self, number: ir.NumberShape, hint: str) -> str:
        if number.highest is None and number.lowest in (None, 0):
            return _NUMBERS[number.integer, None if number.lowest is None else 0]
        lowest = Decimal(-MAX_NUMBER) if number.lowest is None else number.lowest
        highest = Decimal(MAX_NUMBER) if number.highest is None else number.highest
        if number.integer:
            return self.add(hint, build_integer_range(int(lowest), int(highest)))
        ranges = [build_decimal_range(lowest, highest), *build_open_range(number.lowest, number.highest)]
        return self.add(hint, join_alternatives(ranges))

    def _build_literal(self, value: Json) -> str:
        return format_gbnf_literal(format_gbnf_json_literal(value))

    def _build_string(self, shortest: int, longest: int | None) -> str:
        if longest is None or longest > LONGEST_REPETITION:
            return self.add("string", r'"\"" char* "\""')
        return self.add(f"string-{shortest}-{longest}", rf'"\"" char{{{shortest},{longest}}} "\""')

    def _build_pairs(self, properties: tuple[ir.Property, ...], hint: str) -> str:
        """Return an expression for an object's properties, with commas. Up to `MAX_ORDERED` required properties may be
        in any order."""
        pairs = [
            f"{self._build_literal(item.name)} {self._colon} {self.build_expression(item.shape, f'{hint}-{item.name}')}"
            for item in properties
        ]
        required_count = sum(item.required for item in properties)
        in_order = self._build_ordered_pairs(pairs, required_count, self._comma, hint)
        return in_order if required_count or not pairs else f"({in_order})?"

    def _build_ordered_pairs(self, pairs: list[str], required_count: int, comma: str, hint: str) -> str:
        """Return an expression for pairs of a key and a value: the first ``required_count`` pairs, and then any of the
        others, separated by ``comma``. It matches at least one pair."""
        optional = [f"({comma} {pair})?" for pair in pairs[required_count:]]
        if 1 < required_count <= MAX_ORDERED:
            return " ".join([self._build_unordered_pairs(pairs[:required_count], comma, hint), *optional])
        if required_count or not pairs:
            return " ".join([f" {comma} ".join(pairs[:required_count]), *optional])
        # Any optional property can be the first, without a comma before it. The pairs after the first have a separate
        # rule, because the grammar would otherwise grow quadratically.
        following_rules = [""]
        for index, item in reversed(list(enumerate(optional))):
            following_rules.insert(0, self.add(f"{hint}-from-{index}", f"{item} {following_rules[0]}".strip()))
        return join_alternatives(f"{pair} {following_rules[index + 1]}".strip() for index, pair in enumerate(pairs))

    def _build_unordered_pairs(self, pairs: list[str], comma: str, hint: str) -> str:
        """Return the name of a rule for all ``pairs`` in any order. It needs one more rule for each set of pairs that
        may still follow."""
        rule_names = [self.add(f"{hint}-needed-{number}", pair) for number, pair in enumerate(pairs, 1)]
        rules_for_rest: dict[frozenset[int], str] = {frozenset(): ""}
        for count in range(1, len(rule_names) + 1):
            for remaining in map(frozenset, combinations(range(len(rule_names)), count)):
                separator = comma if count < len(rule_names) else ""
                parts = (
                    f"{separator} {rule_names[first]} {rules_for_rest[remaining - {first}]}".strip()
                    for first in sorted(remaining)
                )
                label = "-".join(str(number + 1) for number in sorted(remaining))
                rules_for_rest[remaining] = self.add(f"{hint}-left-{label}", join_alternatives(parts))
        return rules_for_rest[frozenset(range(len(rule_names)))]

    def _build_sequence(self, item: str, fewest: int, most: int) -> str:
        fewest, most = min(fewest, LONGEST_REPETITION), min(most, LONGEST_REPETITION)
        items = f"{item} ({self._comma} {item}){{{max(fewest - 1, 0)},{most - 1}}}"
        return items if fewest else f"({items})?"


def join_alternatives(expressions: Iterable[str]) -> str:
    return " | ".join(expressions)


def format_gbnf_json_literal(value: Json) -> str:
    """Return ``value`` as JSON. Lone surrogates stay escaped, because UTF-8 cannot encode them."""
    text = dump_json(value)
    return re.sub(r"[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text)


def format_gbnf_literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
