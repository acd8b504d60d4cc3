"""Apply patches (old text, new text) to a string: all patches or none.

By default every patch is located in the original text, so that no patch can match the output of another patch. The
replacements are inserted only after all patches are located.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, TypeAlias, get_args

from adapter.core.argument_checks import NONE, check_types
from adapter.core.errors import EditError, FormatError, UsageError
from adapter.core.events import Json
from adapter.core.text.diffs import LineChange as LineChange
from adapter.core.text.diffs import list_changed_offsets, render_unified_diff
from adapter.core.text.lines import to_lf
from adapter.editing.document import TextDocument, format_line_range, normalize_newlines
from adapter.editing.edit_splicing import LineEdit, iter_changed_lines, list_change_offsets, splice_edits, trim_context
from adapter.editing.matching.document_index import DocumentIndex
from adapter.editing.matching.hunk_locator import locate_hunk
from adapter.editing.matching.joint_placement import place_jointly
from adapter.editing.matching.locator import locate
from adapter.editing.matching.whole_file_rewrite import locate_whole_file
from adapter.editing.notations.parse_edits import convert_mapping_to_patch, parse_patches
from adapter.editing.notebook import join_sources, replace_sources
from adapter.editing.resolved_edits import Rejection, Resolution, ResolvedEdit
from adapter.editing.syntax_check import find_new_syntax_error
from adapter.tools.operations import EmptyOldText, Hunk, ParameterNames, Patch, PatchBasis, WholeFileRewrite

_NOTHING_CHANGED = "Nothing was changed."


@dataclass(frozen=True, slots=True)
class AppliedPatch:
    """The lines that a patch was applied to: 1-based and inclusive, in the text that it was matched against.

    ``strictness`` is ``exact``; ``whitespace`` or ``typography`` if the texts differ only in whitespace or typographic
    characters; or ``aligned`` for a fuzzy match.
    """

    strictness: str
    start_line: int
    end_line: int
    notes: tuple[str, ...] = ()
    """Tolerated differences and decisions, one sentence each. Empty for an exact, unique match."""


@dataclass(frozen=True, slots=True)
class PatchResult:
    """The patched ``text``, one match per patch in input order, and the unified ``diff``.

    ``places``: the offsets of the changes in ``text``, empty if patches were applied in sequence. ``notes``: remarks
    about the whole text, one sentence each.
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

    Args:
        patches: A model's output in any edit format (a diff, SEARCH/REPLACE blocks, a ``*** Begin Patch`` envelope,
            JSON, the whole text in a fence), or one or several mappings with ``old_text`` and ``new_text``.
        path: The name of the file, which is used in the diff and determines the file's language.
        basis: With "sequence", each patch is matched against the result of the previous ones.
        empty_old_text: The effect of a patch without old text.
        names: The names of the parameters in messages.

    Raises EditError, which lists every patch that does not match. The time is linear in the length of ``text`` for each
    patch; searches that would take longer are refused.
    """
    check_types("patch_text", text=(text, str), path=(path, str), names=(names, ParameterNames, NONE))
    for argument, value, choices in (("basis", basis, PatchBasis), ("empty_old_text", empty_old_text, EmptyOldText)):
        if value not in get_args(choices):
            raise UsageError(f"patch_text: {argument} must be {' or '.join(get_args(choices))}, got {value!r}")
    options = _Options(basis, empty_old_text, names or ParameterNames())
    checked = _validate_patches(patches, options.names)
    sources = join_sources(text) if path.endswith(".ipynb") else None
    if sources is not None:
        return _patch_notebook(text, sources, checked, path, options)
    return _patch(text, checked, path, options)


class _Options(NamedTuple):
    """The keyword arguments of `patch_text`."""

    basis: PatchBasis
    empty_old_text: EmptyOldText
    names: ParameterNames


def _patch(text: str, patches: Sequence[Patch], path: str, options: _Options) -> PatchResult:
    places: tuple[int, ...] = ()
    names = options.names
    if options.basis == "sequence":
        patched, groups = _apply_in_sequence(text, patches, path, options)
        diff = render_unified_diff(text, patched, path)
        if patched == text:
            no_change = "no change: the patches undo each other"
            raise EditError(f"{no_change}. {_NOTHING_CHANGED}", [no_change], ["no change"])
    else:
        spliced, groups = _match_against_original(text, patches, path, options)
        patched, places = splice_edits(text, spliced), tuple(list_change_offsets(spliced))
        diff = render_unified_diff(text, patched, path, iter_changed_lines(text, spliced))
    notes = _list_grammar_notes(text, patched, path, patches, groups, names)
    repairs = (
        (_keep_comma, f"the comma at the end of {names.old_text} was kept, because the file does not parse without it"),
        (_drop_repeated_line, f"the last line of {names.new_text} was left out, because the file has it below"),
    )
    for repair, note in repairs:
        if notes and (repaired := [repair(text, patch) for patch in patches]) != [*patches]:
            with suppress(EditError):
                result = _patch(text, repaired, path, options)
                if not result.notes:
                    return replace(result, notes=(note,))
    return PatchResult(patched, tuple(map(_build_applied_patch, groups)), diff, places, notes)


def _keep_comma(_: str, patch: Patch) -> Patch:
    """Return ``patch`` with a comma at the end of its new text if only its old text ends with one."""
    new = patch.new_text.rstrip()
    if patch.exact or not new or new.endswith(",") or not patch.old_text.rstrip().endswith(","):
        return patch
    return replace(patch, new_text=f"{new},{patch.new_text[len(new) :]}")


def _drop_repeated_line(text: str, patch: Patch) -> Patch:
    """Remove the last line of a patch's new text if that line already follows the old text in ``text``. Return the
    patch."""
    old, (rest, _, last) = to_lf(patch.old_text).rstrip("\n"), to_lf(patch.new_text).rstrip("\n").rpartition("\n")
    _, found, below = to_lf(text).partition(f"{old}\n")
    is_unique = found and rest and f"{old}\n" not in below
    if patch.exact or not is_unique or below.lstrip("\n").partition("\n")[0].strip() != last.strip():
        return patch
    return replace(patch, new_text=rest + patch.new_text[len(patch.new_text.rstrip("\n")) :])


def _patch_notebook(text: str, sources: str, patches: Sequence[Patch], path: str, options: _Options) -> PatchResult:
    """Apply patches to the ``sources`` of a notebook's cells or, if they do not match, to its JSON."""
    olds = [normalize_newlines(patch.old_text).strip("\n") for patch in patches]
    if all(f"\n{old}\n" in text for old in olds):
        return _patch(text, patches, path, options)
    try:
        result = _patch(sources, patches, "", options._replace(empty_old_text="refuse"))
        patched = replace_sources(text, result.text)
        if patched is None:
            raise EditError(f"the patches would join or split cells; change one cell at a time. {_NOTHING_CHANGED}")
    except EditError as error:
        try:
            result = _patch(text, patches, path, options)
        except EditError:
            raise error from None
        if result.notes:
            raise
        return result
    places = tuple(list_changed_offsets(text, patched))
    return replace(result, text=patched, diff=render_unified_diff(text, patched, path), places=places)


