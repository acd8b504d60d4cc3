"""Locate the directories `prompts/` and `fixtures/`, which are installed with the program.

In a checkout, they are in the top directory; in a wheel, in `adapter/_data/`.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


def find_data_directory(name: str) -> Path:
    """Return the path of the directory ``prompts`` or ``fixtures``."""
    packaged = _PACKAGE / "_data" / name
    return packaged if packaged.is_dir() else _PACKAGE.parent / name
