"""Match strategies for old text, from the strictest to the most tolerant.

Each strategy yields all its matches. The first strategy that finds a match decides. If it finds several, line hints
decide; without a clear choice, the patch is ambiguous. A more tolerant strategy never resolves an ambiguity of a
stricter one. `fuzzy_match` handles text that no strategy matches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import TypeAlias

from adapter.editing.document import TextDocument
from adapter.editing.matching.document_index import MAX_PLACES, DocumentIndex, find_occurrences
from adapter.editing.matching.line_mapping import LineMapping, add_gaps
from adapter.editing.matching.normalize import build_strict_line_key, fold_typography, is_word_character, normalize_line
from adapter.editing.repairs.interpretations import Interpretation
from adapter.editing.replacement_text import build_exact_replacement, join_lines, merge_lines, merge_text

MAX_FLEXIBLE_LENGTH = 400
"""Maximum length, in characters, of old text within a line that is matched regardless of whitespace."""


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A matched range ``start:end`` of the document's view, in the 0-based lines ``first_line`` to ``last_line``."""

    start: int
    end: int
    first_line: int
    last_line: int
    replacement: Callable[[], str]
    """Builds the replacement. May raise `AmbiguousReplacement`."""
    strictness: str
    is_exact_layout: bool = True
    """True if the old text and the match differ at most in trailing whitespace and typography."""


MatchStrategy: TypeAlias = Callable[[DocumentIndex, Interpretation], Iterator[TextMatch]]


def match_exact(search: DocumentIndex, interpretation: Interpretation) -> Iterator[TextMatch]:
    """Match the old text verbatim, at any position, and insert the new text unchanged.

    If all matches start inside a line's indentation, and the texts are indented less, yield none: `match_whole_lines`
    also finds them, and reindents the new lines.
    """
    starts = _find_exact_starts(search.document, interpretation)
    if "\n" in interpretation.old + interpretation.new and all(
        _is_indented_less(search.document, interpretation, start) for start in starts
    ):
        return
    for start in starts:
        yield _build_exact_match(search.document, interpretation, start)
    if starts and (last := _strip_last_end(search.document.view, interpretation)) is not None:
        yield _build_exact_match(search.document, *last)


def _strip_last_end(view: str, interpretation: Interpretation) -> tuple[Interpretation, int] | None:
    """If the old text without its final newline ends a document that has none, return both texts without it, and the
    old text's offset."""
    old = interpretation.old.removesuffix("\n")
    start = len(view) - len(old)
    is_at_end = old != interpretation.old and view.endswith(old) and not view.endswith("\n")
    if not is_at_end or view[start - 1 : start] not in ("", "\n"):
        return None
    return replace(interpretation, old=old, new=interpretation.new.removesuffix("\n")), start


def _find_exact_starts(document: TextDocument, interpretation: Interpretation) -> list[int]:
    """Return the offsets of verbatim matches, or of matches of whole lines if these are required."""
    starts = find_occurrences(document.view, interpretation.old)
    if not interpretation.is_whole_lines:
        return list(starts)
    return [start for start in starts if are_whole_lines(document.view, start, interpretation.old)]


def are_whole_lines(view: str, start: int, text: str) -> bool:
    """Return whether ``text``, found at ``start``, starts and ends at line boundaries."""
    end = start + len(text)
    return view[start - 1 : start] in ("", "\n") and (text.endswith("\n") or view[end : end + 1] in ("", "\n"))


def match_literal(search: DocumentIndex, interpretation: Interpretation) -> Iterator[TextMatch]:
    """Match the old text verbatim and insert the new text unchanged, for tools documented to do so."""
    document, old = search.document, interpretation.old
    return (
        match_part(document, start, start + len(old), lambda: interpretation.new)
        for start in _find_exact_starts(document, interpretation)
    )


def _is_indented_less(document: TextDocument, interpretation: Interpretation, start: int) -> bool:
    """Return whether the match would consist of whole lines if the texts had the document's indentation."""
    old, end = interpretation.old, start + len(interpretation.old)
    line_start = document.get_view_offset(document.find_line(start))
    is_closed = old.endswith("\n") or document.view[end : end + 1] in ("", "\n")
    indent = document.view[line_start:start]
    if start == line_start or not is_closed or indent.strip():
        return False
    rest, added = ([line for line in text.split("\n")[1:] if line.strip()] for text in (old, interpretation.new))
    is_inside = bool(rest) and all(line.startswith(indent) for line in rest)
    return old[0] in " \t" or (is_inside and not all(line.startswith(indent) for line in added))


def _build_exact_match(document: TextDocument, interpretation: Interpretation, start: int) -> TextMatch:
    old, new, view = interpretation.old, interpretation.new, document.view
    end = start + len(old)
    line_start = document.get_view_offset(document.find_line(start))
    if start == line_start and (old.endswith("\n") or view[end : end + 1] in ("", "\n")):
        if old.endswith("\n"):
            is_shortened = old.rstrip("\n") == new and view[end : end + 1] == "\n"  # only blank lines are deleted
            is_closed = not new or new.endswith("\n") or is_shortened
            new = new if is_closed else new + "\n"
        elif new:
            is_between_blanks = new.startswith("\n") and new.strip() and not interpretation.is_whole_lines
            new = new if is_between_blanks else new.removesuffix("\n")
        else:
            end = min(end + 1, len(view))  # a deleted line includes its line end
    elif "\n" not in old and "\n" in new and not view[line_start:start].strip():
        new = _indent_following_lines(new, view[line_start:start])
    return match_part(document, start, end, lambda: new)


