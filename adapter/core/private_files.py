"""Open files that contain conversations, so that only their owner can read them."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from adapter.core.errors import UsageError


def open_private(file: str | os.PathLike[str], flags: int) -> int:
    """Open a file, creating it if it is missing, and return its descriptor. ``flags`` are those of `os.open`. Other
    users lose all access to a regular file, even if it already existed. Raises OSError."""
    descriptor = os.open(file, flags | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode) and mode & 0o077 and hasattr(os, "fchmod"):
        with suppress(PermissionError):  # the file belongs to another user, who chose its mode
            os.fchmod(descriptor, stat.S_IMODE(mode) & 0o700)
    return descriptor


def write_private(file: Path, text: str, option: str) -> None:
    """Write a file that only its owner can read, creating its directory if it is missing. Raises UsageError with the
    advice to choose another path with the command-line ``option``."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with open(file, "w", encoding="utf-8", opener=open_private) as opened:
            opened.write(text)
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}. Choose another path with {option}.") from error
