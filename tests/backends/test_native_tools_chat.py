"""The server's own tool calling, where a profile says that it is best: by the agent, the server and the client."""

from __future__ import annotations

import json
from pathlib import Path

import openai
import pytest

from adapter import wrap
from adapter.agent.agent import Agent
from adapter.backends.chat_client import ChatClient
from adapter.backends.endpoint_discovery import Endpoint
from adapter.backends.native_tools_chat import NativeToolsChat
from adapter.backends.profiles import Model, Profile, ProfileSetup, path_of, save
from adapter.cli.run_settings import RunSettings
from adapter.cli.serve import serve
from adapter.cli.task_runner import run_task
from adapter.conversation.session import Finished
from adapter.core.errors import UsageError
from adapter.workspace import Workspace
from tests.scripted_server import CHAT, MODELS, ScriptedServer, as_json, as_stream, delta
from tests.server.test_wrap import ASK, CALL, TOOLS, completion
from tests.serving import serving

EDIT = {"path": "a.txt", "old_text": "one", "new_text": "two"}


def calling(name: str, arguments: str, finish_reason: str = "tool_calls"):
    """A streamed answer with one call, its arguments in pieces."""
    header = {"index": 0, "id": "c1", "type": "function", "function": {"name": name, "arguments": ""}}
    pieces = [arguments[start : start + 9] for start in range(0, len(arguments), 9)]
    rest = [delta(tool_calls=[{"index": 0, "function": {"arguments": piece}}]) for piece in pieces]
    return as_stream(delta("I fix it.", tool_calls=[header]), *rest, delta(finish_reason=finish_reason))


@pytest.fixture
def root(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("one\n", encoding="utf-8")
    return tmp_path / "work"


@pytest.fixture
def server(scripted: ScriptedServer, tmp_path, monkeypatch) -> ScriptedServer:
    """One model, ``m``, whose profile says: native."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    save(Profile(model=Model(name="m"), use=ProfileSetup(native=True)), path_of("m"))
    return scripted.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "m", "object": "model"}]}))


def run(server: ScriptedServer, root: Path) -> Finished:
    with ChatClient(Endpoint(f"{server.url}/v1"), "m") as chat, Workspace(root, approve="yolo") as workspace:
        return Agent(workspace, NativeToolsChat(chat, workspace.tools, "hermes"), style="native").run("Change it.")


def test_the_servers_calls_are_run(server, root):
    """The tools go with the request and stand nowhere else; the history is text in the model's format."""
    server.on(CHAT, calling("apply_edit", json.dumps(EDIT)), as_stream(delta("Done.", "stop")))
    assert run(server, root) == Finished("answered", "Done.")
    assert (root / "a.txt").read_text(encoding="utf-8") == "two\n"
    first, second = server.bodies()
    assert "apply_edit" in [tool["function"]["name"] for tool in first["tools"]]
    assert "old_text?" not in first["messages"][0]["content"]
    assert second["messages"][2]["content"].startswith("I fix it.\n<tool_call>")
    assert second["messages"][3]["content"].startswith("<tool_response>")


def test_a_call_that_the_server_left_in_the_text_is_run(server, root):
    """Its own parser missed it; ours does not."""
    text = f'<tool_call>\n{{"name": "apply_edit", "arguments": {json.dumps(EDIT)}}}\n</tool_call>'
    server.on(CHAT, as_stream(delta(text, "stop")), as_stream(delta("Done.", "stop")))
    assert run(server, root) == Finished("answered", "Done.")
    assert (root / "a.txt").read_text(encoding="utf-8") == "two\n"


@pytest.mark.parametrize("reason", ["length", "tool_calls"])
def test_a_call_with_broken_arguments_is_not_run(server, root, reason):
    """Cut off or garbled: the file stays, the model hears of it."""
    server.on(CHAT, calling("apply_edit", json.dumps(EDIT)[:-9], reason), as_stream(delta("Sorry.", "stop")))
    assert run(server, root) == Finished("answered", "Sorry.")
    assert (root / "a.txt").read_text(encoding="utf-8") == "one\n"
    assert "tool_error" in server.bodies()[1]["messages"][-1]["content"]


def test_run_uses_the_profile(server, root, capfd):
    """`adapter run` finds it by the model's name, says so, and sends the tools."""
    server.on(CHAT, calling("apply_edit", json.dumps(EDIT)), as_stream(delta("Done.", "stop")))
    assert run_task("Change it.", RunSettings(root, server.url, approve="yolo", profile="auto")) == 0
    assert (root / "a.txt").read_text(encoding="utf-8") == "two\n"
    assert "profile of m: server's own" in capfd.readouterr().err
    assert "tools" in server.bodies()[0]


@pytest.mark.parametrize("settings", [{"profile": "none"}, {"profile": "auto", "format": "mistral"}])
def test_what_the_user_says_comes_before_the_profile(server, root, settings):
    """Without a profile, or with a format of one's own, no tools are sent."""
    server.on(CHAT, as_stream(delta("Done.", "stop")))
    run_task("Change it.", RunSettings(root, server.url, approve="yolo", **settings))
    assert "tools" not in server.bodies()[0]


def test_serve_uses_the_profile(server):
    """The request goes as it came, and a call that stayed in the text is read."""
    server.on(CHAT, as_json(200, completion(CALL)))
    with serving(server.url) as url, openai.OpenAI(base_url=url, api_key="k") as client:
        answer = client.chat.completions.create(model="m", messages=ASK, tools=TOOLS)
    (call,) = answer.choices[0].message.tool_calls or []
    assert call.type == "function"
    assert call.function.name == "read_file"
    (body,) = server.bodies()
    assert body["tools"] == TOOLS
    assert body["messages"] == ASK


@pytest.mark.parametrize(("profile", "is_native"), [("auto", True), ("m", True), ("none", False)])
def test_wrap_uses_the_profile(server, profile, is_native):
    """By the model that a request names, by its own name, or not at all."""
    server.on(CHAT, as_json(200, completion(CALL)))
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="k") as client:
        answer = wrap(client, profile=profile).chat.completions.create(model="m", messages=ASK, tools=TOOLS)
    assert answer.choices[0].message.tool_calls
    assert ("tools" in server.bodies()[0]) is is_native


def test_a_profile_that_is_none_is_refused_at_the_start(server, root):
    """Before any model is asked, with the names of those there are."""
    for attempt in (
        lambda: run_task("Look.", RunSettings(root, server.url, profile="mm")),
        lambda: wrap(openai.OpenAI(base_url=server.url, api_key="k"), profile="mm"),
        lambda: serve(upstream=server.url, profile="mm"),
    ):
        with pytest.raises(UsageError, match="no profile 'mm'; there are: m"):
            attempt()
    assert server.requests == []
