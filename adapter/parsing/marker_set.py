"""Sets of literal markers, and how the first of them in a text is found, also while the text is arriving.

A search costs little where no marker is, whatever their number: what is looked for is a character that each of
them has and prose rarely has, and no pattern is compiled before a text needs it.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from itertools import pairwise, starmap
from typing import TypeAlias

_NEVER = "(?!)"
_AFTER_ANCHOR = 3
"""Characters after a marker's anchor that are looked at before it is looked up: with all of them, the pattern for the
markers of every family takes longer to compile than most answers to read."""
ROUGH = 4_000
"""Characters that a set looks through for its anchors alone, before it compiles the pattern for what may stand around
them: for the markers of every family that takes longer than to read a short answer."""
_KELVIN = "\u212a"
"""The one sign beside ASCII's letters that is one of them in lower case."""

Found: TypeAlias = tuple[int, int]
"""Where a marker begins and ends in a text."""


class MarkerSet:
    """A set of literal markers to look for, in any letter case.

    Each marker has an *anchor*: a character at a fixed place in it that is rare in prose, where it has one.
    A regular expression looks for anchors, after the first texts with what may be a marker around them; the longest
    marker there is looked up in a sorted list. All is made when first needed: of the sets that a parser has, an answer
    needs few.
    """

    def __init__(self, *literals: str) -> None:
        lowered = {sys.intern(literal.lower()) for literal in literals}  # which the sets of all sessions share
        self.literals = tuple(sorted(lowered, key=lambda s: (-len(s), s)))
        self.longest = max(map(len, self.literals), default=0)
        self._whole: MarkerSet | None = None
        self._searched = 0

    def part(self, *literals: str) -> MarkerSet:
        """Some of these markers, which are looked for as all of them are, without a pattern of their own."""
        some = MarkerSet(*literals)
        some._whole, some.overlap, some.nests = self, self.overlap, self.nests
        return some

    @cached_property
    def _offsets(self) -> dict[str, list[int]]:
        if self._whole is not None:
            return self._whole._offsets
        return {
            spelling: sorted(offsets, reverse=True)
            for char, offsets in _by_anchor(self.literals).items()
            for spelling in (char, char.upper())
        }

    @cached_property
    def _sorted(self) -> list[str]:
        """With an empty one before them, which is no marker."""
        return ["", *sorted(self.literals)]

    @cached_property
    def _shorter(self) -> dict[str, str]:
        """The longest other marker that each begins with; the empty one where there is none."""
        shorter, beginnings = dict[str, str](), [""]
        for literal in self._sorted[1:]:
            while not literal.startswith(beginnings[-1]):
                beginnings.pop()
            shorter[literal] = beginnings[-1]
            beginnings.append(literal)
        return shorter

    @cached_property
    def starts(self) -> tuple[str, ...]:
        """What a marker of more than one character may begin with."""
        firsts = {literal[0] for literal in self.literals if len(literal) > 1}
        return tuple(sorted({spelling for first in firsts for spelling in (first, first.upper())}))

    @cached_property
    def overlap(self) -> bool:
        """Whether one may begin another; with this False `StreamBuffer.may_go_on` need not look."""
        return any(second.startswith(first) for first, second in pairwise(self._sorted[1:]))

    @cached_property
    def nests(self) -> bool:
        """Whether one may hold another, before its own end: with this False none waits for what began before it."""
        return any(MarkerSet.search(self, literal, 1, len(literal) - 1) for literal in self.literals)

    @cached_property
    def matters(self) -> re.Pattern[str]:
        """Matches at the beginning of every text that holds a marker, or a part of one."""
        characters = re.escape("".join({*self.starts, *self._offsets}))
        return re.compile(f"[^{characters}]*+[{characters}]" if characters else _NEVER)

    @cached_property
    def _start(self) -> re.Pattern[str]:
        return re.compile(f"[{re.escape(''.join(self.starts))}]" if self.starts else _NEVER)

    def _anchors(self, length: int) -> re.Pattern[str]:
        """Finds the places of anchors in a text of so many characters, all at which a marker stands among them."""
        if self._whole is not None:
            return self._whole._anchors(length)
        self._searched += length
        return self._any_anchor if self._searched <= ROUGH else self._at_anchor

    @cached_property
    def _any_anchor(self) -> re.Pattern[str]:
        return re.compile(f"[{re.escape(''.join(self._offsets))}]" if self._offsets else _NEVER)

    @cached_property
    def _at_anchor(self) -> re.Pattern[str]:
        return re.compile("|".join(self._branches()) or _NEVER)

    def _branches(self) -> list[str]:
        """A pattern for each anchor, with what may be a marker around it."""
        return list(starmap(_at_anchor, _by_anchor(self.literals).items()))

    @cached_property
    def _sign(self) -> re.Pattern[str]:
        """Finds an anchor that has beside it what some marker has there, as a group, or the end of the text where
        that may become the beginning of a marker, before its anchor."""
        by_anchor = _by_anchor(self.literals)
        begun = {literal[: _anchor_of(literal)] for literal in self.literals} - {""}
        if not by_anchor.keys().isdisjoint("".join(begun)):
            return re.compile("()")
        beginnings: dict[str, list[str]] = {}
        for text in sorted(begun):
            beginnings.setdefault(text[0], []).append(text[1:])
        behind = {char: f"(?:{_beside(char, by_offset)})()" for char, by_offset in by_anchor.items()}
        behind |= {first: rf"(?:{_any_beginning(rests)})?\Z" for first, rests in beginnings.items()}
        branches = [re.escape(one) + rest for char, rest in behind.items() for one in _spellings(char)]
        return re.compile("|".join(branches) or _NEVER)

    def plain_end(self, text: str) -> int:
        """Where the end of ``text`` begins that may still become a marker; -1 where there is one already."""
        sign = self._sign.search(text)
        if sign is None:
            return len(text)
        if not sign.lastindex:
            return sign.start()
        return self.held(text, 0) if self.search(text, 0) is None else -1

    def search(self, text: str, start: int, end: int = sys.maxsize) -> Found | None:
        """The first marker that begins at ``start`` or later and ends by ``end``."""
        search, at = self._anchors(min(end, len(text)) - start).search, start
        while (anchor := search(text, at, end)) is not None:
            place = anchor.start()
            if (found := self._around(text, place, start, end)) is not None:
                return found
            at = place + 1
        return None

    def _around(self, text: str, place: int, start: int, end: int) -> Found | None:
        """The first marker that has its anchor at ``place``."""
        for offset in self._offsets[text[place]]:
            if place - offset >= start and (found := self.match(text, place - offset, end)) is not None:
                return found
        return None

    def match(self, text: str, start: int, end: int = sys.maxsize) -> Found | None:
        """The longest marker that begins at ``start`` and ends by ``end``."""
        ahead = text[start : start + self.longest]
        is_ascii, ahead = ahead.isascii(), ahead.lower()
        literal = self._sorted[bisect_right(self._sorted, ahead) - 1]
        while literal:
            stop = start + len(literal)
            if ahead.startswith(literal) and stop <= end and (is_ascii or _is_spelled(literal, text[start:stop])):
                return start, stop
            literal = self._shorter[literal]
        return None

    def may_start_with(self, text: str) -> bool:
        """Whether more text could turn ``text`` into a marker."""
        if not text or len(text) >= self.longest:
            return False
        begun = text.lower()
        place = bisect_right(self._sorted, begun)
        return place < len(self._sorted) and self._sorted[place].startswith(begun)

    def held(self, text: str, start: int) -> int:
        """Where the end of ``text`` begins that may still become a marker; its length if none may."""
        place = max(start, len(text) - self.longest + 1)
        while (found := self._start.search(text, place)) is not None:
            place = found.start()
            if self.may_start_with(text[place:]):
                return place
            place += 1
        return len(text)


