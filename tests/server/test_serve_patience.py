"""Retries while a model server starts, loads or is busy, until an answer has begun."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.http_requests import send
from tests.scripted_server import CHAT, ScriptedServer, as_error, as_json, as_stream, delta
from tests.server.clients import streamed_and_whole
from tests.server.test_wrap import ASK, TOOLS, completion
from tests.serving import serving, serving_here

LOADING = as_error(503, "Loading model", "unavailable_error")
BUSY = replace(as_error(429, "Too many requests"), headers=(("Retry-After", "0.1"),))
DONE = as_json(200, completion("It is empty."))
WITH_TOOLS: dict[str, Any] = {"model": "m", "messages": ASK, "tools": TOOLS}


@pytest.fixture(scope="module")
def url(shared: ScriptedServer) -> Iterator[str]:
    with serving(shared.url) as url:
        yield url


@pytest.fixture(scope="module")
def shared() -> Iterator[ScriptedServer]:
    with ScriptedServer() as upstream:
        yield upstream


@pytest.fixture
def upstream(shared: ScriptedServer) -> ScriptedServer:
    shared.replies.clear()
    shared.requests.clear()
    return shared


def post(url: str, body: Any) -> tuple[int, str | None, str]:
    """Return status, Retry-After and body."""
    status, headers, text = send(url, CHAT, body)
    return status, headers.get("retry-after"), text


@pytest.mark.parametrize("busy", [LOADING, BUSY], ids=["loading", "busy"])
@pytest.mark.parametrize("body", [WITH_TOOLS, {"model": "m", "messages": ASK}], ids=["tools", "passed through"])
def test_busy_upstream_is_retried(upstream, url, busy, body):
    upstream.on(CHAT, busy, busy, DONE)
    status, _, said = post(url, body)
    assert (status, json.loads(said)["choices"][0]["message"]["content"]) == (200, "It is empty.")
    assert len(upstream.bodies()) == 3


def test_second_wait_is_logged(upstream, capsys):
    upstream.on(CHAT, BUSY, BUSY, BUSY, DONE)
    with serving_here(upstream.url) as url:
        assert post(url, WITH_TOOLS)[0] == 200
    logged = capsys.readouterr().err
    assert logged.count(f"{upstream.url}/v1 answers 429; a request is retried for up to 15 s\n") == 1


def test_log_of_a_refused_connection_has_its_own_limit(capsys):
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        with serving_here(f"http://127.0.0.1:{reserved.getsockname()[1]}") as url:
            assert post(url, WITH_TOOLS)[0] == 502
    assert "refuses connections; a request is retried for up to 3 s\n" in capsys.readouterr().err


@streamed_and_whole
def test_late_retry_after_is_passed_on(upstream, url, stream):
    """With the server's message: the client's SDK knows how to retry."""
    upstream.on(CHAT, replace(as_error(429, "Quota used up"), headers=(("Retry-After", "3600"),)))
    status, when, said = post(url, {**WITH_TOOLS, "stream": stream})
    assert (status, when) == (429, "3600")
    assert "Quota used up" in said
    assert len(upstream.bodies()) == 1


@pytest.mark.parametrize("reply", [as_error(429, "Slow down"), as_error(500, "Broken"), as_error(400, "Loading")])
def test_other_errors_are_not_retried(upstream, url, reply):
    upstream.on(CHAT, reply, DONE)
    assert post(url, WITH_TOOLS)[0] == reply.status
    assert len(upstream.bodies()) == 1


def test_started_answer_is_not_retried(upstream, url):
    """It is cut off after the client got its beginning."""
    upstream.on(CHAT, as_stream(delta("I look"), done=False, cut=True), DONE)
    assert "closed the connection" in post(url, {**WITH_TOOLS, "stream": True})[2]
    assert len(upstream.bodies()) == 1


def test_starting_upstream_is_retried():
    """Nothing listened when the request arrived."""
    answered: list[int] = []
    with socket.socket() as reserved:  # keeps the port until it is listened at, which that allows
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        with serving(f"http://127.0.0.1:{port}", "--prompt", "words") as url:
            asking = threading.Thread(target=lambda: answered.append(post(url, WITH_TOOLS)[0]))
            asking.start()
            time.sleep(0.5)
            with ScriptedServer(port) as upstream:
                upstream.on(CHAT, DONE)
                asking.join()
    assert answered == [200]


def test_zero_retry_time_returns_first_answer(upstream):
    upstream.on(CHAT, LOADING, DONE)
    with serving(upstream.url, "--retry", "0") as url:
        assert post(url, WITH_TOOLS)[:2] == (503, "5")
