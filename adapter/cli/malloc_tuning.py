"""Limits glibc's malloc arenas, so that a long-running program returns freed memory."""

from __future__ import annotations

import os
import sys

_M_ARENA_MAX = -8
"""Value of ``M_ARENA_MAX`` in glibc's malloc.h; see mallopt(3)."""


def limit_malloc_arenas() -> None:
    """Make all threads allocate from one arena. Call this before any thread starts. It only affects glibc.

    glibc gives threads up to eight arenas per processor. It does not return memory at the end of an arena to the
    system, up to a threshold that grows with the largest block ever freed. A program grows by about 4 MB for each arena
    in which a thread once had a large result: 41 MB after twelve such threads, 4 MB with one arena. Python runs one
    thread at a time, so more arenas gain little. ``MALLOC_ARENA_MAX`` in the environment takes precedence.
    """
    if sys.platform != "linux" or "MALLOC_ARENA_MAX" in os.environ:
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # missing in musl
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
