"""Custom tools and legacy functions with the unmodified SDK."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.scripted_server import CHAT, ScriptedServer, as_json, as_stream, delta
from tests.server.clients import connected
from tests.server.test_wrap import ASK, CALL, TOOLS, completion
from tests.serving import serving

FUNCTION = TOOLS[0]["function"]
GRAMMAR = {"type": "grammar", "grammar": {"syntax": "lark", "definition": 'start: "SELECT" /.+/'}}
SQL = {"type": "custom", "custom": {"name": "sql", "description": "Runs a query.", "format": GRAMMAR}}
QUERY = 'SELECT "a"\nFROM b'
SQL_CALL = f"<tool_call>\n{json.dumps({'name': 'sql', 'arguments': {'input': QUERY}})}\n</tool_call>"


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[ScriptedServer, openai.OpenAI]]:
    with ScriptedServer() as upstream, serving(upstream.url, "--stream-arguments") as url, connected(url) as client:
        yield upstream, client


@pytest.fixture
def upstream(shared: tuple[ScriptedServer, openai.OpenAI]) -> ScriptedServer:
    shared[0].replies.clear()
    shared[0].requests.clear()
    return shared[0]


@pytest.fixture
def client(shared: tuple[ScriptedServer, openai.OpenAI]) -> openai.OpenAI:
    return shared[1]


def ask(client: openai.OpenAI, upstream: ScriptedServer, text: str, stream: bool, **fields: Any) -> Any:
    """Return the last finish reason and the calls of a buffered or streamed answer, as dicts."""
    upstream.on(
        CHAT, as_stream(*map(delta, text), delta(finish_reason="stop")) if stream else as_json(200, completion(text))
    )
    given: Any = client.chat.completions.create(
        model="m", messages=fields.pop("messages", ASK), stream=stream, **fields
    )
    if not stream:
        message = given.choices[0].message.model_dump(exclude_none=True)
        return given.choices[0].finish_reason, message.get("function_call") or message.get("tool_calls")
    reason = None
    calls: list[Any] = []
    for chunk in given:
        shown = chunk.choices[0].delta.model_dump(exclude_none=True)
        calls += [shown["function_call"]] if shown.get("function_call") else shown.get("tool_calls") or []
        reason = chunk.choices[0].finish_reason or reason
    return reason, calls


both = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


@both
def test_custom_tool_is_called_with_text(client, upstream, stream):
    """Next to a function; the grammar is described to the model."""
    reason, calls = ask(client, upstream, SQL_CALL + CALL, stream, tools=[SQL, *TOOLS])
    assert reason == "tool_calls"
    (first, second) = ({key: call[key] for key in call if key not in ("id", "index")} for call in calls)
    assert first == {"type": "custom", "custom": {"name": "sql", "input": QUERY}}
    assert (second["type"], second["function"]["name"]) == ("function", "read_file")
    said = json.dumps(upstream.bodies()[0]["messages"])
    assert "SELECT" in said
    assert "grammar (lark)" in said


def test_past_custom_call_is_shown_with_result(client, upstream):
    call = {"id": "c", "type": "custom", "custom": {"name": "sql", "input": QUERY}}
    messages = [
        *ASK,
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "7"},
    ]
    assert ask(client, upstream, "Seven.", False, messages=messages, tools=[SQL])[0] == "stop"
    shown = upstream.bodies()[0]["messages"][-2:]
    assert json.loads(shown[0]["content"].split("\n")[1]) == {"name": "sql", "arguments": {"input": QUERY}}
    assert "7" in shown[1]["content"]


def test_custom_tool_can_be_forced(client, upstream):
    choice = {"type": "custom", "custom": {"name": "sql"}}
    ask(client, upstream, SQL_CALL, False, tools=[SQL, *TOOLS], tool_choice=choice)
    assert "Answer with a call to sql." in upstream.bodies()[0]["messages"][-1]["content"]


@both
def test_legacy_functions_return_function_call(client, upstream, stream):
    """One call per answer, as ``function_call``; legacy fields are not forwarded."""
    reason, called = ask(client, upstream, CALL + CALL, stream, functions=[FUNCTION])
    call = called[0] if stream else called
    assert (reason, call["name"], json.loads(call["arguments"])) == ("function_call", "read_file", {"path": "a.py"})
    assert not stream or len(called) == 1
    (body,) = upstream.bodies()
    assert not {"functions", "function_call", "tools"} & body.keys()


def test_legacy_conversation_continues(client, upstream):
    call = {"name": "read_file", "arguments": '{"path": "a.py"}'}
    messages = [
        *ASK,
        {"role": "assistant", "content": None, "function_call": call},
        {"role": "function", "name": "read_file", "content": "x = 1"},
    ]
    reason, called = ask(client, upstream, "It sets x.", False, messages=messages, functions=[FUNCTION])
    assert (reason, called) == ("stop", None)
    shown = upstream.bodies()[0]["messages"][-2:]
    assert '"name": "read_file"' in shown[0]["content"]
    assert "x = 1" in shown[1]["content"]


@pytest.mark.parametrize(("choice", "said"), [("none", ""), ({"name": "read_file"}, "Answer with a call to")])
def test_legacy_function_call_selects_tool(client, upstream, choice, said):
    reason, called = ask(client, upstream, "No.", False, functions=[FUNCTION], function_call=choice)
    assert (reason, called) == ("stop", None)
    assert said in upstream.bodies()[0]["messages"][-1]["content"]


def test_routes_work_without_version_prefix(client, upstream):
    upstream.on(CHAT, as_json(200, completion("Hi.")))
    bare = client.with_options(base_url=str(client.base_url).removesuffix("v1/"))
    assert bare.responses.create(model="m", input="Hello").output_text == "Hi."
    assert bare.chat.completions.create(model="m", messages=ASK, tools=TOOLS).choices[0].message.content == "Hi."
