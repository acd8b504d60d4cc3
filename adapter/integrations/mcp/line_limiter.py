"""Forward a server's output, and end the server if a line exceeds a limit.

    python line_limiter.py BYTES PROGRAM [ARGUMENT ...]

The SDK buffers lines of any length. This script runs standalone, without site packages.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

TOO_LONG = 70
"""Exit code after a line that is too long."""


def main(limit: int, command: Sequence[str]) -> int:
    """Run ``command``. Return its exit code, 127 if it cannot be started, or `TOO_LONG` if a line is too long."""
    try:
        server = subprocess.Popen(command, stdout=subprocess.PIPE)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        return 127
    assert server.stdout is not None
    out, pending = sys.stdout.fileno(), 0
    while data := os.read(server.stdout.fileno(), 65_536):
        end = data.rfind(b"\n")
        pending = pending + len(data) if end < 0 else len(data) - end - 1
        if pending > limit:
            server.kill()
            print(f"a message of more than {limit:,} bytes", file=sys.stderr, flush=True)
            return TOO_LONG
        while data:
            data = data[os.write(out, data) :]
    return server.wait()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
