"""Format a count with its noun: ``1 place``, ``2 places``."""

from __future__ import annotations


def pluralize(number: int, one: str, many: str = "") -> str:
    """Return ``number`` with its noun, ``one`` or ``many``. The default plural is ``one`` with an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"
