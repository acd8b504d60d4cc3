"""Grammar rules for calls with key-value arguments: strings verbatim, other values as JSON.

::

    <tool_call>
    <function=write_file>
    <parameter=path>
    src/main.rs
    </parameter>
    </function>
    </tool_call>

A value cannot contain its own end, so the rules for text exclude all markers of the format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from adapter.core.events import Json
from adapter.grammars import schema_ir as ir
from adapter.grammars.call_layout import KeyValueCallLayout
from adapter.grammars.grammar_builder import (
    ESCAPE,
    LONGEST_REPETITION,
    GrammarBuilder,
    format_gbnf_json_literal,
    format_gbnf_literal,
    join_alternatives,
)
from adapter.grammars.regex_to_gbnf import build_string_rule
from adapter.tools.coercion import get_type_name


class UnrepresentableValue(Exception):
    """Raised if the format cannot represent a value."""


_CONTROL = r"\x00-\x08\x0B-\x1F\x7F"
"""Control characters that text never contains: all but tab and line feed."""
_ESCAPED = r'"\\\x00-\x1F\x7F'
"""Characters that must be escaped in a JSON string."""
_PLAIN_NAME = re.compile(r"[\w.:/-]{1,200}")
SHORT = 200
"""A string with a maximum length below this may not contain ``<``. Each repetition of its rule then matches exactly one
character, so the maximum is exact."""


class KeyValueGrammarBuilder(GrammarBuilder):
    """Builds rules for calls whose arguments are pairs of a key and a value. No value may contain a marker of the
    format, even inside JSON."""

    def __init__(self, layout: KeyValueCallLayout) -> None:
        self._layout, self.tail = layout, ""
        self._start(layout.colon, layout.comma)
        self.bodies["char"] = f"{_build_text_without_markers(layout.markers, _ESCAPED, ESCAPE)} | {ESCAPE}"
        self.bodies["short"] = f"[^<{_ESCAPED}] | {ESCAPE}"
        self.bodies["unit"] = _build_text_without_markers(layout.markers, _CONTROL)
        self.bodies["plain"] = f"[^<{_CONTROL}]"
        self.bodies["visible"] = f"[^< \\t\\n{_CONTROL}]"

    def build_call(self, name: str, shape: ir.Shape) -> str:
        if not isinstance(shape, ir.ObjectShape) or not _PLAIN_NAME.fullmatch(name):
            raise UnrepresentableValue
        layout = self._layout
        pair_rules = [self._build_pair(item, f"{name}-arguments-{item.name}") for item in shape.properties]
        required_count = sum(item.required for item in shape.properties)
        following, last, none = map(format_gbnf_literal, (layout.following, layout.last, name + layout.none))
        in_order = self._build_ordered_pairs(pair_rules, required_count, following, name)
        some = [f"{format_gbnf_literal(name + layout.first)} ({in_order}) {last}"] if pair_rules else []
        return join_alternatives(some if required_count else [none, *some])

    def _build_pair(self, property: ir.Property, hint: str) -> str:
        if not _PLAIN_NAME.fullmatch(property.name):
            raise UnrepresentableValue
        by_opening: dict[str, list[str]] = {}
        for opening, value in self._list_values(property.shape, hint):
            by_opening.setdefault(opening, []).append(value)
        values = (f"{format_gbnf_literal(opening)} ({join_alternatives(item)})" for opening, item in by_opening.items())
        return self.add(hint, f"{format_gbnf_literal(property.name)} ({join_alternatives(values)})")

    def _list_values(self, shape: ir.Shape, hint: str) -> Iterator[tuple[str, str]]:
        """Yield each way to write a value of this shape: the text before the value, and the grammar expression for the
        value."""
        openings = self._layout.openings
        match shape:
            case ir.UnionShape(shapes):
                has_text = any(isinstance(item, ir.StringShape) for item in shapes)
                for number, item in enumerate(shapes, 1):
                    kind = _TYPES.get(type(item), "null")
                    # Where text is allowed, all values but null are parsed as text, unless the tag states the type.
                    if not (has_text and kind != "null" and openings[kind] == openings["string"]):
                        yield from self._list_values(item, f"{hint}-{number}")
            case ir.EnumShape(values):
                for value in values:
                    if isinstance(value, str):
                        yield openings["string"], self._build_text(value)
                    else:
                        yield openings[get_type_name(value)], self._build_literal(value)
            case ir.StringShape(shortest, longest, pattern):
                pair_rules = None if pattern is None else build_string_rule(pattern, shortest, longest, is_bare=True)
                yield openings["string"], pair_rules or self._build_bare(shortest, longest)
            case ir.AnyShape():
                yield openings["string"], "unit{1,400}"
            case _:
                yield openings[_TYPES[type(shape)]], self.build_expression(shape, hint)

    def _build_string(self, shortest: int, longest: int | None) -> str:
        if longest is None or longest >= SHORT:
            return super()._build_string(shortest, longest)
        return self.add(f"string-{shortest}-{longest}", rf'"\"" short{{{shortest},{longest}}} "\""')

    def _build_bare(self, shortest: int, longest: int | None) -> str:
        start = f"visible{{{shortest},{shortest}}} " if 0 < shortest <= LONGEST_REPETITION else ""
        if longest is None or longest > LONGEST_REPETITION:
            return f"{start}unit*"
        piece = "plain" if longest < SHORT else "unit"
        return f"{start}{piece}{{0,{longest - shortest}}}"

    def _build_literal(self, value: Json) -> str:
        return self._build_text(format_gbnf_json_literal(value))

    def _build_text(self, text: str) -> str:
        if not self._layout.can_represent(text):
            raise UnrepresentableValue
        return format_gbnf_literal(text)


_TYPES: Mapping[type, str] = {
    ir.NumberShape: "number", ir.Boolean: "boolean", ir.Null: "null",
    ir.ArrayShape: "array", ir.TupleShape: "array", ir.ObjectShape: "object", ir.MapShape: "object",
}  # fmt: skip


def _build_text_without_markers(markers: Iterable[str], excluded: str, escape: str = "") -> str:
    """Build a rule that, repeated, matches text without markers. It matches a character that is neither ``<`` nor in
    ``excluded``, or ``<`` and characters that no marker begins with. After ``<``, it also matches ``escape``."""

    def build_continuation(remainders: list[str]) -> str:
        """Build the rule for text that must not continue with any of ``remainders``, because each of them would
        complete a marker."""
        firsts = dict.fromkeys(rest[0] for rest in remainders)
        known = "".join(map(_list_cases, firsts))
        parts = [f"[^<{known}{excluded}]", *([escape] if escape else [])]
        for first in firsts:
            next_remainders = [rest[1:] for rest in remainders if rest[0] == first]
            if all(next_remainders):
                parts.append(f"[{_list_cases(first)}] {build_continuation(next_remainders)}")
        return f"({join_alternatives(parts)})"

    return f'[^<{excluded}] | "<"+ {build_continuation([marker[1:] for marker in markers])}'


def _list_cases(char: str) -> str:
    """Return a character's lower and upper case, escaped for a GBNF character class."""
    return "".join(
        item if item.isalnum() or not item.isascii() else f"\\x{ord(item):02X}"
        for item in dict.fromkeys((char, char.upper()))
    )
