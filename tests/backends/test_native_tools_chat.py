"""Native tool calling selected by a profile, in the agent, the server and the client."""

from __future__ import annotations

import json
from pathlib import Path

import openai
import pytest

from adapter import wrap
from adapter.agent.agent import Agent
from adapter.backends import stream_chunks
from adapter.backends.chat_client import ChatClient
from adapter.backends.endpoint_discovery import Endpoint
from adapter.backends.model_queries import Model
from adapter.backends.native_tools_chat import NativeToolsChat
from adapter.backends.probe_profiles import Profile, ProfileSetup, build_profile_path, save_profile
from adapter.cli.run_settings import RunSettings
from adapter.cli.run_task import run_task
from adapter.cli.serve import ServeSettings
from adapter.conversation.session_steps import Finished
from adapter.core.errors import TransportError, UsageError
from adapter.parsing.formats import get_format
from adapter.workspace import Workspace
from tests.scripted_server import CHAT, MODELS, ScriptedServer, as_json, as_stream, delta
from tests.server.test_wrap import ASK, CALL, TOOLS, completion
from tests.serving import serving

EDIT = {"path": "a.txt", "old_text": "one", "new_text": "two"}


FRAGMENT = {"index": 0, "function": {"name": "write_file", "arguments": "x" * 100}}


def calling(name: str, arguments: str, finish_reason: str = "tool_calls"):
    """A streamed answer with one call, whose arguments arrive in pieces."""
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
    """A server with one model ``m``, whose profile selects native tool calling."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    save_profile(Profile(model=Model(name="m"), use=ProfileSetup(native=True)), build_profile_path("m"))
    return scripted.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "m", "object": "model"}]}))


def run(server: ScriptedServer, root: Path) -> Finished:
    with ChatClient(Endpoint(f"{server.url}/v1"), "m") as chat, Workspace(root, approve="yolo") as workspace:
        return Agent(workspace, NativeToolsChat(chat, workspace.tools, "hermes"), style="native").run("Change it.")


def test_native_calls_are_run(server, root):
    """The tools are only in the request; the history is text in the model's format."""
    server.on(CHAT, calling("apply_edit", json.dumps(EDIT)), as_stream(delta("Done.", "stop")))
    assert run(server, root) == Finished("answered", "Done.")
    assert (root / "a.txt").read_text(encoding="utf-8") == "two\n"
    first, second = server.bodies()
    assert "apply_edit" in [tool["function"]["name"] for tool in first["tools"]]
    assert "old_text?" not in first["messages"][0]["content"]
    assert second["messages"][2]["content"].startswith("I fix it.\n<tool_call>")
    assert second["messages"][3]["content"].startswith("<tool_response>")


def test_unrequested_native_calls_are_run(server, root):
    """A server that always parses calls leaves no text of them. Their texts are in the history like written ones."""
    server.on(CHAT, calling("apply_edit", json.dumps(EDIT)), as_stream(delta("Done.", "stop")))
    assert run_task("Change it.", RunSettings(root, server.url, approve="yolo", profile="none")) == 0
    assert (root / "a.txt").read_text(encoding="utf-8") == "two\n"
    first, second = server.bodies()
    assert "tools" not in first
    assert second["messages"][2]["content"].startswith("I fix it.\n<tool_call>")


def test_call_missed_by_the_server_is_run(server, root):
    """Our parser finds a call that the server's missed."""
    text = f'<tool_call>\n{{"name": "apply_edit", "arguments": {json.dumps(EDIT)}}}\n</tool_call>'
    server.on(CHAT, as_stream(delta(text, "stop")), as_stream(delta("Done.", "stop")))
    assert run(server, root) == Finished("answered", "Done.")
    assert (root / "a.txt").read_text(encoding="utf-8") == "two\n"


@pytest.mark.parametrize("reason", ["length", "tool_calls"])
def test_call_with_malformed_arguments_is_not_run(server, root, reason):
    """The file is unchanged and the model gets the error."""
    server.on(CHAT, calling("apply_edit", json.dumps(EDIT)[:-9], reason), as_stream(delta("Sorry.", "stop")))
    assert run(server, root) == Finished("answered", "Sorry.")
    assert (root / "a.txt").read_text(encoding="utf-8") == "one\n"
    assert "tool_error" in server.bodies()[1]["messages"][-1]["content"]


@pytest.mark.parametrize("reason", ["length", "tool_calls"])
@pytest.mark.parametrize("cut", [-1, -5, 10_000])
def test_call_quoted_in_malformed_arguments_is_not_run(server, root, reason, cut):
    """Without the rest of the string that contains it, it would stand in the text."""
    quoted = f'<tool_call>\n{{"name": "apply_edit", "arguments": {json.dumps(EDIT)}}}\n</tool_call>\n'
    arguments = '{"path": "b.txt", "content": }\n</tool_call>\n' + quoted
    server.on(CHAT, calling("write_file", arguments[:cut], reason), as_stream(delta("Sorry.", "stop")))
    assert run(server, root) == Finished("answered", "Sorry.")
    assert (root / "a.txt").read_text(encoding="utf-8") == "one\n"


