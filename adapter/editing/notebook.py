"""Edit the source of Jupyter notebooks' cells, because models read and write source code rather than the notebook's
JSON.

A notebook stores each line of a cell as a JSON string. The sources of all cells are patched as one text, and only the
cells that changed are encoded again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from adapter.core.text.lines import split_lines

_STRING = r'"(?:[^"\\]|\\.)*"'
_SOURCE = re.compile(rf'"source":\s*(?P<lines>\[\s*(?:{_STRING}\s*,?\s*)*\]|{_STRING})')
SEPARATOR = "\n\x1e\n"
"""Text between the sources of two cells."""


class _Cell(NamedTuple):
    """A cell's ``source``, and the range ``start:end`` of the notebook's text that encodes it."""

    start: int
    end: int
    source: str


def join_sources(notebook: str) -> str | None:
    """Return the sources of all cells, joined with `SEPARATOR`, or None if there are no cells."""
    cells = list(_parse_cells(notebook))
    return SEPARATOR.join(cell.source for cell in cells) if cells else None


def replace_sources(notebook: str, joined: str) -> str | None:
    """Return the notebook with new sources. ``joined`` has the cells' sources, joined with `SEPARATOR`. Return None if
    there are more or fewer sources than cells."""
    cells, sources = list(_parse_cells(notebook)), joined.split(SEPARATOR)
    if len(cells) != len(sources):
        return None
    parts: list[str] = []
    position = 0
    for cell, source in zip(cells, sources, strict=True):
        if source != cell.source:
            parts += (notebook[position : cell.start], _encode(notebook[cell.start : cell.end], source))
            position = cell.end
    return "".join([*parts, notebook[position:]])


def _parse_cells(notebook: str) -> Iterator[_Cell]:
    for match in _SOURCE.finditer(notebook):
        try:
            lines = json.loads(match["lines"])
        except ValueError:
            continue
        yield _Cell(*match.span("lines"), lines if isinstance(lines, str) else "".join(lines))


def _encode(written: str, source: str) -> str:
    """Encode the source of a cell in the layout of the text that it replaces."""
    is_ascii = written.isascii()
    if not written.startswith("["):
        return json.dumps(source, ensure_ascii=is_ascii)
    indent = re.match(r"\[(\s*)", written)
    before, after = indent[1] if indent else "", written[len(written[:-1].rstrip()) : -1]
    if not after and before:
        after = before
    lines = [json.dumps(line, ensure_ascii=is_ascii) for line in split_lines(source) if line]
    return f"[{before}{(',' + (before or ' ')).join(lines)}{after}]" if lines else "[]"
