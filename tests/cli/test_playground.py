"""`adapter playground` serves its page until Ctrl-C."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.request

from tests.command_line import adapter


def test_playground_serves_its_page_until_ctrl_c(tmp_path):
    program = [sys.executable, "-m", "adapter", "playground"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stdout
        with urllib.request.urlopen(process.stdout.readline().strip(), timeout=30) as page:
            assert b"Playground" in page.read()
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=30)
    assert (process.returncode, messages) == (0, "Open this address in a browser. Press Ctrl-C to stop.\n")


def test_port_in_use_is_explained(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = adapter("playground", "--port", str(port), cwd=tmp_path)
    assert done.returncode == 2
    assert f"cannot listen on port {port}: Address already in use. Choose another port with --port." in done.stderr
