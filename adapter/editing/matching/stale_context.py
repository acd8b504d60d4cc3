"""Locate changes whose context lines have changed since the model read the file.

If the lines to change occur verbatim, and the context favors one location over all others, only these lines are edited.
`Evidence` has the features of a location, each with one limit. A line next to the change must also be found there, and
the lines that enclose the change must match.

The agreement of the context is measured in bits. A line that occurs once in a thousand lines gives ten bits; a line
that occurs in every tenth line gives three. If a context line is not in the document, the most similar line counts
instead. Context lines are matched in order, outwards from the change, separately on each side, and within the block
that contains them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from math import log2
from typing import NamedTuple

from rapidfuzz import fuzz

from adapter.core.text.diffs import LineChange, find_changes
from adapter.editing.document import format_line_list
from adapter.editing.matching.document_index import DocumentIndex
from adapter.editing.matching.indentation_scope import find_owners, has_owner, has_same_guard
from adapter.editing.matching.normalize import count_letters, is_distinctive, list_keys, normalize_line
from adapter.editing.repairs.diff_markers import list_nonblank_lines
from adapter.editing.repairs.omission_markers import is_elision
from adapter.editing.repairs.reindent import measure_indent

MIN_BITS = 14.0
"""Minimum information, in bits, of the lines to change and the context lines that occur verbatim."""
MIN_VERBATIM = 0.5
"""Minimum share of the old text's information, in bits, that the lines counted for `MIN_BITS` must have."""
MAX_ELSEWHERE = 0.2
"""Maximum share of the old text's information, in bits, in lines that are found only elsewhere in the document."""
MIN_LEAD = 0.4
"""Minimum lead over every other occurrence of the lines to change, as a share of the best score."""
MAX_COMPARISONS = 60_000
"""Maximum number of line comparisons for one change, about 0.1 s. A change that needs more is not located."""
NEAR = 15
"""Number of document lines searched on each side, in addition to the number of context lines."""
MAX_SHOWN = 40
"""Maximum number of context lines that are used on each side: the nearest to the change."""
SKIPPED = 0.5
"""Bits deducted for each document line that is skipped between the location and a context line."""
MIN_SIMILARITY = 70.0
"""Minimum similarity, in percent, of a context line that does not occur verbatim."""
UNLIKE = 50.0
"""A context line with at most this similarity, in percent, counts as not found."""
MIN_SIZE = 250
"""Minimum document size, in lines, for computing line frequencies. A smaller document is assumed to have this size."""
MARK_BITS = 2.0
"""Maximum number of bits for a line of punctuation. Each letter or digit adds one bit."""


class AnchoredChange(NamedTuple):
    """A located change: at the 0-based line ``first``, ``old`` is replaced with ``new``. ``note`` lists the old text's
    lines that may differ from the file."""

    old: str
    new: str
    first: int
    note: str


class ContextMatch(NamedTuple):
    """The evidence for a location: the information, in bits, of the context lines found above and below it. ``rows``
    are the indexes of these lines in the old text."""

    above: float
    below: float
    rows: frozenset[int]

    @property
    def bits(self) -> float:
        return self.above + self.below


class Evidence(NamedTuple):
    """The evidence that a location is the intended one; see `MIN_BITS` and the limits below it."""

    bits: float
    verbatim: float
    elsewhere: float
    lead: float

    def is_enough(self) -> bool:
        is_known = self.bits >= MIN_BITS and self.verbatim >= MIN_VERBATIM
        return is_known and self.elsewhere <= MAX_ELSEWHERE and self.lead >= MIN_LEAD


class _Anchor(NamedTuple):
    """The old lines ``rows`` and their location, the document's lines ``first`` to ``last``."""

    rows: range
    first: int
    last: int


def find_anchored_changes(search: DocumentIndex, old: Sequence[str], new: Sequence[str]) -> list[AnchoredChange]:
    """Return all changes of a patch in order, or an empty list if one of them cannot be located with certainty."""
    hunks = find_changes(old, new)
    if any(is_elision(line) for line in (*old, *new)):
        return []
    context = ContextScorer(search, old)
    anchors = _Anchors(context)
    located = [anchor for hunk in hunks if (anchor := anchors.find(hunk)) is not None]
    if any(anchors.is_applied(hunk, new) for hunk in hunks):
        return []
    if len(located) < len(hunks) or any(after.first <= before.last for before, after in pairwise(located)):
        return []
    return [_build_anchored_change(context, new, hunk, anchor) for hunk, anchor in zip(hunks, located, strict=True)]


