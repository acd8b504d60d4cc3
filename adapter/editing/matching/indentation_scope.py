"""Find the lines that enclose a line, such as functions, sections and keys, by their indentation. This includes code
inside comments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from adapter.editing.repairs.reindent import measure_indent

_LEAD = re.compile(r"\s*(?://+!?|#+|\*|--+)(?= )")
"""Matches the start of a comment line."""


def find_enclosing(lines: Sequence[str], at: int, depth: int) -> Iterator[int]:
    """Yield the indexes of the lines that enclose the line ``at``, innermost first.

    An enclosing line is above the line, and indented less than ``depth`` and than all enclosing lines in between. If
    the line is in a comment, the lines of the comment that enclose it are also yielded.
    """
    for index in range(at - 1, -1, -1):
        if lines[index].strip() and measure_indent(lines[index]) < depth:
            depth = measure_indent(lines[index])
            yield index
    yield from _find_in_comment(lines[: at + 1])


def _find_in_comment(lines: Sequence[str]) -> Iterator[int]:
    lead = _LEAD.match(lines[-1]) if lines else None
    if lead is None:
        return
    comment = [line[len(lead[0]) :] for line in takewhile(lambda line: line.startswith(lead[0]), reversed(lines))][::-1]
    first, last = len(lines) - len(comment), len(comment) - 1
    yield from (first + index for index in find_enclosing(comment, last, measure_indent(comment[last])))
