"""A number of things in words: ``1 place``, ``2 places``."""

from __future__ import annotations


def pluralize(number: int, one: str, many: str = "") -> str:
    """``many``: the plural, where it is not ``one`` and an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"
