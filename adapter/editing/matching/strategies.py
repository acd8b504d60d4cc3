"""Where in a document a text stands: stages from the strictest to the most tolerant.

A stage gives every place that it accepts. The first stage that accepts any
decides: one place is taken, of several the line hints choose, and without a
clear choice the patch is ambiguous. A looser stage never settles what a
stricter one found ambiguous. What even the last of these stages does not find
goes to `alignment`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import TypeAlias

from adapter.editing.document import TextDocument
from adapter.editing.matching.document_index import MAX_PLACES, DocumentIndex, occurrences
from adapter.editing.matching.line_mapping import LineMapping, add_gaps
from adapter.editing.matching.normalize import fold_typography, normalized_line, strict_line_key
from adapter.editing.repairs.interpretations import Interpretation
from adapter.editing.splice import build_exact_replacement, join_lines, merge_lines, merge_text

MAX_LINE_PATTERN = 400
"""Characters up to which a part of a line is sought with its blanks evened out."""


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A stretch ``start:end`` of the document's view, lines ``first_line`` to
    ``last_line`` (0-based), and what makes the text that a patch puts there."""

    start: int
    end: int
    first_line: int
    last_line: int
    replacement: Callable[[], str]
    """May raise `splice.Unclear`."""
    strictness: str
    is_exact_layout: bool = True
    """Apart from blanks at the ends of lines and typography, the very characters, with as many blank lines between."""


MatchStrategy: TypeAlias = Callable[[DocumentIndex, Interpretation], Iterator[TextMatch]]


def match_exact(search: DocumentIndex, reading: Interpretation) -> Iterator[TextMatch]:
    """The very characters, anywhere; the new text goes in as written. Lines that begin inside
    the indentation of the document are left to `whole_lines`, which moves the new ones."""
    starts = _starts(search.document, reading)
    if "\n" in reading.old and all(_is_indented_less(search.document, reading.old, start) for start in starts):
        return
    for start in starts:
        yield _exact_place(search.document, reading, start)
    if starts and (last := _without_last_end(search.document.view, reading)) is not None:
        yield _exact_place(search.document, *last)


def _without_last_end(view: str, reading: Interpretation) -> tuple[Interpretation, int] | None:
    """The old text as the last lines of a document that has no line end there: a twin of other places."""
    old = reading.old.removesuffix("\n")
    start = len(view) - len(old)
    if old == reading.old or view.endswith("\n") or not view.endswith(old) or view[start - 1 : start] not in ("", "\n"):
        return None
    return replace(reading, old=old, new=reading.new.removesuffix("\n")), start


def _starts(document: TextDocument, reading: Interpretation) -> list[int]:
    """Where the very characters stand, from the beginning to the end of a line when they are whole lines."""
    starts = occurrences(document.view, reading.old)
    if not reading.is_whole_lines:
        return list(starts)
    return [start for start in starts if are_whole_lines(document.view, start, reading.old)]


def are_whole_lines(view: str, start: int, text: str) -> bool:
    """Whether ``text``, which stands at ``start``, begins and ends where lines do."""
    end = start + len(text)
    return view[start - 1 : start] in ("", "\n") and (text.endswith("\n") or view[end : end + 1] in ("", "\n"))


def match_literal(search: DocumentIndex, reading: Interpretation) -> Iterator[TextMatch]:
    """The very characters and nothing else, and the new text as it is written: for tools that promise just that."""
    document, old = search.document, reading.old
    return (_part(document, start, start + len(old), lambda: reading.new) for start in _starts(document, reading))


def _is_indented_less(document: TextDocument, old: str, start: int) -> bool:
    """Whole lines, but for a part of the first one's indentation."""
    end = start + len(old)
    line_start = document.view_offset(document.line_at(start))
    is_closed = old.endswith("\n") or document.view[end : end + 1] in ("", "\n")
    return start > line_start and is_closed and old[0] in " \t" and not document.view[line_start:start].strip()


def _exact_place(document: TextDocument, reading: Interpretation, start: int) -> TextMatch:
    old, new, view = reading.old, reading.new, document.view
    end = start + len(old)
    line_start = document.view_offset(document.line_at(start))
    if start == line_start and (old.endswith("\n") or view[end : end + 1] in ("", "\n")):
        if old.endswith("\n"):
            new = new + "\n" if new and not new.endswith("\n") else new
        elif new:
            is_between_blanks = new.startswith("\n") and new.strip() and not reading.is_whole_lines
            new = new if is_between_blanks else new.removesuffix("\n")
        else:
            end = min(end + 1, len(view))  # lines that are deleted take their line end along
    elif "\n" not in old and "\n" in new and not view[line_start:start].strip():
        new = _shifted(new, view[line_start:start])
    return _part(document, start, end, lambda: new)


def _shifted(new: str, indent: str) -> str:
    """``new``, which starts after ``indent``, with the lines that follow at their depth below the first."""
    head, *rest = new.split("\n")
    filled = [line for line in rest if line.strip()]
    if not filled or not _is_relative(head, filled, indent):
        return new
    return "\n".join([head, *(indent + line if line.strip() else line for line in rest)])