def _build_anchored_change(
    context: ContextScorer, new: Sequence[str], hunk: LineChange, anchor: _Anchor
) -> AnchoredChange:
    old, (start, stop) = context.old, (anchor.rows.start, anchor.rows.stop)
    written = [*old[start : hunk.start], *new[hunk.new_start : hunk.new_end], *old[hunk.end : stop]]
    outside = [row + 1 for row, key in enumerate(context.keys) if key and row not in anchor.rows]
    note = (
        f"only the changed lines were matched: {format_line_list(outside)} of the old text may differ from the file; "
        "the file's own lines were kept"
    )
    context_text, changed = ("".join(line + "\n" for line in lines) for lines in (old[start:stop], written))
    return AnchoredChange(context_text, changed, anchor.first, note)


class ContextScorer:
    """Measures how much of the old text's context occurs around a location in the document."""

    def __init__(self, search: DocumentIndex, old: Sequence[str]) -> None:
        self.search, self.old = search, old
        self.keys = [normalize_line(line) for line in old]
        self.counts = {key: len(search.find_lines_with_key(key)) for key in self.keys if key}
        self._depths = [measure_indent(line) for line in old]
        self._gains: dict[tuple[str, str], float] = {}

    def sum_bits(self, rows: Iterable[int]) -> float:
        """Return the total weight, in bits, of the old lines at ``rows`` that occur verbatim in the document."""
        return sum(self._weights[key] for row in rows if (key := self.keys[row]) and self.counts[key])

    def sum_weights(self, rows: Iterable[int]) -> float:
        """Return the total weight, in bits, of the old lines at ``rows``."""
        return sum(self._weights[self.keys[row]] for row in rows)

    def score_location(self, rows: range, first: int, last: int) -> ContextMatch:
        """Score the context of ``rows`` around the document's lines ``first`` to ``last``."""
        depth = min((self._depths[row] for row in rows if self.keys[row]), default=0)
        above, below = self.list_context_rows(rows)
        up, found_above = self._score_side(above, range(first - 1, -1, -1), depth)
        down, found_below = self._score_side(below, range(last + 1, len(self.search.keys)), depth)
        return ContextMatch(up, down, found_above | found_below)

    def count_comparisons(self, rows: range) -> int:
        """Return the number of line comparisons needed to score one location."""
        return sum(len(side) * (len(side) + NEAR) for side in self.list_context_rows(rows))

    def list_context_rows(self, rows: range) -> tuple[list[int], list[int]]:
        """Return the non-blank context rows above and below a change, each from the change outwards."""
        above = [row for row in range(rows.start - 1, -1, -1) if self.keys[row]]
        below = [row for row in range(rows.stop, len(self.old)) if self.keys[row]]
        return above[:MAX_SHOWN], below[:MAX_SHOWN]

    @cached_property
    def _weights(self) -> dict[str, float]:
        size = max(len(self.search.nonblank_lines), MIN_SIZE) + 1
        return {
            key: min(log2(size / max(count, 1)), MARK_BITS + count_letters(key)) for key, count in self.counts.items()
        }

    def _score_side(self, rows: Sequence[int], lines: range, depth: int) -> tuple[float, frozenset[int]]:
        """Match ``rows`` with ``lines``, both outwards from the change. Return the best score and the rows found."""
        keys = self._take_block(lines, min((depth, *(self._depths[row] for row in rows))), NEAR + len(rows))
        best = (0.0, frozenset[int]())
        before = [(-SKIPPED * count, frozenset[int]()) for count in range(len(keys) + 1)]
        for row in rows:
            current = before[:1]
            for column, key in enumerate(keys, start=1):
                skipped = current[-1]
                found = max(before[column], (skipped[0] - SKIPPED, skipped[1]), key=lambda one: one[0])
                gain = self._compute_gain(self.keys[row], key)
                if gain and before[column - 1][0] + gain > found[0]:
                    found = (before[column - 1][0] + gain, before[column - 1][1] | {row})
                current.append(found)
            before = current
            best = max(best, *current, key=lambda one: one[0])
        return best

    def _take_block(self, lines: range, depth: int, count: int) -> list[str]:
        """Return the normalized text of the next ``count`` non-blank lines. Stop at a line that is indented less than
        ``depth``."""
        block: list[str] = []
        for line in lines:
            key = self.search.keys[line]
            if not key:
                continue
            if len(block) == count or measure_indent(self.search.document.lines[line]) < depth:
                break
            block.append(key)
        return block

    def _compute_gain(self, context_line: str, key: str) -> float:
        if context_line == key:
            return self._weights[context_line]
        if self.counts[context_line] or not is_distinctive(context_line):
            return 0.0
        gain = self._gains.get((context_line, key))
        if gain is None:
            similarity = fuzz.ratio(context_line, key, score_cutoff=MIN_SIMILARITY)
            gain = max(0.0, (similarity - UNLIKE) / (100 - UNLIKE)) * self._weights[context_line]
            self._gains[context_line, key] = gain
        return gain


