"""MCP's own conformance suite and fastmcp's client with `adapter mcp`.

Only the checks of the suite that apply to every server; the others are for tools and resources of its own server.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.clients.environments import WRITTEN, Client, Command

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

FASTMCP = Client(name="fastmcp", packages=("fastmcp",), ways=("http",))
CONFORMANCE = Command(
    name="mcp-conformance",
    packages=("@modelcontextprotocol/conformance",),
    ways=("server-initialize", "ping", "tools-list", "tools-call-error", "server-sse-multiple-streams",
          "dns-rebinding-protection"),
    is_node=True,
    line=("conformance", "server", "--url", WRITTEN, "--scenario", "{way}"),
)  # fmt: skip


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("workspace")
    (root / "a.txt").write_text("alpha\n", encoding="utf-8")
    command = [sys.executable, "-m", "adapter", "mcp", "--root", str(root), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        match = re.match(r"serving (http://\S+), in ", line)
        assert match, line
        yield match[1]
        process.terminate()


def test_fastmcp_pings_lists_and_calls(url):
    FASTMCP.install()
    assert "alpha" in FASTMCP.run("http", url)


@pytest.mark.parametrize("scenario", CONFORMANCE.ways)
def test_the_official_suite_is_content(url, scenario):
    if shutil.which("npm") is None:
        pytest.skip("needs npm")
    CONFORMANCE.install()
    said = CONFORMANCE.run(scenario, url)
    assert re.search(r"Passed: [1-9]\d*/\d+, 0 failed", said), said
