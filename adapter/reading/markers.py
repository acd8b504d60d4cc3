"""Sets of literal markers, and how the first of them in a text is found, also while the text is arriving.

A search costs little where no marker is, whatever their number: what is looked for is a character that each of
them has and prose rarely has, and no pattern is compiled before a text needs it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from copy import copy
from functools import cached_property, lru_cache
from typing import TypeAlias

_NEVER = "(?!)"
_BEGINNING = 4
"""Characters by which a marker is looked up."""
_AFTER_ANCHOR = 6
"""Characters after a marker's anchor that are looked at before it is looked up: with all of them, the pattern for the
markers of every family takes longer to compile than most answers to read."""
_FIRST_WINDOW = 512
"""Characters that the first step of a search in two sets looks at."""
_KELVIN = "\u212a"
"""The one sign beside ASCII's letters that is one of them in lower case."""

Found: TypeAlias = tuple[int, int]
"""Where a marker begins and ends in a text."""


class Markers:
    """A set of literal markers to look for, in any letter case.

    Each marker has an *anchor*: a character at a fixed place in it that is rare in prose, where it has one.
    One regular expression looks for anchors with what may be a marker around them; the longest marker there is
    looked up by how it begins. All is made when first needed: of the sets that a parser has, an answer needs few.
    """

    def __init__(self, *literals: str) -> None:
        self.literals = tuple(sorted({literal.lower() for literal in literals}, key=lambda s: (-len(s), s)))
        self.longest = max(map(len, self.literals), default=0)

    @cached_property
    def _anchored(self) -> dict[str, dict[int, list[str]]]:
        """The literals by their anchor and by its place in them."""
        anchored: dict[str, dict[int, list[str]]] = {}
        for literal in self.literals:
            offset = _anchor_of(literal)
            anchored.setdefault(literal[offset], {}).setdefault(offset, []).append(literal)
        return anchored

    @cached_property
    def _offsets(self) -> dict[str, list[int]]:
        return {
            spelling: sorted(offsets, reverse=True)
            for char, offsets in self._anchored.items()
            for spelling in (char, char.upper())
        }

    @cached_property
    def _prefixes(self) -> set[str]:
        return {literal[:end] for literal in self.literals for end in range(1, len(literal))}

    @cached_property
    def starts(self) -> tuple[str, ...]:
        """What a marker of more than one character may begin with."""
        firsts = {literal[0] for literal in self.literals if len(literal) > 1}
        return tuple(sorted({spelling for first in firsts for spelling in (first, first.upper())}))

    @cached_property
    def overlap(self) -> bool:
        """Whether one may begin another; with this False `Source.may_go_on` need not look."""
        return any(literal in self._prefixes for literal in self.literals)

    @cached_property
    def nests(self) -> bool:
        """Whether one may hold another, before its own end: with this False none waits for what began before it."""
        return any(Markers.search(self, literal, 1, len(literal) - 1) for literal in self.literals)

    @cached_property
    def matters(self) -> re.Pattern[str]:
        """Matches at the beginning of every text that holds a marker, or a part of one."""
        characters = re.escape("".join({*self.starts, *self._offsets}))
        return re.compile(f"[^{characters}]*+[{characters}]" if characters else _NEVER)

    @cached_property
    def _start(self) -> re.Pattern[str]:
        return re.compile(f"[{re.escape(''.join(self.starts))}]" if self.starts else _NEVER)

    @cached_property
    def _at_anchor(self) -> re.Pattern[str]:
        branches = map(_at_anchor, self._anchored, self._anchored.values())
        return re.compile("|".join(branches) or _NEVER, re.ASCII)

    @cached_property
    def _short(self) -> tuple[str, ...]:
        return tuple(literal for literal in self.literals if len(literal) < _BEGINNING)

    @cached_property
    def _by_beginning(self) -> dict[str, tuple[str, ...]]:
        """The literals that a text may begin with, by its first characters; the longest first."""
        beginnings = {literal[:_BEGINNING] for literal in self.literals if len(literal) >= _BEGINNING}
        return {
            beginning: tuple(literal for literal in self.literals if beginning.startswith(literal[:_BEGINNING]))
            for beginning in beginnings
        }

    @property
    def anchors(self) -> tuple[str, ...]:
        """Each marker holds one of these characters."""
        return tuple(self._offsets)

    def search(self, text: str, start: int, end: int = sys.maxsize) -> Found | None:
        """The first marker that begins at ``start`` or later and ends by ``end``."""
        search, at = self._at_anchor.search, start
        while (anchor := search(text, at, end)) is not None:
            place = anchor.start()
            for offset in self._offsets[text[place]] if anchor.lastindex else (0,):
                if place - offset >= start and (found := self.match(text, place - offset, end)):
                    return found
            at = place + 1
        return None

    def match(self, text: str, start: int, end: int = sys.maxsize) -> Found | None:
        """The longest marker that begins at ``start`` and ends by ``end``."""
        ahead = text[start : start + self.longest].lower()
        for literal in self._by_beginning.get(ahead[:_BEGINNING], self._short):
            if ahead.startswith(literal):
                stop = start + len(literal)
                if stop <= end and text[start:stop].lower() == literal and _KELVIN not in text[start:stop]:
                    return start, stop
        return None

    def may_begin(self, text: str) -> bool:
        """Whether more text could turn ``text`` into a marker."""
        return len(text) < self.longest and text.lower() in self._prefixes

    def held(self, text: str, start: int) -> int:
        """Where the end of ``text`` begins that may still become a marker; its length if none may."""
        place = max(start, len(text) - self.longest + 1)
        while (found := self._start.search(text, place)) is not None:
            place = found.start()
            if self.may_begin(text[place:]):
                return place
            place += 1
        return len(text)


