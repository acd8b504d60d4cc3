"""The rules of a grammar where a call's arguments are written one by one: text as it is, and all else as JSON.

::

    <tool_call>
    <function=write_file>
    <parameter=path>
    src/main.rs
    </parameter>
    </function>
    </tool_call>

What ends a value cannot stand in one: the rules for text leave out every marker of the format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from adapter.core.events import Json
from adapter.grammars.call_layout import KeyValueCallLayout
from adapter.grammars.regex_to_gbnf import string_rule_for_pattern
from adapter.grammars.rule_builder import (
    ESCAPE,
    LONGEST_REPETITION,
    GrammarBuilder,
    alternatives,
    gbnf_json_literal,
    gbnf_literal,
)
from adapter.grammars.schema_ir import (
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
from adapter.tools.coercion import type_name


class UnrepresentableValue(Exception):
    """Something that these pairs cannot hold."""


_CONTROL = r"\x00-\x08\x0B-\x1F\x7F"
"""What no text holds: control characters but tab and line feed."""
_ESCAPED = r'"\\\x00-\x1F\x7F'
"""What a string of JSON holds only as an escape."""
_PLAIN_NAME = re.compile(r"[\w.:/-]{1,200}")
SHORT = 200
"""Strings that a schema bounds to fewer characters are written without ``<``, so that each counts as one."""


class KeyValueGrammarBuilder(GrammarBuilder):
    """The rules where arguments are written one by one: text as it is, and all else as JSON without a marker in it."""

    def __init__(self, pairs: KeyValueCallLayout) -> None:
        self._frame, self.tail = pairs, ""
        self._start(pairs.colon, pairs.comma)
        self.bodies["char"] = f"{_unmarked(pairs.markers, _ESCAPED, ESCAPE)} | {ESCAPE}"
        self.bodies["short"] = f"[^<{_ESCAPED}] | {ESCAPE}"
        self.bodies["unit"] = _unmarked(pairs.markers, _CONTROL)
        self.bodies["plain"] = f"[^<{_CONTROL}]"
        self.bodies["visible"] = f"[^< \\t\\n{_CONTROL}]"

    def call(self, name: str, shape: Shape) -> str:
        if not isinstance(shape, ObjectShape) or not _PLAIN_NAME.fullmatch(name):
            raise UnrepresentableValue
        pairs = self._frame
        written = [self._pair(each, f"{name}-arguments-{each.name}") for each in shape.properties]
        needed = sum(each.required for each in shape.properties)
        following, last, none = map(gbnf_literal, (pairs.following, pairs.last, name + pairs.none))
        in_order = self._in_order(written, needed, following, name)
        some = [f"{gbnf_literal(name + pairs.first)} ({in_order}) {last}"] if written else []
        return alternatives(some if needed else [none, *some])

    def _pair(self, property: Property, hint: str) -> str:
        if not _PLAIN_NAME.fullmatch(property.name):
            raise UnrepresentableValue
        by_opening: dict[str, list[str]] = {}
        for opening, value in self._values(property.shape, hint):
            by_opening.setdefault(opening, []).append(value)
        values = (f"{gbnf_literal(opening)} ({alternatives(each)})" for opening, each in by_opening.items())
        return self.add(hint, f"{gbnf_literal(property.name)} ({alternatives(values)})")

    def _values(self, shape: Shape, hint: str) -> Iterator[tuple[str, str]]:
        """What a value of this shape may be, each with the text before it."""
        openings = self._frame.openings
        match shape:
            case UnionShape(shapes):
                has_text = any(isinstance(each, StringShape) for each in shapes)
                for number, each in enumerate(shapes, 1):
                    kind = _TYPES.get(type(each), "null")
                    # Where text may stand, all but null is read as text, unless the tag says what it is.
                    if not (has_text and kind != "null" and openings[kind] == openings["string"]):
                        yield from self._values(each, f"{hint}-{number}")
            case EnumShape(values):
                for value in values:
                    if isinstance(value, str):
                        yield openings["string"], self._text(value)
                    else:
                        yield openings[type_name(value)], self._literal(value)
            case StringShape(shortest, longest, pattern):
                written = None if pattern is None else string_rule_for_pattern(pattern, shortest, longest, is_bare=True)
                yield openings["string"], written or self._bare(shortest, longest)
            case AnyShape():
                yield openings["string"], "unit{1,400}"
            case _:
                yield openings[_TYPES[type(shape)]], self.expression(shape, hint)

    def _string(self, shortest: int, longest: int | None) -> str:
        if longest is None or longest >= SHORT:
            return super()._string(shortest, longest)
        return self.add(f"string-{shortest}-{longest}", rf'"\"" short{{{shortest},{longest}}} "\""')

    def _bare(self, shortest: int, longest: int | None) -> str:
        start = f"visible{{{shortest},{shortest}}} " if 0 < shortest <= LONGEST_REPETITION else ""
        if longest is None or longest > LONGEST_REPETITION:
            return f"{start}unit*"
        piece = "plain" if longest < SHORT else "unit"
        return f"{start}{piece}{{0,{longest - shortest}}}"

    def _literal(self, value: Json) -> str:
        return self._text(gbnf_json_literal(value))

    def _text(self, text: str) -> str:
        if not self._frame.holds(text):
            raise UnrepresentableValue
        return gbnf_literal(text)


_TYPES: Mapping[type, str] = {
    NumberShape: "number", Boolean: "boolean", Null: "null",
    ArrayShape: "array", TupleShape: "array", ObjectShape: "object", MapShape: "object",
}  # fmt: skip


def _unmarked(markers: Iterable[str], never: str, escape: str = "") -> str:
    """A piece of text that begins none of ``markers``: mostly a character. ``never``: of a class, what it is not."""

    def after(rests: list[str]) -> str:
        """What may follow where all of ``rests`` might still come."""
        firsts = dict.fromkeys(rest[0] for rest in rests)
        known = "".join(map(_either_case, firsts))
        parts = [f"[^<{known}{never}]", *([escape] if escape else [])]
        for first in firsts:
            further = [rest[1:] for rest in rests if rest[0] == first]
            if all(further):
                parts.append(f"[{_either_case(first)}] {after(further)}")
        return f"({alternatives(parts)})"

    return f'[^<{never}] | "<"+ {after([marker[1:] for marker in markers])}'


def _either_case(char: str) -> str:
    """A character as a GBNF class has it, also as a capital; what could mean something there by its number."""
    return "".join(
        each if each.isalnum() or not each.isascii() else f"\\x{ord(each):02X}"
        for each in dict.fromkeys((char, char.upper()))
    )
