"""`adapter serve --view`: access to its page, and live updates."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.client import HTTPMessage
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from starlette.routing import Router
from starlette.types import Message

from adapter.core.errors import UsageError
from adapter.core.events import TextDelta
from adapter.core.text.redaction import Redactor
from adapter.protocols.recorded_exchange import read_exchanges
from adapter.recording.view.live_exchanges import LiveExchanges
from adapter.server.live_view import MAX_VIEWERS, LiveView
from tests.command_line import Running, adapter, started
from tests.http_requests import send
from tests.live_upstream import LiveUpstream
from tests.recording.view.test_view_page_data import exchange
from tests.server.test_serve_pages import ask
from tests.server.test_serve_queue import Client, Slow
from tests.server.test_wrap import ASK, CALL, TOOLS

API_KEY = "clients-show-this-key"


def printed(run: Running) -> tuple[str, str]:
    """Yield the address of the server and of its page."""
    url = run.first_lines().split()[1].rstrip(",")
    until = time.monotonic() + 100
    while not (found := re.search(r"^live view: (\S+)\n", run.stderr.read_text(encoding="utf-8"), re.MULTILINE)):
        assert time.monotonic() < until, run.stderr.read_text(encoding="utf-8")
        time.sleep(0.01)
    return url, found[1]


@contextmanager
def viewed(*options: str) -> Iterator[tuple[Slow, str, str, Running]]:
    """Yield a model that ends on command, a server with a page, the page's address and the process."""
    model = Slow()
    with (
        LiveUpstream(model.answer) as upstream,
        started("serve", "--upstream", upstream.url, "--port", "0", "--view", *options) as run,
    ):
        yield model, *printed(run), run
        for event in model.may_end.values():
            event.set()
        run.process.terminate()
        run.process.join(100)
        assert "Traceback" not in run.stderr.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def open_one() -> Iterator[tuple[Slow, str, str]]:
    with viewed() as (model, url, page, _):
        yield model, url, page


@pytest.fixture(scope="module")
def closed_one() -> Iterator[tuple[Slow, str, str]]:
    with viewed("--api-key", API_KEY) as (model, url, page, _):
        yield model, url, page


@contextmanager
def page_of(live: LiveExchanges, port: int = 0) -> Iterator[str]:
    """Yield the address of a server with only the page."""
    import uvicorn

    from adapter.server.http_limits import BoundedConfig

    viewing = LiveView(live, "upstream", "k", lambda: server.should_exit)
    with socket.create_server(("127.0.0.1", port)) as listener:
        server = uvicorn.Server(BoundedConfig(Router(routes=viewing.list_routes()), log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/view/?key=k"
        finally:
            server.should_exit = True
            thread.join()


def cookie(url: str, page: str) -> dict[str, str]:
    parts = urlsplit(page)
    _, headers, _ = ask(url, f"{parts.path}?{parts.query}")
    return {"Cookie": headers["set-cookie"].partition(";")[0]}


def get(url: str, path: str, headers: dict[str, str]) -> Any:
    status, _, body = ask(url, path, headers)
    assert status == 200, body
    return json.loads(body)


class Looking:
    """Keep a page open during the block."""

    def __init__(self, url: str, headers: dict[str, str], since: str = "") -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=100)
        self._connection.request("GET", f"/view/events?since={since}", headers=headers)
        self.response = self._connection.getresponse()
        self.last_id = ""

    def __enter__(self) -> Looking:
        return self

    def __exit__(self, *_: object) -> None:
        self.response.close()
        self._connection.close()

    def next(self) -> Any:
        """Return the next event's data, or None at the end."""
        for line in self.response:
            if line.startswith(b"id: "):
                self.last_id = line[4:].decode().strip()
            if line.startswith(b"data: "):
                return json.loads(line[6:])
        return None

    def until(self, mark: str) -> Any:
        """Return the first row with ``mark``."""
        while changes := self.next():
            for row in changes["rows"]:
                if mark in row["marks"]:
                    return row
        raise AssertionError(f"no row was {mark}")


# ---------------------------------------------------------------- the key


@pytest.mark.parametrize(
    "path", ["/view/", "/view/rows", "/view/events", "/view/exchanges/1", "/view/plain", "/view/view.js"]
)
@pytest.mark.parametrize(
    "headers",
    [{}, {"Cookie": "adapter_view_0=x"}, {"Authorization": "Bearer x"}, {"X-Api-Key": "é".encode().decode("latin-1")}],
    ids=["nothing", "a cookie", "a key", "no ASCII"],
)
def test_page_without_key_shows_only_form(open_one, closed_one, path, headers):
    for _, url, page in (open_one, closed_one):
        name = f"adapter_view_{urlsplit(url).port}"
        status, told, body = ask(url, path, {**headers, **({"Cookie": f"{name}=x"} if "Cookie" in headers else {})})
        assert status == 401
        assert ('<input type="password" name="key"' in body) == (path == "/view/")
        assert ("the key is wrong or missing: open /view/ in a browser" in body) == (path != "/view/")
        assert told["cache-control"] == "no-store"
        assert urlsplit(page).query.partition("=")[2] not in body or not urlsplit(page).query


def test_logged_address_opens_page(open_one):
    """Through a cookie that does not contain the key; neither address nor page contains it."""
    _, url, page = open_one
    key = urlsplit(page).query.removeprefix("key=")
    assert len(key) > 20
    status, headers, _ = ask(url, f"/view/?key={key}")
    assert (status, headers["location"], headers["referrer-policy"]) == (303, "./", "no-referrer")
    given, *attributes = headers["set-cookie"].lower().split("; ")
    assert {"httponly", "samesite=strict", "path=/view"} == set(attributes)
    assert key.lower() not in given
    status, headers, body = ask(url, "/view/", cookie(url, page))
    assert (status, key in body) == (200, False)
    assert headers["content-security-policy"] == "frame-ancestors 'none'"
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', body)
    assert policy is not None
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; connect-src 'self'; "
        r"base-uri 'none'; form-action 'none'",
        policy[1].replace("&#39;", "'"),
    )
    assert ask(url, "/view")[:2][1]["location"] == "view/"
    status, headers, _ = ask(url, "/view/?key=another")
    assert (status, headers["location"], "set-cookie" in headers) == (303, "./?wrong", False)
    assert "That was not the key" in ask(url, "/view/?wrong")[2]


