"""Build Landlock rulesets. On systems without bubblewrap, the kernel uses them to restrict a program's access to files.

A process gives up rights for itself and its descendants (landlock(7)). A ruleset can only grant access, and a granted
directory includes everything below it. Landlock can therefore not protect parts of the workspace, not even `.git`.
`adapter.workspace.sandbox.supervisor` applies the ruleset between fork and exec.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Iterable
from functools import cache

_CREATE_RULESET = 444
_VERSION = 1
"""Flag that requests the ABI version instead of a ruleset."""

EXECUTE, WRITE_FILE, READ_FILE, READ_DIRECTORY, REMOVE_DIRECTORY, REMOVE_FILE = (1 << bit for bit in range(6))
_MAKE = sum(1 << bit for bit in (7, 8, 9, 10, 12))
"""Rights to create directories, files, sockets, pipes and links. The right to create devices is left out, because with
it root could read the whole disk."""
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL
READ = EXECUTE | READ_FILE | READ_DIRECTORY
WRITE = READ | WRITE_FILE | REMOVE_DIRECTORY | REMOVE_FILE | _MAKE | _REFER | _TRUNCATE
DEVICE = READ_FILE | WRITE_FILE | _IOCTL
TCP = 0b11
SCOPES = 0b11
"""Scopes that restrict abstract Unix sockets and signals."""


@cache
def get_abi() -> int:
    """Return the Landlock ABI version of this kernel, or 0 if it lacks Landlock."""
    if not sys.platform.startswith("linux"):
        return 0
    version = ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    return max(int(version), 0)


def restricts_truncation() -> bool:
    return get_abi() >= 3


def build_ruleset(
    read: Iterable[str], write: Iterable[str], devices: Iterable[str], *, network: bool
) -> dict[str, object]:
    """Build the ruleset for the supervisor: ``{"handled": [...], "rules": [...]}``.

    The program loses the ``handled`` rights (files, TCP, scopes), except where a rule grants them for a path.
    """
    version = get_abi()
    handled = (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)) - 1
    attributes = [handled]
    attributes += [0 if network else TCP] if version >= 4 else []
    attributes += [SCOPES] if version >= 6 else []
    grants = [(path, READ) for path in read] + [(path, WRITE) for path in write] + [(path, DEVICE) for path in devices]
    rules = []
    for path, rights in grants:
        try:
            is_directory = stat.S_ISDIR(os.stat(path).st_mode)
        except OSError:
            continue
        rules.append((path, rights & handled & (-1 if is_directory else _OF_FILES)))
    return {"handled": attributes, "rules": rules}
