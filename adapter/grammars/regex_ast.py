r"""The subset of regular expressions that a schema's ``pattern`` may use, read into a tree.

It is what tools use: characters, classes, groups, ``|``, repetitions, and the anchors at both ends. What is not in it
(look-around, references, ``\b``, ``\p{...}``, flags) is not followed. Where ECMAScript and Python differ (``\w``,
``\d``, ``\s``) only what both admit is in the tree.

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
"""llama.cpp reads larger bounds of a repetition as none."""

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Code points, first and last, in order and apart."""


@dataclass(frozen=True, slots=True)
class CharSet:
    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Repeat:
    """``most``: None without a bound."""

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
    """The pattern has something that is not in the subset."""


def parse_regex(pattern: str) -> Node:
    """The tree of a regular expression. Raises NotFollowed, and RecursionError for one that nests too deep."""
    return _PatternReader(pattern).whole()


def _joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return tuple(joined)


def subtract_ranges(ranges: Ranges, left_out: Ranges) -> Ranges:
    """The code points of ``ranges`` that are not in ``left_out``."""
    kept = list(ranges)
    for first, last in left_out:
        kept = [
            part
            for low, high in kept
            for part in ((low, min(high, first - 1)), (max(low, last + 1), high))
            if part[0] <= part[1]
        ]
    return _joined(set(kept))


# Control characters but for these three, DEL and its like, and half surrogate pairs are nothing to write.
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
# Of what a negated class leaves out, all that either of the two readings means.
ALL_OF: dict[str, Ranges] = {
    "s": ALL_SPACE,
    "D": subtract_ranges(((0, 0x10FFFF),), DIGITS),
    "W": subtract_ranges(((0, 0x10FFFF),), WORD),
}
ALL_OF |= {"d": (*DIGITS, (0x80, 0x10FFFF)), "w": _joined((*WORD, (0x80, 0x10FFFF)))}
ALL_OF |= {"S": subtract_ranges(((0, 0x10FFFF),), SPACE)}
ESCAPES = {"n": 10, "t": 9, "r": 13, "f": 12, "v": 11, "0": 0}
_CODE = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})")
_COUNT = re.compile(r"\{(\d{1,4})(?:(,)(\d{1,4})?)?\}")
_GROUP = re.compile(r"\?(?::|P?<[A-Za-z_]\w*>)")


class _PatternReader:
    def __init__(self, pattern: str) -> None:
        self._text, self._at = pattern, 0

    def whole(self) -> Node:
        node = self._pattern()
        if self._at < len(self._text):
            raise UnsupportedPattern  # a bracket too many
        return node

    def _pattern(self) -> Node:
        choices = [self._sequence()]
        while self._takes("|"):
            choices.append(self._sequence())
        return choices[0] if len(choices) == 1 else Alternation(tuple(choices))

    def _sequence(self) -> Node:
        items: list[Node] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            items.append(self._repeated(self._atom()))
        return items[0] if len(items) == 1 else Concat(tuple(items))

    def _repeated(self, atom: Node) -> Node:
        bounds: tuple[int, int | None] | None = None
        if self._takes("*"):
            bounds = 0, None
        elif self._takes("+"):
            bounds = 1, None
        elif self._takes("?"):
            bounds = 0, 1
        elif count := _COUNT.match(self._text, self._at):
            self._at = count.end()
            fewest = int(count[1])
            bounds = fewest, (int(count[3]) if count[3] else None if count[2] else fewest)
        if bounds is None:
            return atom
        fewest, most = bounds
        if isinstance(atom, Anchor) or fewest > MOST_TIMES or (most or 0) > MOST_TIMES:
            raise UnsupportedPattern
        self._takes("?")  # how eagerly it is matched makes no difference to what is
        if self._text[self._at : self._at + 1] in ("*", "+"):
            raise UnsupportedPattern
        return Repeat(atom, fewest, most)

    def _atom(self) -> Node:
        character = self._next()
        match character:
            case "(":
                if group := _GROUP.match(self._text, self._at):
                    self._at = group.end()
                elif self._text.startswith("?", self._at):
                    raise UnsupportedPattern
                node = self._pattern()
                if not self._takes(")"):
                    raise UnsupportedPattern
                return node
            case "[":
                return CharSet(self._class())
            case ".":
                return CharSet(NO_LINE_END)
            case "^" | "$":
                return Anchor(character)
            case "\\":
                ranges, _ = self._escape()
                return CharSet(_written(ranges))
            case "*" | "+" | "?":
                raise UnsupportedPattern
            case "{" if self._text.startswith(",", self._at):
                raise UnsupportedPattern  # a repetition in Python, and itself in ECMAScript
            case _:
                return CharSet(_written(single_character(ord(character))))

    def _class(self) -> Ranges:
        is_negated = self._takes("^")
        ranges: list[tuple[int, int]] = []
        is_first = True
        while is_first or not self._takes("]"):
            is_first = False
            first, name = self._member()
            if name:
                ranges += ALL_OF[name] if is_negated else first
            elif self._text.startswith("-", self._at) and not self._text.startswith("-]", self._at):
                self._at += 1
                last, name = self._member()
                if name or last[0][0] < first[0][0]:
                    raise UnsupportedPattern
                ranges.append((first[0][0], last[0][0]))
            else:
                ranges += first
        return subtract_ranges(ANY, _joined(ranges)) if is_negated else _written(_joined(ranges))

    def _member(self) -> tuple[Ranges, str]:
        character = self._next()
        if character == "\\":
            if self._takes("b"):
                raise UnsupportedPattern  # a backspace here
            return self._escape()
        return single_character(ord(character)), ""

    def _escape(self) -> tuple[Ranges, str]:
        """What is meant, and the letter of a class."""
        if code := _CODE.match(self._text, self._at):
            self._at = code.end()
            return single_character(int(code[1] or code[2], 16)), ""
        letter = self._next()
        if letter in CLASSES:
            return CLASSES[letter], letter
        if letter in ESCAPES:
            return single_character(ESCAPES[letter]), ""
        if letter.isalnum():
            raise UnsupportedPattern
        return single_character(ord(letter)), ""

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise UnsupportedPattern
        self._at += 1
        return self._text[self._at - 1]

    def _takes(self, sign: str) -> bool:
        found = self._text.startswith(sign, self._at)
        self._at += len(sign) * found
        return found


def single_character(code: int) -> Ranges:
    return ((code, code),)


def _written(ranges: Ranges) -> Ranges:
    """Those of them that can be written."""
    return subtract_ranges(ANY, subtract_ranges(((0, 0x10FFFF),), ranges))
