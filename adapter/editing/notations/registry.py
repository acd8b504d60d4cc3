"""The text formats in which models write edits, and their detection.

The formats are ``*** Begin Patch`` envelopes (`apply_patch`), SEARCH/REPLACE blocks (`search_replace`), unified diffs
(`unified_diff`), whole files in a code fence (`whole_file`), and pairs of an old and a new text (`text_pairs`).
`parse_edits` also handles JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from adapter.core.errors import FormatError
from adapter.editing.document import normalize_newlines
from adapter.editing.notations.apply_patch import is_apply_patch, parse_apply_patch
from adapter.editing.notations.parsed_edit import TWO_FORMATS, ParsedEdit
from adapter.editing.notations.search_replace import is_search_replace, parse_search_replace
from adapter.editing.notations.text_pairs import has_text_pairs, parse_text_pairs
from adapter.editing.notations.unified_diff import is_bare_hunk, is_unified_diff, parse_bare_hunk, parse_unified_diff
from adapter.editing.notations.whole_file import is_whole_file, parse_whole_files, remove_files_with_edits
from adapter.tools.operations import Patch

FormatDetector: TypeAlias = Callable[[Sequence[str]], bool]
FormatParser: TypeAlias = Callable[[Sequence[str]], list[ParsedEdit]]

_NOTATIONS: tuple[tuple[FormatDetector, FormatParser], ...] = (
    (is_apply_patch, parse_apply_patch),
    (is_search_replace, parse_search_replace),
    (is_unified_diff, parse_unified_diff),
    (is_whole_file, parse_whole_files),
    (has_text_pairs, parse_text_pairs),
    (is_bare_hunk, parse_bare_hunk),
)
"""The detector and the parser of each format. Text is parsed by the first format whose detector accepts it and whose
parser finds changes in it."""


def is_known_notation(text: str) -> bool:
    """Return whether ``text`` is in a known edit format other than JSON."""
    return any(_find_parsers(normalize_newlines(text).split("\n")))


def parse_notation(text: str) -> list[ParsedEdit]:
    """Return the edits of ``text`` in order. Raises FormatError if its format is unknown, or if it has no changes."""
    lines = normalize_newlines(text).split("\n")
    parsers = _find_parsers(lines)
    if parsers[:1] != [parse_whole_files] and len(remove_files_with_edits(lines)) < len(lines):
        raise FormatError(TWO_FORMATS)
    if not parsers:
        raise FormatError(
            "expected a unified diff, a '*** Begin Patch' envelope, SEARCH/REPLACE blocks, JSON with old_text and "
            f"new_text, or a whole file in a fence below its path; got {text[:60]!r}"
        )
    edits = next(filter(None, (parse(lines) for parse in parsers)), None)
    if edits is None:
        raise FormatError(f"the edit has no changes: {text[:60]!r}")
    return edits


def require_single_file(edits: Sequence[ParsedEdit]) -> list[Patch]:
    """Return the patches of ``edits``, which must all change the same file.

    Raises FormatError if they belong to several files, or if they add, delete or move a file.
    """
    paths = list(dict.fromkeys(edit.path for edit in edits if edit.path is not None))
    if len(paths) > 1:
        raise FormatError(
            f"expected edits to one file, got {len(paths)} ({', '.join(paths)}); send one call for each file"
        )
    for edit in edits:
        if edit.action != "update" or edit.moved_to:
            action = f"move to {edit.moved_to}" if edit.moved_to else edit.action
            raise FormatError(f"expected changes to a file, got {action!r}; use the tool for that action")
    return [patch for edit in edits for patch in edit.patches]


def _find_parsers(lines: Sequence[str]) -> list[FormatParser]:
    left = remove_files_with_edits(lines)
    return [parse for detects, parse in _NOTATIONS if detects(lines if parse is parse_whole_files else left)]
