"""Graceful shutdown on SIGTERM, and several workers behind one address."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from tests.command_line import started
from tests.live_upstream import LiveUpstream
from tests.scripted_server import CHAT, ScriptedServer, as_json
from tests.server.test_serve_queue import Client, Slow
from tests.server.test_telemetry import ask, samples
from tests.server.test_wrap import TOOLS, completion
from tests.serving import serving_afresh, serving_here


@contextmanager
def stoppable(*options: str) -> Iterator[tuple[Slow, str, Any]]:
    """Yield a model that ends on command, a server, and the server's process."""
    model = Slow()
    with (
        LiveUpstream(model.answer) as upstream,
        started("serve", "--upstream", upstream.url, "--port", "0", "--keep-alive", "0.1", *options) as run,
    ):
        url = run.first_lines().split()[1].rstrip(",")
        yield model, url, run.process
        for event in model.may_end.values():
            event.set()
        run.process.join(100)


def refused(url: str) -> tuple[int, Any]:
    """Wait until the signal has been handled."""
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        if ask(url, "/ready")[2].startswith('{"status":"draining"'):
            break
        time.sleep(0.02)
    status, headers, _ = ask(url, tools=TOOLS)
    return status, headers


def test_sigterm_drains_streams():
    """The running stream ends normally; a new request gets 503 with Retry-After; then the server exits."""
    with stoppable() as (model, url, process), ThreadPoolExecutor() as threads:
        stream = threads.submit(Client(url, "a", tools=TOOLS).text)
        assert model.next() == "a"
        os.kill(process.pid, signal.SIGTERM)
        status, headers = refused(url)
        assert (status, headers["retry-after"], headers["connection"]) == (503, "5", "close")
        assert ask(url, "/health")[0] == 200
        model.may_end["a"].set()
        text = stream.result(100)
        assert "To a." in text
        assert text.endswith("data: [DONE]\n\n")
        process.join(100)
        assert process.exitcode == 0


@pytest.mark.parametrize("how", ["the limit", "a second signal"])
def test_drain_ends_at_limit_or_second_signal(how):
    """After --drain seconds, or at once on a second SIGTERM; the stream then ends with an error."""
    with stoppable("--drain", "0.3" if how == "the limit" else "60") as (model, url, process):
        response = Client(url, "a", tools=TOOLS).response()
        assert model.next() == "a"
        os.kill(process.pid, signal.SIGTERM)
        if how == "a second signal":
            refused(url)
            os.kill(process.pid, signal.SIGTERM)
        process.join(100)
        assert not process.is_alive()
        said = response.read().decode()
        assert "server shut down mid-response" in said
        assert "[DONE]" not in said


def test_ctrl_c_stops_without_traceback():
    """The client gets the reason; the log has no internals."""
    model = Slow()
    with (
        LiveUpstream(model.answer) as upstream,
        started("serve", "--upstream", upstream.url, "--port", "0") as run,
        ThreadPoolExecutor() as threads,
    ):
        url = run.first_lines().split()[1].rstrip(",")
        client = Client(url, "a", tools=TOOLS)
        assert model.next() == "a"
        lines = threads.submit(lambda: client.response().read().decode())
        assert run.process.pid is not None
        os.kill(run.process.pid, signal.SIGINT)
        run.process.join(100)
        assert run.process.exitcode == 130
        model.may_end["a"].set()
        assert "server shut down mid-response" in lines.result(100)
        said = run.stderr.read_text(encoding="utf-8")
        assert "Traceback" not in said
        assert "graceful" not in said


def test_workers_share_address(tmp_path):
    """They share the store, and any of them returns everyone's metrics."""
    store = str(tmp_path / "answers.sqlite")
    with (
        ScriptedServer().on(CHAT, as_json(200, completion("Hello"))) as upstream,
        serving_afresh(f"{upstream.url}/v1", "--workers", "2", "--metrics", "--store", store) as url,
    ):
        answers = [json.loads(ask(url, "/v1/responses", input="Hi", tools=[])[2])["id"] for _ in range(8)]
        for answer in answers:
            assert ask(url, f"/v1/responses/{answer}")[0] == 200
        text = ask(url, "/metrics")[2]
    assert samples(text)['adapter_requests_total{route="/v1/responses",status="200"}'] == 8


def test_workers_do_not_store_responses_in_memory():
    """Otherwise every second request would miss the response that it references."""
    with (
        ScriptedServer().on(CHAT, as_json(200, completion("Hello"))) as upstream,
        serving_here(upstream.url, workers=2) as url,  # what one of them does
    ):
        response = json.loads(ask(url, "/v1/responses", input="Hi", tools=[])[2])
        assert response["store"] is False
        answer = response["id"]
        assert [ask(url, f"/v1/responses/{answer}")[0] for _ in range(6)] == [404] * 6
        status, _, said = ask(url, "/v1/conversations", metadata={})
        assert (status, json.loads(said)["error"]["code"]) == (404, "unsupported_endpoint")
        assert "--store FILE" in said
