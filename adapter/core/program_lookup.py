"""Look up installed programs."""

from __future__ import annotations

import os
import shutil


def find_program(name: str, path: str | None = None) -> str | None:
    """Return the path of a program, or None. Only the absolute folders in ``path`` (default: PATH) are searched."""
    directories = os.get_exec_path() if path is None else path.split(os.pathsep)
    folders = [folder for folder in directories if folder.startswith("/")]
    return shutil.which(name, path=os.pathsep.join(folders))
