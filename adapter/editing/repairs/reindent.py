"""Convert a model's indentation to the indentation of the file.

Each matched line shows which of the file's indentations corresponds to one of the model's. Any other indentation is
counted in levels from the nearest matched one. A level may be two columns, four, or a tab, and may differ between the
model and the file.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from math import gcd
from typing import NamedTuple

TAB_WIDTH = 4
"""Width of a tab in columns. Only its ratio to other widths matters."""
UNITS = (2, 3, 4)
"""Common widths, in columns, of one level of indentation in files."""
WRITTEN_UNITS = (*UNITS, 8)
"""Widths, in columns, of one level of indentation that models write."""
_OPENED = re.compile(r"[(\[{][^\s)\]}]")
"""Matches a bracket and the text right after it."""
_OPENERS = (":", "{", " then", " do", "else")


class _Pair(NamedTuple):
    line: int
    written: str
    actual: str


class IndentMapper:
    """Converts the indentation of the model's lines to the file's.

    Args:
        matched: For each matched old line, its index, the line as the model wrote it, and the line of the file.
        written: The model's old and new lines.
        lines: The lines of the file around the match, which show its unit of indentation.
    """

    def __init__(
        self, matched: Iterable[tuple[int, str, str]], written: Sequence[Sequence[str]], lines: Sequence[str] = ()
    ) -> None:
        self._lines, self._written = lines, written
        self._pairs = [
            _Pair(line, get_indent(written), get_indent(actual))
            for line, written, actual in matched
            if written.strip() and actual.strip()
        ]
        self._uses_tabs = any("\t" in pair.actual for pair in self._pairs)
        self._is_same = all(pair.written == pair.actual for pair in self._pairs)
        self._by_indent: dict[str, list[_Pair]] = defaultdict(list)
        for pair in self._pairs:
            self._by_indent[pair.written].append(pair)

    def move(self, text: str, nearest_row: int) -> str:
        """Return ``text``, one of the model's lines, with the file's indentation. If several old lines have the same
        indentation, the line nearest to the index ``nearest_row`` decides."""
        if not text.strip():
            if self._is_same:
                return text
            return _render_indent(_measure_width(text), True) if self._uses_tabs else text
        indent = get_indent(text)
        return self._map_indent(indent, nearest_row) + text[len(indent) :]

    def is_doubtful(self, text: str) -> bool:
        """Return whether it is uncertain how many of the file's levels a tab in ``text`` represents.

        If all matched lines have the same depth, tabs that represent several levels look like tabs of one level in a
        block that was moved left.
        """
        indent = get_indent(text)
        if not text.strip() or indent in self._by_indent or self._uses_tabs:
            return False
        is_one_depth = len(self._by_indent) == 1
        is_same_width = all(_measure_width(pair.written) == _measure_width(pair.actual) for pair in self._pairs)
        return is_one_depth and is_same_width and "\t" in self._pairs[0].written and self._unit != TAB_WIDTH

    def _map_indent(self, indent: str, nearest_row: int) -> str:
        if self._added_prefix is not None and indent.startswith(self._added_prefix):
            return indent.removeprefix(self._added_prefix)
        if indent in self._by_indent:
            return self._find_nearest(indent, nearest_row).actual
        # A first line without its indentation says nothing about the other lines.
        pairs = [pair for pair in self._pairs if pair.written or not pair.actual] or self._pairs
        base = min(pairs, key=lambda pair: (abs(_measure_width(pair.written) - _measure_width(indent)), pair.line))
        nearest = self._find_nearest(base.written, nearest_row)  # a list item, or its key in the same column
        base = base if base.actual == nearest.actual else nearest
        columns, (unit, written_unit) = _measure_width(indent) - _measure_width(base.written), self._find_units(base)
        level = self._unit if self._unit % unit == 0 else unit
        if columns % written_unit == 0 and indent not in self._aligned:  # else the line is aligned with other code
            # A part of a level is not scaled: below `- run: a`, the other keys of the item are two columns deeper.
            levels, rest = divmod(abs(columns), written_unit * level // unit)
            columns = (levels * level + rest) * (1 if columns > 0 else -1)
        uses_tabs = "\t" in base.actual if base.actual.strip("\t") else self._uses_tabs
        return _render_indent(max(_measure_width(base.actual) + columns, 0), uses_tabs)

    def _find_nearest(self, indent: str, row: int) -> _Pair:
        """Return the matched line with this indentation that is nearest to the old line ``row``."""
        return min(self._by_indent[indent], key=lambda pair: (abs(pair.line - row), pair.line))

    @cached_property
    def _added_prefix(self) -> str | None:
        """The prefix, often empty, that the model added to the indentation of every line."""
        prefixes = {
            pair.written.removesuffix(pair.actual) for pair in self._pairs if pair.written.endswith(pair.actual)
        }
        is_same = len(prefixes) <= 1 and all(pair.written.endswith(pair.actual) for pair in self._pairs)
        if not is_same:
            return None
        is_scaled = prefixes != {""} and len(set(self._find_units(self._pairs[0]))) > 1
        return None if is_scaled else "".join(prefixes)

    @cached_property
    def _aligned(self) -> set[str]:
        """The indentations of lines that are aligned with the text after a bracket in the line above."""
        pairs = (pair for text in self._written for pair in pairwise(text))
        indents = ((above, get_indent(below)) for above, below in pairs)
        return {indent for above, indent in indents if indent and _is_left_open(above[len(indent) - 1 :])}

    def _find_units(self, base: _Pair) -> tuple[int, int]:
        """Return two corresponding numbers of columns, in the file and in the model's text, for lines near ``base``."""
        ratio = self._find_ratio(base)
        if _measure_width(base.written) == _measure_width(base.actual) > 0:
            # A differently scaled line next to a correct one is unrelated, unless the model's own levels agree with it.
            is_scale = ratio is not None and ratio[0] * min(self._opened, default=0) == ratio[1] * self._unit
            is_scale |= self._has_one_scale
            return ratio if ratio is not None and is_scale else (1, 1)
        return ratio or (self._unit, self._find_written_unit(base, self._unit))

    def _find_ratio(self, base: _Pair) -> tuple[int, int] | None:
        """Compare ``base`` with the nearest line at another depth. Return the difference in columns, in the file and in
        the model's text, divided by their common factor. Return None if there is no such line."""
        others = [pair for pair in self._pairs if _measure_width(pair.written) != _measure_width(base.written)]
        if not others:
            return None
        other = min(others, key=lambda pair: abs(pair.line - base.line))
        actual, written = (
            _measure_width(other.actual) - _measure_width(base.actual),
            _measure_width(other.written) - _measure_width(base.written),
        )
        step = gcd(actual, written)
        return (abs(actual) // step, abs(written) // step) if actual * written > 0 else (1, 1)

    @cached_property
    def _has_one_scale(self) -> bool:
        """True if the widths of at least three depths have the same ratio between the model's text and the file."""
        widths = sorted({(_measure_width(pair.written), _measure_width(pair.actual)) for pair in self._pairs})
        scales = {
            (after[1] - before[1]) / (after[0] - before[0]) if after[0] != before[0] else None
            for before, after in pairwise(widths)
        }
        return len(widths) > 2 and len(scales) == 1 and None not in scales

    @cached_property
    def _opened(self) -> list[int]:
        """For each block, the number of columns that the model added to the indentation of its first line."""
        steps = (step for text in self._written for step in _list_steps(text))
        return [step for step, is_opened in steps if is_opened and step in WRITTEN_UNITS]

    @cached_property
    def _unit(self) -> int:
        """The width of an indentation level in the file, in columns."""
        if self._uses_tabs:
            return TAB_WIDTH
        steps = list(_list_steps(self._lines))
        counts = Counter(step for step, is_opened in steps if is_opened) or Counter(step for step, _ in steps)
        common = max(UNITS, key=lambda unit: counts[unit])
        return common if counts[common] else find_indent_unit(pair.actual for pair in self._pairs)

    def _find_written_unit(self, base: _Pair, unit: int) -> int:
        """Return the width of a level in the model's text, in columns, or the file's ``unit`` if it is unknown."""
        lines = [line for text in self._written for line in text if line.strip()]
        if any(line.startswith("\t") for line in lines):
            return TAB_WIDTH
        if self._opened:
            return min(self._opened)
        written, actual = _measure_width(base.written), _measure_width(base.actual)
        step = gcd(*(measure_indent(line) - written for line in lines))
        if not written or not actual:
            return step if step == 2 < unit else unit
        scaled, rest = divmod(written * unit, actual)
        is_shown = step % unit != 0 if scaled < unit else step % scaled == 0 == written % scaled
        return scaled if rest == 0 and scaled in WRITTEN_UNITS and step and is_shown else unit


def _is_left_open(text: str) -> bool:
    """Return whether ``text`` starts with a bracket that is followed by text and not closed."""
    steps = (1 if mark in "([{" else -1 for mark in text if mark in "([{)]}")
    return _OPENED.match(text) is not None and all(depth > 0 for depth in accumulate(steps))


def _render_indent(columns: int, uses_tabs: bool) -> str:
    return "\t" * (columns // TAB_WIDTH) + " " * (columns % TAB_WIDTH) if uses_tabs else " " * columns


def _list_steps(lines: Iterable[str]) -> Iterator[tuple[int, bool]]:
    """Yield how many columns deeper each line is than the line above, and whether the line above opens a block."""
    for above, below in pairwise(line for line in lines if line.strip()):
        step = measure_indent(below) - measure_indent(above)
        if step > 0:
            yield step, above.rstrip().endswith(_OPENERS)


def find_enclosing_widths(above: Sequence[str], depth: int) -> set[int]:
    """Return the indentation widths of the lines in ``above`` that enclose a line indented by ``depth``."""
    widths: set[int] = set()
    for line in reversed(above):
        if line.strip() and (width := measure_indent(line)) < depth:
            depth = width
            widths.add(width)
    return widths


def find_indent_unit(indents: Iterable[str]) -> int:
    """Return the number of columns per level, or a multiple of it if all indentations are deep."""
    unit = gcd(*(_measure_width(indent) for indent in indents))
    return gcd(unit, TAB_WIDTH) if unit == 0 or unit > TAB_WIDTH else unit


def get_indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def measure_indent(line: str) -> int:
    """Return the width of the indentation of ``line``, in columns."""
    return _measure_width(get_indent(line))


def _measure_width(indent: str) -> int:
    return len(indent.replace("\t", " " * TAB_WIDTH))