def sent(url: str, body: str, **headers: str) -> tuple[int, HTTPMessage]:
    return send(url, "/view/", body.encode(), {"Content-Type": "application/x-www-form-urlencoded", **headers})[:2]


def test_page_uses_client_api_key(closed_one):
    """With the form; its cookie opens only the page. Programs send the key as usual."""
    _, url, page = closed_one
    assert urlsplit(page).query == ""
    own = f"http://{urlsplit(url).netloc}"
    assert sent(url, urlencode({"key": "wrong"}), Origin=own)[1]["location"] == "./?wrong"
    status, headers = sent(url, urlencode({"key": API_KEY}), Origin=own)
    assert (status, headers["location"]) == (303, "./")
    shown = {"Cookie": headers["set-cookie"].partition(";")[0]}
    assert ask(url, "/view/", shown)[0] == 200
    assert get(url, "/view/rows", shown)["rows"] == []
    assert get(url, "/view/rows", {"Authorization": f"Bearer {API_KEY}"})["rows"] == []
    assert ask(url, "/v1/models", shown)[0] == 401
    assert ask(url, "/viewed/", shown)[0] == 401
    assert API_KEY not in ask(url, "/view/", shown)[2]


@pytest.mark.parametrize(
    ("body", "status"),
    [("key=" + "x" * 5_000, 413), ("", 303), ("&".join(f"a{each}=1" for each in range(99)), 303), ("key=%ff%00", 303)],
)
def test_form_size_is_limited(closed_one, body, status):
    found, headers = sent(closed_one[1], body)
    assert (found, "set-cookie" in headers) == (status, False)


def test_form_without_content_length_is_rejected_with_the_reason(closed_one):
    connection = http.client.HTTPConnection(urlsplit(closed_one[1]).netloc, timeout=10)
    connection.request("POST", "/view/", iter([b"key=x"]), {"Transfer-Encoding": "chunked"}, encode_chunked=True)
    response = connection.getresponse()
    assert (response.status, b"Content-Length" in response.read()) == (411, True)
    connection.close()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "attacker.example"}, 421),
        ({"Origin": "https://attacker.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
    ],
    ids=str,
)
def test_cross_site_requests_are_rejected(open_one, headers, status):
    _, url, page = open_one
    known = cookie(url, page)
    for path in ("/view/", "/view/rows", "/view/exchanges/1", f"/view/?{urlsplit(page).query}"):
        assert ask(url, path, known | headers)[0] == status
    assert sent(url, urlsplit(page).query, **headers)[0] == status


def test_page_requires_option(scripted):
    with started("serve", "--upstream", scripted.url, "--port", "0") as run:
        url = run.first_lines().split()[1].rstrip(",")
        assert ask(url, "/view/")[0] == 404


def test_log_does_not_contain_key(scripted):
    """Not even as JSON, or when it was in an address."""
    with started(
        "serve", "--upstream", scripted.url, "--port", "0", "--view", "--log-json", "--api-key", API_KEY
    ) as run:
        first = json.loads(run.first_lines())
        url = first["message"].split()[1].rstrip(",")
        assert ask(url, f"/view/?key={API_KEY}")[0] == 303
        assert ask(url, "/view/?key=another-key-that-is-wrong")[0] == 303
        until = time.monotonic() + 100
        while (said := run.stderr.read_text(encoding="utf-8")).count('"GET /view 303') < 2:
            assert time.monotonic() < until, said
            time.sleep(0.01)
    assert API_KEY not in said
    assert "another-key" not in said


