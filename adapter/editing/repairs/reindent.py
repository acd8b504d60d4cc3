"""Map a model's indentation to the indentation of the file.

Each matched line maps one of the model's indentations to the file's. All other indentations are derived from the
nearest matched indentation. They are shifted by the same distance, and scaled if model and file use different units
(two spaces and four, or spaces and tabs).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from math import gcd
from typing import NamedTuple

TAB_WIDTH = 4
"""Width of a tab in columns. Only its ratio to other widths matters."""
MIN_ON_GRID = 0.9
"""Minimum share of a file's lines whose indentation must be a multiple of its unit."""


class _Pair(NamedTuple):
    line: int
    written: str
    actual: str


class IndentMapper:
    """Map indentation based on ``matched``: the index of an old line, the line as written, and the line of the file.

    ``written`` are all lines of the model, which show its indentation unit. ``lines`` are the lines of the file.
    """

    def __init__(
        self, matched: Iterable[tuple[int, str, str]], written: Iterable[str], lines: Sequence[str] = ()
    ) -> None:
        self._lines = lines
        indents = [indent_of(line) for line in written if line.strip()]
        self._written_unit = indent_unit(indents)
        self._written_step = gcd(*(_width(indent) - _width(indents[0]) for indent in indents))
        """Greatest common divisor of the differences in indentation: the unit, even if all lines lost some columns."""
        self._pairs = [
            _Pair(line, indent_of(written), indent_of(actual))
            for line, written, actual in matched
            if written.strip() and actual.strip()
        ]
        self._uses_tabs = any("\t" in pair.actual for pair in self._pairs)

    def move(self, text: str, nearest_row: int) -> str:
        """Return ``text`` at the file's indentation. ``nearest_row`` is the index of the nearest old line."""
        if not text.strip():
            return self._render_indent(_width(text)) if self._uses_tabs else text
        indent = indent_of(text)
        return self._map_indent(indent, nearest_row) + text[len(indent) :]

    def _map_indent(self, indent: str, nearest_row: int) -> str:
        if self._added_prefix is not None and indent.startswith(self._added_prefix):
            return indent.removeprefix(self._added_prefix)
        same_indent = [pair for pair in self._pairs if pair.written == indent]
        if same_indent:
            return min(same_indent, key=lambda pair: (abs(pair.line - nearest_row), pair.line)).actual
        base = min(self._pairs, key=lambda pair: (abs(_width(pair.written) - _width(indent)), pair.line))
        columns = _width(base.actual) + round((_width(indent) - _width(base.written)) * self._scale(base))
        return self._render_indent(self._on_grid(max(columns, 0), _width(indent), base))

    @cached_property
    def _added_prefix(self) -> str | None:
        """The prefix, often empty, that the model added to the indentation of every line. None: no common prefix."""
        prefixes = {
            pair.written.removesuffix(pair.actual) for pair in self._pairs if pair.written.endswith(pair.actual)
        }
        is_same = len(prefixes) <= 1 and all(pair.written.endswith(pair.actual) for pair in self._pairs)
        return "".join(prefixes) if is_same and (self._has_indented_line or prefixes <= {""}) else None

    @property
    def _has_indented_line(self) -> bool:
        """True if a matched line of the file is indented. Only such a line shows the prefix."""
        return any(pair.actual for pair in self._pairs)

    def _on_grid(self, columns: int, width: int, base: _Pair) -> int:
        """Return ``columns``, or the scaled indentation if only the latter is a multiple of the file's unit.

        Lines more than two levels away from the base are assumed to be aligned with other code.
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
        """The number of columns of which nearly all indentations in the file are multiples."""
        widths = [width for line in self._lines if line.strip() and (width := indent_width(line))]
        units = (unit for unit in (4, 2) if sum(width % unit == 0 for width in widths) >= MIN_ON_GRID * len(widths))
        return next(units, 1) if widths else 1

    def _scale(self, base: _Pair) -> float:
        """Return the number of the file's columns per column of the model."""
        if _width(base.written) == _width(base.actual) > 0:
            return 1.0  # a differently scaled line next to a correct one is unrelated
        others = [pair for pair in self._pairs if _width(pair.written) != _width(base.written)]
        if others:
            other = min(others, key=lambda pair: abs(pair.line - base.line))
            scale = (_width(other.actual) - _width(base.actual)) / (_width(other.written) - _width(base.written))
            return scale if scale > 0 else 1.0
        if 1 < self._written_unit < self._unit > self._written_step and base.written and self._is_scaled(base):
            return self._unit / self._written_unit
        if base.written and base.actual and base.written[0] != base.actual[0]:
            if base.written.endswith(base.actual):
                return 1.0  # the model added a prefix to the file's own indentation
            actual_unit = TAB_WIDTH if self._uses_tabs else indent_unit(pair.actual for pair in self._pairs)
            return actual_unit / self._written_unit
        return 1.0

    def _is_scaled(self, base: _Pair) -> bool:
        """Return whether both indentations have the same number of levels, each in its own unit."""
        return _width(base.actual) * self._written_unit == _width(base.written) * self._unit

    def _render_indent(self, columns: int) -> str:
        if not self._uses_tabs:
            return " " * columns
        return "\t" * (columns // TAB_WIDTH) + " " * (columns % TAB_WIDTH)


def indent_unit(indents: Iterable[str]) -> int:
    """Return the number of columns per level. If all indentations are deep, it may be a multiple of the true unit."""
    unit = gcd(*(_width(indent) for indent in indents))
    return gcd(unit, TAB_WIDTH) if unit == 0 or unit > TAB_WIDTH else unit


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def indent_width(line: str) -> int:
    """Return the number of columns before the first character of ``line``."""
    return _width(indent_of(line))


def _width(indent: str) -> int:
    return len(indent.replace("\t", " " * TAB_WIDTH))