class _Anchors:
    def __init__(self, context: ContextScorer) -> None:
        self.context, self.search, self.old = context, context.search, context.old
        self.keys, self.counts = context.keys, context.counts

    def find(self, hunk: LineChange) -> _Anchor | None:
        """Return the location of a change, or None if the location is uncertain."""
        context, rows = self.context, self._find_rows_to_match(hunk)
        locations = list(self._find_locations(rows)) if rows else []
        if not locations or self._count_shown(rows) > len(locations):
            return None
        if len(locations) * context.count_comparisons(rows) > MAX_COMPARISONS:
            return None
        scores = [(context.score_location(rows, *span), span) for span in locations]
        (best, span), *others = sorted(scores, key=lambda one: -one[0].bits)
        shown, bits = self.list_shown(rows), context.sum_bits(rows) + context.sum_bits(best.rows)
        total = context.sum_bits(rows) + context.sum_weights(shown)
        lead = best.bits - max((other.bits for other, _ in others), default=0.0)
        elsewhere = context.sum_bits(set(shown) - best.rows)
        evidence = Evidence(bits, bits / total, elsewhere / total, lead / max(best.bits, 1))
        anchor = _Anchor(rows, *span)
        is_near = any(row in best.rows for side in context.list_context_rows(rows) for row in side[:1])
        return anchor if is_near and evidence.is_enough() and self._is_in_scope(anchor, best.rows) else None

    def list_shown(self, rows: range) -> list[int]:
        return [row for side in self.context.list_context_rows(rows) for row in side]

    def is_applied(self, hunk: LineChange, new: Sequence[str]) -> bool:
        """Return whether the document already has the change's result. The location then only resembles the target."""
        added = list_keys(new[hunk.new_start : hunk.new_end])
        if not is_distinctive("".join(added)):
            above, below = self.context.list_context_rows(range(hunk.start, hunk.end))
            added = [*(self.keys[row] for row in above[:1]), *added, *(self.keys[row] for row in below[:1])]
        return is_distinctive("".join(added)) and bool(self.search.find_lines(added))

    def _find_rows_to_match(self, hunk: LineChange) -> range:
        """Return the range of old lines that a change removes. If it only inserts, return the range from the nearest
        non-blank line above it to the nearest one below it."""
        rows = range(hunk.start, hunk.end)
        above, below = self.context.list_context_rows(rows)
        nearest = [*above[:1], *below[:1]]
        return range(nearest[0], nearest[-1] + 1) if nearest and not rows else rows

    def _find_locations(self, rows: range) -> Iterator[tuple[int, int]]:
        """Yield the first and last line of each occurrence of the rows, ignoring trailing whitespace."""
        written = list_nonblank_lines(self.old[rows.start : rows.stop])
        for first, last in self.search.find_lines([self.keys[row] for row in rows if self.keys[row]]):
            if list_nonblank_lines(self.search.document.lines[first : last + 1]) == written:
                yield first, last

    def _count_shown(self, rows: range) -> int:
        """Return how often the old lines at ``rows`` occur in the old text. If they occur less often in the document,
        the model may mean an occurrence that has changed."""
        searched, nonblank = list_nonblank_lines(self.old[rows.start : rows.stop]), list_nonblank_lines(self.old)
        return sum(nonblank[at : at + len(searched)] == searched for at in range(len(nonblank)))

    def _is_in_scope(self, anchor: _Anchor, found: frozenset[int]) -> bool:
        """Return whether the location is in the same function, section or key as the change in the old text.

        An enclosing line may be renamed if all other lines are found, and a found line above the renamed one is unique.
        """
        lines = self.search.document.lines
        owners = find_owners(self.old, _find_shallowest(self.old, anchor.rows))
        actual = find_owners(lines, _find_shallowest(lines, range(anchor.first, anchor.last + 1))) if owners else set()
        others = [owner for owner in owners if not has_owner(actual, owner)]
        is_same = not others or self._differ_only(others, anchor.rows, found)
        return is_same and has_same_guard(self.old, anchor.rows.start, lines, anchor.first)

    def _differ_only(self, owners: Sequence[str], rows: range, found: frozenset[int]) -> bool:
        """Return whether the document has all context lines except ``owners``, and a unique one above them."""
        differing = [row for row in self.list_shown(rows) if row not in found or not self.counts[self.keys[row]]]
        above = [row for row in found if differing and row < min(differing)]
        return {self.keys[row] for row in differing} == {*owners} and any(
            self.counts[self.keys[row]] == 1 for row in above
        )


def _find_shallowest(lines: Sequence[str], span: range) -> int:
    return min((at for at in span if lines[at].strip()), key=lambda at: measure_indent(lines[at]))
