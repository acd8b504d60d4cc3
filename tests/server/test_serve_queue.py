"""More requests than the concurrency limit: they are queued or refused."""

from __future__ import annotations

import http.client
import json
import queue
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.http_requests import send
from tests.live_upstream import LiveUpstream
from tests.scripted_server import CHAT, delta
from tests.server.clients import streamed_and_whole
from tests.server.test_wrap import TOOLS, completion
from tests.serving import serving

ROUTES = [CHAT, "/v1/messages", "/v1/responses", "/api/chat"]


class Slow:
    """A model that starts with each request and ends each on command."""

    def __init__(self) -> None:
        self.asked: queue.Queue[str] = queue.Queue()
        self.may_end: dict[str, threading.Event] = {}

    def answer(self, body: Any) -> Iterator[dict[str, Any] | bytes]:
        said = body["messages"][-1]["content"]
        name = said if isinstance(said, str) else said[0]["text"]
        self.may_end[name] = threading.Event()
        self.asked.put(name)
        if body.get("stream"):
            yield delta(f"To {name}.")
        self.may_end[name].wait(100)
        yield delta(finish_reason="stop") if body.get("stream") else json.dumps(completion(f"To {name}.")).encode()

    def next(self) -> str:
        return self.asked.get(timeout=100)


@contextmanager
def one_place(*options: str) -> Iterator[tuple[Slow, str]]:
    model = Slow()
    with (
        LiveUpstream(model.answer) as upstream,
        serving(upstream.url, "--max-streams", "1", "--keep-alive", "0.1", *options) as url,
    ):
        yield model, url
        for event in model.may_end.values():
            event.set()


class Client:
    """One request; ``first`` is the first line of its answer, once available."""

    def __init__(self, url: str, name: str, path: str = CHAT, **fields: Any) -> None:
        body = {"model": "m", "messages": [{"role": "user", "content": name}], "stream": True, **fields}
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=100)
        headers = {"Content-Type": "application/json", "Connection": "close"}
        self._connection.request("POST", path, json.dumps(body), headers)

    def response(self) -> http.client.HTTPResponse:
        """Reading to the end closes the connection."""
        return self._connection.getresponse()

    def text(self) -> str:
        return self.response().read().decode()

    def leave(self) -> None:
        self._connection.close()


def rest_of(response: http.client.HTTPResponse) -> str:
    return response.read().decode()


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Slow, str]]:
    with one_place() as given:
        yield given


def test_queued_requests_run_in_order(shared):
    """First come, first served, for all routes; lists of models do not wait."""
    model, url = shared
    with ThreadPoolExecutor() as threads:
        answers = {"a": threads.submit(Client(url, "a", tools=TOOLS).text)}
        assert model.next() == "a"
        queued: dict[str, dict[str, Any]] = {"b": {"tools": TOOLS}, "c": {}}
        for name, fields in queued.items():
            response = Client(url, name, **fields).response()
            assert response.readline()  # a sign of life: it stands in the queue
            answers[name] = threads.submit(rest_of, response)
        answers["d"] = threads.submit(Client(url, "d", tools=TOOLS, stream=False).text)
        assert send(url, "/v1/models", headers={"Connection": "close"})[0] == 404
        for name, answer in answers.items():
            assert name == "a" or model.next() == name
            assert model.asked.empty()
            model.may_end[name].set()
            assert f"To {name}." in answer.result(100)


@pytest.mark.parametrize(
    ("path", "fields", "sign"),
    [
        (CHAT, {"tools": TOOLS}, b": ping\n"),
        (CHAT, {}, b": ping\n"),
        ("/v1/messages", {}, b"event: ping\n"),
        ("/v1/responses", {"input": "b"}, b": ping\n"),
        ("/api/chat", {"tools": TOOLS}, b'{"model":"m"'),
    ],
)
def test_queued_stream_gets_keepalives(shared, path, fields, sign):
    """Followed by its answer in the same stream."""
    model, url = shared
    with ThreadPoolExecutor() as threads:
        first = threads.submit(Client(url, "a", tools=TOOLS).text)
        assert model.next() == "a"
        response = Client(url, "b", path, **fields).response()
        assert response.status == 200
        assert response.readline().startswith(sign)
        assert model.asked.empty()
        model.may_end["a"].set()
        assert model.next() == "b"
        model.may_end["b"].set()
        assert "To b." in response.read().decode()
        first.result(100)


@streamed_and_whole
@pytest.mark.parametrize("path", ROUTES)
def test_full_queue_returns_503(full, path, stream):
    """In the API's error format with Retry-After, with and without tools."""
    fields = {"input": "x", "tools": []} if path == "/v1/responses" else {}
    response = Client(full, "late", path, stream=stream, **fields).response()
    body = json.loads(response.read())
    assert (response.status, response.getheader("Retry-After")) == (503, "5")
    error = body["error"]
    assert "(1 requests running, 0 queued)" in (error if path == "/api/chat" else error["message"])
    if path == "/v1/messages":
        assert (body["type"], error["type"]) == ("error", "overloaded_error")


@pytest.fixture(scope="module")
def full() -> Iterator[str]:
    with one_place("--max-waiting", "0") as (model, url), ThreadPoolExecutor() as threads:
        first = threads.submit(Client(url, "a", tools=TOOLS).text)
        assert model.next() == "a"
        yield url
        model.may_end["a"].set()
        first.result(100)


def test_disconnected_client_frees_slot():
    """In the queue and at the model server."""
    with one_place("--max-waiting", "1") as (model, url), ThreadPoolExecutor() as threads:
        first = Client(url, "a", tools=TOOLS)
        assert model.next() == "a"
        waiting = Client(url, "b", tools=TOOLS).response()
        assert waiting.readline() == b": ping\n"
        assert json.loads(Client(url, "c", tools=TOOLS).text())["error"]["type"] == "overloaded_error"
        waiting.close()
        admitted = threads.submit(persistent, url, "d")
        time.sleep(0.5)
        first.leave()
        assert model.next() == "d"  # "b" has not come
        model.may_end["d"].set()
        assert "To d." in admitted.result(100)


def persistent(url: str, name: str) -> str:
    """Return the answer, once there is room in the queue."""
    while "overloaded_error" in (text := Client(url, name, tools=TOOLS).text()):
        time.sleep(0.05)
    return text