def test_several_workers_are_rejected():
    done = adapter("serve", "--upstream", "http://127.0.0.1:9", "--port", "0", "--view", "--workers", "2")
    assert done.returncode != 0
    assert "--view cannot be combined with several workers" in done.stderr
    assert UsageError.__name__ not in done.stderr


# ---------------------------------------------------------------- what it tells


@pytest.mark.parametrize("stream", [True, False])
def test_running_exchange_is_streamed(open_one, stream):
    """From the request on, with its text so far, and its end."""
    model, url, page = open_one
    known = cookie(url, page)
    name = f"stream-{stream}"
    with Looking(url, known) as looking, ThreadPoolExecutor() as threads:
        asking = threads.submit(Client(url, name, stream=stream, tools=TOOLS).text)
        assert model.next() == name
        row = looking.until("writing" if stream else "waiting")
        assert (row["is_over"], row["model"]) == (False, "m")
        shown = get(url, f"/view/exchanges/{row['number']}", known)
        assert shown["parts"][shown["prompt"][-1]] == {"role": "user", "text": name}
        assert [part["role"] for part in shown["parts"]].count("read_file") == 1
        so_far = get(url, f"/view/exchanges/{row['number']}?answer=1", known)
        assert [piece["text"] for piece in so_far["readings"][0]["spans"]] == (["To "] if stream else [])
        model.may_end[name].set()
        assert f"To {name}." in asking.result(100)
        ended = looking.until("no call")
        assert (ended["number"], ended["is_over"], ended["title"]) == (row["number"], True, f"To {name}.")
    shown = get(url, f"/view/exchanges/{row['number']}", known)
    assert [piece["text"] for piece in shown["readings"][0]["spans"]] == [f"To {name}."]
    assert ("first part" in dict(shown["about"]), "took" in dict(shown["about"])) == (True, True)
    again = get(url, f"/view/exchanges/{row['number']}?format=hermes&policy=strict", known)
    assert [each["name"] for each in again["readings"]] == ["As recorded", "Parsed again: hermes, strict"]


def test_client_disconnect_is_reported(open_one):
    model, url, page = open_one
    with Looking(url, cookie(url, page)) as looking:
        response = Client(url, "left alone", tools=TOOLS).response()
        assert model.next() == "left alone"
        row = looking.until("writing")
        response.close()
        model.may_end["left alone"].set()
        while not row["is_over"]:
            row = next(each for each in looking.next()["rows"] if each["number"] == row["number"])


def test_reconnected_page_gets_new_changes(open_one):
    """From the id of the last event; after a restart it gets everything."""
    model, url, page = open_one
    known = cookie(url, page)

    def chat(name: str) -> None:
        with ThreadPoolExecutor() as threads:
            asking = threads.submit(Client(url, name, tools=TOOLS).text)
            model.next()
            model.may_end[name].set()
            asking.result(100)

    chat("first")
    all_rows = get(url, "/view/rows", known)
    cursor = f"{all_rows['epoch']}.{all_rows['version']}"
    assert get(url, f"/view/rows?since={cursor}", known)["rows"] == []
    for other in ("0000.5", "junk", f"{all_rows['epoch']}.x", f"{all_rows['epoch']}.{'9' * 5000}", "²"):
        assert get(url, f"/view/rows?{urlencode({'since': other})}", known)["rows"] == all_rows["rows"]
    with Looking(url, known | {"Last-Event-ID": cursor}, since="0000.1") as looking:
        chat("second")
        row = looking.until("no call")
        assert row["title"] == "To second."
        assert looking.last_id.startswith(all_rows["epoch"])


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("exchanges/999999", 404), ("exchanges/x", 404), (f"exchanges/{'9' * 5000}", 404), ("exchanges/-1", 404),
        ("exchanges/1?policy=mild", 400), ("exchanges/1?format=nope", 400), ("nothing", 404), ("../v1/models", 404),
    ],
)  # fmt: skip
def test_invalid_path_returns_error(open_one, path, status):
    _, url, page = open_one
    found, headers, body = ask(url, f"/view/{path}", cookie(url, page))
    assert (found, headers["content-type"]) == (status, "application/json")
    assert json.loads(body)["error"]["message"]


def test_page_cannot_make_the_server_read_a_format_file(open_one, tmp_path):
    _, url, page = open_one
    file = tmp_path / "own.toml"
    file.write_text('name = "own"\nbody = "python"\nhead = "CALL: "\n')
    assert ask(url, f"/view/exchanges/1?format={file}", cookie(url, page))[0] == 400


