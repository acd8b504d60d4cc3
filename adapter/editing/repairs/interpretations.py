"""Possible interpretations of a model's old and new text.

Models wrap both texts in a code fence, copy displayed line numbers or diff markers, or escape text twice. Each
interpretation undoes one or all of these habits in both texts. The unchanged texts always come first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from adapter.editing.repairs.diff_markers import strip_diff_markers, strip_line_numbers_from_pair
from adapter.editing.repairs.unescape import undo_double_escaping


@dataclass(frozen=True, slots=True)
class Interpretation:
    """One possible meaning of a patch: its old and new text after some repairs, with line feeds only.

    Args:
        notes: Descriptions of the repairs.
        line: The 1-based line number that was found in the old text, or None.
        is_whole_lines: Whether both texts consist of whole lines.
    """

    old: str
    new: str
    notes: tuple[str, ...] = ()
    line: int | None = None
    is_whole_lines: bool = False


OLD_MARKERS_NOTE = "diff markers were removed from the old text"
MAX_INTERPRETATIONS = 24
"""Maximum number of interpretations of a patch, because the document is searched for each one."""


def list_interpretations(written: Interpretation) -> list[Interpretation]:
    """Return the unchanged texts, then the result of each applicable repair, then the result of all repairs."""
    single = [stripped for repair in _REPAIRS for stripped in _apply_repair(repair, written)]
    found = [written, *single]
    if single and any(next(_apply_repair(repair, single[-1]), None) for repair in _REPAIRS):
        combined = [written]
        for repair in _REPAIRS:
            combined = [
                stripped
                for interpretation in combined
                for stripped in (list(_apply_repair(repair, interpretation)) or [interpretation])
            ]
        found += combined[:MAX_INTERPRETATIONS]
    unique: dict[str, Interpretation] = {}
    for interpretation in found:
        if interpretation.old:
            unique.setdefault(interpretation.old, interpretation)
    return list(unique.values())[:MAX_INTERPRETATIONS]


class _PairRepair(NamedTuple):
    """A repair of both texts. ``strip`` yields the repaired texts, likeliest first, and also the line number if the old
    text has one. If ``is_line_based`` is true, the repaired texts consist of whole lines."""

    note: str
    strip: Callable[[str, str], Iterator[tuple[str, str] | tuple[str, str, int]]]
    is_line_based: bool


def _apply_repair(repair: _PairRepair, interpretation: Interpretation) -> Iterator[Interpretation]:
    notes, is_whole_lines = (*interpretation.notes, repair.note), interpretation.is_whole_lines or repair.is_line_based
    for old, new, *line in repair.strip(interpretation.old, interpretation.new):
        yield Interpretation(old, new, notes, interpretation.line or next(iter(line), None), is_whole_lines)


_FENCE = re.compile(r"\s*(```+|~~~+)[^\n`]*\n(.*?)\n?[ \t]*\1\s*", re.DOTALL)


def _strip_fences(old: str, new: str) -> Iterator[tuple[str, str]]:
    if match := _FENCE.fullmatch(old):
        inner = _FENCE.fullmatch(new)
        if inner or not new.lstrip().startswith(match[1]):  # else a change of the fence itself
            yield match[2], inner[2] if inner else new


_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#\d+|#x[0-9a-fA-F]+);")


def _unescape_entities(old: str, new: str) -> Iterator[tuple[str, str]]:
    if _ENTITY.search(old):
        import html

        yield html.unescape(old), html.unescape(new)


_REPAIRS = (
    _PairRepair("the code fence around the old text was removed", _strip_fences, is_line_based=True),
    _PairRepair("HTML entities in both texts were unescaped", _unescape_entities, is_line_based=False),
    _PairRepair("backslash escapes in both texts were undone", undo_double_escaping, is_line_based=False),
    _PairRepair("line numbers were removed from the old text", strip_line_numbers_from_pair, is_line_based=True),
    _PairRepair(OLD_MARKERS_NOTE, strip_diff_markers, is_line_based=True),
)
"""All repairs, in the order in which they are combined."""
