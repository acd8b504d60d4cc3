"""`adapter serve`, in a separate process or in this one."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.command_line import started


@contextmanager
def serving(upstream: str, *options: str) -> Iterator[str]:
    """Return the base URL of a server in front of ``upstream``. If it fails to start, its output is shown."""
    with started("serve", "--upstream", upstream, "--port", "0", *options) as run:
        line = run.first_lines()
        match = re.match(r"serving (\S+), from ", line)
        assert match, line
        yield match[1]
        run.process.terminate()
        run.process.join()
        rest = run.stderr.read_text(encoding="utf-8")
    assert "Traceback" not in rest, rest


@contextmanager
def serving_afresh(upstream: str, *options: str) -> Iterator[str]:
    """Serve in a new interpreter, whose memory and command line are like a user's server's."""
    command = [sys.executable, "-m", "adapter", "serve", "--upstream", upstream, "--port", "0", *options]
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


@contextmanager
def serving_here(upstream: str, **settings: Any) -> Iterator[str]:
    """Return the address of a server in a thread of this process, for tests that inspect it or its settings."""
    import uvicorn

    from adapter.server.app import ServerSettings, build_uvicorn_config

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(build_uvicorn_config(ServerSettings(f"{upstream}/v1", **settings)))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