_Groups: TypeAlias = Sequence[Sequence[ResolvedEdit]]
"""The edits of each patch, in the order of the patches."""


def _list_grammar_notes(
    text: str, patched: str, path: str, patches: Sequence[Patch], groups: _Groups, names: ParameterNames
) -> tuple[str, ...]:
    """Return a note if the patched file no longer parses. Raises EditError if a tolerated difference may be the
    cause."""
    problem = find_new_syntax_error(text, patched, path)
    if problem is None:
        return ()
    rejections = {
        index: Rejection(
            "breaks syntax",
            f"{names.old_text} matches line {edits[0].match.first_line + 1}, but with {names.new_text} in its place "
            f"{problem}; copy {names.old_text} from the file exactly and indent {names.new_text} as the file does",
        )
        for index, (patch, edits) in enumerate(zip(patches, groups, strict=True))
        if any(_is_adapted(patch, edit, patched) for edit in edits)
    }
    _raise_for(rejections, len(patches))
    return (str(problem),)


def _is_adapted(patch: Patch, edit: ResolvedEdit, patched: str) -> bool:
    """Return whether the text that ``edit`` inserts differs from the new text that the model wrote."""
    inserted = to_lf(patched if isinstance(patch, WholeFileRewrite) else edit.replacement)
    written = normalize_newlines(patch.new_text)
    return inserted.removeprefix("\n").removesuffix("\n") != written.removeprefix("\n").removesuffix("\n")


