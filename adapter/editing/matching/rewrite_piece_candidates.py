"""Find the spans of a file that the pieces of its rewritten text may replace, and score these spans. A *piece* is the
text between two lines such as ``# ... existing code ...``, which represent omitted lines.

A span's score is the information in the lines that it shares with the piece (a rare line counts more than a frequent
one), minus the information in the lines that the piece would delete.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from math import log2
from typing import NamedTuple, TypeAlias

from rapidfuzz.fuzz import ratio

from adapter.core.text.diffs import find_changes
from adapter.editing.repairs.reindent import get_indent, measure_indent

MAX_SLACK = 60
"""A span may have at most twice the lines of its piece, plus this number."""
MAX_PLACES = 40
"""Maximum number of occurrences of a line that are tried as the start or end of a span."""
ANCHORS = 3
"""Number of a piece's lines, the rarest ones, whose occurrences in the file are used to find spans."""
NEAREST = 6
"""Number of occurrences of a piece's first line, and of its last line, tried for each occurrence of an anchor."""
NEAR = 12
"""Maximum distance, in lines, between a changed first or last line of a piece and its expected place."""
ALIKE = 85.0
"""Minimum similarity, in percent, of two lines for the new line to be certainly a change of the old one. A line that
declares another name is new."""
SIMILAR = 60.0
"""Minimum similarity, in percent, between a changed line and the line that it replaces."""
MAX_COMPARED = 20
"""Maximum number of added lines with which a deleted line is compared."""

NAME = re.compile(r"[^\W\d]\w*")
COMMENT = re.compile(r"\s*(?:#|//|\*|/\*|--|<!--)")
_DECLARED = re.compile(
    r"\s*(?!(?:return|await|yield|throw|new|else|case|not|if|elif|assert|raise|for|while|except|with)\b)"
    r"(?:[^\W\d]\w* +(?:\([^()]*\) +)?){1,4}[^\W\d]\w*(?=\(|\s*[:{]?$)"
)

_HEAD = re.compile(
    r"\s*(?:(?:const|let|mut|var|val|auto|final|static|export|public|private) +)*"
    r"([^\W\d][\w.]*)(?:, *\w+)*\??\s*(?::?=(?!=)|:)"
)
"""Matches the start of a line that assigns or declares a name."""
Head: TypeAlias = tuple[str, ...]
"""The indentation of a line, and the words that declare or assign a name."""


class Piece(NamedTuple):
    """Consecutive lines of the new text, without blank lines at the ends."""

    lines: list[str]
    depth: int | None
    """The indentation of the omission above these lines; None for the first piece."""
    is_last: bool
    """True if no omission follows these lines."""
    blank_above: int = 0
    """Number of blank lines before the first piece."""
    blank_below: int = 0
    """Number of blank lines after the last piece."""


class Placement(NamedTuple):
    """The lines ``start:end`` of the file that a piece replaces, and the ``score`` of this span in bits."""

    start: int
    end: int
    score: float

    def covers(self, lines: Sequence[int]) -> bool:
        """Return whether all ``lines``, in ascending order, are in the span."""
        return self.start <= lines[0] and lines[-1] < self.end


