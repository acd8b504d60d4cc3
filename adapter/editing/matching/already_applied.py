"""Detect patches that have already been applied: the document has their result.

A new text that holds the old one (a block around it, a level deeper, a word before a name) fits its own
result, and a tolerant search finds near twins of what was changed. So this is checked before anything is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, pairwise

from adapter.core.text.diffs import changes
from adapter.editing.matching.document_index import DocumentIndex, occurrences
from adapter.editing.matching.fuzzy_match import MatchCandidate, find_fuzzy_matches
from adapter.editing.matching.normalize import is_comment, lenient_line, normalized_line
from adapter.editing.matching.strategies import TextMatch, are_whole_lines, split_view_lines, splits_word
from adapter.editing.repairs.reindent import indent_of, indent_width

MIN_VISIBLE = 8
"""Visible characters from which a text's presence elsewhere says something; ``}`` is everywhere."""
MAX_OFFSETS = 20
"""Occurrences of the old text in the new one that are looked at."""


# ---------------------------------------------------------------------- at the match


def find_enclosing_new_text(search: DocumentIndex, place: TextMatch, old: str, new: str, is_part: bool) -> int | None:
    """Return the line of the new text, which holds the old one, if it is there with the match in it.
    ``is_part``: also as a part of a word."""
    view = search.document.view
    start = _start_around(view, place, old, new, is_part)
    is_inline = not are_whole_lines(view, place.start, view[place.start : place.end])
    if start is None and is_inline and old.strip() != new.strip():
        start = _start_around(view, place, old.strip(), new.strip(), is_part)  # blanks around it are no part of it
    if start is not None:
        return search.document.line_at(start)
    before, after = _filled(old), _filled(new)
    kept, keys = [normalized_line(line) for line in before], [normalized_line(line) for line in after]
    if len(keys) == 1 == len(kept) and kept != keys == [normalized_line(search.document.lines[place.first_line])]:
        return place.first_line
    lines = search.document.lines
    inside = [line for line in range(place.first_line, place.last_line + 1) if lines[line].strip()]
    if not kept or not inside or not set(kept) <= set(keys):
        return None
    around = _filled_around(lines, inside, len(keys))
    # Comments of the document that the new text does not have may be between its lines.
    shown = {
        line: normalized_line(lines[line]) for line in around
    }  # few of the document's lines, often all that is needed
    around = [line for line, key in shown.items() if key in keys or not is_comment(key)]
    for at in range(len(around) - len(keys) + 1):
        rows = around[at : at + len(keys)]
        is_around = rows[0] <= inside[0] and inside[-1] <= rows[-1]
        if (
            is_around
            and _are_alike(keys, [shown[row] for row in rows], kept)
            and _matches_new_text(search, rows, old, new)
        ):
            return rows[0]
    return None


def _start_around(view: str, place: TextMatch, old: str, new: str, is_part: bool) -> int | None:
    """Where the very characters of the new text stand with the old ones in them at the place."""
    for offset in islice(occurrences(new, old), MAX_OFFSETS):
        start, end = place.start - offset, place.start - offset + len(new)
        is_there = start >= 0 and view.startswith(new, start) and view.startswith(old, place.start)
        if is_there and (is_part or not (splits_word(view, start) or splits_word(view, end))):
            return start
    return None


def _are_alike(keys: Sequence[str], others: Sequence[str], kept: Sequence[str]) -> bool:
    """Whether lines are the same; those that are kept may differ in quote style or a closing comma."""
    pairs = zip(keys, others, strict=True)
    return all(key == other or (key in kept and lenient_line(key) == lenient_line(other)) for key, other in pairs)


def _filled_around(lines: Sequence[str], inside: Sequence[int], count: int) -> list[int]:
    """The lines ``inside``, and ``count`` before and after them that are not blank."""
    above = (line for line in range(inside[0] - 1, -1, -1) if lines[line].strip())
    below = (line for line in range(inside[-1] + 1, len(lines)) if lines[line].strip())
    return [*reversed(list(islice(above, count))), *inside, *islice(below, count)]


