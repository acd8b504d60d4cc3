"""Recorded answers of real servers (`fixtures/exchanges`), behind `adapter serve`, the wrapped client and the agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import openai
import pytest

from adapter import wrap
from adapter.agent.agent import Agent
from adapter.backends.chat_client import ChatClient
from adapter.backends.endpoint_discovery import Endpoint
from adapter.core.errors import TransportError
from adapter.workspace import Workspace
from tests.scripted_server import CHAT, Reply, ScriptedServer, as_json
from tests.server.clients import connected
from tests.serving import serving

ollama = pytest.importorskip("ollama", reason="Ollama's client is a development dependency")

NATIVE = "/api/chat"
FOLDER = Path(__file__).parents[2] / "fixtures" / "exchanges"


@dataclass(frozen=True)
class Exchange:
    name: str
    server: str
    path: str
    request: dict[str, Any]
    status: int
    headers: dict[str, str]
    body: str

    @property
    def reply(self) -> Reply:
        server = self.headers.get("Server", "test")
        return Reply(self.status, self.body.encode(), self.headers["Content-Type"], server)

    @property
    def streams(self) -> bool:
        return not self.headers["Content-Type"].startswith("application/json")

    @property
    def text(self) -> str:
        """The model's text."""
        lines = [line.removeprefix("data: ") for line in self.body.splitlines()] if self.streams else [self.body]
        values = [json.loads(line) for line in lines if line and line != "[DONE]"]
        messages = [
            choice.get("delta") or choice.get("message") or {}
            for value in values
            for choice in value.get("choices", ())
        ] + [value["message"] for value in values if "message" in value]
        return "".join(message.get("content") or "" for message in messages)

    @cached_property
    def words(self) -> str:
        """The error's message."""
        said = json.loads(self.body)["error"]
        return str(said if isinstance(said, str) else said["message"])


def exchanges() -> list[Exchange]:
    return [
        Exchange(
            path.stem,
            path.parent.name,
            given["path"],
            given["request"],
            given["status"],
            given["headers"],
            given["body"],
        )
        for path in sorted(FOLDER.glob("*/*.json"))
        for given in [json.loads(path.read_text(encoding="utf-8"))]
        if given["path"] in (CHAT, NATIVE)
    ]


ALL = exchanges()
TOOLS: list[Any] = next(each.request["tools"] for each in ALL if "tools" in each.request)
ASK: list[Any] = [{"role": "user", "content": "Read the file src/main.rs"}]
CALLS = [each for each in ALL if each.status == 200 and '"read_file"' in each.text]
TEXTS = [each for each in ALL if each.status == 200 and each not in CALLS]
ERRORS = [each for each in ALL if each.status != 200]
STATUS: dict[int, type[openai.APIStatusError]] = {400: openai.BadRequestError, 404: openai.NotFoundError}


def recorded(chosen: list[Exchange], path: str, server: str | None = None) -> Any:
    fitting = [each for each in chosen if each.path == path and server in (None, each.server)]
    return pytest.mark.parametrize("exchange", fitting, ids=[f"{each.server}-{each.name}" for each in fitting])


@pytest.fixture(scope="module")
def served() -> Iterator[dict[str, tuple[ScriptedServer, str]]]:
    """Yield a server that replays recordings and ours in front of it, for each kind."""
    with ScriptedServer() as an_ollama, ScriptedServer() as llama_cpp:
        an_ollama.on("/api/version", as_json(200, {"version": "0.0.0"}))
        llama_cpp.on("/props", as_json(200, {"default_generation_settings": {"n_ctx": 4096}}, server="llama.cpp"))
        with serving(an_ollama.url) as first, serving(llama_cpp.url) as second:
            yield {"ollama": (an_ollama, first), "llama_server": (llama_cpp, second)}


@pytest.fixture
def before(served: dict[str, tuple[ScriptedServer, str]], exchange: Exchange) -> tuple[ScriptedServer, str]:
    """Yield the server that replays ``exchange`` and our address."""
    upstream, url = served[exchange.server]
    upstream.replies.pop(CHAT, None)
    upstream.replies.pop(NATIVE, None)
    upstream.requests.clear()
    upstream.on(exchange.path, exchange.reply)
    return upstream, url


@pytest.fixture(params=["served", "wrapped"])
def client(request: pytest.FixtureRequest, before: tuple[ScriptedServer, str]) -> Iterator[openai.OpenAI]:
    upstream, url = before
    is_served = request.param == "served"
    base_url = url if is_served else f"{upstream.url}/v1"
    with connected(base_url) as client:
        yield client if is_served else wrap(client)


def ask(client: openai.OpenAI, exchange: Exchange) -> Any:
    """Return the choice, assembled by the SDK's helper if streamed."""
    fields: Any = {"model": exchange.request["model"], "messages": ASK, "tools": TOOLS}
    if not exchange.streams:
        return client.chat.completions.create(**fields).choices[0]
    with client.chat.completions.stream(**fields) as stream:
        return stream.get_final_completion().choices[0]


def test_recordings_exist():
    """Both servers, both of Ollama's APIs, buffered and streamed, calls and errors."""
    assert {(each.server, each.path, each.streams) for each in CALLS} == {
        ("ollama", CHAT, False),
        ("ollama", CHAT, True),
        ("ollama", NATIVE, False),
        ("ollama", NATIVE, True),
        ("llama_server", CHAT, False),
        ("llama_server", CHAT, True),
    }
    assert {(each.server, each.status) for each in ERRORS} == {
        ("ollama", 400),
        ("ollama", 404),
        ("llama_server", 400),
        ("llama_server", 404),
    }


