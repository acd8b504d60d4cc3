"""Find the lines that enclose a line, such as functions, sections and keys, by their indentation. This includes code
inside comments. A *guard* applies to lines with its own indentation: ``#ifdef``, ``#[cfg(unix)]``, ``when:``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from adapter.editing.matching.normalize import normalize_line
from adapter.editing.repairs.reindent import measure_indent

MAX_SCOPE = 1_000
"""Number of lines above a location that are searched for the enclosing function, section or guard."""
_LEAD = re.compile(r"\s*(?://+!?|#+|\*|--+)(?= )")
"""Matches the start of a comment line."""
_GUARD = re.compile(
    r"\s*(?:#\s*(?:ifn?def\b|(?:el)?if\s*[!(]*(?:defined|[A-Z_]{2}|\d)|(?:else|endif)(?:\s*$|\s*/))|#!?\[cfg|"
    r"//\s?\+?(?:go:)?build\b|@\S*(?:[Ss]kip|[Ee]nabled|[Dd]isabled)|(?:- )?(?:when|if|unless): )"
)
_WORD = re.compile(r"\w+")
_CLOSING = re.compile(r"\s*(?:[)\]}]|end\b)")
_CONDITION = re.compile(r"\W*(?:else\W+)?(?:if|elif|elsif|unless|while|until|when)\b")


def has_same_guard(old: Sequence[str], row: int, lines: Sequence[str], line: int) -> bool:
    """Return whether ``old[row]`` and ``lines[line]`` have the same nearest guard above them. If not, the code may be
    meant for another platform or configuration."""
    guard = _find_guard(old[:row])
    return not guard or guard == _find_guard(lines[max(0, line - MAX_SCOPE) : line])


def _find_guard(lines: Sequence[str]) -> str:
    return normalize_line(next(filter(_GUARD.match, reversed(lines)), ""))


def find_enclosing(lines: Sequence[str], at: int, depth: int) -> Iterator[int]:
    """Yield the indexes of the lines that enclose the line ``at``, innermost first.

    An enclosing line is above the line ``at``. It is indented less than ``depth``, and less than all enclosing lines
    between them. If the line is in a comment, the lines of the comment that enclose it are also yielded.
    """
    for index in range(at - 1, -1, -1):
        if lines[index].strip() and measure_indent(lines[index]) < depth:
            depth = measure_indent(lines[index])
            yield index
    yield from _find_in_comment(lines[: at + 1])


def find_owners(lines: Sequence[str], at: int) -> set[str]:
    """Return the normalized text of the lines that enclose line ``at``, including the opening line of a block that it
    closes."""
    depth = measure_indent(lines[at]) + bool(_CLOSING.match(lines[at]))
    first = max(0, at - MAX_SCOPE)
    return {normalize_line(lines[first + index]) for index in find_enclosing(lines[first : at + 1], at - first, depth)}


def has_owner(owners: Iterable[str], shown: str) -> bool:
    """Return whether one of the ``owners``, the normalized lines that enclose a place, equals ``shown`` or differs only
    in added or omitted words. Conditions must be equal."""
    return any(_is_same(shown, owner) for owner in owners)


def _is_same(shown: str, actual: str) -> bool:
    left, right = (_WORD.findall(line) for line in (shown, actual))
    has_all = set(left) <= set(right) or set(right) <= set(left)
    is_condition = _CONDITION.match(shown) or _GUARD.match(shown)
    return shown == actual or (has_all and left[:1] == right[:1] != [] and not is_condition)


def _find_in_comment(lines: Sequence[str]) -> Iterator[int]:
    lead = _LEAD.match(lines[-1]) if lines else None
    if lead is None:
        return
    comment = [line[len(lead[0]) :] for line in takewhile(lambda line: line.startswith(lead[0]), reversed(lines))][::-1]
    first, last = len(lines) - len(comment), len(comment) - 1
    yield from (first + index for index in find_enclosing(comment, last, measure_indent(comment[last])))