@pytest.mark.parametrize("calls", [5, [5, {}], {"a": 1}, [{"index": 0, "function": 5}], [{"function": {"name": 5}}]])
def test_calls_of_other_types_are_no_crash(server, root, calls):
    server.on(CHAT, as_stream(delta(tool_calls=calls), delta("Fine.", "stop")), as_stream(delta("Fine.", "stop")))
    assert run(server, root).reason == "answered"


@pytest.mark.parametrize("is_call", [False, True])
def test_answer_without_an_end_is_stopped(server, root, is_call, monkeypatch):
    monkeypatch.setattr(stream_chunks, "MAX_ANSWER_CHARACTERS", 5_000)
    texts = [f"{number * 7919 % 10_007:x} {number * 104_729 % 9_973:x} " * 9 for number in range(200)]
    server.on(CHAT, as_stream(*[delta(tool_calls=[FRAGMENT]) if is_call else delta(text) for text in texts]))
    with pytest.raises(TransportError, match="more than 5,000 characters"):
        run(server, root)


def test_run_uses_the_profile(server, root, capfd):
    """`adapter run` finds the profile by the model's name, reports it, and sends the tools."""
    server.on(CHAT, calling("apply_edit", json.dumps(EDIT)), as_stream(delta("Done.", "stop")))
    assert run_task("Change it.", RunSettings(root, server.url, approve="yolo", profile="auto")) == 0
    assert (root / "a.txt").read_text(encoding="utf-8") == "two\n"
    assert "profile of m: server's own" in capfd.readouterr().err
    assert "tools" in server.bodies()[0]


@pytest.mark.parametrize("settings", [{"profile": "none"}, {"profile": "auto", "format": "mistral"}])
def test_explicit_settings_override_the_profile(server, root, settings):
    """Without a profile, or with an explicit format, no tools are sent."""
    server.on(CHAT, as_stream(delta("Done.", "stop")))
    run_task("Change it.", RunSettings(root, server.url, approve="yolo", **settings))
    assert "tools" not in server.bodies()[0]


def test_serve_uses_the_profile(server):
    """The request is passed through, and a call in the text is parsed."""
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
    """It is selected by the request's model, by name, or not at all."""
    server.on(CHAT, as_json(200, completion(CALL)))
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="k") as client:
        answer = wrap(client, profile=profile).chat.completions.create(model="m", messages=ASK, tools=TOOLS)
    assert answer.choices[0].message.tool_calls
    assert ("tools" in server.bodies()[0]) is is_native


def test_unknown_profile_is_rejected_at_start(server, root):
    """Before the first query, with the names of existing profiles."""
    for attempt in (
        lambda: run_task("Look.", RunSettings(root, server.url, profile="mm")),
        lambda: wrap(openai.OpenAI(base_url=server.url, api_key="k"), profile="mm"),
        lambda: ServeSettings(upstream=server.url, profile="mm").build_server_settings(),
    ):
        with pytest.raises(UsageError, match="unknown profile 'mm'; existing profiles: m"):
            attempt()
    assert server.requests == []


def test_calls_with_ids_that_share_an_index_are_separate(server, root):
    """Ollama gives all calls of an answer the index 0."""
    calls = [
        {
            "index": 0,
            "id": f"c{name}",
            "type": "function",
            "function": {"name": "write_file", "arguments": json.dumps({"path": name, "content": "x"})},
        }
        for name in ("b.txt", "c.txt")
    ]
    server.on(
        CHAT, as_stream(delta(tool_calls=calls), delta(finish_reason="tool_calls")), as_stream(delta("Done.", "stop"))
    )
    assert run(server, root) == Finished("answered", "Done.")
    assert sorted(path.name for path in root.iterdir()) == ["a.txt", "b.txt", "c.txt"]


def test_reasoning_precedes_calls_in_the_same_chunk():
    """As in the only chunk of a server that does not stream."""
    call = {"index": 0, "function": {"name": "write_file", "arguments": "{}"}}
    chunk = stream_chunks.parse_chunk(delta("Now.", "tool_calls", reasoning_content="I write it.", tool_calls=[call]))
    first, last = stream_chunks.NativeCallWriter(get_format("hermes")).convert(chunk)
    assert (first.reasoning, first.text.startswith("Now.\n<tool_call>")) == ("I write it.", True)
    assert (last.reasoning, last.text, last.finish_reason) == ("", "", "stop")
