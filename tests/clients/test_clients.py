"""Unmodified clients with `adapter serve` and a text-only model: two calls at once, results, an answer.

pytest -m clients tests/clients              installs what is missing, and runs all of them
python -m tests.clients.test_clients         the same, and updates the table in docs/clients.md
"""

from __future__ import annotations

import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest

from tests.clients.environments import NODE, SCRIPTS, Client, Command
from tests.clients.listed import CLIENTS
from tests.clients.model import ANSWER, TextModel
from tests.clients.test_mcp_clients import FASTMCP
from tests.serving import serving

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"

WAYS = {
    "chat": "`/v1/chat/completions`",
    "compatible": "`/v1/chat/completions`",
    "responses": "`/v1/responses`",
    "anthropic": "`/v1/messages`",
    "ollama": "`/api/chat`",
}

MARK, END = "<!-- table: clients -->\n", "\n<!-- end -->"
"""The table of the page is between these."""
HEAD = """Tested on {day}:

| client | version | works with |
|---|---|---|
"""

PAIRS = [(client, way) for client in CLIENTS for way in client.ways]


def outcome(client: Client, way: str) -> str:
    """Return "works", or the fault."""
    with TextModel() as model, serving(model.url) as url:
        said = client.run(way, url.removesuffix("/v1"))
        if ANSWER not in said:
            return f"said {said[-500:]!r} after {len(model.asked)} requests"
    return "works"


@pytest.mark.clients
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("client", "way"), PAIRS, ids=[f"{client.name}-{way}" for client, way in PAIRS])
def test_a_client_goes_through_the_whole_loop(client, way):
    if client.is_node and shutil.which("npm") is None:
        pytest.skip("needs npm")
    client.install()
    assert outcome(client, way) == "works"


def apis(client: Client) -> list[str]:
    return list(dict.fromkeys(WAYS[way] for way in client.ways))


def test_the_page_lists_every_client():
    """A client that is not a command also has its script."""
    table = PAGE.read_text(encoding="utf-8").partition(MARK)[2].partition(END)[0]
    listed = re.findall(r"^\| ([\w-]+) \| [\d.]+ \| (.+) \|$", table, re.MULTILINE)
    assert listed == [(client.name, ", ".join(apis(client))) for client in CLIENTS]
    scripts = {client.script for client in (*CLIENTS, FASTMCP) if not isinstance(client, Command)}
    assert scripts == {path for path in SCRIPTS.iterdir() if path.is_file()}


def row(client: Client) -> str:
    """Return the client's line of the table; run all its APIs."""
    try:
        client.install()
    except (RuntimeError, OSError) as error:
        print(client.name, error, file=sys.stderr, flush=True)
        return f"| {client.name} | - | could not be installed |"
    broken = set()
    for way in client.ways:
        try:
            found = outcome(client, way)
        except RuntimeError as error:
            found = str(error)
        print(client.name, way, found, file=sys.stderr, flush=True)
        broken |= {WAYS[way]} if found != "works" else set()
    cells = ", ".join(f"{api} (fails)" if api in broken else api for api in apis(client))
    return f"| {client.name} | {client.version} | {cells} |"


def write_page() -> None:
    """Run two clients at a time, each with one API after the other, so that none is installed twice."""
    NODE.install()
    with ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(row, CLIENTS))
    before, rest = PAGE.read_text(encoding="utf-8").split(MARK)
    table = HEAD.format(day=date.today().isoformat()) + "\n".join(rows)
    PAGE.write_text(before + MARK + table + rest[rest.index(END) :], encoding="utf-8")


if __name__ == "__main__":
    write_page()
