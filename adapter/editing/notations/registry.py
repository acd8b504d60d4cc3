"""Other ways to write edits that models fall into, read as patches.

Unified diffs (`unified`), the ``*** Begin Patch`` envelope (`envelope`), SEARCH/REPLACE blocks
(`blocks`), JSON (`given`) and whole files in a fence (`listings`). Nothing here touches a disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from adapter.core.errors import FormatError
from adapter.editing.document import normalize_newlines
from adapter.editing.notations.apply_patch import is_apply_patch, parse_apply_patch
from adapter.editing.notations.parsed_edit import ParsedEdit
from adapter.editing.notations.search_replace import is_search_replace, parse_search_replace
from adapter.editing.notations.unified_diff import is_unified_diff, parse_unified_diff
from adapter.editing.notations.whole_file import is_whole_file, parse_whole_files
from adapter.tools.operations import Patch

FormatDetector: TypeAlias = Callable[[Sequence[str]], bool]
FormatParser: TypeAlias = Callable[[Sequence[str]], list[ParsedEdit]]

_NOTATIONS: tuple[tuple[FormatDetector, FormatParser], ...] = (
    (is_apply_patch, parse_apply_patch),
    (is_search_replace, parse_search_replace),
    (is_unified_diff, parse_unified_diff),
    (is_whole_file, parse_whole_files),
)
"""The first that recognises a text reads it. To add one, write two functions over its lines."""


def is_known_notation(text: str) -> bool:
    """Whether ``text`` is written in one of the notations, JSON aside."""
    return _reader(normalize_newlines(text).split("\n")) is not None


def parse_notation(text: str) -> list[ParsedEdit]:
    """The edits that ``text`` describes, in its order. Raises FormatError for text in no known notation."""
    lines = normalize_newlines(text).split("\n")
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
    return require_single_file(parse_notation(text))


def require_single_file(asked: Sequence[ParsedEdit]) -> list[Patch]:
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


def _reader(lines: Sequence[str]) -> FormatParser | None:
    return next((read for recognises, read in _NOTATIONS if recognises(lines)), None)
