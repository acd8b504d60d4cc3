"""Lock an open file against other programs, on every system."""

from __future__ import annotations

import os
import sys

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_LOCKED_BYTE = 1 << 40
"""Offset of the byte that is locked on Windows. It is beyond the end of every file, because other programs cannot read
a locked byte."""


def try_lock(descriptor: int) -> bool:
    """Lock the open file until it is closed. Return False if another open file holds the lock. Raises OSError."""
    try:
        if sys.platform == "win32":
            position = os.lseek(descriptor, 0, os.SEEK_CUR)
            os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            finally:
                os.lseek(descriptor, position, os.SEEK_SET)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