def _matches_new_text(search: DocumentIndex, rows: Sequence[int], old: str, new: str) -> bool:
    """Whether the lines are those of ``new``, also in another indentation, where that tells them from the old ones.
    Where nothing else was changed all are indented by as much more or less, and blanks count, too."""
    before, after, filled = _filled(old), _filled(new), [search.document.lines[row] for row in rows]
    widths = list(zip(map(indent_width, after), map(indent_width, filled), strict=True))
    if widths[0][0] == 0:
        widths = widths[1:]  # models leave out what is before a text's first word
    if list(map(normalized_line, before)) != list(map(normalized_line, after)):
        return _keeps_order(widths)
    shifts = {written - actual for written, actual in widths}
    is_reindented = list(map(indent_width, before)) != list(map(indent_width, after))
    if is_reindented and _are_moved(before, after, filled):
        shifts = {0}  # a line that stays may be indented otherwise
    if len(shifts) > 1 and (is_reindented or not _keeps_order(widths)):
        return False
    bodies = list(zip(*([line.lstrip(" \t") for line in lines] for lines in (before, after, filled)), strict=True))
    gaps = list(zip(_gaps(old), _gaps(new), _distances(rows), strict=True))
    if any(was != becomes != reads for was, becomes, reads in bodies):
        return False
    if any(was != becomes and (reads < becomes if becomes > was else reads > becomes) for was, becomes, reads in gaps):
        return False
    is_more = any(was != becomes for was, becomes, _ in (*bodies, *gaps))
    is_verbatim = _stripped(filled) == _stripped(after) != _stripped(before)
    is_moved = (is_reindented and shifts == {0}) or _depths(before) != _depths(after)
    return is_more or is_moved or is_verbatim


def _are_moved(before: Sequence[str], after: Sequence[str], filled: Sequence[str]) -> bool:
    """Whether all lines that get another indentation have it, and most of the others are indented as written."""
    rows = list(zip(before, after, filled, strict=True))
    moved = [(becomes, reads) for was, becomes, reads in rows if indent_of(was) != indent_of(becomes)]
    stay = [indent_of(was) == indent_of(reads) for was, becomes, reads in rows if indent_of(was) == indent_of(becomes)]
    return all(indent_of(becomes) == indent_of(reads) for becomes, reads in moved) and 2 * sum(stay) > len(stay)


def _keeps_order(widths: Sequence[tuple[int, int]]) -> bool:
    """Whether lines of one written indentation have one in the document, and deeper ones a deeper one."""
    pairs = sorted(set(widths))
    return all(shallow[0] < deep[0] and shallow[1] < deep[1] for shallow, deep in pairwise(pairs))


def _stripped(lines: Sequence[str]) -> list[str]:
    return [line.rstrip() for line in lines]


def _gaps(text: str) -> list[int]:
    """How far each line is from the next that is not blank."""
    return _distances([at for at, line in enumerate(split_view_lines(text)) if line.strip()])


def _distances(rows: Sequence[int]) -> list[int]:
    return [below - above for above, below in pairwise(rows)]


def _depths(lines: Sequence[str]) -> list[int]:
    """How much deeper than the first each line is."""
    return [indent_width(line) - indent_width(lines[0]) for line in lines]


def _filled(text: str) -> list[str]:
    return [line for line in split_view_lines(text) if line.strip()]


# ------------------------------------------------------------------------ elsewhere


def find_applied_lines(search: DocumentIndex, old: str, new: str) -> list[tuple[int, int]]:
    """Where the lines of ``new`` stand, if they say something that a part of ``old`` does not."""
    old_keys, new_keys = (
        [key for line in split_view_lines(text) if (key := normalized_line(line))] for text in (old, new)
    )
    return search.find_lines(new_keys) if _says_more(old_keys, new_keys) else []


def find_verbatim_copies(search: DocumentIndex, place: TextMatch, new: str) -> list[int]:
    """The first lines of where ``new`` stands as it is written, in whole lines and apart from ``place``, if it is
    telling."""
    view = search.document.view
    if len("".join(new.split())) < MIN_VISIBLE:
        return []
    starts = (start for start in islice(occurrences(view, new), MAX_OFFSETS) if are_whole_lines(view, start, new))
    apart = (start for start in starts if start >= place.end or start + len(new) <= place.start)
    return [search.document.line_at(start) for start in apart]


def find_inline_copy(search: DocumentIndex, old: str, new: str) -> int:
    """Where the very characters of the new text stand, if they are telling or fill their lines; or -1."""
    view, wanted = search.document.view, new.strip("\n")
    start = view.find(wanted) if wanted.strip() and wanted.strip() not in old else -1
    if start < 0 or len("".join(wanted.split())) >= MIN_VISIBLE:
        return start
    fills = view[start - 1 : start] in ("", "\n") and view[start + len(wanted) :][:1] in ("", "\n")
    return start if fills else -1


