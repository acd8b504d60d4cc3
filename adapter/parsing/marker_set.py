"""Find the first of many literal markers in a text, even while the text is arriving.

The search looks for characters that occur in markers and rarely in prose, so it is fast in text without markers.
Patterns are compiled only when a search needs them.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property, lru_cache
from itertools import pairwise, starmap
from typing import TypeAlias

from adapter.parsing.marker_patterns import (
    build_anchor,
    build_beginnings,
    build_branch,
    build_neighbor_pattern,
    choose_anchors,
    equals_ignoring_case,
    join_firsts,
    list_letter_cases,
)

_NEVER = "(?!)"
ROUGH_SEARCH_LIMIT = 4_000
"""Number of characters that a `MarkerSet` searches with a simple pattern for anchors. After that, it compiles a pattern
that also has the characters around anchors. Compiling it takes longer than parsing a short answer."""
MAX_REPEATED = 3
"""Maximum number of occurrences of a `WeakMarker` near the end of the text that are kept back, because more text may
show that they are markers. An example is a line break that is followed by a name and two more line breaks."""
MarkerSpan: TypeAlias = tuple[int, int]
"""The start and the end of a marker in a text."""

_compile = lru_cache(maxsize=256)(re.compile)


class WeakMarker:
    """The condition under which ambiguous text, such as a line break, is a marker: ``pattern`` must match the text
    after it.

    If a group of the pattern matches, its text must also be in ``words``. Because the pattern does not contain the
    words, it is the same for all sessions and compiles only once.
    """

    __slots__ = ("pattern", "rough", "rough_beginning", "search", "words")

    max_undecided = 0
    """Maximum length of text after the marker for which `may_accept` can be true."""

    def __init__(self, pattern: str, words: Collection[str] = ()) -> None:
        self.pattern, self.words = pattern, words
        self.search = pattern
        """A stricter pattern for long text. It takes longer to compile, but has fewer false matches."""
        self.rough = ""
        """A pattern for short text. It compiles fast and matches wherever `pattern` does."""
        self.rough_beginning = ""
        """A pattern that matches where `may_accept` is true at the end of the text, except where `rough` matches."""

    def accepts(self, text: str, end: int) -> bool:
        """Return whether the text before ``end`` is a marker, according to the text after it."""
        match = _compile(self.pattern).match(text, end)
        return match is not None and (match.lastindex is None or match[match.lastindex] in self.words)

    def may_accept(self, text: str, end: int) -> bool:  # noqa: ARG002
        """Return whether more text could show that the text before ``end`` is a marker. The result is arbitrary if
        `accepts` is true."""
        return False


class MarkerSet:
    """A set of literal markers to search for, in any letter case.

    Each marker has an *anchor*: its first character from a small set that covers all markers, preferably punctuation. A
    regular expression finds anchors, at first alone, later with the characters around them. The longest marker at an
    anchor is then looked up in a sorted list. Patterns and lists are built on first use, because an answer needs few of
    the sets.
    """

    weak: Mapping[str, WeakMarker] = {}
    """The strings that are markers only before certain text (see `WeakMarkerSet`)."""

    def __init__(self, *literals: str) -> None:
        # A tuple needs a tenth of a set's memory; the strings are shared by all sessions.
        self._lowered = (*dict.fromkeys(sys.intern(literal.lower()) for literal in literals),)
        self._parent: MarkerSet | None = None
        self._base: MarkerSet | None = None
        """The set from which this set was extended without new anchors, or None."""
        self._searched = 0

    def select_subset(self, literals: Iterable[str]) -> MarkerSet:
        """Return a set with only ``literals``, which must be in this set, in lower case. It shares this set's search
        pattern."""
        some = MarkerSet()
        some._lowered = (*dict.fromkeys(literals),)
        some._parent, some.overlap, some.nests = self, self.overlap, self.nests
        return some

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """The markers in lower case, from the longest to the shortest."""
        return tuple(sorted(self._lowered, key=lambda s: (-len(s), s)))

    @cached_property
    def longest(self) -> int:
        """The length of the longest marker, or 0."""
        return max(map(len, self._lowered), default=0)

    @cached_property
    def _offsets(self) -> dict[str, list[tuple[int, str]]]:
        """Maps each anchor to pairs: an index of the anchor in markers that are not weak, and the first characters of
        the markers with the anchor at that index."""
        if self._parent is not None:
            return self._parent._offsets
        strong = self._anchored
        return {
            spelling: [(at, join_firsts(some)) for at, some in sorted(strong.get(char, {}).items(), reverse=True)]
            for char in self._anchors
            for spelling in (char, char.upper())
        }

    @property
    def _strong(self) -> Iterator[str]:
        """The markers that are not weak."""
        return (literal for literal in self.literals if literal not in self.weak)

    @cached_property
    def _anchors(self) -> frozenset[str]:
        return choose_anchors(self.literals)

    @property
    def _anchored(self) -> Mapping[str, Mapping[int, Sequence[str]]]:
        """The markers that are not weak, grouped by their anchor and its index in the marker."""
        if self._base is None:
            return self._grouped
        base = self._base._grouped
        added = self._group_by_anchor(set(self._lowered).difference(self._base._lowered))
        return {**base, **{char: _merge_groups(base.get(char, {}), groups) for char, groups in added.items()}}

    @cached_property
    def _grouped(self) -> Mapping[str, Mapping[int, Sequence[str]]]:
        return self._group_by_anchor(self._strong)

    def _group_by_anchor(self, literals: Iterable[str]) -> dict[str, dict[int, list[str]]]:
        """Group ``literals`` by their anchor, and then by the anchor's index."""
        anchored: dict[str, dict[int, list[str]]] = {}
        for literal in literals:
            offset = self._find_anchor(literal)
            anchored.setdefault(literal[offset], {}).setdefault(offset, []).append(literal)
        return anchored

    def _find_anchor(self, literal: str) -> int:
        places = [at for at, char in enumerate(literal) if char in self._anchors]
        return next((at for at in places if not literal[at].isspace()), places[0])

    @cached_property
    def _sorted(self) -> list[str]:
        """The sorted markers for a binary search, preceded by ""."""
        return ["", *sorted(self._lowered)]

    @cached_property
    def _shorter(self) -> dict[str, str]:
        """Maps each marker to the longest other marker that is its prefix, or to ""."""
        shorter, beginnings = dict[str, str](), [""]
        for literal in self._sorted[1:]:
            while not literal.startswith(beginnings[-1]):
                beginnings.pop()
            shorter[literal] = beginnings[-1]
            beginnings.append(literal)
        return shorter

    @cached_property
    def starts(self) -> tuple[str, ...]:
        """The first character of each marker that has more than one character, in lower and upper case."""
        firsts = {literal[0] for literal in self._lowered if len(literal) > 1}
        return tuple(sorted({spelling for first in firsts for spelling in (first, first.upper())}))

    @cached_property
    def overlap(self) -> bool:
        """True if a marker may be a prefix of another. If false, `StreamBuffer.may_continue` skips its check."""
        return any(second.startswith(first) for first, second in pairwise(self._sorted[1:]))

    @cached_property
    def nests(self) -> bool:
        """True if a marker may contain another before its end. If false, `StreamBuffer.is_within` skips its check."""
        return any(MarkerSet.search(self, literal, 1, len(literal) - 1) for literal in self.literals)

    @cached_property
    def stop_pattern(self) -> re.Pattern[str]:
        """A pattern that matches at the start of every text that contains a marker or part of a marker, and of some
        other texts."""
        characters = re.escape("".join({*self.starts, *self._offsets}))
        return re.compile(f"[^{characters}]*+[{characters}]" if characters else _NEVER)

    @cached_property
    def _start(self) -> re.Pattern[str]:
        return re.compile(f"[{re.escape(''.join(self.starts))}]" if self.starts else _NEVER)

    def _choose_pattern(self, length: int) -> re.Pattern[str]:
        """Return a pattern that finds every anchor of a marker, and perhaps other characters. ``length`` is the number
        of characters to search, which decides whether compiling a better pattern pays off."""
        if self._parent is not None:
            return self._parent._choose_pattern(length)
        self._searched += length
        return self._rough_pattern if self._searched <= ROUGH_SEARCH_LIMIT else self._exact_pattern

    @cached_property
    def _rough_pattern(self) -> re.Pattern[str]:
        rough = {literal: weak.rough for literal, weak in self.weak.items() if not self._offsets.get(literal, True)}
        return re.compile("|".join(re.escape(char) + rough.get(char, "") for char in self._offsets) or _NEVER)

    @cached_property
    def _exact_pattern(self) -> re.Pattern[str]:
        """A pattern with one branch per anchor, including the characters that may surround it."""
        strong = starmap(build_branch, self._anchored.items())
        weak = (build_anchor(literal, self._find_anchor(literal), weak.search) for literal, weak in self.weak.items())
        return re.compile("|".join([*weak, *strong]) or _NEVER)

    @cached_property
    def _hint_pattern(self) -> re.Pattern[str]:
        """A pattern for the first position at which the text may contain a marker.

        A match at an anchor with a fitting neighbor has an empty group. A match without a group is the start of a
        marker at the end of the text, whose anchor has not arrived.
        """
        by_anchor = {**self._anchored}
        for char, groups in self._group_by_anchor(self.weak).items():
            by_anchor[char] = _merge_groups(by_anchor.get(char, {}), groups)
        begun = {text[:at] for groups in by_anchor.values() for at, texts in groups.items() for text in texts} - {""}
        beginnings: dict[str, list[str]] = {}
        for text in sorted(begun):
            beginnings.setdefault(text[0], []).append(text[1:])
        behind = {char: f"(?:{build_neighbor_pattern(char, by_offset)})()" for char, by_offset in by_anchor.items()}
        behind |= {first: rf"(?:{build_beginnings(rests)})?\Z" for first, rests in beginnings.items()}
        behind |= {
            literal: f"(?:{weak.rough}()|{behind[literal]}|{weak.rough_beginning})"
            for literal, weak in self.weak.items()
            if weak.rough
        }
        branches = [re.escape(one) + rest for char, rest in behind.items() for one in list_letter_cases(char)]
        return re.compile("|".join(branches) or _NEVER)

    def find_plain_end(self, text: str) -> int:
        """Return the offset at which an incomplete marker may begin at the end of the text. Return the text's length if
        there is no such marker, and -1 if the text contains a complete one."""
        sign = self._hint_pattern.search(text)
        if sign is None:
            return len(text)
        if not sign.lastindex:
            return sign.start()
        return self.find_partial_start(text, 0) if self.search(text, 0) is None else -1

    def search(self, text: str, start: int, end: int = sys.maxsize) -> MarkerSpan | None:
        """Return the first marker that begins at ``start`` or later and ends at ``end`` or earlier, or None."""
        search, at = self._choose_pattern(min(end, len(text)) - start).search, start
        while (anchor := search(text, at, end)) is not None:
            index = anchor.start()
            if (marker := self._match_anchor(text, index, start, end)) is not None:
                return marker
            at = index + 1
        return None

    def _match_anchor(self, text: str, index: int, start: int, end: int) -> MarkerSpan | None:
        """Return the first marker whose anchor is at ``index``, or None."""
        for offset, firsts in self._offsets[text[index]]:
            begin = index - offset
            if begin < start or text[begin] not in firsts:
                continue
            marker = self.match(text, begin, end)
            if marker is not None and marker[1] > index:
                return marker
        return None

    def match(self, text: str, start: int, end: int = sys.maxsize) -> MarkerSpan | None:
        """Return the longest marker that begins at ``start`` and ends at ``end`` or earlier, or None."""
        ahead = text[start : start + self.longest]
        is_ascii, ahead = ahead.isascii(), ahead.lower()
        literal = self._sorted[bisect_right(self._sorted, ahead) - 1]
        while literal:
            stop = start + len(literal)
            if (
                ahead.startswith(literal)
                and stop <= end
                and (is_ascii or equals_ignoring_case(literal, text[start:stop]))
            ):
                return start, stop
            literal = self._shorter[literal]
        return None

    def may_start_with(self, text: str) -> bool:
        """Return whether more text could turn ``text`` into a marker."""
        if not text or len(text) >= self.longest:
            return False
        begun = text.lower()
        index = bisect_right(self._sorted, begun)
        return index < len(self._sorted) and self._sorted[index].startswith(begun)

    def find_partial_start(self, text: str, start: int) -> int:
        """Return the offset at which an incomplete marker may begin at the end of the text, or the text's length."""
        index = max(start, len(text) - self.longest + 1)
        while (match := self._start.search(text, index)) is not None:
            index = match.start()
            if self.may_start_with(text[index:]):
                return index
            index += 1
        return len(text)


