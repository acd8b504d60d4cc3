"""Where the files that ship with the program are: `prompts/` and `fixtures/`.

They stand at the top of a checkout and, in a wheel, below `adapter/_data/`.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


def data_folder(name: str) -> Path:
    """The folder ``prompts`` or ``fixtures``, packaged or in the checkout."""
    packaged = _PACKAGE / "_data" / name
    return packaged if packaged.is_dir() else _PACKAGE.parent / name