def _match_against_original(
    text: str, patches: Sequence[Patch], path: str, options: _Options
) -> tuple[list[LineEdit], _Groups]:
    names = options.names
    search = DocumentIndex(TextDocument(text, path))
    groups: list[Sequence[ResolvedEdit]] = []
    rejections: dict[int, Rejection] = {}
    for index, found in enumerate(_resolve_jointly(search, patches, options)):
        dependence = _describe_dependence(index, patches, names)
        if isinstance(found, Rejection):
            kind = "dependent" if dependence else found.kind
            rejections[index] = Rejection(kind, found.message + dependence)
            continue
        groups.append(found)
        is_rough = found[0].match.strictness == "aligned" or not found[0].match.is_exact_layout
        if is_rough and dependence:
            rejections[index] = Rejection("dependent", f"{names.old_text} only roughly matches the file{dependence}")
    _raise_for(rejections, len(patches))
    changes = [
        trim_context(search.document, edit, index, order)
        for index, edits in enumerate(groups)
        for order, edit in enumerate(edits)
    ]
    return _reject_overlaps(changes, groups, patches), groups


def _apply_in_sequence(text: str, patches: Sequence[Patch], path: str, options: _Options) -> tuple[str, _Groups]:
    groups: list[Sequence[ResolvedEdit]] = []
    rejections: dict[int, Rejection] = {}
    original = DocumentIndex(TextDocument(text, path))
    for index, patch in enumerate(patches):
        search = DocumentIndex(TextDocument(text, path))
        found = _resolve(search, patch, options)
        if isinstance(found, Rejection):
            rejections[index] = found if not groups else _locate_in_original(found, original, patch, options)
        else:
            text = splice_edits(text, [trim_context(search.document, edit, index, 0) for edit in found])
            groups.append(found)
    _raise_for(rejections, len(patches))
    return text, groups


def _locate_in_original(found: Rejection, original: DocumentIndex, patch: Patch, options: _Options) -> Rejection:
    """Return the rejection with the original file's line numbers. If the original file does not give the same kind of
    rejection, add a note that the line numbers include the changes of the previous patches."""
    before = _resolve(original, patch, options)
    if isinstance(before, Rejection) and before.kind == found.kind:
        return before
    return replace(found, message=f"{found.message}. The line numbers are those after the previous patches")


def _resolve_jointly(search: DocumentIndex, patches: Sequence[Patch], options: _Options) -> Sequence[Resolution]:
    """Resolve each patch. If the other patches show that a patch belongs to another line, resolve it again."""
    resolutions = [_resolve(search, patch, options) for patch in patches]
    for index, line in place_jointly(patches, resolutions).items():
        placed = replace(patches[index], start_line=None if line is None else line + 1, end_line=None)
        resolutions[index] = _resolve(search, placed, options)
    return resolutions


def _resolve(search: DocumentIndex, patch: Patch, options: _Options) -> Resolution:
    match patch:
        case WholeFileRewrite():
            return locate_whole_file(search, patch, options.names)
        case Hunk():
            return locate_hunk(search, patch, options.names)
        case _:
            return locate(search, patch, options.names, options.empty_old_text)


def _build_applied_patch(edits: Sequence[ResolvedEdit]) -> AppliedPatch:
    first, last = edits[0].match, edits[-1].match
    return AppliedPatch(first.strictness, first.first_line + 1, last.last_line + 1, edits[0].notes)


