"""Files for the tests of the dialects."""

from __future__ import annotations

import os
from pathlib import Path


def make_files(directory: Path, *names: str, text: str = "") -> None:
    """Create files, each modified a second after the previous one."""
    for number, name in enumerate(names):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
