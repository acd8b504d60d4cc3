"""The patches of one file: made on its text and, where its encoding is a guess, on its bytes; what they changed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from adapter.core.errors import EditError
from adapter.core.text.lines import split_lines
from adapter.editing import PatchResult, patch_text
from adapter.tools.operations import ChangedLine, Hunk, Patch, PatchText, WholeFileRewrite
from adapter.workspace.changes.encoding_detection import check_new_characters
from adapter.workspace.changes.text_codec import bytes_as_text, decode, encode, text_as_bytes


def patch_bytes(
    data: bytes, operation: PatchText, shown: str, encoding: str | None = None
) -> tuple[PatchResult, bytes]:
    """The patched text of a file and its bytes, of which none outside of the patches changes.

    Where the encoding is guessed the patches are made on the bytes and must be what the guess says: in another
    encoding a letter may be half of a character, and an old text stand in more places. Raises EditError when
    the patches do not fit, ToolError for what is no text or cannot be written.
    """
    decoded = decode(data, shown, encoding)
    result = _patch(decoded.text, operation.patches, operation, shown)
    if not decoded.guessed:
        return result, encode(result.text, decoded.encoding, shown)
    check_new_characters(data, decoded.encoding, decoded.text, result.text, shown)
    patches = [_in_bytes(patch, decoded.encoding, shown) for patch in operation.patches]
    try:
        after = text_as_bytes(_patch(bytes_as_text(data), patches, operation, shown).text)
    except EditError:
        after = b""
    if after.decode(decoded.encoding, "replace") != result.text:
        raise EditError(
            f"its encoding is not known ({decoded.encoding} was guessed), and in its bytes the old texts are not found "
            "as they are in what was shown; give longer ones, as they stand there. Nothing was changed."
        )
    return result, after


def _patch(text: str, patches: Sequence[Patch], operation: PatchText, shown: str) -> PatchResult:
    basis, empty_old_text = operation.basis, operation.empty_old_text
    return patch_text(text, patches, shown, basis=basis, empty_old_text=empty_old_text, names=operation.names)


def _in_bytes(patch: Patch, encoding: str, shown: str) -> Patch:
    old = patch.old_text.encode(encoding, "replace")
    return replace(patch, old_text=bytes_as_text(old), new_text=bytes_as_text(encode(patch.new_text, encoding, shown)))


def creates_file(patches: Sequence[Patch]) -> bool:
    """Whether a notation gives the text of a file that need not be there: whole, or in a block without old text."""
    return bool(patches) and all(
        isinstance(patch, WholeFileRewrite)
        or (isinstance(patch, Hunk) and not (patch.old_text or patch.below or patch.at_end or patch.start_line))
        for patch in patches
    )


def changed_places(result: PatchResult) -> Iterator[ChangedLine]:
    """The changed places with their lines, one line more on both sides."""
    text = result.text.removeprefix("\ufeff")
    lines = split_lines(text)
    ends = list(accumulate(map(len, lines)))
    for place in result.places:
        place -= len(result.text) - len(text)
        index = max(min(bisect_right(ends, place), len(lines) - 1), 0)
        column = place - (ends[index - 1] if index else 0) + 1
        yield ChangedLine(index + 1, column, "".join(lines[max(index - 1, 0) : index + 2]))