def _describe_dependence(index: int, patches: Sequence[Patch], names: ParameterNames) -> str:
    """Return advice to merge two patches if another one inserts the old text of this one, otherwise ""."""
    old = to_lf(patches[index].old_text).strip("\n")
    for other, patch in enumerate(patches):
        if other != index and old and old in to_lf(patch.new_text):
            return (
                f". It occurs in {names.new_text} of patch {other + 1}, but every patch is matched against the "
                "original file; merge the two patches"
            )
    return ""


def _differ_in_line(before: LineEdit, after: LineEdit, patches: Sequence[Patch]) -> bool:
    """Return whether two changes have the same old text, but are applied to different lines because of line numbers."""
    first, second = patches[before.patch], patches[after.patch]
    return first.old_text == second.old_text and first.start_line != second.start_line


def _reject_overlaps(changes: Sequence[LineEdit], groups: _Groups, patches: Sequence[Patch]) -> list[LineEdit]:
    """Return the changes of all patches in text order, without duplicates. Raises EditError if two changes overlap."""
    ordered = sorted(changes)
    kept = ordered[:1]
    rejections: dict[int, Rejection] = {}
    for before, after in pairwise(ordered):
        is_same_place = (before.start, before.end) == (after.start, after.end)
        if is_same_place and before.replacement == after.replacement and not _differ_in_line(before, after, patches):
            continue
        if after.start < before.end or is_same_place:
            first, second = sorted((before, after), key=lambda change: change.patch)
            left, right = (groups[change.patch][change.order].match for change in (first, second))
            rejections[second.patch] = Rejection(
                "overlapping",
                f"overlaps patch {first.patch + 1} ({format_line_range(left.first_line + 1, left.last_line + 1)} and "
                f"{format_line_range(right.first_line + 1, right.last_line + 1)}); merge the two patches",
            )
        kept.append(after)
    _raise_for(rejections, len(groups))
    return kept


def _validate_patches(
    patches_argument: str | Patch | Mapping[str, Json] | Sequence[Patch | Mapping[str, Json]], names: ParameterNames
) -> list[Patch]:
    """Convert the argument to a list of patches. Raises EditError if it is invalid."""
    if isinstance(patches_argument, str):
        try:
            return list(parse_patches(patches_argument))
        except FormatError as error:
            raise EditError(f"{error}. {_NOTHING_CHANGED}") from error
    patches = [patches_argument] if isinstance(patches_argument, Patch | Mapping) else patches_argument
    if not patches:
        expected = f"at least one with {names.old_text} and {names.new_text}"
        raise EditError(f"no patches given; expected {expected}. {_NOTHING_CHANGED}")
    if not isinstance(patches, Sequence):
        raise EditError(f"expected a text, or a list of patches, got {str(patches)[:60]!r}. {_NOTHING_CHANGED}")
    checked: list[Patch] = []
    rejections: dict[int, Rejection] = {}
    for index, patch in enumerate(patches):
        try:
            checked.append(patch if isinstance(patch, Patch) else convert_mapping_to_patch(patch))
        except FormatError as error:
            rejections[index] = Rejection("invalid", str(error))
    _raise_for(rejections, len(patches))
    return checked


def _raise_for(rejections: Mapping[int, Rejection], count: int) -> None:
    """If patches were rejected, raise one EditError that lists them all."""
    if not rejections:
        return
    ordered = sorted(rejections.items())
    prefixes = [f"patch {index + 1} of {count}: " if count > 1 else "" for index, _ in ordered]
    named = [f"{prefix}{rejection.message}." for prefix, (_, rejection) in zip(prefixes, ordered, strict=True)]
    matching = [str(index + 1) for index in range(count) if index not in rejections]
    which = f"Patch {matching[0]} matches" if len(matching) == 1 else f"Patches {', '.join(matching)} match"
    closing = f"{which}: correct only the others, then send all patches again. " if matching else ""
    message = "\n".join([*named, closing + _NOTHING_CHANGED])
    raise EditError(message, named, [rejection.kind for _, rejection in ordered])