class WeakMarkerSet(MarkerSet):
    """A `MarkerSet` that also has weak markers: strings that are markers only before certain text. ``weak`` maps each
    of these strings to its condition.

    No two weak markers have the same anchor.
    """

    def __init__(self, weak: Mapping[str, WeakMarker], *literals: str) -> None:
        super().__init__(*weak, *literals)
        self.weak = weak
        self.overlap = self.nests = True  # likely with so many markers; a check would cost more than it saves

    def with_weak_marker(self, literal: str, marker: WeakMarker) -> WeakMarkerSet:
        """Return a copy of this set in which ``marker`` is the condition for the weak marker ``literal``."""
        changed = copy(self)  # keeps most of the compiled search
        changed.__dict__.pop("_exact_pattern", None)
        changed.weak = {**self.weak, literal: marker}
        return changed

    def with_literals(self, weak: Mapping[str, WeakMarker], *literals: str) -> WeakMarkerSet:
        """Return a set that also contains ``literals``. ``weak`` replaces the conditions of the weak markers.

        The new set has the same anchors if these suffice for the new markers, because choosing anchors for all families
        takes longer than parsing most answers.
        """
        added = {sys.intern(literal.lower()) for literal in literals}.difference(self._lowered)
        if any(self._anchors.isdisjoint(literal) for literal in added):
            return WeakMarkerSet(weak, *self.literals, *added)
        extended = WeakMarkerSet(weak)
        extended._lowered = (*self._lowered, *added)
        extended._anchors, extended._base = self._anchors, self._base or self
        extended._offsets = {char: [*places] for char, places in self._offsets.items()}
        for char, by_offset in extended._group_by_anchor(added).items():
            firsts = dict(extended._offsets[char])
            firsts |= {at: firsts.get(at, "") + join_firsts(some) for at, some in by_offset.items()}
            extended._offsets |= dict.fromkeys((char, char.upper()), sorted(firsts.items(), reverse=True))
        return extended

    @cached_property
    def _weak_at(self) -> dict[str, tuple[str, int]]:
        """Maps the anchor of each weak marker to the marker and the anchor's index in it."""
        offsets = [(literal, self._find_anchor(literal)) for literal in self.weak]
        return {literal[offset]: (literal, offset) for literal, offset in offsets}

    def _match_anchor(self, text: str, index: int, start: int, end: int) -> MarkerSpan | None:
        """Return the longest marker whose anchor is at ``index``, or None. Weak markers whose condition is not met are
        skipped."""
        marker, weak = super()._match_anchor(text, index, start, end), self._weak_at.get(text[index])
        if marker is None and weak is not None:
            literal, offset = weak
            if index - offset >= start and text.startswith(literal, index - offset, end):
                marker = self.match(text, index - offset, end)
        if marker is None:
            return None
        begin, stop = marker
        literal = text[begin:stop]
        while literal in self.weak and not self.weak[literal].accepts(text, begin + len(literal)):
            literal = self._shorter[literal]
        return (begin, begin + len(literal)) if begin + len(literal) > index else None

    def find_partial_start(self, text: str, start: int) -> int:
        found = super().find_partial_start(text, start)
        for literal, weak in self._undecided:
            begin = found
            for _ in range(MAX_REPEATED):
                begin = text.rfind(literal, max(start, len(text) - weak.max_undecided), begin)
                if begin < 0:
                    break
                if weak.may_accept(text, begin + len(literal)):
                    found = begin
        return found

    @cached_property
    def _undecided(self) -> list[tuple[str, WeakMarker]]:
        return [(literal, weak) for literal, weak in self.weak.items() if weak.max_undecided]


def _merge_groups(
    groups: Mapping[int, Sequence[str]], others: Mapping[int, Sequence[str]]
) -> Mapping[int, Sequence[str]]:
    return {at: [*groups.get(at, ()), *others.get(at, ())] for at in {**groups, **others}}


@lru_cache(maxsize=512)
def get_marker_set(*literals: str) -> MarkerSet:
    """Return a cached `MarkerSet`. Building one takes longer than parsing a short text."""
    return MarkerSet(*literals)
