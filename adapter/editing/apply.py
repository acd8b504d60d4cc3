"""Patches applied to a text: old text for new text, all of them or none.

By default every patch is located in the original text, so that no patch can
hit what another one wrote; then they are spliced in at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias, get_args

from adapter.core.arguments import NONE, check_types
from adapter.core.errors import EditError, FormatError, UsageError
from adapter.core.events import Json
from adapter.core.text.diffs import LineChange as LineChange
from adapter.core.text.diffs import unified_diff
from adapter.core.text.lines import split_lines, to_lf
from adapter.editing.document import TextDocument, format_line_range, normalize_newlines
from adapter.editing.matching.document_index import DocumentIndex
from adapter.editing.matching.hunk_locator import locate_hunk
from adapter.editing.matching.locator import locate
from adapter.editing.matching.whole_file_locator import locate_whole_file
from adapter.editing.notations.parse_edits import parse_patches, patch_from_mapping
from adapter.editing.rejection import Rejection, Resolution, ResolvedEdit
from adapter.editing.syntax_check import find_new_syntax_error
from adapter.tools.operations import EmptyOldText, Hunk, ParameterNames, Patch, PatchBasis, WholeFileRewrite

_NOTHING_CHANGED = "Nothing was changed."


@dataclass(frozen=True, slots=True)
class AppliedPatch:
    """Where a patch was applied: lines of the text it was sought in, 1-based, both included.

    ``strictness``: ``exact``; ``whitespace`` or ``typography`` when the lines
    differ in that alone; ``aligned`` when the match is a rough one.
    """

    strictness: str
    start_line: int
    end_line: int
    notes: tuple[str, ...] = ()
    """What was tolerated or decided, one sentence each; empty for an exact, unique match."""


@dataclass(frozen=True, slots=True)
class PatchResult:
    """The patched ``text``, one match per patch in the order given, and the unified ``diff``.

    ``places``: where ``text`` was changed, as offsets into it; none with the basis "sequence".
    ``notes``: what is to be said of the text as a whole, one sentence each.
    """

    text: str
    matches: tuple[AppliedPatch, ...]
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
    names: ParameterNames | None = None,
) -> PatchResult:
    """Apply all patches to ``text``, or none.

    ``patches``: what a model wrote in any notation (a diff, SEARCH/REPLACE blocks, a ``*** Begin Patch``
    envelope, JSON, the whole text in a fence), or one or several mappings with ``old_text`` and ``new_text``.
    ``path`` names the file in the diff and says its language, ``names`` the parameters in
    messages. ``basis``: with "sequence", each patch is sought in what the ones
    before it left. Raises EditError, which lists every patch that does not fit.
    Linear in ``text`` for each patch; what would cost more is refused.
    """
    check_types("patch_text", text=(text, str), path=(path, str), names=(names, ParameterNames, NONE))
    for argument, value, choices in (("basis", basis, PatchBasis), ("empty_old_text", empty_old_text, EmptyOldText)):
        if value not in get_args(choices):
            raise UsageError(f"patch_text: {argument} must be {' or '.join(get_args(choices))}, got {value!r}")
    names = names or ParameterNames()
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


_Groups: TypeAlias = Sequence[Sequence[ResolvedEdit]]
"""The edits of each patch."""


def _grammar_notes(
    text: str, patched: str, path: str, patches: Sequence[Patch], groups: _Groups, names: ParameterNames
) -> tuple[str, ...]:
    """A note on a file that parses no longer. Raises EditError when that may come of a tolerated difference."""
    mistake = find_new_syntax_error(text, patched, path)
    if mistake is None:
        return ()
    rejections = {
        index: Rejection(
            "breaks syntax",
            f"{names.old_text} fits line {edits[0].match.first_line + 1}, but with {names.new_text} as it would be put "
            f"there {mistake}; copy {names.old_text} from the file exactly, and write {names.new_text} with the "
            "indentation of the file",
        )
        for index, (patch, edits) in enumerate(zip(patches, groups, strict=True))
        if any(_is_adapted(patch, edit) for edit in edits)
    }
    _raise_for(rejections, len(patches))
    return (str(mistake),)


def _is_adapted(patch: Patch, edit: ResolvedEdit) -> bool:
    """Whether anything else was written than the new text as it was given."""
    if isinstance(patch, WholeFileRewrite):
        return False  # its new text is the whole file, of which each edit is a piece
    written = to_lf(edit.replacement).removeprefix("\n").removesuffix("\n")
    return written != normalize_newlines(patch.new_text).removeprefix("\n").removesuffix("\n")


def _against_original(
    text: str, patches: Sequence[Patch], names: ParameterNames, empty_old_text: EmptyOldText
) -> tuple[list[_LineEdit], _Groups]:
    search = DocumentIndex(TextDocument(text))
    groups: list[Sequence[ResolvedEdit]] = []
    rejections: dict[int, Rejection] = {}
    for index, found in enumerate([_resolve(search, patch, names, empty_old_text) for patch in patches]):
        dependence = _dependence(index, patches, names)
        match found:
            case Rejection() as rejection:
                kind = "dependent" if dependence else rejection.kind
                rejections[index] = Rejection(kind, rejection.message + dependence)
                continue
            case edits:
                is_rough = edits[0].match.strictness == "aligned" or not edits[0].match.is_exact_layout
        if is_rough and dependence:
            rejections[index] = Rejection("dependent", f"{names.old_text} is in the file only roughly{dependence}")
        groups.append(edits)
    _raise_for(rejections, len(patches))
    changes = [
        _trimmed(search.document, edit, index, order)
        for index, edits in enumerate(groups)
        for order, edit in enumerate(edits)
    ]
    return _without_overlaps(changes, groups), groups


def _in_sequence(
    text: str, patches: Sequence[Patch], names: ParameterNames, empty_old_text: EmptyOldText
) -> tuple[str, _Groups]:
    groups: list[Sequence[ResolvedEdit]] = []
    rejections: dict[int, Rejection] = {}
    for index, patch in enumerate(patches):
        search = DocumentIndex(TextDocument(text))
        match _resolve(search, patch, names, empty_old_text):
            case Rejection() as rejection:
                rejections[index] = rejection
            case edits:
                text = _spliced(text, [_trimmed(search.document, edit, index, 0) for edit in edits])
                groups.append(edits)
    _raise_for(rejections, len(patches))
    return text, groups


def _resolve(search: DocumentIndex, patch: Patch, names: ParameterNames, empty_old_text: EmptyOldText) -> Resolution:
    match patch:
        case WholeFileRewrite():
            return locate_whole_file(search, patch, names)
        case Hunk():
            return locate_hunk(search, patch, names)
        case _:
            return locate(search, patch, names, empty_old_text)


def _match(edits: Sequence[ResolvedEdit]) -> AppliedPatch:
    first, last = edits[0].match, edits[-1].match
    return AppliedPatch(first.strictness, first.first_line + 1, last.last_line + 1, edits[0].notes)


def _dependence(index: int, patches: Sequence[Patch], names: ParameterNames) -> str:
    """Advice on a text that only another patch brings in."""
    old = to_lf(patches[index].old_text).strip("\n")
    for other, patch in enumerate(patches):
        if other != index and old and old in to_lf(patch.new_text):
            return (
                f". It stands in the {names.new_text} of patch {other + 1}, but all patches are sought in the file "
                "as it is: join the two into one patch"
            )
    return ""


# ------------------------------------------------------------------------ splicing


class _LineEdit(NamedTuple):
    """``text[start:end]`` becomes ``replacement``, for a patch and its first or a further edit."""

    start: int
    end: int
    patch: int
    order: int
    replacement: str


def _trimmed(document: TextDocument, edit: ResolvedEdit, patch: int, order: int) -> _LineEdit:
    """The change without the whole lines at its edges that stay: context may be shared by patches."""
    start, end = document.text_offset(edit.match.start), document.text_offset(edit.match.end)
    old, new = split_lines(document.text[start:end]), split_lines(edit.replacement)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    before = sum(map(len, old[:head]))
    after = sum(map(len, old[len(old) - tail :]))
    return _LineEdit(
        start + before, end - after, patch, order, edit.replacement[before : len(edit.replacement) - after]
    )


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(left), len(right)))


def _without_overlaps(changes: Sequence[_LineEdit], groups: _Groups) -> list[_LineEdit]:
    """The changes in the order of the text; the same change asked for twice is made once."""
    ordered = sorted(changes)
    kept = ordered[:1]
    rejections: dict[int, Rejection] = {}
    for before, after in pairwise(ordered):
        is_same_place = (before.start, before.end) == (after.start, after.end)
        if is_same_place and before.replacement == after.replacement:
            continue
        if after.start < before.end or is_same_place:
            first, second = sorted((before, after), key=lambda change: change.patch)
            left, right = (groups[change.patch][change.order].match for change in (first, second))
            rejections[second.patch] = Rejection(
                "overlapping",
                f"overlaps patch {first.patch + 1} ({format_line_range(left.first_line + 1, left.last_line + 1)} and "
                f"{format_line_range(right.first_line + 1, right.last_line + 1)}); join the two into one patch",
            )
        kept.append(after)
    _raise_for(rejections, len(groups))
    return kept


def _spliced(text: str, changes: Sequence[_LineEdit]) -> str:
    parts: list[str] = []
    position = 0
    for change in changes:
        parts += (text[position : change.start], change.replacement)
        position = change.end
    return "".join([*parts, text[position:]])


def _places(spliced: Sequence[_LineEdit]) -> Iterator[int]:
    """Where the changes start in the patched text."""
    shift = 0
    for change in spliced:
        yield change.start + shift
        shift += len(change.replacement) - (change.end - change.start)


def _stretches(text: str, spliced: Sequence[_LineEdit]) -> list[LineChange]:
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
    given: str | Patch | Mapping[str, Json] | Sequence[Patch | Mapping[str, Json]], names: ParameterNames
) -> list[Patch]:
    """The patches as values. Raises EditError for what is none."""
    if isinstance(given, str):
        try:
            return list(parse_patches(given))
        except FormatError as error:
            raise EditError(f"{error}. {_NOTHING_CHANGED}") from error
    patches = [given] if isinstance(given, Patch | Mapping) else given
    if not patches:
        raise EditError(
            f"no patches were given; expected at least one with {names.old_text} and {names.new_text}. "
            f"{_NOTHING_CHANGED}"
        )
    if not isinstance(patches, Sequence):
        raise EditError(f"expected a text, or a list of patches, got {str(patches)[:60]!r}. {_NOTHING_CHANGED}")
    checked: list[Patch] = []
    rejections: dict[int, Rejection] = {}
    for index, patch in enumerate(patches):
        try:
            checked.append(patch if isinstance(patch, Patch) else patch_from_mapping(patch))
        except FormatError as error:
            rejections[index] = Rejection("invalid", str(error))
    _raise_for(rejections, len(patches))
    return checked


def _raise_for(rejections: Mapping[int, Rejection], count: int) -> None:
    """Raise one EditError for all rejected patches, if there are any."""
    if not rejections:
        return
    named = [
        f"patch {index + 1} of {count}: {rejection.message}." if count > 1 else f"{rejection.message}."
        for index, rejection in sorted(rejections.items())
    ]
    fitting = [index + 1 for index in range(count) if index not in rejections]
    closing = ""
    if fitting:
        numbers = ", ".join(map(str, fitting))
        closing = (
            f"Patch {numbers} fits as it is" if len(fitting) == 1 else f"Patches {numbers} fit as they are"
        ) + ": correct only the others, and send all of them again. "
    kinds = [rejection.kind for _, rejection in sorted(rejections.items())]
    raise EditError("\n".join(named) + f"\n{closing}{_NOTHING_CHANGED}", named, kinds)
