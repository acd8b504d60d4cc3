"""Apply patches to a file's text, or to its bytes if the encoding is a guess, as strictly as the session requires."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import get_args

from adapter.core.errors import EditError, UsageError
from adapter.core.text.diffs import list_changed_offsets, render_unified_diff
from adapter.core.text.lines import split_lines
from adapter.editing import AppliedPatch, PatchResult, patch_text
from adapter.editing.three_way_merge import merge_changes
from adapter.tools.operations import ChangedLine, Edits, EmptyOldText, Hunk, Patch, PatchText, WholeFileRewrite
from adapter.workspace.changes.encoding_detection import check_new_characters
from adapter.workspace.changes.text_codec import decode, decode_bytes, encode, encode_text

_TOLERATED = 'the tool requires exact text; a different text was accepted because of edits="tolerant"'
_MERGED = "the patches were applied to the version that you read, and merged with the changes made since"


def resolve_edit_mode(name: str | None) -> Edits | None:
    """Return ``name`` if it is the name of an edit mode or None. Raises UsageError if it is neither."""
    match name:
        case None | "exact" | "tolerant":
            return name
        case _:
            raise UsageError(f"edits must be {' or '.join(get_args(Edits))}, got {name!r}")


def apply_edit_mode(patches: Sequence[Patch], edits: Edits | None) -> tuple[Patch, ...]:
    """Return ``patches`` with the strictness that the user chose; None leaves them unchanged."""
    return tuple(patches) if edits is None else tuple(replace(patch, exact=edits == "exact") for patch in patches)


def describe_choice(
    requested: Sequence[Patch], matches: Sequence[AppliedPatch], edits: Edits | None
) -> tuple[str, ...]:
    """Return a note if a match was accepted only because the user chose tolerant edits."""
    pairs = zip(requested, matches, strict=True)
    is_loose = edits == "tolerant" and any(patch.exact and match.strictness != "exact" for patch, match in pairs)
    return (_TOLERATED,) if is_loose else ()


def patch_bytes(
    data: bytes, operation: PatchText, display_path: str, encoding: str | None = None
) -> tuple[PatchResult, bytes]:
    """Return the patched text of a file and its bytes. Bytes outside of the patches do not change.

    If the encoding is a guess, the patches are applied to both the bytes and the decoded text. Different results show
    that the guess is wrong, and that a patch matched in the middle of a multi-byte character. Raises EditError if the
    results differ or the patches do not match, ToolError if the file is binary or cannot be written.
    """
    decoded = decode(data, display_path, encoding)
    result = _patch(decoded.text, operation.patches, operation, display_path)
    if not decoded.guessed:
        return result, encode(result.text, decoded.encoding, display_path)
    check_new_characters(data, decoded.encoding, decoded.text, result.text, display_path)
    patches = [_to_bytes_patch(patch, decoded.encoding, display_path) for patch in operation.patches]
    try:
        after = encode_text(_patch(decode_bytes(data), patches, operation, display_path).text)
    except EditError:
        after = b""
    if after.decode(decoded.encoding, "replace") != result.text:
        raise EditError(
            f"the encoding of {display_path} is unknown ({decoded.encoding} was guessed), and the old texts match "
            "its decoded text and its bytes in different places; give longer old texts, copied from the file. Nothing "
            "was changed."
        )
    return result, after


def patch_earlier_version(
    version: bytes, data: bytes, operation: PatchText, display_path: str, encoding: str | None, *, is_exact: bool
) -> tuple[PatchResult, bytes] | None:
    """Apply patches to an earlier ``version`` of a file, and merge the change into ``data``, the file's content.

    ``is_exact``: the patches match ``data`` exactly. Then the earlier version decides only if it has several matches,
    or if the patch is a whole file. Return None if the patches do not match the version exactly, or if the result is
    uncertain. Raises EditError if the lines to change have changed since.
    """
    earlier, decoded = decode(version, display_path, encoding), decode(data, display_path, encoding)
    if earlier.guessed or decoded.guessed or any(patch.exact for patch in operation.patches):
        return None
    try:
        result = _patch(earlier.text, operation.patches, operation, display_path)
    except EditError:
        return None
    has_choice = any(match.notes for match in result.matches)
    has_choice |= any(isinstance(patch, WholeFileRewrite) for patch in operation.patches)
    if any(match.strictness != "exact" for match in result.matches) or (is_exact and not has_choice):
        return None
    try:
        text = merge_changes(earlier.text, result.text, decoded.text)
    except EditError as error:
        raise EditError(f"{display_path}: {error}. Read the file again. Nothing was changed.") from None
    if text is None or text == decoded.text:
        return None
    diff = render_unified_diff(decoded.text, text, display_path)
    merged = replace(result, text=text, diff=diff, places=tuple(list_changed_offsets(decoded.text, text)))
    merged = replace(merged, notes=(*result.notes, _MERGED))
    return merged, encode(text, decoded.encoding, display_path)


def _patch(text: str, patches: Sequence[Patch], operation: PatchText, display_path: str) -> PatchResult:
    basis, empty_old_text = operation.basis, operation.empty_old_text
    return patch_text(text, patches, display_path, basis=basis, empty_old_text=empty_old_text, names=operation.names)


def _to_bytes_patch(patch: Patch, encoding: str, display_path: str) -> Patch:
    old = patch.old_text.encode(encoding, "replace")
    return replace(
        patch, old_text=decode_bytes(old), new_text=decode_bytes(encode(patch.new_text, encoding, display_path))
    )


def creates_file(patches: Sequence[Patch], empty_old_text: EmptyOldText = "refuse") -> bool:
    """Return whether the patches can create a file, because they contain its whole text.

    A single patch without old text also counts, unless ``empty_old_text`` is "refuse".
    """
    if len(patches) == 1 and empty_old_text != "refuse" and not (patches[0].old_text or patches[0].start_line):
        return True
    return bool(patches) and all(
        isinstance(patch, WholeFileRewrite)
        or (
            isinstance(patch, Hunk)
            and not (patch.old_text or patch.below or patch.at_end or patch.start_line not in (None, 1))
        )
        for patch in patches
    )


def iter_changed_lines(result: PatchResult) -> Iterator[ChangedLine]:
    """Yield each changed position, with the text of its line and of the lines before and after it."""
    text = result.text.removeprefix("\ufeff")
    lines = split_lines(text)
    ends = list(accumulate(map(len, lines)))
    for position in result.places:
        position -= len(result.text) - len(text)
        index = max(min(bisect_right(ends, position), len(lines) - 1), 0)
        column = position - (ends[index - 1] if index else 0) + 1
        yield ChangedLine(index + 1, column, "".join(lines[max(index - 1, 0) : index + 2]))
