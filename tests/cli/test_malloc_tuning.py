"""Memory that threads have freed is returned in a program that runs for long."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

GROWN = """
import re, sys, threading
from adapter.cli.malloc_tuning import limit_malloc_arenas

if "shared" in sys.argv:
    limit_malloc_arenas()
memory = lambda: int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1])
bytes(b"x" * 1_900_000)  # given back, it lifts the threshold up to which an arena keeps what is freed
together, turn = threading.Barrier(12), threading.Lock()

def work():
    together.wait()
    with turn:
        pieces = [b"x" * 32_000 for _ in range(110)]
        del pieces
    together.wait()

before = memory()
threads = [threading.Thread(target=work) for _ in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(memory() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has arenas")
def test_memory_freed_by_threads_is_returned():
    """Twelve threads that use 3.5 MB each in turn leave little of it, and much without the setting."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    left = [
        int(
            subprocess.run([sys.executable, "-c", GROWN, word], env=environment, capture_output=True, check=True).stdout
        )
        for word in ("apart", "shared")
    ]
    assert left[1] < 20_000 < left[0], left