def test_number_of_pages_is_limited(open_one):
    """A closed page frees its slot."""
    _, url, page = open_one
    known = cookie(url, page)
    with ExitStack() as stack:
        looking = [stack.enter_context(Looking(url, known)) for _ in range(MAX_VIEWERS)]
        assert {each.response.status for each in looking} == {200}
        assert stack.enter_context(Looking(url, known)).response.status == 503
        looking[0].__exit__()
        until = time.monotonic() + 100
        while stack.enter_context(Looking(url, known)).response.status == 503:
            assert time.monotonic() < until


def test_slow_page_skips_intermediate_states(monkeypatch):
    """More changes than fit into buffers; the model's stream does not wait for pages."""
    monkeypatch.setattr("adapter.server.live_view.TICK_S", 0.005)
    live = LiveExchanges(Redactor({}))
    with page_of(live) as address, Looking(address, {"Authorization": "Bearer k"}) as looking:
        going = [live.listen(exchange(said=str(number))) for number in range(400)]
        for number in range(100):
            for each in going:
                each.receive([TextDelta(f"{number} words " * 5, "")])
            time.sleep(0.01)
        for number, each in enumerate(going):
            each.end(exchange(f"Answer {number}. "), "")
        over: dict[int, str] = {}
        told = 0
        while len(over) < len(going):
            changes = looking.next()
            told += len(changes["rows"])
            over |= {row["number"]: row["title"] for row in changes["rows"] if row["is_over"]}
        assert over[400].startswith("0 words")
        assert told < 20 * len(going)
    live.close()


def test_recording_and_view_redact_secrets(scripted, tmp_path, monkeypatch):
    from tests.scripted_server import CHAT, as_json
    from tests.server.test_wrap import completion

    monkeypatch.setenv("MY_API_KEY", "hunter2-very-secret")
    scripted.on(CHAT, as_json(200, completion(f"It is hunter2-very-secret.\n{CALL}")))
    file = tmp_path / "said.jsonl"
    with started("serve", "--upstream", scripted.url, "--port", "0", "--view", "--record", file) as run:
        url, page = printed(run)
        known = cookie(url, page)
        ask(url, CHAT, {"Authorization": "Bearer x"}, "POST", {"model": "m", "messages": ASK, "tools": TOOLS})
        (row,) = get(url, "/view/rows", known)["rows"]
        shown = get(url, f"/view/exchanges/{row['number']}", known)
    (recorded,) = read_exchanges(file.read_text(encoding="utf-8"), "f")
    assert "".join(piece["text"] for piece in shown["readings"][0]["spans"]) == recorded.text
    assert row["title"] == "It is [redacted MY_API_KEY]."
    assert "hunter2" not in json.dumps(shown)


# ---------------------------------------------------------------- the end


def test_open_page_does_not_delay_drain():
    """Its stream ends on SIGTERM; the client's stream continues to its end."""
    with viewed() as (model, url, page, run), ThreadPoolExecutor() as threads:
        stream = threads.submit(Client(url, "a", tools=TOOLS).text)
        assert model.next() == "a"
        with Looking(url, cookie(url, page)) as looking:
            looking.until("writing")
            assert run.process.pid is not None
            os.kill(run.process.pid, signal.SIGTERM)
            while looking.next():
                pass
            assert not stream.done()
            model.may_end["a"].set()
            assert stream.result(100).endswith("data: [DONE]\n\n")
            run.process.join(100)
            assert not run.process.is_alive()


def test_stalled_page_does_not_delay_drain():
    """Its connection reads nothing."""

    async def looks_on() -> list[str]:
        live, stopping, sent = LiveExchanges(Redactor({})), asyncio.Event(), []
        viewing = LiveView(live, "upstream", "k", stopping.is_set)
        live.listen(exchange())
        scope = {"type": "http", "method": "GET", "path": "/view/events", "query_string": b"", "root_path": ""}
        headers = [(b"authorization", b"Bearer k")]

        async def receive() -> Message:
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Message) -> None:
            sent.append(message["type"])
            if b"data: " in message.get("body", b""):
                stopping.set()
                await asyncio.Event().wait()

        await asyncio.wait_for(Router(viewing.list_routes())({**scope, "headers": headers}, receive, send), 60)
        live.close()
        return sent

    assert asyncio.run(looks_on()) == ["http.response.start", *["http.response.body"] * 2]


def test_open_page_does_not_delay_exit():
    """Ctrl-C with an open page: nothing has to be cut off."""
    with viewed() as (_, url, page, run), Looking(url, cookie(url, page)) as looking:
        assert run.process.pid is not None
        os.kill(run.process.pid, signal.SIGINT)
        assert looking.next() is None
        run.process.join(100)
        assert not run.process.is_alive()
        assert "graceful" not in run.stderr.read_text(encoding="utf-8")
