"""Choose the strictness of edits: each tool's default, or the user's choice for the session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from adapter.core.errors import UsageError
from adapter.editing import AppliedPatch
from adapter.tools.operations import Edits, Patch

_TOLERATED = 'the tool requires exact text; a different text was accepted because of edits="tolerant"'


def resolve_edit_mode(name: str | None) -> Edits | None:
    """Return ``name`` if it is the name of an edit mode or None. Raises UsageError if it is neither."""
    match name:
        case None | "exact" | "tolerant":
            return name
        case _:
            raise UsageError(f"edits must be {' or '.join(get_args(Edits))}, got {name!r}")


def apply_edit_mode(patches: Sequence[Patch], edits: Edits | None) -> tuple[Patch, ...]:
    """Set the strictness of ``patches`` to the user's choice ``edits``; None keeps the strictness."""
    return tuple(patches) if edits is None else tuple(replace(patch, exact=edits == "exact") for patch in patches)


def describe_choice(
    requested: Sequence[Patch], matches: Sequence[AppliedPatch], edits: Edits | None
) -> tuple[str, ...]:
    """Return a note if a match was accepted only because the user chose tolerant edits."""
    pairs = zip(requested, matches, strict=True)
    is_loose = edits == "tolerant" and any(patch.exact and match.strictness != "exact" for patch, match in pairs)
    return (_TOLERATED,) if is_loose else ()
