"""Which programs this machine has."""

from __future__ import annotations

import os
import shutil


def find_program(name: str, path: str | None = None) -> str | None:
    """Where the program is. Names are sought in the absolute folders of ``path``, or of PATH."""
    given = os.get_exec_path() if path is None else path.split(os.pathsep)
    folders = [folder for folder in given if folder.startswith("/")]
    return shutil.which(name, path=os.pathsep.join(folders))