class WeakMarkerSet(MarkerSet):
    """`MarkerSet` of which those in ``weak`` are passed over where what that says of them follows: they mean nothing."""

    def __init__(self, weak: Mapping[str, str], *literals: str) -> None:
        super().__init__(*literals, *weak)
        self._weak = weak
        self._idle = {literal: re.compile(idle) for literal, idle in weak.items()}
        self.overlap = self.nests = True  # of many some do, and to find out which takes longer than to look

    def _branches(self) -> list[str]:
        strong = _by_anchor(literal for literal in self.literals if literal not in self._weak)
        return [*starmap(_at_anchor, strong.items()), *starmap(_unless, self._weak.items())]

    def _around(self, text: str, place: int, start: int, end: int) -> Found | None:
        """As of other sets; a weak one only where there is no other."""
        weak = None
        for offset in self._offsets[text[place]]:
            if place - offset >= start and (found := self.match(text, place - offset, end)) is not None:
                idle = self._idle.get(text[found[0] : found[1]].lower())
                if idle is None:
                    return found
                weak = weak or (None if idle.match(text, found[1], end) else found)
        return weak


def _is_spelled(literal: str, text: str) -> bool:
    """Whether ``text``, which may hold any sign, is ``literal`` in some letter case of its own letters."""
    return text.lower() == literal and _KELVIN not in text


