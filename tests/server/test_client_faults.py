"""The SDKs of each API before model servers of each kind that fail in each way; see `tests.clients.faults`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.clients.faults import ENGINES, FaultyServer, cases_of, find_failures, options_of, script_of
from tests.serving import serving

SDKS = [
    ("openai_sdk", "chat", "openai", [*ENGINES]),
    ("openai_sdk", "responses", "openai", ["chat", "native"]),
    ("anthropic_sdk", "anthropic", "anthropic", ["native", "llama.cpp"]),
    ("ollama_sdk", "ollama", "ollama", ["chat", "ollama"]),
]
"""Clients, with the model servers before which each is tested: an answer is read before it is written for a client."""


EACH = """
import json, os, sys
script, way, engines = sys.argv[1:]
for url, cases in json.loads(engines):
    os.environ["ADAPTER_URL"], sys.argv = url, [script, way, *cases]
    exec(compile(open(script, encoding="utf-8").read(), script, "exec"), {})
    print("next")
"""
"""Run a script for each engine. One process does all, because the import of an SDK takes longer than its requests."""


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Start a server before a model server of each kind.

    Keepalives come late, because the first one begins a stream, and then a status cannot be sent any more.
    """
    with ExitStack() as stack:
        started = {}
        for engine in ENGINES:
            upstream = stack.enter_context(FaultyServer(engine))
            options = options_of(engine, tmp_path_factory.mktemp("options"))
            url = stack.enter_context(serving(upstream.url, "--retry", "0", "--keep-alive", "60", *options))
            started[engine] = url.removesuffix("/v1")
        yield started


@pytest.mark.parametrize(("script", "way", "package", "kinds"), SDKS, ids=[way for _, way, *_ in SDKS])
def test_faults_reach_the_client(urls, tmp_path, script, way, package, kinds):
    """As an error with the reason, or as the right answer; never half a call, and always with an end."""
    pytest.importorskip(package, reason="the SDK is a development dependency")
    program = tmp_path / "program.py"
    program.write_text(script_of(script), encoding="utf-8")
    engines = json.dumps([(urls[kind], cases_of(kind)) for kind in kinds])
    done = subprocess.run(
        [sys.executable, "-P", "-c", EACH, program, way, engines],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for kind, output in zip(kinds, done.stdout.split("next\n"), strict=False):
        assert find_failures(output, cases_of(kind)) == [], kind
