"""Other ways to write edits that models fall into, read as patches.

Unified diffs (`unified`), the ``*** Begin Patch`` envelope (`envelope`), SEARCH/REPLACE blocks
(`blocks`), JSON (`given`) and whole files in a fence (`listings`). Nothing here touches a disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from adapter.core.errors import FormatError
from adapter.editing.document import view_of
from adapter.editing.notations.apply_patch import is_envelope, read_envelope
from adapter.editing.notations.parsed_edit import Asked
from adapter.editing.notations.search_replace import is_blocks, read_blocks
from adapter.editing.notations.unified_diff import is_unified, read_unified
from adapter.editing.notations.whole_file import is_listing, read_listings
from adapter.tools.operations import Patch

Recogniser: TypeAlias = Callable[[Sequence[str]], bool]
Reader: TypeAlias = Callable[[Sequence[str]], list[Asked]]

_NOTATIONS: tuple[tuple[Recogniser, Reader], ...] = (
    (is_envelope, read_envelope),
    (is_blocks, read_blocks),
    (is_unified, read_unified),
    (is_listing, read_listings),
)
"""The first that recognises a text reads it. To add one, write two functions over its lines."""


def is_notation(text: str) -> bool:
    """Whether ``text`` is written in one of the notations, JSON aside."""
    return _reader(view_of(text).split("\n")) is not None


def read_notation(text: str) -> list[Asked]:
    """The edits that ``text`` describes, in its order. Raises FormatError for text in no known notation."""
    lines = view_of(text).split("\n")
    reader = _reader(lines)
    if reader is None:
        raise FormatError(
            "expected a unified diff, a '*** Begin Patch' envelope, SEARCH/REPLACE blocks, JSON with old_text and "
            f"new_text, or a whole file in a fence below its path; got {text[:60]!r}"
        )
    asked = reader(lines)
    if not asked:
        raise FormatError(f"the edit names nothing to change: {text[:60]!r}")
    return asked


def read_patches(text: str) -> list[Patch]:
    """The patches that ``text`` describes for one file. Raises FormatError when it does anything else."""
    return patches_of_one(read_notation(text))


def patches_of_one(asked: Sequence[Asked]) -> list[Patch]:
    """The patches of the only file that is asked for. Raises FormatError when there are more, or is more to do."""
    named = list(dict.fromkeys(edit.path for edit in asked if edit.path is not None))
    if len(named) > 1:
        raise FormatError(
            f"expected edits of one file, got {len(named)} ({', '.join(named)}); send one call for each file"
        )
    for edit in asked:
        if edit.action != "update" or edit.moved_to:
            what = f"move to {edit.moved_to}" if edit.moved_to else edit.action
            raise FormatError(f"expected changes of a file, got {what!r}; use the tool that is for that")
    return [patch for edit in asked for patch in edit.patches]


def _reader(lines: Sequence[str]) -> Reader | None:
    return next((read for recognises, read in _NOTATIONS if recognises(lines)), None)