class PieceCandidates:
    """The possible spans of ``pieces`` in ``old``, the lines of a file."""

    def __init__(self, old: Sequence[str], pieces: Sequence[Piece]) -> None:
        self._old = [line.rstrip() for line in old]
        self._pieces = pieces
        self._places: dict[str, list[int]] = defaultdict(list)
        for index, line in enumerate(self._old):
            self._places[line].append(index)
        filled = [index for index, line in enumerate(self._old) if line]
        self._first, self._last = filled[0], filled[-1] + 1
        self._bits = [self._measure_bits(line) for line in self._old]
        self._sums = [0.0, *accumulate(self._bits)]

    def _occurs_once(self, line: str) -> bool:
        return len(self._places.get(line, ())) == 1

    def _sum_name_bits(self, names: Counter[str]) -> float:
        return sum(count * log2(2 * len(self._old) / len(self._lines_by_name[name])) for name, count in names.items())

    @cached_property
    def _lines_by_name(self) -> dict[str, list[int]]:
        """The lines of the file that contain each name."""
        lines: dict[str, list[int]] = defaultdict(list)
        for index, line in enumerate(self._old):
            for name in {*NAME.findall(line)}:
                lines[name].append(index)
        return lines

    def _find_only_line_with(self, text: str) -> int:
        """Return the only line of the file that contains ``text``. Return -1 if there is none, or if each name in
        ``text`` occurs in more than `MAX_PLACES` lines."""
        lines = min((self._lines_by_name.get(name, []) for name in NAME.findall(text)), key=len, default=[])
        found = [line for line in lines if text in self._old[line]] if len(lines) <= MAX_PLACES else []
        return found[0] if len(found) == 1 else -1

    @cached_property
    def _head_counts(self) -> Counter[Head]:
        return Counter(head for line in self._old for head in {*list_heads(line)})

    def _find_candidates(self, piece: Piece) -> set[Placement]:
        """Return the spans that begin and end like ``piece``, near occurrences of its rarest lines."""
        lines = [line.rstrip() for line in piece.lines]
        if piece.depth is None and piece.is_last:
            return {self._score(lines, self._first, self._last)}
        reach = 2 * len(lines) + MAX_SLACK
        found = {
            (start, end)
            for at, place in self._find_rare_line_places(piece, lines)
            for start in self._find_starts(piece, lines, at, place, reach)
            for end in self._find_ends(piece, lines, at, place, reach)
            if start < end
        }
        return {self._score(lines, start, end) for start, end in found}

    def _find_rare_line_places(self, piece: Piece, lines: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield the indexes of the rarest lines, the first line and the last line, each with its places in the file. If
        a line is frequent, only the places nearest to the file's start (for the first piece) or end (for the last)
        count."""
        counts = sorted((len(self._places[line]), at) for at, line in enumerate(lines) if line in self._places and line)
        for at in {*(at for _, at in counts[:ANCHORS]), 0, len(lines) - 1}:
            places = self._places.get(lines[at], [])
            if len(places) <= MAX_PLACES:
                yield from ((at, place) for place in places)
            elif piece.depth is None:
                yield from ((at, place) for place in places[:NEAREST])
            elif piece.is_last:
                yield from ((at, place) for place in places[-NEAREST:])

    def _find_starts(self, piece: Piece, lines: Sequence[str], at: int, place: int, reach: int) -> Sequence[int]:
        """Return the lines where a span can begin if ``lines[at]`` is line ``place`` of the file."""
        if piece.depth is None:
            return (self._first,) if place - self._first <= reach else ()
        places = self._places.get(lines[0])
        if not places:
            return self._find_similar(lines[: at + 1], place - at, place)
        stop = bisect_right(places, place)
        return [start for start in places[max(0, stop - NEAREST) : stop] if place - start <= reach]

    def _find_ends(self, piece: Piece, lines: Sequence[str], at: int, place: int, reach: int) -> Sequence[int]:
        """Return the lines before which a span can end if ``lines[at]`` is line ``place`` of the file."""
        if piece.is_last:
            return (self._last,) if self._last - place <= reach else ()
        places = self._places.get(lines[-1])
        if not places:
            similar = self._find_similar(lines[at:][::-1], place + len(lines) - 1 - at, place)
            return [index + 1 for index in similar]
        start = bisect_left(places, place)
        return [end + 1 for end in places[start : start + NEAREST] if end - place <= reach]

    def _find_similar(self, lines: Sequence[str], place: int, anchor: int) -> Sequence[int]:
        """Return the file's lines near ``place`` that ``lines[0]`` may replace: the most similar line and the nearest
        similar one. If ``lines`` may also be a new block that ends at ``anchor``, return ``anchor`` too."""
        near = range(max(0, place - NEAR), min(len(self._old), place + NEAR + 1))
        likeness = [(ratio(lines[0].strip(), self._old[at].strip()), -abs(at - place), at) for at in near]
        best, _, at = max(likeness, default=(0.0, 0, 0))
        has_same_name = _find_key(lines) == _find_key(self._old[at : at + len(lines)])
        similar = [each for each in likeness if each[0] >= SIMILAR]
        found = {max(similar)[2], max(similar, key=lambda each: each[1])[2]} if similar else ()
        depths = [measure_indent(line) for line in lines if line]
        may_be_new = (
            (best < ALIKE or not has_same_name)
            and min(depths[:-1]) <= depths[-1]
            and max(depths[:-1]) > min(depths[:-1])
        )
        return (*[anchor] * may_be_new, *found)

    def _measure_bits(self, line: str) -> float:
        if not any(map(str.isalnum, line)):
            return 0.5 if line else 0.1
        return log2(2 * len(self._old) / len(self._places[line]))

    def _score(self, lines: Sequence[str], start: int, end: int) -> Placement:
        """Return the span with its score. A line has more bits the rarer it is in the file.

        A kept line adds its bits, and a deleted line subtracts them. A line that is only reindented counts 0, and one
        replaced by a similar line subtracts a quarter of its bits. An added line that the file already contains once
        also subtracts its bits, because that line was probably meant to be kept.
        """
        score = self._sums[end] - self._sums[start]
        for change in find_changes(self._old[start:end], lines):
            added = lines[change.new_start : change.new_end][:MAX_COMPARED]
            bare = {line.strip() for line in added}
            for index in range(start + change.start, start + change.end):
                line = self._old[index]
                is_replaced = any(ratio(line, other) >= SIMILAR for other in added)
                score -= self._bits[index] * (1.0 if line.strip() in bare else 1.25 if is_replaced else 2)
            score -= sum(self._bits[self._places[line][0]] for line in added if self._occurs_once(line))
        return Placement(start, end, score)


def build_key(line: str) -> tuple[str, ...]:
    """Return the line's indentation and the words that declare a name, or an empty tuple if there is no declaration."""
    declared = _DECLARED.match(line)
    return (get_indent(line), *NAME.findall(declared[0])) if declared else ()


def build_head(line: str) -> tuple[str, str] | None:
    """Return the indentation of a line and the name that it assigns or declares. Return None for other lines."""
    head = _HEAD.match(line)
    return (get_indent(line), head[1]) if head else None


def list_heads(line: str) -> list[Head]:
    """Return the names that a line declares or assigns, with its indentation."""
    return [head for head in (build_key(line), build_head(line)) if head]


def _find_key(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the key of the first line that is not a comment."""
    return build_key(next((line for line in lines if line and not COMMENT.match(line)), ""))
