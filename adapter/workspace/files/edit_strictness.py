"""How exactly an edit must fit: as the document of its tool says, or as the user chose for the session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from adapter.core.errors import UsageError
from adapter.editing import AppliedPatch
from adapter.tools.operations import Edits, Patch

_TOLERATED = 'the tool asks for exact text; that other text was taken is the choice edits="tolerant"'


def resolve_edit_mode(name: str | None) -> Edits | None:
    """The choice of that name. Raises UsageError when there is none."""
    match name:
        case None | "exact" | "tolerant":
            return name
        case _:
            raise UsageError(f"unknown edits {name!r}; expected {' or '.join(get_args(Edits))}")


def apply_edit_mode(patches: Sequence[Patch], edits: Edits | None) -> tuple[Patch, ...]:
    """``patches`` as exact as the user wants them; as the tool does when nothing was chosen."""
    return tuple(patches) if edits is None else tuple(replace(patch, exact=edits == "exact") for patch in patches)


def choice_note(asked: Sequence[Patch], matches: Sequence[AppliedPatch], edits: Edits | None) -> tuple[str, ...]:
    """That the choice let something pass which the tool would not."""
    pairs = zip(asked, matches, strict=True)
    passed = edits == "tolerant" and any(patch.exact and match.strictness != "exact" for patch, match in pairs)
    return (_TOLERATED,) if passed else ()
