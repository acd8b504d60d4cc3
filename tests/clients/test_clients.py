"""Unmodified clients before `adapter serve` and a model that knows only text: two calls at once, results, an answer.

pytest -m clients tests/clients              installs what is missing, and runs all of them
python -m tests.clients.test_clients         the same, and writes docs/clients.md anew
"""

from __future__ import annotations

import re
import shutil
import sys
from datetime import date
from pathlib import Path

import pytest

from tests.clients.environments import CLIENTS, SCRIPTS, Client
from tests.clients.model import ANSWER, TextModel
from tests.clients.test_mcp_clients import CONFORMANCE, FASTMCP
from tests.serving import serving

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"

WAYS = {
    "chat": "`/v1/chat/completions`",
    "compatible": "`/v1/chat/completions`",
    "responses": "`/v1/responses`",
    "anthropic": "`/v1/messages`",
    "ollama": "`/api/chat`",
}

HEAD = """# Clients that were tried

Each client, unmodified and in an environment of its own, was given a tool and asked something for which it takes two
calls of that at once; the model behind `adapter serve` knows only text. A line stands for the whole loop: reasoning,
both calls, their results, and the answer from them. Made by `python -m tests.clients.test_clients` on {day}; `pytest -m
clients tests/clients` runs the same.

| client | version | interface | |
|---|---|---|---|
"""

PAIRS = [(client, way) for client in CLIENTS for way in client.ways]


def outcome(client: Client, way: str) -> str:
    """ "works", or what went wrong."""
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


def test_the_page_lists_every_client():
    """And every client has its script."""
    listed = re.findall(r"^\| ([\w-]+) \| \S+ \| (\S+) \| works \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert listed == [(client.name, WAYS[way]) for client, way in PAIRS]
    scripts = {client.script for client in (*CLIENTS, FASTMCP, CONFORMANCE)}
    assert scripts == {path for path in SCRIPTS.iterdir() if path.is_file()}


def write_page() -> None:
    lines = [HEAD.format(day=date.today().isoformat())]
    for client, way in PAIRS:
        try:
            client.install()
            found = outcome(client, way)
        except RuntimeError as error:
            found = str(error)
        print(client.name, way, found, file=sys.stderr, flush=True)
        shown = found if found == "works" else "broke"
        lines.append(f"| {client.name} | {client.version} | {WAYS[way]} | {shown} |\n")
    PAGE.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write_page()
