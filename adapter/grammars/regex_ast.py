r"""Parse the subset of regular expressions supported in a schema's ``pattern``.

The subset covers characters, classes, groups, ``|``, repetitions, and anchors at both ends. Look-around, references,
``\b``, ``\p{...}`` and flags are not supported. If ECMAScript and Python differ (``\w``, ``\d``, ``\s``), the tree
contains only the characters that match in both.

::

    pattern     = sequence *("|" sequence)
    sequence    = *(atom ["*" / "+" / "?" / "{" m ["," [n]] "}" ["?"]])
    atom        = character / "." / "[" class "]" / "\" escape / "(" ["?:" / "?<name>"] pattern ")" / "^" / "$"
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

MOST_TIMES = 1999
"""Maximum repetition bound; llama.cpp treats larger bounds as unbounded."""

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Code point ranges (first, last), sorted, neither overlapping nor adjacent."""


@dataclass(frozen=True, slots=True)
class CharSet:
    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Repeat:
    """A repeated node. ``most`` is None if the number of repetitions is unbounded."""

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
    """The pattern is not in the supported subset."""


def parse_regex(pattern: str) -> Node:
    """Parse a regular expression. Raises UnsupportedPattern, and RecursionError if it is nested too deeply."""
    return _PatternParser(pattern).parse()


def merge_ranges(ranges: Iterable[tuple[int, int]]) -> Ranges:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return tuple(merged)


def subtract_ranges(ranges: Ranges, excluded: Ranges) -> Ranges:
    """Return the code points of ``ranges`` that are not in ``excluded``."""
    kept = list(ranges)
    for first, last in excluded:
        kept = [
            part
            for low, high in kept
            for part in ((low, min(high, first - 1)), (max(low, last + 1), high))
            if part[0] <= part[1]
        ]
    return merge_ranges(set(kept))


# All characters except surrogates and control characters (but including tab and line breaks).
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

CLASSES: dict[str, Ranges] = {
    "d": DIGITS,
    "D": subtract_ranges(ASCII, DIGITS),
    "w": WORD,
    "W": subtract_ranges(ASCII, WORD),
    "s": SPACE,
    "S": subtract_ranges(ANY, ALL_SPACE),
}
# A negated class excludes the characters that match in either language.
ALL_MEANINGS: dict[str, Ranges] = {
    "s": ALL_SPACE,
    "D": subtract_ranges(((0, 0x10FFFF),), DIGITS),
    "W": subtract_ranges(((0, 0x10FFFF),), WORD),
}
ALL_MEANINGS |= {"d": (*DIGITS, (0x80, 0x10FFFF)), "w": merge_ranges((*WORD, (0x80, 0x10FFFF)))}
ALL_MEANINGS |= {"S": subtract_ranges(((0, 0x10FFFF),), SPACE)}
ESCAPES = {"n": 10, "t": 9, "r": 13, "f": 12, "v": 11, "0": 0}
_CODE = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})")
_COUNT = re.compile(r"\{(\d{1,4})(?:(,)(\d{1,4})?)?\}")
_GROUP = re.compile(r"\?(?::|P?<[A-Za-z_]\w*>)")


