"""Detect patches that have already been applied.

If the new text contains the old text (wrapped in a block, indented, prefixed), the patch also matches its own result. A
tolerant search may even match lines that are only similar. Each patch is therefore checked before it is applied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice, pairwise

from adapter.core.text.diffs import find_changes
from adapter.editing.matching.document_index import DocumentIndex, find_occurrences
from adapter.editing.matching.fuzzy_match import MatchCandidate, find_fuzzy_matches
from adapter.editing.matching.normalize import count_letters, is_comment, list_keys, loosen_line, normalize_line
from adapter.editing.matching.strategies import TextMatch, are_whole_lines, split_view_lines, splits_word
from adapter.editing.repairs.reindent import measure_indent

MIN_VISIBLE = 8
"""Minimum number of visible characters in a text for its occurrence to be significant. ``}`` occurs everywhere."""
MAX_OFFSETS = 20
"""Maximum number of occurrences of a text in another that are checked."""


def find_enclosing_new_text(search: DocumentIndex, match: TextMatch, old: str, new: str, is_part: bool) -> int | None:
    """Return the 0-based first line of a copy of the new text that contains the match. Return None if there is no copy,
    or if the new text does not contain the old text.

    ``is_part``: whether the copy may start or end inside a word.
    """
    view = search.document.view
    start = _find_enclosing_start(view, match, old, new, is_part)
    is_inline = not are_whole_lines(view, match.start, view[match.start : match.end])
    if start is None and is_inline and old.strip() != new.strip():
        start = _find_enclosing_start(view, match, old.strip(), new.strip(), is_part)  # ignore surrounding whitespace
    if start is not None:
        return search.document.find_line(start)
    before, after = _list_nonblank_lines(old), _list_nonblank_lines(new)
    old_keys, new_keys = [normalize_line(line) for line in before], [normalize_line(line) for line in after]
    lines = search.document.lines
    if len(new_keys) == 1 == len(old_keys) and old_keys != new_keys == [normalize_line(lines[match.first_line])]:
        return match.first_line
    inside = [line for line in range(match.first_line, match.last_line + 1) if lines[line].strip()]
    if not old_keys or not inside or not set(old_keys) <= set(new_keys):
        return None
    around = _find_nonblank_around(lines, inside, len(new_keys))
    # Comments of the document may be between the lines of the new text.
    actual_keys = {line: normalize_line(lines[line]) for line in around}
    around = [line for line, key in actual_keys.items() if key in new_keys or not is_comment(key)]
    for at in range(len(around) - len(new_keys) + 1):
        rows = around[at : at + len(new_keys)]
        is_around = rows[0] <= inside[0] and inside[-1] <= rows[-1]
        is_alike = is_around and _are_alike(new_keys, [actual_keys[row] for row in rows], old_keys)
        if is_alike and _matches_new_text(search, rows, old, new):
            return rows[0]
    return None


def _find_enclosing_start(view: str, match: TextMatch, old: str, new: str, is_part: bool) -> int | None:
    """Return the offset of a verbatim copy of the new text that contains the match, or None."""
    for offset in islice(find_occurrences(new, old), MAX_OFFSETS):
        start, end = match.start - offset, match.start - offset + len(new)
        is_there = start >= 0 and view.startswith(new, start) and view.startswith(old, match.start)
        if is_there and (is_part or not (splits_word(view, start) or splits_word(view, end))):
            return start
    return None


def _are_alike(new_keys: Sequence[str], others: Sequence[str], old_keys: Sequence[str]) -> bool:
    """Return whether the lists are equal. Lines in ``old_keys`` may differ in quote style or a trailing comma."""
    pairs = zip(new_keys, others, strict=True)
    return all(key == other or (key in old_keys and loosen_line(key) == loosen_line(other)) for key, other in pairs)


def _find_nonblank_around(lines: Sequence[str], inside: Sequence[int], count: int) -> list[int]:
    """Return the matched lines, with ``count`` non-blank lines before them and after them."""
    above = (line for line in range(inside[0] - 1, -1, -1) if lines[line].strip())
    below = (line for line in range(inside[-1] + 1, len(lines)) if lines[line].strip())
    return [*reversed(list(islice(above, count))), *inside, *islice(below, count)]


def _matches_new_text(search: DocumentIndex, rows: Sequence[int], old: str, new: str) -> bool:
    """Return whether the document's lines ``rows``, whose words match ``new``, also have its indentation. All lines may
    be shifted by the same amount. If the patch changes only whitespace, the whole change must be present."""
    sides = _list_nonblank_lines(old), _list_nonblank_lines(new), [search.document.lines[row] for row in rows]
    before, after, current = ([line.rstrip() for line in side] for side in sides)
    widths = [[measure_indent(line) for line in side] for side in sides]
    trusted = slice(int(widths[1][0] == 0), None)  # models omit the indentation of a text's first line
    if not _is_same_code(search, old, new):
        return _keeps_order(list(zip(widths[1][trusted], widths[2][trusted], strict=True)))
    if current == after != before:
        return True
    rows_kept = (row for row in zip(*(side[trusted] for side in widths), strict=True) if row[0] == row[1])
    shifts = Counter(actual - target for _, target, actual in rows_kept).most_common(1)
    widths[2] = [width - sum(shift for shift, _ in shifts) for width in widths[2]]
    bodies = [[line.lstrip(" \t") for line in side] for side in sides]
    gaps = [_measure_gaps(old), _measure_gaps(new), _measure_distances(rows)]
    parts = (part for kind in (widths, bodies, gaps) for part in zip(*kind, strict=True))
    changed = [target == actual for prior, target, actual in parts if prior != target]
    return bool(changed) and all(changed)


def _is_same_code(search: DocumentIndex, old: str, new: str) -> bool:
    """Return whether the patch changes only whitespace, apart from typing errors in the old text."""
    before, after = (list_keys(text.split("\n")) for text in (old, new))
    compare = search.comparer.compare
    return len(before) == len(after) and not any(pair.conflicts for pair in map(compare, before, after))


def _has_new_whitespace(search: DocumentIndex, first: int, last: int, old: str, new: str) -> bool:
    """Return False if the patch changes only whitespace and the lines ``first`` to ``last`` lack the new whitespace."""
    if not _is_same_code(search, old, new):
        return True
    rows = [line for line in range(first, last + 1) if search.keys[line]]
    return len(rows) == len(_list_nonblank_lines(new)) and _matches_new_text(search, rows, old, new)


def _keeps_order(widths: Sequence[tuple[int, int]]) -> bool:
    """Return whether lines that are deeper in the model's text are also deeper in the document. ``widths`` has the
    indentation of each line in both."""
    pairs = sorted(set(widths))
    return all(shallow[0] < deep[0] and shallow[1] < deep[1] for shallow, deep in pairwise(pairs))


def _measure_gaps(text: str) -> list[int]:
    """Return the distance from each non-blank line to the next one."""
    return _measure_distances([at for at, line in enumerate(split_view_lines(text)) if line.strip()])


def _measure_distances(rows: Sequence[int]) -> list[int]:
    return [below - above for above, below in pairwise(rows)]


def _list_nonblank_lines(text: str) -> list[str]:
    return [line for line in split_view_lines(text) if line.strip()]


def find_applied_place(search: DocumentIndex, old: str, new: str, hint: int | None) -> tuple[int, bool] | None:
    """Return where ``new`` has replaced ``old``: the 0-based first line, and whether unchanged lines of ``old`` confirm
    it.

    Return None if ``new`` has not replaced ``old``, or if the place is uncertain. ``hint`` is the expected 0-based
    line. The place with the most unchanged lines of ``old`` is chosen.
    """
    ranges = [place for place in find_applied_lines(search, old, new) if _has_new_whitespace(search, *place, old, new)]
    if not ranges and (start := find_inline_copy(search, old, new)) >= 0:
        ranges = [(search.document.find_line(start), search.document.find_line(start + len(new.strip("\n")) - 1))]
    if not ranges:
        return None
    evidence = dict.fromkeys(ranges, 0)
    elsewhere = 0
    rows = split_view_lines(old)
    for candidate in find_fuzzy_matches(search, rows, hint):
        places = [place for place in ranges if candidate.is_at(*place)]
        exact = (rows[row] for row, compared in candidate.compared.items() if compared.similarity == 1)
        letters = sum(map(count_letters, exact))
        evidence |= {place: max(evidence[place], letters) for place in places}
        elsewhere = elsewhere if places else max(elsewhere, letters)
    best = max(ranges, key=lambda place: evidence[place])
    is_tie = any(evidence[place] == evidence[best] for place in ranges if place != best)
    if is_tie or 0 < elsewhere >= evidence[best]:
        return None
    return best[0], evidence[best] > 0


def find_applied_lines(search: DocumentIndex, old: str, new: str) -> list[tuple[int, int]]:
    """Return the line ranges where ``new`` occurs, unless ``new`` is too short or only a part of ``old``."""
    old_keys, new_keys = (list_keys(text.split("\n")) for text in (old, new))
    return search.find_lines(new_keys) if _adds_content(old_keys, new_keys) else []


def find_verbatim_copies(search: DocumentIndex, match: TextMatch, new: str) -> list[int]:
    """Return the first line of each verbatim copy of ``new`` outside the match, in whole lines. If ``new`` is too short
    to be significant, return none."""
    view = search.document.view
    if len("".join(new.split())) < MIN_VISIBLE:
        return []
    starts = (start for start in islice(find_occurrences(view, new), MAX_OFFSETS) if are_whole_lines(view, start, new))
    disjoint = (start for start in starts if start >= match.end or start + len(new) <= match.start)
    return [search.document.find_line(start) for start in disjoint]


def find_inline_copy(search: DocumentIndex, old: str, new: str) -> int:
    """Return the offset of a verbatim copy of the new text, or -1. A short copy must consist of whole lines."""
    view, wanted = search.document.view, new.strip("\n")
    start = view.find(wanted) if wanted.strip() and wanted.strip() not in old else -1
    if start < 0 or len("".join(wanted.split())) >= MIN_VISIBLE:
        return start
    fills = view[start - 1 : start] in ("", "\n") and view[start + len(wanted) :][:1] in ("", "\n")
    return start if fills else -1


def have_common_lines(old: Sequence[str], new: Sequence[str]) -> bool:
    """Return whether the old and the new text have a line in common. A copy of the new text elsewhere is evidence that
    the patch was applied only if it contains such a context line."""
    return bool(set(map(normalize_line, old)) & set(map(normalize_line, new)) - {""})


def _adds_content(before: Sequence[str], after: Sequence[str]) -> bool:
    """Return whether the lines ``after`` are long enough to be significant, and are not just a part of ``before``."""
    texts = ("\n" + "\n".join(keys) + "\n" for keys in (after, before))
    return len("".join(after).replace(" ", "")) >= MIN_VISIBLE and next(texts) not in next(texts)


def find_roughly_applied(
    search: DocumentIndex, best: MatchCandidate, old: Sequence[str], new: Sequence[str]
) -> int | None:
    """Return the line where the patch seems to be already applied, or None. A patch seems applied if the document has
    all added lines there, or if the new text matches the document at least as well as the old text."""
    lines = (find(search, best, old, new) for find in (_find_insertion, _find_better_fit))
    return next((line for line in lines if line is not None), None)


def _find_insertion(search: DocumentIndex, best: MatchCandidate, old: Sequence[str], new: Sequence[str]) -> int | None:
    """Return the first added line if ``new`` only adds lines and the document already has all of them at that place."""
    hunks = find_changes(list(map(normalize_line, old)), list(map(normalize_line, new)))
    if not hunks or any(hunk.start < hunk.end for hunk in hunks):
        return None
    at = {step.old_start: step.line_start for step in best.steps if step.is_pair}
    for row, prior in enumerate(old):  # kept lines must have the new text's whitespace if it changes
        target = new[row + sum(hunk.new_end - hunk.new_start for hunk in hunks if hunk.start <= row)].rstrip()
        if prior.rstrip() != target and (row not in at or search.document.lines[at[row]].rstrip() != target):
            return None
    lines = [_find_between(search, best, hunk.start, new[hunk.new_start : hunk.new_end]) for hunk in hunks]
    return None if None in lines else lines[0]


def _find_between(search: DocumentIndex, best: MatchCandidate, row: int, added: Sequence[str]) -> int | None:
    """Return the line where ``added`` follows the lines above ``row``, or precedes the lines below it. Return None if
    there is no such line."""
    steps = [step for step in best.steps if not step.is_unmentioned]
    above = max((step.line_stop for step in steps if step.old_stop <= row), default=0)
    below = min((step.line_start for step in steps if step.old_start >= row), default=search.document.line_count)
    keys, wanted = search.keys, [normalize_line(line) for line in added]
    if not any(wanted):
        return above if above < below and not any(keys[above:below]) else None
    size = len(wanted)
    return next((at for at in (above, below - size) if at >= 0 and keys[at : at + size] == wanted), None)


def _find_better_fit(search: DocumentIndex, best: MatchCandidate, old: Sequence[str], new: Sequence[str]) -> int | None:
    """Return the document line where ``new`` matches at least as well as ``old`` matches at ``best``. Return None if
    there is no such line."""
    before, after = list_keys(old), list_keys(new)
    added = set(after) - set(before)
    if not all(map(search.find_lines_with_key, added)) or (not added and not _adds_content(before, after)):
        return None
    candidate = next(iter(find_fuzzy_matches(search, new, best.first_line)), None)
    if candidate is None or candidate.score < best.score:
        return None
    if candidate.is_apart_from(best) and not have_common_lines(old, new):
        return None
    if not _has_new_whitespace(search, candidate.first_line, candidate.last_line, "\n".join(old), "\n".join(new)):
        return None
    between = (step for step in candidate.steps if step.is_unmentioned or step.is_elided)
    has_more = any(any(search.keys[step.line_start : step.line_stop]) for step in between)
    return None if not added and (candidate.mismatches or has_more) else candidate.first_line