@recorded(CALLS, CHAT)
def test_recorded_text_becomes_tool_call(client, before, exchange):
    """Bare, fenced, with sorted keys, in markers with and without their end."""
    choice = ask(client, exchange)
    ((name, arguments),) = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls]
    path = "string" if '"string"' in exchange.text else "src/main.rs"
    assert (name, json.loads(arguments), choice.finish_reason) == ("read_file", {"path": path}, "tool_calls")
    (body,) = before[0].bodies()
    assert not body.keys() & {"tools", "tool_choice"}


@recorded(TEXTS, CHAT)
def test_recorded_text_stays_text(client, exchange):
    """Verbatim, with the server's own finish reason."""
    choice = ask(client, exchange)
    assert choice.message.content == exchange.text
    assert choice.message.tool_calls is None
    assert choice.finish_reason == json.loads(exchange.body)["choices"][0]["finish_reason"]


@recorded(ERRORS, CHAT)
def test_recorded_error_raises_sdk_exception(client, exchange):
    """By its status, with the server's message."""
    with pytest.raises(STATUS[exchange.status]) as caught:
        client.chat.completions.create(model="m", messages=ASK, tools=TOOLS)
    assert exchange.words in str(caught.value)


@pytest.fixture
def native(before: tuple[ScriptedServer, str]) -> Iterator[Any]:
    """Ollama's own client with our server."""
    client = ollama.Client(before[1].removesuffix("/v1"))
    yield client
    client.close()


@recorded(CALLS, NATIVE)
def test_ollama_client_gets_call(native, before, exchange):
    given = native.chat(exchange.request["model"], messages=ASK, tools=TOOLS, stream=exchange.streams)
    parts = list(given) if exchange.streams else [given]
    path = "string" if '"string"' in exchange.text else "src/main.rs"
    calls = [call.function for part in parts for call in part.message.tool_calls or ()]
    assert [(call.name, dict(call.arguments)) for call in calls] == [("read_file", {"path": path})]
    last = json.loads(exchange.body.splitlines()[-1])
    for counted in ("eval_count", "prompt_eval_count", "total_duration"):
        assert parts[-1][counted] == last[counted]
    assert "tools" not in before[0].bodies(NATIVE)[0]


@recorded(ERRORS, NATIVE, "ollama")
def test_ollama_client_gets_error(native, exchange):
    with pytest.raises(ollama.ResponseError, match=exchange.words) as caught:
        native.chat(exchange.request["model"], messages=ASK, tools=TOOLS)
    assert caught.value.status_code == exchange.status


@recorded([each for each in CALLS if each.streams], CHAT)
def test_agent_makes_recorded_call(before, exchange, tmp_path):
    """Its transport always streams."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.rs").write_text("fn main() {}\n", encoding="utf-8")
    upstream, _ = before
    upstream.on(CHAT, Reply(200, b'data: {"choices": [{"delta": {"content": "Done."}, "finish_reason": "stop"}]}\n\n'))
    happened: list[Any] = []
    with Workspace(tmp_path) as workspace, ChatClient(Endpoint(f"{upstream.url}/v1"), "m", patience_s=0) as chat:
        done = Agent(workspace, chat, observe=happened.append).run("Read the file src/main.rs")
    assert (done.reason, done.content) == ("answered", "Done.")
    (result,) = [each for each in happened if type(each).__name__ == "ToolResult"]
    assert result.ok
    assert "fn main" in result.content


@recorded(ERRORS, CHAT)
def test_agent_transport_raises_server_error(before, exchange):
    """With advice and without retries, which would not help."""
    upstream, _ = before
    with ChatClient(Endpoint(f"{upstream.url}/v1"), "m") as chat, pytest.raises(TransportError) as caught:
        list(chat.stream(ASK))
    assert exchange.words.rstrip(".") in str(caught.value)
    assert len(upstream.bodies()) == 1


class RecordedOllama(ScriptedServer):
    """Answers by the request, like Ollama: tools for a model without a tool template are a 400."""

    def next_reply(self, path: str, body: Any) -> Reply:
        if body is None:
            return super().next_reply(path, body)
        found = [
            each for each in ALL if each.server == "ollama" and _shape(each.path, each.request) == _shape(path, body)
        ]
        return found[0].reply if found else as_json(404, {"error": f"nothing recorded for {_shape(path, body)}"})


def _shape(path: str, body: dict[str, Any]) -> tuple[object, ...]:
    streams = body.get("stream", path == NATIVE)
    form = body.get("format") or body.get("response_format")
    return path, body["model"], bool(body.get("tools")), streams, form.get("type") if isinstance(form, dict) else form


def test_model_without_tool_support_gets_tools():
    """Ollama itself rejects tools for SmolLM2; through our server it makes the call enforced by its schema."""
    with RecordedOllama() as upstream:
        upstream.on("/api/version", as_json(200, {"version": "0.0.0"}))
        fields: Any = {"model": "smollm2:135m", "messages": ASK, "tools": TOOLS, "tool_choice": "required"}
        with (
            connected(f"{upstream.url}/v1") as plain,
            pytest.raises(openai.BadRequestError, match="does not support tools"),
        ):
            plain.chat.completions.create(**fields)
        with serving(upstream.url) as url, connected(url) as client:
            (choice,) = client.chat.completions.create(**fields).choices
    assert [call.function.name for call in choice.message.tool_calls or ()] == ["read_file"]
    assert choice.finish_reason == "tool_calls"
