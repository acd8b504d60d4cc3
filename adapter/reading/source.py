"""Text that arrives in pieces, and the few ways in which readers take it.

A reader is a generator: it takes text from a `Source` and yields when it needs
more. It is resumed when more has come, or when none will (``source.final``).
Every decision depends on the text alone, never on where it was split, because
a piece that may still become a marker is waited for; and every character is
looked at a bounded number of times.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Iterable, Mapping
from copy import copy
from functools import cached_property, lru_cache
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Reader: TypeAlias = Generator[None, None, T]
"""Yields when it needs more text; returns what it read."""

SPACE = " \t\r\n\f\v\ufeff\u200b\u200c\u200d\u2060"
"""White space between tokens, with the invisible characters that some models emit."""

_spaces = re.compile(f"[{SPACE}]*")


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
    def _patterns(self) -> _Patterns:
        return _Patterns(self.literals)

    @property
    def anchors(self) -> tuple[str, ...]:
        """Each marker holds one of these characters."""
        return tuple(self._offsets)

    def search(self, text: str, start: int, end: int = sys.maxsize) -> re.Match[str] | None:
        """The first marker that begins at ``start`` or later and ends by ``end``."""
        end, at = min(end, len(text)), start
        while (anchor := self._at_anchor.search(text, at, end)) is not None:
            at = anchor.start() + 1
            for offset in self._offsets[text[at - 1]]:
                if at - 1 - offset >= start and (found := self.match(text, at - 1 - offset, end)):
                    return found
        return None

    def match(self, text: str, start: int, end: int = sys.maxsize) -> re.Match[str] | None:
        """The longest marker that begins at ``start`` and ends by ``end``."""
        return self._patterns[text[start : start + _BEGINNING].lower()].match(text, start, end)

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

    def search(self, text: str, start: int, end: int = sys.maxsize) -> re.Match[str] | None:
        found = super().search(text, start, end)
        while found is not None and found.group() in self._weak and self._idle.match(text, found.start()):
            found = super().search(text, found.start() + 1, end)
        return found


class Either:
    """Two sets of `Markers` as one, where making one of all would cost far more than the smaller of them.

    Where both have a marker the longer one is taken, or with ``first_wins`` that of the first.
    """

    def __init__(self, first: Markers, second: Markers | Either, *, first_wins: bool = False) -> None:
        self._first, self._second, self._first_wins = first, second, first_wins
        self.longest: int = max(first.longest, second.longest)
        self.overlap = True

    @property
    def literals(self) -> tuple[str, ...]:
        return self._first.literals + self._second.literals

    @property
    def anchors(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._first.anchors + self._second.anchors))

    @property
    def starts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._first.starts + self._second.starts))

    def search(self, text: str, start: int, end: int = sys.maxsize) -> re.Match[str] | None:
        end, width = min(end, len(text)), _FIRST_WINDOW
        while True:  # neither set is looked for much further than where the other has a marker
            stop = min(start + width, end)
            first = self._first.search(text, start, stop)
            near = stop if first is None else min(first.start() + self.longest, stop)
            found = self._better(first, self._second.search(text, start, near))
            if stop == end or (found is not None and found.start() + self.longest <= stop):
                return found
            width *= 8

    def match(self, text: str, start: int) -> re.Match[str] | None:
        return self._better(self._first.match(text, start), self._second.match(text, start))

    def _better(self, first: re.Match[str] | None, second: re.Match[str] | None) -> re.Match[str] | None:
        if first is None or second is None:
            return first or second
        if first.start() == second.start():
            return first if self._first_wins or first.end() >= second.end() else second
        return first if first.start() < second.start() else second

    def may_begin(self, text: str) -> bool:
        return self._first.may_begin(text) or self._second.may_begin(text)

    def held(self, text: str, start: int) -> int:
        return min(self._first.held(text, start), self._second.held(text, start))


_NEVER = "(?!)"
_BEGINNING = 4
"""Characters by which a marker is looked up."""
_AFTER_ANCHOR = 6
"""Characters after a marker's anchor that are looked at before it is looked up: with all of them, the pattern for the
markers of every family takes longer to compile than most answers to read."""
_FIRST_WINDOW = 512
"""Characters that the first step of a search in two sets looks at."""


def _anchor_of(literal: str) -> int:
    """The place of the first character in ``literal`` that is no letter, digit or space; 0 when all are."""
    return next((at for at, char in enumerate(literal) if not (char.isalnum() or char.isspace() or char == "_")), 0)


def _at_anchor(char: str, by_offset: Mapping[int, list[str]]) -> str:
    """A pattern for ``char`` where it may be the anchor of a marker; what precedes it is looked back at."""
    branches = []
    for offset, literals in sorted(by_offset.items(), reverse=True):
        behind = {literal[:offset] + char for literal in literals}
        branches += [f"(?<={_any_case(text)})" for text in sorted(behind)] if offset else []
    branches += [_rest([literal[1 : 1 + _AFTER_ANCHOR] for literal in by_offset.get(0, [])])] if 0 in by_offset else []
    return f"{_any_case(char)}(?:{'|'.join(branches)})"


def alternatives(literals: Iterable[str]) -> str:
    """A pattern for the longest literal that fits, in any letter case.

    A tree, each branch of which begins with a literal or a set of characters: `re` decides
    between such branches by their first character alone.
    """
    branches: dict[str, list[str]] = {}
    for literal in dict.fromkeys(literals):
        branches.setdefault(literal[:1], []).append(literal[1:])
    is_optional = branches.pop("", None) is not None
    pattern = "|".join(_any_case(first) + _rest(rests) for first, rests in branches.items())
    return f"(?:{pattern})?" if is_optional else pattern


def _rest(rests: list[str]) -> str:
    return _any_case(rests[0]) if len(rests) == 1 else f"(?:{alternatives(rests)})"


def _any_case(text: str) -> str:
    return "".join(f"[{char}{char.upper()}]" if "a" <= char <= "z" else re.escape(char) for char in text)


class _Patterns(dict[str, re.Pattern[str]]):
    """A pattern for the longest literal, by how the text begins there, each compiled when first needed."""

    def __init__(self, literals: Iterable[str]) -> None:
        self._literals: dict[str, list[str]] = {}
        for literal in literals:
            self._literals.setdefault(literal[:_BEGINNING], []).append(literal)

    def __missing__(self, beginning: str) -> re.Pattern[str]:
        if beginning and beginning not in self._literals:
            return self[beginning[:-1]]
        begun = [beginning[:end] for end in range(len(beginning), 0, -1)]
        fitting = [literal for some in begun for literal in self._literals.get(some, ())]
        self[beginning] = re.compile(alternatives(fitting) or _NEVER, re.ASCII)
        return self[beginning]


@lru_cache(maxsize=512)
def markers_for(*literals: str) -> Markers:
    """`Markers` that are made once: making them costs more than reading a short text."""
    return Markers(*literals)


class Sink:
    """Takes a long value into ``span``. While its reader waits, pieces at whose beginning ``matters`` does not match,
    which could not change what the reader does, may be put into it without asking the reader."""

    __slots__ = ("_start", "matters", "span")

    def __init__(self, span: list[str], matters: re.Pattern[str]) -> None:
        self.span, self.matters = span, matters
        self._start = len(span)

    def take(self, piece: str) -> None:
        self.span.append(piece)
        if len(self.span) - self._start >= 256:  # a stream's piece of four characters takes sixty bytes
            self.span[self._start :] = ["".join(self.span[self._start :])]
            self._start += 1

    def wait(self, source: Source) -> Reader[None]:
        """Yield for more text than what went into the sink."""
        if source.is_empty:
            source.sink = self
        yield
        source.sink = None


class Source:
    """The text not yet taken. ``finish_reason`` is known once the text is ``final``."""

    __slots__ = ("_before", "final", "finish_reason", "position", "sink", "text")

    def __init__(self, text: str = "", *, final: bool = False, finish_reason: str | None = None) -> None:
        self.text = text
        self.position = 0
        self.final = final
        self.finish_reason = finish_reason
        self._before = 0  # characters that came before ``text``
        self.sink: Sink | None = None

    @property
    def offset(self) -> int:
        """How many characters have been taken since the text began."""
        return self._before + self.position

    @property
    def end(self) -> int:
        """How many characters have come since the text began."""
        return self._before + len(self.text)

    def since(self, offset: int) -> str:
        """What has come from ``offset`` on, of a place that was reached with the last piece."""
        return self.text[max(0, offset - self._before) :]

    def feed(self, piece: str) -> None:
        self._before += self.position
        self.text = self.text[self.position :] + piece if self.position < len(self.text) else piece
        self.position = 0

    def skip(self, piece: str) -> None:
        """Take ``piece``, which comes after all else was taken, without looking at it."""
        self._before += len(piece)

    def unread(self, text: str) -> None:
        """Put text back in front of what is left."""
        start = self.position - len(text)
        if start >= 0 and self.text.startswith(text, start):
            self.position = start
        else:
            self._before += start
            self.text = text + self.text[self.position :]
            self.position = 0

    def rest(self) -> str:
        """Take all that is there."""
        rest = self.text[self.position :]
        self.position = len(self.text)
        return rest

    def scan(self, markers: Markers | Either) -> tuple[str, str]:
        """Take the text up to the next marker, and the marker; "" for it when none has come (yet)."""
        found = markers.search(self.text, self.position)
        start = self.position
        if found is not None and not self.may_go_on(found, markers):
            self.position = found.end()
            return self.text[start : found.start()], found.group()
        self.position = len(self.text) if self.final else markers.held(self.text, start)
        return self.text[start : self.position], ""

    def may_go_on(self, found: re.Match[str], markers: Markers | Either) -> bool:
        """Whether a longer marker may still be arriving in this one's place."""
        if self.final or not markers.overlap or len(self.text) - found.start() >= markers.longest:
            return False
        return markers.may_begin(self.text[found.start() :])

    @property
    def is_empty(self) -> bool:
        """Whether all that has come was taken."""
        return self.position >= len(self.text)

    @property
    def was_cut(self) -> bool:
        """Whether the server said that the text ended too early."""
        return self.finish_reason in ("length", "incomplete", "content_filter", "error", "cancelled")


