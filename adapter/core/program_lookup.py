"""Look up installed programs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator


def find_program(name: str, path: str | None = None) -> str | None:
    """Return the path of a program, or None. Only the absolute directories in ``path`` (default: PATH) are searched."""
    listed = os.get_exec_path() if path is None else path.split(os.pathsep)
    directories = [directory for directory in listed if os.path.isabs(directory)]  # noqa: PTH117
    if os.name == "nt":  # where `which` also searches the current directory
        return next(filter(os.path.isfile, _list_candidates(name, directories)), None)
    return shutil.which(name, path=os.pathsep.join(directories))


def list_executable_names(name: str) -> list[str]:
    """Return the file names that a program called ``name`` can have: on Windows, with each executable extension."""
    if os.name != "nt":
        return [name]
    endings = [
        ending.lower() for ending in os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(os.pathsep) if ending
    ]
    return [name] if name.lower().endswith(tuple(endings)) else [name + ending for ending in endings]


def _list_candidates(name: str, directories: Iterable[str]) -> Iterator[str]:
    """Yield the possible paths of the program. If ``name`` contains a directory, it must be an absolute path."""
    is_name = not os.path.dirname(name)  # noqa: PTH120
    for directory in directories if is_name else [""] if os.path.isabs(name) else []:  # noqa: PTH117
        for file in list_executable_names(name):
            yield os.path.join(directory, file)  # noqa: PTH118
