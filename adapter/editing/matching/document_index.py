"""An index of a document, shared by all patches that are matched against the document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, compress, islice

from rapidfuzz import fuzz, process
from rapidfuzz.distance import LCSseq

from adapter.editing.document import TextDocument
from adapter.editing.matching.line_similarity import LineComparer
from adapter.editing.matching.normalize import fold_typography, normalize_line
from adapter.editing.repairs.reindent import measure_indent

MAX_PLACES = 10_000
"""Maximum number of matches to find. Text that repeats itself could have far more."""
MIN_LONG = 120
"""Minimum length of a long line, in characters."""
MIN_LIKENESS = 50.0
"""Minimum similarity, in percent, at which two lines count as similar. Unrelated lines of code reach 30 to 45."""
MAX_SIMILAR = 10
"""Maximum number of similar lines that are returned, the most similar first."""
MAX_VERBATIM = 1_000
"""Maximum number of locations checked for verbatim lines."""


class DocumentIndex:
    """Searches the lines of a document for exact and similar lines. A *key* is the normalized text of a line."""

    def __init__(self, document: TextDocument) -> None:
        self.document = document
        self._similar: dict[str, list[tuple[str, float, int]]] = {}

    @cached_property
    def keys(self) -> list[str]:
        """The lines with whitespace and typographic characters normalized."""
        if self.document.view.isascii():
            return [" ".join(line.split()) for line in self.document.lines]
        return [normalize_line(line) for line in self.document.lines]

    @cached_property
    def verbatim_lines(self) -> set[str]:
        return {*self.document.lines}

    @cached_property
    def long_lines(self) -> list[int]:
        """The indexes of the lines that are long enough to be minified code."""
        return [index for index, line in enumerate(self.document.lines) if len(line) >= MIN_LONG]

    @cached_property
    def folded_view(self) -> str:
        """The view with typographic characters replaced by plain ones, at unchanged offsets."""
        return fold_typography(self.document.view)

    @cached_property
    def nonblank_lines(self) -> list[int]:
        """Indexes of the lines that are not blank."""
        return list(compress(range(len(self.keys)), self.keys))

    def find_lines_with_key(self, key: str) -> Sequence[int]:
        """Return the indexes of the lines whose normalized text is ``key``."""
        return self._places.get(key, ())

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for line, key in enumerate(self.keys):
            places.setdefault(key, []).append(line)
        return places

    def find_similar(self, key: str) -> list[tuple[str, float, int]]:
        """Return the lines most similar to ``key``, a normalized line, best first: for each its normalized text, the
        similarity in percent, and its index. Results are cached."""
        lines = self._similar.get(key)
        if lines is None:
            lines = self._similar[key] = process.extract(
                key, self.keys, scorer=fuzz.ratio, score_cutoff=MIN_LIKENESS, limit=MAX_SIMILAR
            )
        return lines

    @cached_property
    def comparer(self) -> LineComparer:
        return LineComparer(self.document.view)

    @cached_property
    def _joined_keys(self) -> str:
        return "\n" + "\n".join(filter(None, self.keys)) + "\n"

    def find_keys(self, keys: Sequence[str]) -> Iterator[range]:
        """Yield the ranges of ``nonblank_lines`` at which ``keys``, normalized lines, occur in a row."""
        if any(key not in self._places for key in keys):
            return
        for start in self._find_in_keys("\n" + "\n".join(keys) + "\n"):
            yield range(start, start + len(keys))

    def find_lines_containing(self, text: str, at_start: bool = False) -> list[int]:
        """Return the indexes of the lines whose normalized text contains ``text`` or, with ``at_start``, begins with
        it."""
        if at_start:
            return [self.nonblank_lines[start] for start in self._find_in_keys("\n" + text)]
        return list(dict.fromkeys(self.nonblank_lines[start - 1] for start in self._find_in_keys(text)))

    def _find_in_keys(self, text: str) -> Iterator[int]:
        """Yield the number of line feeds before each occurrence of ``text`` in the joined normalized lines."""
        count = counted = 0
        for offset in find_occurrences(self._joined_keys, text):
            count += self._joined_keys.count("\n", counted, offset)
            counted = offset
            yield count

    def find_lines(self, keys: Sequence[str]) -> list[tuple[int, int]]:
        """Return the first and last line of each place where ``keys``, normalized lines, occur in a row. Blank lines of
        the document are ignored."""
        if not keys or not self.nonblank_lines:
            return []
        return [
            (self.nonblank_lines[found.start], self.nonblank_lines[found.stop - 1]) for found in self.find_keys(keys)
        ]

    def find_verbatim(self, wanted: Sequence[str], reach: int, apart_from: range) -> int | None:
        """Return the first line of a range of at most ``reach`` lines that contains ``wanted`` in order, or None.

        The range must not begin in the lines ``apart_from``. Trailing whitespace is ignored. If at least three lines
        are wanted, one may be missing. A single wanted line is never found.
        """
        needed = len(wanted) - (len(wanted) > 2)
        view = self.document.view
        if len(wanted) < 2 or sum("\n" + line in view for line in wanted) < needed - 1:
            return None
        starts = (offset + 1 for line in wanted[:2] for offset in find_occurrences(view, "\n" + line))
        for first in dict.fromkeys(map(self.document.find_line, islice(chain([0], starts), MAX_VERBATIM))):
            here = [line.rstrip() for line in self.document.lines[first : first + reach]]
            is_possible = first not in apart_from and here[0] in wanted[:2]
            if is_possible and LCSseq.similarity(wanted, here) >= needed:
                return first
        return None

    def find_enclosing_key(self, line: int) -> str:
        """Return the normalized text of the nearest line above that is indented less than ``line``, such as the head of
        its function or section. Return an empty string if there is none."""
        lines = self.document.lines
        depth = measure_indent(lines[line])
        for above in range(line - 1, max(-1, line - 400), -1):
            if re.match(r"\w|[#\[<@\"]", self.keys[above]) and measure_indent(lines[above]) < depth:
                return self.keys[above]
        return ""


def find_occurrences(text: str, wanted: str) -> Iterator[int]:
    """Yield the offset of each occurrence of ``wanted``, including overlapping ones, up to `MAX_PLACES`."""
    offset = text.find(wanted)
    for _ in range(MAX_PLACES):
        if offset < 0:
            return
        yield offset
        offset = text.find(wanted, offset + 1)
