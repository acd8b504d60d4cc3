"""What threads have freed does not stay with a program that runs for long."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

GROWN = """
import re, sys, threading
from adapter.commands.allocator import share_one_arena

if "shared" in sys.argv:
    share_one_arena()
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
def test_what_threads_have_freed_is_given_back():
    """Twelve threads that hold 3.5 MB each in turn leave little of it behind, and much without the call."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    left = [
        int(
            subprocess.run([sys.executable, "-c", GROWN, word], env=environment, capture_output=True, check=True).stdout
        )
        for word in ("apart", "shared")
    ]
    assert left[1] < 20_000 < left[0], left
