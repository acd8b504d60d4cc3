"""Open a path below a directory in one Linux system call that follows no link (openat2(2), Linux 5.6).

The kernel checks each component as it resolves the path, so no other process can swap a component in between. The call
takes a tenth of the time of a walk in Python. If the system lacks the call, or the path contains a link, the caller has
to walk the path.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from functools import cache

_SYSTEM_CALL = 437
_NO_MAGIC_LINKS, _NO_LINKS, _BENEATH = 0x02, 0x04, 0x08
_TRIES = 8
"""Maximum number of attempts: the kernel returns EAGAIN if directories were moved during the call."""


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(directory: int, path: str, flags: int) -> int | None:
    """Open ``path`` (relative, without ``..``) below the open ``directory``. Return None if it must be opened one
    component at a time.
    """
    if not is_available():
        return None
    call, how = _prepare_call(flags)
    name = os.fsencode(path)
    for _ in range(_TRIES):
        descriptor: int = call(_SYSTEM_CALL, directory, name, how, 24)
        if descriptor >= 0:
            return descriptor
        if ctypes.get_errno() != errno.EAGAIN:
            return None
    return None


@cache
def is_available() -> bool:
    """Return whether the kernel has openat2 and permits it; some containers forbid it."""
    if not sys.platform.startswith("linux"):
        return False
    call, how = _prepare_call(os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    descriptor = call(_SYSTEM_CALL, -100, b".", how, 24)  # AT_FDCWD
    if descriptor >= 0:
        os.close(descriptor)
    return bool(descriptor >= 0)


@cache
def _prepare_call(flags: int) -> tuple[ctypes._NamedFuncPointer, object]:
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
    call.restype = ctypes.c_long
    how = _How(flags, 0, _BENEATH | _NO_MAGIC_LINKS | _NO_LINKS)
    return call, ctypes.byref(how)
