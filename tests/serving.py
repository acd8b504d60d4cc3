"""`adapter serve` as a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def serving(upstream: str, *options: str) -> Iterator[str]:
    """The base URL of a server in front of ``upstream``. What it says on its way is shown when it fails to start."""
    command = [sys.executable, "-m", "adapter", "serve", "--upstream", upstream, "--port", "0", *options]
    # In a group of its own: Ctrl-C at the terminal is for whoever started it.
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, process_group=0) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            match = re.match(r"serving (\S+), from ", line)
            assert match, line + process.stderr.read()
            yield match[1]
        finally:
            process.terminate()
            rest = process.stderr.read()
    assert "Traceback" not in rest, rest