def _indent_following_lines(new: str, indent: str) -> str:
    """Indent the lines after the first with ``indent``, unless they already include it."""
    head, *rest = new.split("\n")
    nonblank = [line for line in rest if line.strip()]
    if not nonblank or not _is_relative(head, nonblank, indent):
        return new
    return "\n".join([head, *(indent + line if line.strip() else line for line in rest)])


def _is_relative(head: str, rest: Sequence[str], indent: str) -> bool:
    """Return whether the lines after ``head`` are indented relative to ``head``, unlike the lines of a string."""
    if any(head.count(quote) % 2 for quote in '"`'):
        return False
    if not all(line.startswith(indent) for line in rest):
        return True
    opens = head.rstrip().endswith((":", "{", "(", "["))
    return opens and not rest[0][len(indent) :].startswith((" ", "\t"))


def match_whole_lines(search: DocumentIndex, interpretation: Interpretation) -> Iterator[TextMatch]:
    """Match whole lines, ignoring differences in whitespace, blank lines and typography. The new text is reindented."""
    old = split_view_lines(interpretation.old)
    keys = [normalize_line(line) for line in old]
    nonblank = [index for index, key in enumerate(keys) if key]
    if not nonblank:
        return
    for found in search.find_keys([keys[index] for index in nonblank]):
        pairs = list(zip(nonblank, search.nonblank_lines[found.start : found.stop], strict=True))
        steps = add_gaps(search, old, [LineMapping(index, index + 1, line, line + 1) for index, line in pairs])
        both = [(old[index], search.document.lines[line]) for index, line in pairs]
        is_exact_layout = all(
            fold_typography(written).rstrip() == fold_typography(actual).rstrip() for written, actual in both
        ) and all(below[1] - above[1] == below[0] - above[0] for above, below in pairwise(pairs))
        only_blanks = all(build_strict_line_key(written) == build_strict_line_key(actual) for written, actual in both)
        strictness = "whitespace" if only_blanks else "typography"
        yield match_from_lines(search.document, interpretation, steps, strictness, is_exact_layout)


def match_from_lines(
    document: TextDocument,
    interpretation: Interpretation,
    steps: Sequence[LineMapping],
    strictness: str,
    is_exact_layout: bool = False,
) -> TextMatch:
    """Build a match of whole lines. Its replacement is computed on demand."""
    present = [step for step in steps if step.line_start < step.line_stop]
    first, last = present[0].line_start, present[-1].line_stop - 1
    start, end = document.get_view_offset(first), document.get_view_offset(last) + len(document.lines[last])
    old, new = split_view_lines(interpretation.old), split_view_lines(interpretation.new)
    if not new and last + 1 < len(document.lines):
        end += 1  # a deleted line includes its line end

    def build_replacement() -> str:
        return join_lines(document, merge_lines(document, old, new, steps), first)

    return TextMatch(start, end, first, last, build_replacement, strictness, is_exact_layout)


def match_within_lines(search: DocumentIndex, interpretation: Interpretation) -> Iterator[TextMatch]:
    """Match a part of one or several lines, ignoring typography, or a part of one line, ignoring whitespace."""
    if interpretation.is_whole_lines or not interpretation.old.strip():
        return
    view, folded_old = search.folded_view, fold_typography(interpretation.old)
    starts: list[int] = []
    if not (interpretation.old.isascii() and search.document.view.isascii()):
        starts = list(find_occurrences(view, folded_old))
        for start in starts:
            yield _build_inline_match(search.document, interpretation, start, start + len(folded_old), "typography")
    words = folded_old.split()
    if starts or "\n" in interpretation.old or len(folded_old) > MAX_FLEXIBLE_LENGTH or len(words) < 2:
        return
    if any(word not in view for word in words):
        return
    for match in islice(re.finditer(r"[ \t]+".join(map(re.escape, words)), view), MAX_PLACES):
        if not (splits_word(view, match.start()) or splits_word(view, match.end())):
            yield _build_inline_match(search.document, _strip_outer_blanks(interpretation), *match.span(), "whitespace")


def splits_word(text: str, at: int) -> bool:
    """Return whether the offset ``at`` is inside a word."""
    return is_word_character(text[at - 1 : at]) and is_word_character(text[at : at + 1])


def _strip_outer_blanks(interpretation: Interpretation) -> Interpretation:
    """Remove the whitespace around the old text, and as much of it around the new text."""
    before, words, after = _split_outer_whitespace(interpretation.old)
    new_before, new_words, new_after = _split_outer_whitespace(interpretation.new)
    new = new_before[len(before) :] + new_words + new_after[: max(0, len(new_after) - len(after))]
    return replace(interpretation, old=words, new=new)


def _split_outer_whitespace(text: str) -> tuple[str, str, str]:
    words = text.strip(" \t")
    at = text.find(words)
    return text[:at], words, text[at + len(words) :]


def _build_inline_match(
    document: TextDocument, interpretation: Interpretation, start: int, end: int, strictness: str
) -> TextMatch:
    view = document.view
    return match_part(
        document, start, end, lambda: merge_text(interpretation.old, view[start:end], interpretation.new), strictness
    )


def match_part(
    document: TextDocument, start: int, end: int, replacement_text: Callable[[], str], strictness: str = "exact"
) -> TextMatch:
    """Build a match of ``view[start:end]``. The replacement gets the document's line ends."""
    actual, first = document.view[start:end], document.find_line(start)

    def build_replacement() -> str:
        return build_exact_replacement(document, actual, replacement_text(), first)

    return TextMatch(
        start, end, first, document.find_line(end - 1), build_replacement, strictness, strictness != "whitespace"
    )


STRATEGIES: tuple[MatchStrategy, ...] = (match_exact, match_whole_lines, match_within_lines)
"""All strategies, the strictest first."""


def split_view_lines(text: str) -> list[str]:
    """Split text into lines at line feeds. A final line feed does not start another line."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]
