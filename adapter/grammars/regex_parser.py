r"""Parse the subset of regular expressions that is supported in a JSON Schema's ``pattern``, with Python's own parser.

The subset has characters, classes, groups, ``|``, repetitions, and anchors at both ends. Look-around, references,
``\b``, ``\p{...}`` and flags are not supported. Where ECMAScript and Python differ (``\w``, ``\d``, ``\s``), the tree
contains only the characters that match in both languages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from re import _constants as codes  # type: ignore[attr-defined,unused-ignore] # the parser of `re` has no public name
from re import _parser  # type: ignore[attr-defined,unused-ignore]
from typing import Any, TypeAlias

MOST_TIMES = 1999
"""Largest supported number of repetitions. llama.cpp treats a larger bound as unbounded."""

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Code point ranges (first, last), sorted and separate."""


@dataclass(frozen=True, slots=True)
class CharSet:
    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Repeat:
    """A repeated node. ``most`` is None if the number of repetitions is unlimited."""

    item: Node
    fewest: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Concat:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    choices: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Anchor:
    sign: str


Node: TypeAlias = CharSet | Repeat | Concat | Alternation | Anchor


class UnsupportedPattern(Exception):
    """Raised for a regular expression that is outside the supported subset."""


def parse_regex(pattern: str) -> Node:
    """Parse a regular expression. Raises UnsupportedPattern, and RecursionError if it is nested too deeply."""
    if _AMBIGUOUS.search(pattern):
        raise UnsupportedPattern
    try:
        parsed = _parser.parse(_NAMED_GROUP.sub("(?P<", pattern))
    except (re.error, OverflowError) as error:
        raise UnsupportedPattern from error
    if parsed.state.flags != re.UNICODE:
        raise UnsupportedPattern
    return _convert_sequence(parsed)


def merge_ranges(ranges: Iterable[tuple[int, int]]) -> Ranges:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return tuple(merged)


def subtract_ranges(ranges: Ranges, excluded: Ranges) -> Ranges:
    """Return the code points in ``ranges`` that are not in ``excluded``."""
    kept = list(ranges)
    for first, last in excluded:
        kept = [
            part
            for low, high in kept
            for part in ((low, min(high, first - 1)), (max(low, last + 1), high))
            if part[0] <= part[1]
        ]
    return merge_ranges(set(kept))


# All characters except surrogates and control characters, but including tab and line breaks.
ANY: Ranges = ((9, 10), (13, 13), (0x20, 0x7E), (0xA0, 0xD7FF), (0xE000, 0x10FFFF))
ASCII: Ranges = ((9, 10), (13, 13), (0x20, 0x7E))
DIGITS: Ranges = ((0x30, 0x39),)
WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
SPACE: Ranges = ((9, 10), (13, 13), (0x20, 0x20))
ALL_SPACE: Ranges = (
    *((9, 13), (0x1C, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x180E, 0x180E), (0x2000, 0x200A)),
    *((0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
)
NO_LINE_END = subtract_ranges(ANY, ((10, 10), (13, 13), (0x2028, 0x2029)))

CLASSES: dict[Any, Ranges] = {
    codes.CATEGORY_DIGIT: DIGITS,
    codes.CATEGORY_NOT_DIGIT: subtract_ranges(ASCII, DIGITS),
    codes.CATEGORY_WORD: WORD,
    codes.CATEGORY_NOT_WORD: subtract_ranges(ASCII, WORD),
    codes.CATEGORY_SPACE: SPACE,
    codes.CATEGORY_NOT_SPACE: subtract_ranges(ANY, ALL_SPACE),
}
# A negated class excludes the characters that match in either language.
ALL_MEANINGS: dict[Any, Ranges] = {
    codes.CATEGORY_SPACE: ALL_SPACE,
    codes.CATEGORY_NOT_DIGIT: subtract_ranges(((0, 0x10FFFF),), DIGITS),
    codes.CATEGORY_NOT_WORD: subtract_ranges(((0, 0x10FFFF),), WORD),
    codes.CATEGORY_DIGIT: (*DIGITS, (0x80, 0x10FFFF)),
    codes.CATEGORY_WORD: merge_ranges((*WORD, (0x80, 0x10FFFF))),
    codes.CATEGORY_NOT_SPACE: subtract_ranges(((0, 0x10FFFF),), SPACE),
}
_NAMED_GROUP = re.compile(r"(?<!\\)\(\?<(?=[A-Za-z_])")
"""ECMAScript's spelling of a named group."""
_AMBIGUOUS = re.compile(r"(?<!\\)\{,\d*\}|\\[Na]|\(\?#|\[(?:\\.|[^\]\\])*?(?:\[|--|&&|~~|\|\|)")
"""Matches syntax that means something else in ECMAScript, or may change in Python: repetitions without a minimum, named
characters, comments, and operators in classes."""


def _convert_sequence(nodes: Any) -> Node:
    items = [_convert_node(code, value) for code, value in nodes]
    return items[0] if len(items) == 1 else Concat(tuple(items))


def _convert_node(code: Any, value: Any) -> Node:
    match code:
        case codes.LITERAL | codes.NOT_LITERAL | codes.IN:
            return CharSet(convert_class(value if code is codes.IN else [(code, value)]))
        case codes.ANY:
            return CharSet(NO_LINE_END)
        case codes.AT if value in _ANCHORS:
            return Anchor(_ANCHORS[value])
        case codes.SUBPATTERN if not value[1] and not value[2]:
            return _convert_sequence(value[3])
        case codes.BRANCH:
            return Alternation(tuple(map(_convert_sequence, value[1])))
        case codes.MAX_REPEAT | codes.MIN_REPEAT:  # a lazy repetition matches the same strings
            fewest, most, inner = value
            most = None if most is codes.MAXREPEAT else most
            item = _convert_sequence(inner)
            if not isinstance(item, Anchor) and fewest <= MOST_TIMES and (most or 0) <= MOST_TIMES:
                return Repeat(item, fewest, most)
    raise UnsupportedPattern


_ANCHORS = {codes.AT_BEGINNING: "^", codes.AT_END: "$"}


def convert_class(items: Any) -> Ranges:
    """Return the characters of a class. ``items`` is the output of `re`'s parser for it."""
    is_negated = items[0][0] in (codes.NEGATE, codes.NOT_LITERAL)
    ranges: list[tuple[int, int]] = []
    for code, value in items:
        match code:
            case codes.LITERAL | codes.NOT_LITERAL:
                ranges.append((value, value))
            case codes.RANGE:
                ranges.append(value)
            case codes.CATEGORY:
                ranges += (ALL_MEANINGS if is_negated else CLASSES)[value]
    excluded = merge_ranges(ranges)
    return subtract_ranges(ANY, excluded if is_negated else subtract_ranges(((0, 0x10FFFF),), excluded))
