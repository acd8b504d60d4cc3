"""Which programs this machine has."""

from __future__ import annotations

import os
import shutil


def find_program(name: str) -> str | None:
    """Where the program is. Names are sought in the absolute folders of PATH: never where a session works."""
    folders = [folder for folder in os.get_exec_path() if folder.startswith("/")]
    return shutil.which(name, path=os.pathsep.join(folders))