def have_common_lines(old: Sequence[str], new: Sequence[str]) -> bool:
    """Lines kept around the change make a text that stands there evidence; a lone new line proves little."""
    return bool(set(map(normalized_line, old)) & set(map(normalized_line, new)) - {""})


def _says_more(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether the lines ``after`` say something that a part of those ``before`` does not."""
    texts = ("\n" + "\n".join(keys) + "\n" for keys in (after, before))
    return len("".join(after).replace(" ", "")) >= MIN_VISIBLE and next(texts) not in next(texts)


# -------------------------------------------------------------------- a fuzzy match


def find_roughly_applied(
    search: DocumentIndex, best: MatchCandidate, old: Sequence[str], new: Sequence[str]
) -> int | None:
    """Return a line of the result of ``new`` where it is there, roughly: its additions, its indentation, or most of
    it."""
    found = (find(search, best, old, new) for find in (_find_insertion, _find_respaced, _find_better_fit))
    return next((line for line in found if line is not None), None)


def _find_insertion(search: DocumentIndex, best: MatchCandidate, old: Sequence[str], new: Sequence[str]) -> int | None:
    """The line from which all that ``new`` adds is where it is to be added, if it takes nothing away."""
    hunks = changes(list(map(normalized_line, old)), list(map(normalized_line, new)))
    if not hunks or any(hunk.start < hunk.end for hunk in hunks):
        return None
    at = {step.old_start: step.line_start for step in best.steps if step.is_pair}
    for row, was in enumerate(old):  # kept lines must have the blanks of the new text where these change
        becomes = new[row + sum(hunk.new_end - hunk.new_start for hunk in hunks if hunk.start <= row)].rstrip()
        if was.rstrip() != becomes and (row not in at or search.document.lines[at[row]].rstrip() != becomes):
            return None
    found = [_find_between(search, best, hunk.start, new[hunk.new_start : hunk.new_end]) for hunk in hunks]
    return None if None in found else found[0]


def _find_between(search: DocumentIndex, best: MatchCandidate, row: int, added: Sequence[str]) -> int | None:
    """Where ``added`` is behind the lines above ``row`` or before those below it."""
    steps = [step for step in best.steps if not step.is_unmentioned]
    above = max((step.line_stop for step in steps if step.old_stop <= row), default=0)
    below = min((step.line_start for step in steps if step.old_start >= row), default=search.document.line_count)
    keys, wanted = search.keys, [normalized_line(line) for line in added]
    if not any(wanted):
        return above if above < below and not any(keys[above:below]) else None
    size = len(wanted)
    return next((at for at in (above, below - size) if at >= 0 and keys[at : at + size] == wanted), None)


def _find_respaced(search: DocumentIndex, best: MatchCandidate, old: Sequence[str], new: Sequence[str]) -> int | None:
    """The first line of the match if only indentation and blank lines are to change, and the lines are there so."""
    before, after = ([row for row, line in enumerate(lines) if normalized_line(line)] for lines in (old, new))
    lines = search.document.lines
    at = {step.old_start: step.line_start for step in best.steps if step.is_pair}
    if [normalized_line(old[row]) for row in before] != [normalized_line(new[row]) for row in after]:
        return None
    pairs = list(zip(before, after, strict=True))
    found = [(was, row, at[was]) for was, row in pairs if was in at]
    is_found = all(was in at or indent_of(old[was]) == indent_of(new[row]) for was, row in pairs)
    is_indented = all(indent_of(new[row]) == indent_of(lines[line]) for _, row, line in found)
    gaps = zip(*(_distances(rows) for rows in zip(*found, strict=True)), strict=True) if found else ()
    is_spaced = all(becomes == reads for was, becomes, reads in gaps if was != becomes)
    return best.first_line if found and is_found and is_indented and is_spaced else None


def _find_better_fit(search: DocumentIndex, best: MatchCandidate, old: Sequence[str], new: Sequence[str]) -> int | None:
    """Where the new text is, if it is no less like the document than the old one."""
    before, after = ([key for line in lines if (key := normalized_line(line))] for lines in (old, new))
    added = set(after) - set(before)
    if not all(map(search.lines_with_key, added)) or (not added and not _says_more(before, after)):
        return None
    found = next(iter(find_fuzzy_matches(search, new, best.first_line)), None)
    if found is None or found.score < best.score or (found.is_apart_from(best) and not have_common_lines(old, new)):
        return None
    between = (step for step in found.steps if step.is_unmentioned or step.is_elided)
    has_more = any(any(search.keys[step.line_start : step.line_stop]) for step in between)
    return None if not added and (found.flaws or has_more) else found.first_line
