"""Keeps a program that runs for long from holding memory that it has given back."""

from __future__ import annotations

import os
import sys

_M_ARENA_MAX = -8
"""From glibc's malloc.h; mallopt(3)."""


def limit_malloc_arenas() -> None:
    """Have all threads of this program allocate in one place. To be called before there are any; only glibc needs it.

    glibc gives threads arenas of their own, up to eight for each processor, and keeps what is freed at the end of one,
    up to a threshold that grows with the largest block ever freed. So a program grows by some 4 MB for each arena in
    which a thread once had a large result: 41 MB after twelve such threads, with one arena 4 MB. Python has threads
    take turns, so that arenas of their own gain them little. What the user says in ``MALLOC_ARENA_MAX`` stands.
    """
    if sys.platform != "linux" or "MALLOC_ARENA_MAX" in os.environ:
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
