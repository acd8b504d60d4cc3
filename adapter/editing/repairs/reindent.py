"""Indentation carried over from what a model wrote to what a file has.

Each matched line shows what one of the model's indentations is in the file.
Indentations that no matched line shows are derived from the nearest one that
is: moved by the same distance, and scaled where the two use different units
(two spaces against four, spaces against tabs).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from math import gcd
from typing import NamedTuple

TAB_WIDTH = 4
"""Columns a tab stands for when it is compared with spaces; only ratios matter."""


MIN_ON_GRID = 0.9
"""Share of the lines of a file that are indented by whole units."""


class _Pair(NamedTuple):
    line: int
    written: str
    actual: str


class IndentMapper:
    """Learnt from ``(old line index, line as the model wrote it, line of the file)``.

    ``written`` are all lines the model wrote: they show its unit of indentation; ``lines`` are those of the file.
    """

    def __init__(
        self, matched: Iterable[tuple[int, str, str]], written: Iterable[str], lines: Sequence[str] = ()
    ) -> None:
        self._lines = lines
        indents = [indent_of(line) for line in written if line.strip()]
        self._written_unit = indent_unit(indents)
        self._written_step = gcd(*(_width(indent) - _width(indents[0]) for indent in indents))
        """Columns by which the lines differ: of a text that lost some everywhere it is the unit."""
        self._pairs = [
            _Pair(line, indent_of(written), indent_of(actual))
            for line, written, actual in matched
            if written.strip() and actual.strip()
        ]
        self._uses_tabs = any("\t" in pair.actual for pair in self._pairs)

    def move(self, text: str, beside: int) -> str:
        """``text`` at the file's indentation; ``beside`` is the old line it stands nearest to."""
        if not text.strip():
            return self._spelled(_width(text)) if self._uses_tabs else text
        indent = indent_of(text)
        return self._actual(indent, beside) + text[len(indent) :]

    def _actual(self, indent: str, beside: int) -> str:
        if self._put_before is not None and indent.startswith(self._put_before):
            return indent.removeprefix(self._put_before)
        seen = [pair for pair in self._pairs if pair.written == indent]
        if seen:
            return min(seen, key=lambda pair: (abs(pair.line - beside), pair.line)).actual
        base = min(self._pairs, key=lambda pair: (abs(_width(pair.written) - _width(indent)), pair.line))
        columns = _width(base.actual) + round((_width(indent) - _width(base.written)) * self._scale(base))
        return self._spelled(self._on_grid(max(columns, 0), _width(indent), base))

    @cached_property
    def _put_before(self) -> str | None:
        """What the model has before the indentation of every line, often nothing."""
        put = {pair.written.removesuffix(pair.actual) for pair in self._pairs if pair.written.endswith(pair.actual)}
        is_same = len(put) <= 1 and all(pair.written.endswith(pair.actual) for pair in self._pairs)
        return "".join(put) if is_same and (self._is_shown or put <= {""}) else None

    @property
    def _is_shown(self) -> bool:
        """Whether the lines show by their own indentation what was put before it."""
        return any(pair.actual for pair in self._pairs)

    def _on_grid(self, columns: int, width: int, base: _Pair) -> int:
        """``columns``, unless no line of the file is indented so and the model's indentation scaled as a whole is.

        What stands more than two levels beside the base is aligned with something, and not indented by levels.
        """
        written, actual = _width(base.written), _width(base.actual)
        if (
            columns % self._unit == 0
            or not written
            or not actual
            or abs(width - written) > 2 * self._written_unit
            or len({_width(pair.written) for pair in self._pairs}) > 1
        ):
            return columns
        scaled, rest = divmod(width * actual, written)
        return scaled if rest == 0 and scaled % self._unit == 0 else columns

    @cached_property
    def _unit(self) -> int:
        """The columns of which nearly all indentations of the file are multiples."""
        widths = [width for line in self._lines if line.strip() and (width := indent_width(line))]
        units = (unit for unit in (4, 2) if sum(width % unit == 0 for width in widths) >= MIN_ON_GRID * len(widths))
        return next(units, 1) if widths else 1

    def _scale(self, base: _Pair) -> float:
        """File columns for each column the model wrote."""
        if _width(base.written) == _width(base.actual) > 0:
            return 1.0  # a line of another scale beside one that is right is another line
        others = [pair for pair in self._pairs if _width(pair.written) != _width(base.written)]
        if others:
            other = min(others, key=lambda pair: abs(pair.line - base.line))
            scale = (_width(other.actual) - _width(base.actual)) / (_width(other.written) - _width(base.written))
            return scale if scale > 0 else 1.0
        if 1 < self._written_unit < self._unit > self._written_step and base.written and self._is_scaled(base):
            return self._unit / self._written_unit
        if base.written and base.actual and base.written[0] != base.actual[0]:
            if base.written.endswith(base.actual):
                return 1.0  # something was put before the file's own indentation
            actual_unit = TAB_WIDTH if self._uses_tabs else indent_unit(pair.actual for pair in self._pairs)
            return actual_unit / self._written_unit
        return 1.0

    def _is_scaled(self, base: _Pair) -> bool:
        """Whether the same number of levels, in the model's unit and in the file's, is the indentation of both."""
        return _width(base.actual) * self._written_unit == _width(base.written) * self._unit

    def _spelled(self, columns: int) -> str:
        if not self._uses_tabs:
            return " " * columns
        return "\t" * (columns // TAB_WIDTH) + " " * (columns % TAB_WIDTH)


def indent_unit(indents: Iterable[str]) -> int:
    """The columns of one level, as far as the indents show it; deep ones alone show only a multiple."""
    unit = gcd(*(_width(indent) for indent in indents))
    return gcd(unit, TAB_WIDTH) if unit == 0 or unit > TAB_WIDTH else unit


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def indent_width(line: str) -> int:
    """Columns before the first character of ``line``."""
    return _width(indent_of(line))


def _width(indent: str) -> int:
    return len(indent.replace("\t", " " * TAB_WIDTH))