class Candidates(Markers):
    """`Markers` of which ``weak`` ones are passed over where ``idle`` matches: what follows shows they mean nothing."""

    def __init__(self, weak: Iterable[str], idle: re.Pattern[str], *literals: str) -> None:
        super().__init__(*literals, *weak)
        self._weak, self._idle = frozenset(weak), idle

    def idling(self, idle: re.Pattern[str]) -> Candidates:
        """The same markers with another ``idle``."""
        other = copy(self)
        other._idle = idle
        return other

    def search(self, text: str, start: int, end: int = sys.maxsize) -> Found | None:
        found = super().search(text, start, end)
        while found is not None and text[found[0] : found[1]] in self._weak and self._idle.match(text, found[0]):
            found = super().search(text, found[0] + 1, end)
        return found


class Either:
    """Two sets of `Markers` as one, where making one of all would cost far more than the smaller of them.

    Where both have a marker the longer one is taken, or with ``first_wins`` that of the first.
    """

    def __init__(self, first: Markers, second: Markers | Either, *, first_wins: bool = False) -> None:
        self._first, self._second, self._first_wins = first, second, first_wins
        self.longest: int = max(first.longest, second.longest)
        self.overlap = self.nests = True

    @property
    def literals(self) -> tuple[str, ...]:
        return self._first.literals + self._second.literals

    @property
    def anchors(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._first.anchors + self._second.anchors))

    @property
    def starts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._first.starts + self._second.starts))

    def search(self, text: str, start: int, end: int = sys.maxsize) -> Found | None:
        end, width = min(end, len(text)), _FIRST_WINDOW
        while True:  # neither set is looked for much further than where the other has a marker
            stop = min(start + width, end)
            second = self._second.search(text, start, stop)
            near = stop if second is None else min(second[0] + self.longest, stop)
            found = self._better(self._first.search(text, start, near), second)
            if stop == end or (found is not None and found[0] + self.longest <= stop):
                return found
            start = max(start, stop - self.longest)
            width *= 8

    def match(self, text: str, start: int) -> Found | None:
        return self._better(self._first.match(text, start), self._second.match(text, start))

    def _better(self, first: Found | None, second: Found | None) -> Found | None:
        if first is None or second is None:
            return first or second
        if first[0] == second[0]:
            return first if self._first_wins or first[1] >= second[1] else second
        return first if first[0] < second[0] else second

    def may_begin(self, text: str) -> bool:
        return self._first.may_begin(text) or self._second.may_begin(text)

    def held(self, text: str, start: int) -> int:
        return min(self._first.held(text, start), self._second.held(text, start))


def _anchor_of(literal: str) -> int:
    """The place of the first character in ``literal`` that is no letter, digit or space; 0 when all are."""
    return next((at for at, char in enumerate(literal) if not (char.isalnum() or char.isspace() or char == "_")), 0)


def _at_anchor(char: str, by_offset: Mapping[int, list[str]]) -> str:
    """A pattern for ``char`` where it may be the anchor of a marker; what precedes it is looked back at."""
    branches = []
    for offset, literals in sorted(by_offset.items(), reverse=True):
        behind = {literal[:offset] + char for literal in literals}
        branches += [f"(?<={_any_case(text)})()" for text in sorted(behind)] if offset else []
    branches += [_rest([literal[1 : 1 + _AFTER_ANCHOR] for literal in by_offset.get(0, [])])] if 0 in by_offset else []
    return f"{_any_case(char)}(?:{'|'.join(branches)})"


def alternatives(literals: Iterable[str], *, exact: bool = False) -> str:
    """A pattern for the longest literal that fits, in any letter case unless ``exact``.

    A tree, each branch of which begins with a literal or a set of characters: `re` decides
    between such branches by their first character alone.
    """
    branches: dict[str, list[str]] = {}
    for literal in dict.fromkeys(literals):
        branches.setdefault(literal[:1], []).append(literal[1:])
    is_optional = branches.pop("", None) is not None
    spelled = re.escape if exact else _any_case
    pattern = "|".join(spelled(first) + _rest(rests, exact=exact) for first, rests in branches.items())
    return f"(?:{pattern})?" if is_optional else pattern


def _rest(rests: list[str], *, exact: bool = False) -> str:
    if len(rests) > 1:
        return f"(?:{alternatives(rests, exact=exact)})"
    return re.escape(rests[0]) if exact else _any_case(rests[0])


def _any_case(text: str) -> str:
    return "".join(f"[{char}{char.upper()}]" if "a" <= char <= "z" else re.escape(char) for char in text)


@lru_cache(maxsize=512)
def markers_for(*literals: str) -> Markers:
    """`Markers` that are made once: making them costs more than reading a short text."""
    return Markers(*literals)
