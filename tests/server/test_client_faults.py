"""The SDKs of each API before model servers of each kind that fail in each way; see `tests.clients.faults`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.clients.faults import ENGINES, FaultyServer, cases_of, find_failures, options_of, script_of
from tests.serving import serving

pytest.importorskip("starlette", reason="needs the server: pip install 'toolcall-adapter[server]'")
pytest.importorskip("aiohttp", reason="needs the server: pip install 'toolcall-adapter[server]'")

SDKS = [
    ("openai_sdk", "chat", "openai"),
    ("openai_sdk", "responses", "openai"),
    ("anthropic_sdk", "anthropic", "anthropic"),
    ("ollama_sdk", "ollama", "ollama"),
]


@pytest.fixture(scope="module", params=ENGINES)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    options = options_of(request.param, tmp_path_factory.mktemp("options"))
    with FaultyServer(request.param) as upstream, serving(upstream.url, "--retry", "0", *options) as url:
        yield request.param, url.removesuffix("/v1")


@pytest.mark.parametrize(("script", "way", "package"), SDKS, ids=[way for _, way, _ in SDKS])
def test_faults_reach_the_client(served, tmp_path, script, way, package):
    """As an error with the reason, or as the right answer; never half a call, and always with an end."""
    pytest.importorskip(package, reason="the SDK is a development dependency")
    engine, url = served
    program = tmp_path / "program.py"
    program.write_text(script_of(script), encoding="utf-8")
    cases = cases_of(engine)
    done = subprocess.run(
        [sys.executable, "-P", str(program), way, *cases],
        env={**os.environ, "ADAPTER_URL": url}, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert find_failures(done.stdout, cases) == [], done.stderr