class _PatternParser:
    def __init__(self, pattern: str) -> None:
        self._source, self._at = pattern, 0

    def parse(self) -> Node:
        node = self._parse_pattern()
        if self._at < len(self._source):
            raise UnsupportedPattern  # an unmatched closing parenthesis
        return node

    def _parse_pattern(self) -> Node:
        choices = [self._parse_sequence()]
        while self._accept("|"):
            choices.append(self._parse_sequence())
        return choices[0] if len(choices) == 1 else Alternation(tuple(choices))

    def _parse_sequence(self) -> Node:
        items: list[Node] = []
        while self._at < len(self._source) and self._source[self._at] not in "|)":
            items.append(self._parse_repetition(self._parse_atom()))
        return items[0] if len(items) == 1 else Concat(tuple(items))

    def _parse_repetition(self, atom: Node) -> Node:
        bounds: tuple[int, int | None] | None = None
        if self._accept("*"):
            bounds = 0, None
        elif self._accept("+"):
            bounds = 1, None
        elif self._accept("?"):
            bounds = 0, 1
        elif count := _COUNT.match(self._source, self._at):
            self._at = count.end()
            fewest = int(count[1])
            bounds = fewest, (int(count[3]) if count[3] else None if count[2] else fewest)
        if bounds is None:
            return atom
        fewest, most = bounds
        if isinstance(atom, Anchor) or fewest > MOST_TIMES or (most or 0) > MOST_TIMES:
            raise UnsupportedPattern
        self._accept("?")  # a lazy repetition admits the same strings
        if self._source[self._at : self._at + 1] in ("*", "+"):
            raise UnsupportedPattern
        return Repeat(atom, fewest, most)

    def _parse_atom(self) -> Node:
        character = self._take_character()
        match character:
            case "(":
                if group := _GROUP.match(self._source, self._at):
                    self._at = group.end()
                elif self._source.startswith("?", self._at):
                    raise UnsupportedPattern
                node = self._parse_pattern()
                if not self._accept(")"):
                    raise UnsupportedPattern
                return node
            case "[":
                return CharSet(self._parse_class())
            case ".":
                return CharSet(NO_LINE_END)
            case "^" | "$":
                return Anchor(character)
            case "\\":
                ranges, _ = self._parse_escape()
                return CharSet(keep_writable(ranges))
            case "*" | "+" | "?":
                raise UnsupportedPattern
            case "{" if self._source.startswith(",", self._at):
                raise UnsupportedPattern  # a repetition in Python, a literal in ECMAScript
            case _:
                return CharSet(keep_writable(build_single_character(ord(character))))

    def _parse_class(self) -> Ranges:
        is_negated = self._accept("^")
        ranges: list[tuple[int, int]] = []
        is_first = True
        while is_first or not self._accept("]"):
            is_first = False
            first, name = self._parse_member()
            if name:
                ranges += ALL_MEANINGS[name] if is_negated else first
            elif self._source.startswith("-", self._at) and not self._source.startswith("-]", self._at):
                self._at += 1
                last, name = self._parse_member()
                if name or last[0][0] < first[0][0]:
                    raise UnsupportedPattern
                ranges.append((first[0][0], last[0][0]))
            else:
                ranges += first
        return subtract_ranges(ANY, merge_ranges(ranges)) if is_negated else keep_writable(merge_ranges(ranges))

    def _parse_member(self) -> tuple[Ranges, str]:
        character = self._take_character()
        if character == "\\":
            if self._accept("b"):
                raise UnsupportedPattern  # a backspace in a class
            return self._parse_escape()
        return build_single_character(ord(character)), ""

    def _parse_escape(self) -> tuple[Ranges, str]:
        """Return the characters that an escape matches, and the letter if it is a class escape."""
        if code := _CODE.match(self._source, self._at):
            self._at = code.end()
            return build_single_character(int(code[1] or code[2], 16)), ""
        letter = self._take_character()
        if letter in CLASSES:
            return CLASSES[letter], letter
        if letter in ESCAPES:
            return build_single_character(ESCAPES[letter]), ""
        if letter.isalnum():
            raise UnsupportedPattern
        return build_single_character(ord(letter)), ""

    def _take_character(self) -> str:
        if self._at >= len(self._source):
            raise UnsupportedPattern
        self._at += 1
        return self._source[self._at - 1]

    def _accept(self, sign: str) -> bool:
        accepted = self._source.startswith(sign, self._at)
        self._at += len(sign) * accepted
        return accepted


def build_single_character(code: int) -> Ranges:
    return ((code, code),)


def keep_writable(ranges: Ranges) -> Ranges:
    """Return the code points of ``ranges`` except control characters and surrogates."""
    return subtract_ranges(ANY, subtract_ranges(((0, 0x10FFFF),), ranges))
