"""Unmodified clients before `adapter serve` and a model that knows only text: two calls at once, results, an answer.

pytest -m clients tests/clients              installs what is missing, and runs all of them
python -m tests.clients.test_clients         the same, and writes docs/clients.md anew
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

HEAD = """# Clients that were tried

Each client, unmodified and in an environment of its own, was given a tool (coding agents: a shell) and asked something
for which it takes two calls of that at once; the model behind `adapter serve` knows only text. A line stands for the
whole loop: reasoning, both calls, their results, and the answer from them. Made by `python -m
tests.clients.test_clients` on {day}; `pytest -m clients tests/clients` runs the same.

| client | version | interface | |
|---|---|---|---|
"""

TAIL = """
gptme runs one call of an answer, and Strands for JavaScript keeps one by chat completions (it ends all calls after the
last): the model asked for the other again.

Not among them, and why:

- **aider** offers models no tools: it reads edits out of the text itself, which passes through as it is.
- **Gemini CLI** speaks Google's interface alone, **Roo Code** is an extension of an editor without a command, and
  Cloudflare's **agents** run in its Workers alone (the models there are Vercel's AI SDK's, which is above).
- **goose** is in no package registry; **crush** is on npm, but what is there downloads the program from elsewhere, and
  **CAMEL** a tokenizer before its first request: they could not be run from registries alone.
- **pi**: newer versions than the one above could not be installed, since the registry lacked what they need.
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
    """And each that is no command has its script."""
    listed = re.findall(r"^\| ([\w-]+) \| \S+ \| (\S+) \| works \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert listed == [(client.name, WAYS[way]) for client, way in PAIRS]
    scripts = {client.script for client in (*CLIENTS, FASTMCP) if not isinstance(client, Command)}
    assert scripts == {path for path in SCRIPTS.iterdir() if path.is_file()}


def row(client: Client, way: str) -> str:
    try:
        client.install()
    except (RuntimeError, OSError) as error:
        print(client.name, error, file=sys.stderr, flush=True)
        return f"| {client.name} | - | {WAYS[way]} | could not be installed |\n"
    try:
        found = outcome(client, way)
    except RuntimeError as error:
        found = str(error)
    print(client.name, way, found, file=sys.stderr, flush=True)
    return f"| {client.name} | {client.version} | {WAYS[way]} | {'works' if found == 'works' else 'broke'} |\n"


def write_page() -> None:
    """Two clients at a time, each with its ways one after the other, so that none is installed twice."""
    NODE.install()
    with ThreadPoolExecutor(2) as pool:
        rows = pool.map(lambda client: [row(client, way) for way in client.ways], CLIENTS)
        lines = [line for client_rows in rows for line in client_rows]
    PAGE.write_text(HEAD.format(day=date.today().isoformat()) + "".join(lines) + TAIL, encoding="utf-8")


if __name__ == "__main__":
    write_page()