def collect(source: Source, markers: Markers, span: list[str]) -> Reader[str]:
    """Take text into ``span`` up to the next marker. Returns the marker, taken but not in ``span``; "" at the end."""
    sink = Sink(span, markers.matters)
    while True:
        plain, marker = source.scan(markers)
        if plain:
            sink.take(plain)
        if marker or source.final:
            return marker
        yield from sink.wait(source)


def skip_space(source: Source, span: list[str]) -> Reader[str]:
    """Take white space into ``span``. Returns the character after it, not taken; "" at the end."""
    while True:
        found = _spaces.match(source.text, source.position)
        if found is not None and found.end() > source.position:
            span.append(found.group())
            source.position = found.end()
        if source.position < len(source.text):
            return source.text[source.position]
        if source.final:
            return ""
        yield


def take_marker(source: Source, markers: Markers | Either) -> Reader[str]:
    """Take the marker that stands right here. Returns "" when there is none."""
    while True:
        found = markers.match(source.text, source.position)
        if found is not None and not source.may_go_on(found, markers):
            source.position = found.end()
            return found.group()
        ahead = source.text[source.position : source.position + markers.longest]
        if source.final or (ahead and not markers.may_begin(ahead)):
            return ""
        yield


def take_cut_marker(source: Source, literal: str, span: list[str]) -> None:
    """Take the beginning of ``literal`` into ``span`` where the text ends within it."""
    rest = source.text[source.position :]
    if source.final and rest and literal.startswith(rest.lower()):
        span.append(source.rest())


def take_until(source: Source, stop: str, limit: int, span: list[str]) -> Reader[str | None]:
    """Take text up to and with the character ``stop`` into ``span``; returns it without ``stop``.

    Returns None, nothing taken, when ``stop`` does not come within ``limit`` characters or the text ends first.
    """
    while True:
        end = source.text.find(stop, source.position, source.position + limit)
        if end >= 0:
            text = source.text[source.position : end]
            span.append(source.text[source.position : end + len(stop)])
            source.position = end + len(stop)
            return text
        if source.final or len(source.text) - source.position >= limit:
            return None
        yield


def find_ahead(source: Source, markers: Markers, limit: int) -> Reader[str]:
    """The marker that comes within ``limit`` characters, nothing taken; "" when none does."""
    while True:
        found = markers.search(source.text, source.position, source.position + limit + markers.longest)
        if found is not None:
            return found.group() if found.start() - source.position <= limit else ""
        if source.final or len(source.text) - source.position >= limit + markers.longest:
            return ""
        yield
