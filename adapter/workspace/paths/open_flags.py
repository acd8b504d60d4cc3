"""Flags to open directories and files safely. Flags that the system lacks are left out."""

from __future__ import annotations

import os


def _get_flag(name: str) -> int:
    return int(getattr(os, name, 0))


OPEN_DIRECTORY = os.O_RDONLY | _get_flag("O_DIRECTORY") | _get_flag("O_NOFOLLOW") | _get_flag("O_CLOEXEC")
OPEN_ANY_FILE = (
    os.O_RDONLY | _get_flag("O_NONBLOCK") | _get_flag("O_NOCTTY") | _get_flag("O_CLOEXEC") | _get_flag("O_BINARY")
)
"""Flags to open a file or the target of a link. Without O_NONBLOCK, opening a FIFO would block."""
OPEN_FILE = OPEN_ANY_FILE | _get_flag("O_NOFOLLOW")
NEW_FILE = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | _get_flag("O_NOFOLLOW") | _get_flag("O_CLOEXEC") | _get_flag("O_BINARY")
)