def _anchor_of(literal: str) -> int:
    """The place of the first character in ``literal`` that is no letter, digit or space; 0 when all are."""
    return next((at for at, char in enumerate(literal) if not (char.isalnum() or char.isspace() or char == "_")), 0)


def _by_anchor(literals: Iterable[str]) -> dict[str, dict[int, list[str]]]:
    """The literals by their anchor and by its place in them."""
    anchored: dict[str, dict[int, list[str]]] = {}
    for literal in literals:
        offset = _anchor_of(literal)
        anchored.setdefault(literal[offset], {}).setdefault(offset, []).append(literal)
    return anchored


def _at_anchor(char: str, by_offset: Mapping[int, list[str]]) -> str:
    """A pattern for ``char`` where it may be the anchor of a marker; what precedes it is looked back at."""
    branches = []
    for offset, literals in sorted(by_offset.items(), reverse=True):
        behind = {literal[:offset] + char for literal in literals}
        branches += [f"(?<={_any_case(text)})" for text in sorted(behind)] if offset else []
    branches += [_rest([literal[1 : 1 + _AFTER_ANCHOR] for literal in by_offset.get(0, [])])] if 0 in by_offset else []
    return f"{_any_case(char)}(?:{'|'.join(branches)})"


def _beside(char: str, by_offset: Mapping[int, list[str]]) -> str:
    """A pattern behind ``char`` where the characters before and after it may be those of a marker."""
    after = {literal[1:2] for literal in by_offset.get(0, [])}
    before = {literal[offset - 1] for offset, literals in by_offset.items() for literal in literals if offset}
    sides = [f"(?<={_one_of(before)}{_any_case(char)})"] if before else []
    return "|".join(sides + ([_then(after)] if after else []))


def _one_of(characters: Iterable[str]) -> str:
    """A pattern for one of ``characters``, in any letter case."""
    return f"[{re.escape(''.join(spelling for char in sorted(characters) for spelling in _spellings(char)))}]"


def _spellings(char: str) -> Iterable[str]:
    """``char`` in lower and upper case."""
    return dict.fromkeys((char, char.upper() if len(char.upper()) == 1 else char))


def _any_beginning(literals: Iterable[str]) -> str:
    """A pattern for each beginning of each of the literals."""
    rests: dict[str, list[str]] = {}
    for literal in filter(None, literals):
        rests.setdefault(literal[0], []).append(literal[1:])
    return "|".join(f"{_any_case(first)}(?:{_any_beginning(rest)})?" for first, rest in rests.items())


def _unless(literal: str, idle: str) -> str:
    """A pattern for the anchor of ``literal`` where that does not have ``idle`` behind it."""
    offset = _anchor_of(literal)
    before, char, after = map(re.escape, (literal[:offset], literal[offset], literal[offset + 1 :]))
    return f"{char}{f'(?<={before}{char})' if offset else ''}(?={after}(?!{idle}))"


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


def first_two(literals: Iterable[str]) -> str:
    """A pattern for the first two characters of each of the literals, in any letter case, or the first at the end."""
    seconds: dict[str, set[str]] = {}
    for literal in literals:
        seconds.setdefault(literal[0], set()).add(literal[1:2])
    return "|".join(_any_case(first) + _then(some) for first, some in seconds.items())


def _then(characters: set[str]) -> str:
    """A pattern for one of ``characters``, or the end of the text; for nothing where one of them is empty."""
    return "" if "" in characters else rf"(?:{_one_of(characters)}|\Z)"


def _rest(rests: list[str], *, exact: bool = False) -> str:
    if len(rests) > 1:
        return f"(?:{alternatives(rests, exact=exact)})"
    return re.escape(rests[0]) if exact else _any_case(rests[0])


def _any_case(text: str) -> str:
    return "".join(f"[{char}{char.upper()}]" if "a" <= char <= "z" else re.escape(char) for char in text)


@lru_cache(maxsize=512)
def markers_for(*literals: str) -> MarkerSet:
    """`MarkerSet` that are made once: making them costs more than reading a short text."""
    return MarkerSet(*literals)
