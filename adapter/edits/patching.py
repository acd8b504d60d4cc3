"""Patches applied to a text: old text for new text, all of them or none.

By default every patch is located in the original text, so that no patch can
hit what another one wrote; then they are spliced in at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from adapter.edits.document import Document, line_range, view_of
from adapter.edits.given import patch_from, patches_in
from adapter.edits.grammar import new_mistake
from adapter.edits.hunks import located_hunk
from adapter.edits.locating import Spot, locate
from adapter.edits.rewriting import rewritten
from adapter.edits.search import Search
from adapter.operations import EmptyOldText, Hunk, Patch, PatchBasis, PatchNames, Rewrite
from adapter.text.diffs import Change as LineChange
from adapter.text.diffs import unified_diff
from adapter.text.lines import split_lines, to_lf
from adapter.values.errors import EditError, FormatError
from adapter.values.events import Json
from adapter.values.fields import frozen

_NOTHING_CHANGED = "Nothing was changed."


@frozen
class Match:
    """Where a patch was applied: lines of the text it was sought in, 1-based, both included.

    ``strictness``: ``exact``; ``whitespace`` or ``typography`` when the lines
    differ in that alone; ``aligned`` when the match is a rough one.
    """

    strictness: str
    start_line: int
    end_line: int
    notes: tuple[str, ...] = ()
    """What was tolerated or decided, one sentence each; empty for an exact, unique match."""


@frozen
class PatchResult:
    """The patched ``text``, one match per patch in the order given, and the unified ``diff``.

    ``places``: where ``text`` was changed, as offsets into it; none with the basis "sequence".
    ``notes``: what is to be said of the text as a whole, one sentence each.
    """

    text: str
    matches: tuple[Match, ...]
    diff: str
    places: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


def patch_text(
    text: str,
    patches: str | Patch | Mapping[str, Json] | Sequence[Patch | Mapping[str, Json]],
    path: str = "",
    *,
    basis: PatchBasis = "original",
    empty_old_text: EmptyOldText = "refuse",
    names: PatchNames | None = None,
) -> PatchResult:
    """Apply all patches to ``text``, or none.

    ``patches``: what a model wrote in any notation (a diff, SEARCH/REPLACE blocks, a ``*** Begin Patch``
    envelope, JSON, the whole text in a fence), or one or several mappings with ``old_text`` and ``new_text``.
    ``path`` names the file in the diff and says its language, ``names`` the parameters in
    messages. ``basis``: with "sequence", each patch is sought in what the ones
    before it left. Raises EditError, which lists every patch that does not fit.
    Linear in ``text`` for each patch; what would cost more is refused.
    """
    names = names or PatchNames()
    checked = _checked(patches, names)
    places: tuple[int, ...] = ()
    if basis == "sequence":
        patched, groups = _in_sequence(text, checked, names, empty_old_text)
        diff = unified_diff(text, patched, path)
    else:
        spliced, groups = _against_original(text, checked, names, empty_old_text)
        patched, places = _spliced(text, spliced), tuple(_places(spliced))
        diff = unified_diff(text, patched, path, _stretches(text, spliced))
    notes = _grammar_notes(text, patched, path, checked, groups, names)
    return PatchResult(patched, tuple(map(_match, groups)), diff, places, notes)


def _grammar_notes(
    text: str,
    patched: str,
    path: str,
    patches: Sequence[Patch],
    groups: Sequence[Sequence[Spot]],
    names: PatchNames,
) -> tuple[str, ...]:
    """Word of a file that parses no longer. Raises EditError when that may come of what was adapted here."""
    mistake = new_mistake(text, patched, path)
    if mistake is None:
        return ()
    failures = {
        index: (
            f"{names.old_text} fits line {spots[0].place.first_line + 1}, but with {names.new_text} as it would be put "
            f"there {mistake}; copy {names.old_text} from the file exactly, and write {names.new_text} with the "
            "indentation of the file"
        )
        for index, (patch, spots) in enumerate(zip(patches, groups, strict=True))
        if any(_is_adapted(patch, spot) for spot in spots)
    }
    if failures:
        raise _error(failures, len(patches))
    return (str(mistake),)


def _is_adapted(patch: Patch, spot: Spot) -> bool:
    """Whether anything else was written than the new text as it was given."""
    if isinstance(patch, Rewrite):
        return False  # its new text is the whole file, of which each spot is a piece
    written = to_lf(spot.replacement).removeprefix("\n").removesuffix("\n")
    return written != view_of(patch.new_text).removeprefix("\n").removesuffix("\n")


def _against_original(
    text: str, patches: Sequence[Patch], names: PatchNames, empty_old_text: EmptyOldText
) -> tuple[list[_Change], list[list[Spot]]]:
    search = Search(Document(text))
    found = [_located(search, patch, names, empty_old_text) for patch in patches]
    failures = {
        index: located + _dependence(index, patches, names)
        for index, located in enumerate(found)
        if isinstance(located, str)
    }
    for index, spots in enumerate(found):
        if not isinstance(spots, str) and (spots[0].place.strictness == "aligned" or not spots[0].place.is_sharp):
            dependence = _dependence(index, patches, names)
            if dependence:
                failures[index] = f"{names.old_text} is in the file only roughly{dependence}"
    if failures:
        raise _error(failures, len(patches))
    groups = [spots for spots in found if not isinstance(spots, str)]
    changes = [
        _trimmed(search.document, spot, index, order)
        for index, spots in enumerate(groups)
        for order, spot in enumerate(spots)
    ]
    return _without_overlaps(changes, groups), groups


def _in_sequence(
    text: str, patches: Sequence[Patch], names: PatchNames, empty_old_text: EmptyOldText
) -> tuple[str, list[list[Spot]]]:
    groups: list[list[Spot]] = []
    failures: dict[int, str] = {}
    for index, patch in enumerate(patches):
        search = Search(Document(text))
        spots = _located(search, patch, names, empty_old_text)
        if isinstance(spots, str):
            failures[index] = spots
            continue
        text = _spliced(text, [_trimmed(search.document, spot, index, 0) for spot in spots])
        groups.append(spots)
    if failures:
        raise _error(failures, len(patches))
    return text, groups


def _located(search: Search, patch: Patch, names: PatchNames, empty_old_text: EmptyOldText) -> list[Spot] | str:
    match patch:
        case Rewrite():
            return rewritten(search, patch, names)
        case Hunk():
            return located_hunk(search, patch, names)
        case _:
            return locate(search, patch, names, empty_old_text)


def _match(spots: Sequence[Spot]) -> Match:
    first, last = spots[0].place, spots[-1].place
    return Match(first.strictness, first.first_line + 1, last.last_line + 1, spots[0].notes)


def _dependence(index: int, patches: Sequence[Patch], names: PatchNames) -> str:
    """What to do about a text that only another patch brings in."""
    old = to_lf(patches[index].old_text).strip("\n")
    for other, patch in enumerate(patches):
        if other != index and old and old in to_lf(patch.new_text):
            return (
                f". It stands in the {names.new_text} of patch {other + 1}, but all patches are sought in the file "
                "as it is: join the two into one patch"
            )
    return ""


# ------------------------------------------------------------------------ splicing


class _Change(NamedTuple):
    """``text[start:end]`` becomes ``replacement``, for a patch and its first or a further place."""

    start: int
    end: int
    patch: int
    order: int
    replacement: str


def _trimmed(document: Document, spot: Spot, patch: int, order: int) -> _Change:
    """The change without the whole lines at its edges that stay: context may be shared by patches."""
    start, end = document.text_offset(spot.place.start), document.text_offset(spot.place.end)
    old, new = split_lines(document.text[start:end]), split_lines(spot.replacement)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    before = sum(map(len, old[:head]))
    after = sum(map(len, old[len(old) - tail :]))
    return _Change(start + before, end - after, patch, order, spot.replacement[before : len(spot.replacement) - after])


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    for index, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return index
    return min(len(left), len(right))


def _without_overlaps(changes: Sequence[_Change], groups: Sequence[Sequence[Spot]]) -> list[_Change]:
    """The changes in the order of the text; the same change asked for twice is made once."""
    ordered = sorted(changes)
    kept: list[_Change] = ordered[:1]
    failures: dict[int, str] = {}
    for before, after in pairwise(ordered):
        is_same_place = (before.start, before.end) == (after.start, after.end)
        if is_same_place and before.replacement == after.replacement:
            continue
        if after.start < before.end or is_same_place:
            first, second = sorted((before, after), key=lambda change: change.patch)
            left, right = (groups[change.patch][change.order].place for change in (first, second))
            failures[second.patch] = (
                f"overlaps patch {first.patch + 1} ({line_range(left.first_line + 1, left.last_line + 1)} and "
                f"{line_range(right.first_line + 1, right.last_line + 1)}); join the two into one patch"
            )
        kept.append(after)
    if failures:
        raise _error(failures, len(groups))
    return kept


def _spliced(text: str, changes: Sequence[_Change]) -> str:
    parts: list[str] = []
    position = 0
    for change in changes:
        parts += (text[position : change.start], change.replacement)
        position = change.end
    return "".join([*parts, text[position:]])


def _places(spliced: Sequence[_Change]) -> Iterator[int]:
    """Where the changes start in the patched text."""
    shift = 0
    for change in spliced:
        yield change.start + shift
        shift += len(change.replacement) - (change.end - change.start)


def _stretches(text: str, spliced: Sequence[_Change]) -> list[LineChange]:
    """The lines that the changes touch, before and after."""
    stretches: list[LineChange] = []
    position = line = shift = 0
    for change in spliced:
        line += text.count("\n", position, change.start)
        end = line + text.count("\n", change.start, change.end)
        new_end = line + shift + change.replacement.count("\n")
        if stretches and line < stretches[-1].end:
            stretches[-1] = stretches[-1]._replace(end=end + 1, new_end=new_end + 1)
        else:
            stretches.append(LineChange(line, end + 1, line + shift, new_end + 1))
        position, line, shift = change.end, end, new_end - end
    return stretches


# -------------------------------------------------------------------------- errors


def _checked(
    given: str | Patch | Mapping[str, Json] | Sequence[Patch | Mapping[str, Json]], names: PatchNames
) -> list[Patch]:
    """The patches as values. Raises EditError for what is none."""
    if isinstance(given, str):
        return _read(given)
    patches = [given] if isinstance(given, Patch | Mapping) else given
    if not patches:
        raise EditError(
            f"no patches were given; expected at least one with {names.old_text} and {names.new_text}. "
            f"{_NOTHING_CHANGED}"
        )
    if not isinstance(patches, Sequence):
        raise EditError(f"expected a text, or a list of patches, got {str(patches)[:60]!r}. {_NOTHING_CHANGED}")
    checked = [patch if isinstance(patch, Patch) else patch_from(patch) for patch in patches]
    failures = {index: patch for index, patch in enumerate(checked) if isinstance(patch, str)}
    if failures:
        raise _error(failures, len(patches))
    return [patch for patch in checked if isinstance(patch, Patch)]


def _read(written: str) -> list[Patch]:
    try:
        return list(patches_in(written))
    except FormatError as error:
        raise EditError(f"{error}. {_NOTHING_CHANGED}") from error


def _error(failures: Mapping[int, str], count: int) -> EditError:
    """One error for all failing patches, by patch number."""
    named = [
        f"patch {index + 1} of {count}: {failure}." if count > 1 else f"{failure}."
        for index, failure in sorted(failures.items())
    ]
    fitting = [index + 1 for index in range(count) if index not in failures]
    closing = ""
    if fitting:
        numbers = ", ".join(map(str, fitting))
        closing = (
            f"Patch {numbers} fits as it is" if len(fitting) == 1 else f"Patches {numbers} fit as they are"
        ) + ": correct only the others, and send all of them again. "
    return EditError("\n".join(named) + f"\n{closing}{_NOTHING_CHANGED}", named)