def _is_relative(head: str, rest: Sequence[str], indent: str) -> bool:
    """Whether lines after ``head`` count their depth from it, and not from the margin."""
    if not all(line.startswith(indent) for line in rest):
        return True
    opens = head.rstrip().endswith((":", "{", "(", "["))
    return opens and not rest[0][len(indent) :].startswith((" ", "\t"))


def match_whole_lines(search: DocumentIndex, reading: Interpretation) -> Iterator[TextMatch]:
    """Whole lines that differ in nothing but blanks, blank lines and typography. The
    new text moves to the indentation of the place."""
    old = split_view_lines(reading.old)
    keys = [normalized_line(line) for line in old]
    filled = [index for index, key in enumerate(keys) if key]
    if not filled:
        return
    for found in search.find_keys([keys[index] for index in filled]):
        pairs = list(zip(filled, search.nonblank_lines[found.start : found.stop], strict=True))
        steps = add_gaps(search, old, [LineMapping(index, index + 1, line, line + 1) for index, line in pairs])
        lines = search.document.lines
        is_sharp = all(
            fold_typography(old[index]).rstrip() == fold_typography(lines[line]).rstrip() for index, line in pairs
        ) and all(below[1] - above[1] == below[0] - above[0] for above, below in pairwise(pairs))
        only_blanks = all(strict_line_key(old[index]) == strict_line_key(lines[line]) for index, line in pairs)
        yield match_from_lines(search.document, reading, steps, "whitespace" if only_blanks else "typography", is_sharp)


def match_from_lines(
    document: TextDocument,
    reading: Interpretation,
    steps: Sequence[LineMapping],
    strictness: str,
    is_sharp: bool = False,
) -> TextMatch:
    """The place of whole lines; what it will read is worked out when it is asked for."""
    taken = [step for step in steps if step.line_start < step.line_stop]
    first, last = taken[0].line_start, taken[-1].line_stop - 1
    start, end = document.view_offset(first), document.view_offset(last) + len(document.lines[last])
    old, new = split_view_lines(reading.old), split_view_lines(reading.new)
    if not new and last + 1 < len(document.lines):
        end += 1  # lines that are deleted take their line end along

    def replacement() -> str:
        return join_lines(document, merge_lines(document, old, new, steps), first)

    return TextMatch(start, end, first, last, replacement, strictness, is_sharp)


def match_within_lines(search: DocumentIndex, reading: Interpretation) -> Iterator[TextMatch]:
    """A part of a line, or of several, that differs in typography, or of one line that differs in blanks."""
    if reading.is_whole_lines or not reading.old.strip():
        return
    view, wanted = search.folded_view, fold_typography(reading.old)
    if not (reading.old.isascii() and search.document.view.isascii()):
        found = False
        for start in occurrences(view, wanted):
            found = True
            yield _inner_place(search.document, reading, start, start + len(wanted), "typography")
        if found:
            return
    words = wanted.split()
    if "\n" in reading.old or len(wanted) > MAX_LINE_PATTERN or len(words) < 2:
        return
    if any(word not in view for word in words):
        return
    for match in islice(re.finditer(r"[ \t]+".join(map(re.escape, words)), view), MAX_PLACES):
        if not (splits_word(view, match.start()) or splits_word(view, match.end())):
            yield _inner_place(search.document, _without_outer_blanks(reading), *match.span(), "whitespace")


def splits_word(text: str, at: int) -> bool:
    """Whether a word goes on before and after ``at``."""
    return text[at - 1 : at].isalnum() and text[at : at + 1].isalnum()


def _without_outer_blanks(reading: Interpretation) -> Interpretation:
    """Blanks around the old text are no part of the place, nor as many around the new one."""
    before, words, after = _parts(reading.old)
    new_before, new_words, new_after = _parts(reading.new)
    new = new_before[len(before) :] + new_words + new_after[: max(0, len(new_after) - len(after))]
    return replace(reading, old=words, new=new)


def _parts(text: str) -> tuple[str, str, str]:
    words = text.strip(" \t")
    at = text.find(words)
    return text[:at], words, text[at + len(words) :]


def _inner_place(document: TextDocument, reading: Interpretation, start: int, end: int, strictness: str) -> TextMatch:
    view = document.view
    return _part(document, start, end, lambda: merge_text(reading.old, view[start:end], reading.new), strictness)


def _part(
    document: TextDocument, start: int, end: int, written: Callable[[], str], strictness: str = "exact"
) -> TextMatch:
    """A part of the view, which becomes what is ``written``, with the document's line ends."""
    actual, first = document.view[start:end], document.line_at(start)

    def replacement() -> str:
        return build_exact_replacement(document, actual, written(), first)

    return TextMatch(start, end, first, document.line_at(end - 1), replacement, strictness, strictness != "whitespace")


STAGES: tuple[MatchStrategy, ...] = (match_exact, match_whole_lines, match_within_lines)
"""Strictest first. To add one, write a function of its kind."""


def split_view_lines(text: str) -> list[str]:
    """The lines of a view; a final line feed ends the last line and opens no other."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]
