"""Stored responses with the openai SDK: referenced by the next request, read and deleted."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import httpx
import openai
import pytest

from adapter import wrap
from tests.scripted_server import CHAT, ScriptedServer, as_json
from tests.server.clients import streamed_and_whole
from tests.server.test_routes_responses import TOOLS, ask
from tests.server.test_serve import scripted_answer
from tests.server.test_wrap import CALL, completion
from tests.serving import serving


def said(upstream: ScriptedServer) -> list[tuple[str, str]]:
    """Return the roles and texts of the last request to the model, without the tools."""
    return [
        (message["role"], str(message["content"]).split("\n\n# Tools")[0])
        for message in upstream.bodies()[-1]["messages"]
        if message["role"] != "system"
    ]


@pytest.mark.parametrize("way", ["served", "wrapped"])
@streamed_and_whole
def test_previous_response_is_continued(client, upstream, stream, way):
    """The client sends only the result with ``previous_response_id``, and the model gets the whole conversation; three
    turns."""
    if way == "wrapped":
        client = wrap(openai.OpenAI(base_url=f"{upstream.url}/v1", api_key="k", max_retries=0))
    upstream.on(CHAT, *(scripted_answer(text, "stop", stream) for text in (f"I look.\n{CALL}", "It is 1.", "Bye.")))
    first = ask(client, stream, input="Read a.py", instructions="Be brief.")
    (call,) = [item for item in first.output if item.type == "function_call"]
    output: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "x = 1"}]
    second = ask(client, stream, input=output, previous_response_id=first.id)
    assert second.previous_response_id == first.id
    assert said(upstream) == [
        ("user", "Read a.py"),
        ("assistant", f"I look.\n{CALL}"),
        ("user", "<tool_response>\nx = 1\n</tool_response>"),
    ]
    assert "Be brief." not in json.dumps(upstream.bodies()[-1])  # instructions are for one answer alone
    ask(client, stream, input="Thanks.", previous_response_id=second.id)
    assert said(upstream)[-2:] == [("assistant", "It is 1."), ("user", "Thanks.")]
    assert len(said(upstream)) == 5
    client.close()


@streamed_and_whole
def test_item_references_are_resolved(client, upstream, stream):
    """As the AI SDK does by default."""
    upstream.on(CHAT, scripted_answer(f"I look.\n{CALL}", "stop", stream), scripted_answer("Done.", "stop", stream))
    first = ask(client, stream)
    (call,) = [item for item in first.output if item.type == "function_call"]
    again: Any = [
        {"role": "user", "content": "Read a.py"},
        *({"type": "item_reference", "id": item.id} for item in first.output),
        {"type": "function_call_output", "call_id": call.call_id, "output": "x = 1"},
    ]
    assert ask(client, stream, input=again).output_text == "Done."
    assert said(upstream)[1] == ("assistant", f"I look.\n{CALL}")


@streamed_and_whole
def test_stored_response_can_be_read_and_deleted(client, upstream, stream):
    upstream.on(CHAT, scripted_answer(f"I look.\n{CALL}", "stop", stream))
    answer = ask(client, stream, metadata={"job": "7"})
    kept = client.responses.retrieve(answer.id)
    assert [item.id for item in kept.output] == [item.id for item in answer.output]
    assert [item.type for item in kept.output] == ["message", "function_call"]
    assert (kept.id, kept.status, kept.metadata) == (answer.id, "completed", {"job": "7"})
    (item,) = client.responses.input_items.list(answer.id)
    assert (item.type, item.content[0].text) == ("message", "Read a.py")
    client.responses.delete(answer.id)
    for gone in (client.responses.retrieve, client.responses.delete, client.responses.input_items.list):
        with pytest.raises(openai.NotFoundError, match="not found"):
            gone(answer.id)
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, stream, previous_response_id=answer.id)
    assert (caught.value.param, caught.value.code) == ("previous_response_id", "previous_response_not_found")


@streamed_and_whole
def test_store_false_is_honored(client, upstream, stream):
    upstream.on(CHAT, scripted_answer("Hi.", "stop", stream))
    answer = ask(client, stream, store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(answer.id)


def test_input_tokens_are_counted(client, upstream):
    bare = client.responses.input_tokens.count(model="m", input="Read a.py").input_tokens
    assert 3 < bare < 30
    assert client.responses.input_tokens.count(model="m", input="Read a.py", tools=TOOLS).input_tokens > bare + 50
    assert upstream.bodies() == []


def test_equal_requests_create_two_responses(client, upstream):
    upstream.on(CHAT, scripted_answer("Hi.", "stop", False))
    assert ask(client, False).id != ask(client, False).id


def test_conversation_collects_responses(client, upstream):
    """Create, use, list, update and delete it with the SDK."""
    upstream.on(CHAT, *(scripted_answer(text, "stop", False) for text in ("Hello Ada.", "You are Ada.")))
    begun = client.conversations.create(
        items=[{"type": "message", "role": "developer", "content": "Be kind."}], metadata={"for": "ada"}
    )
    assert ask(client, False, input="I am Ada.", conversation=begun.id).conversation.id == begun.id
    ask(client, False, input="Who am I?", conversation={"id": begun.id})
    assert said(upstream) == [("user", "I am Ada."), ("assistant", "Hello Ada."), ("user", "Who am I?")]
    listed = list(client.conversations.items.list(begun.id, order="asc", limit=2))  # three pages
    assert [item.role for item in listed] == ["developer", "user", "assistant", "user", "assistant"]
    assert client.conversations.items.retrieve(listed[1].id, conversation_id=begun.id).content[0].text == "I am Ada."
    client.conversations.items.delete(listed[1].id, conversation_id=begun.id)
    added = client.conversations.items.create(begun.id, items=[{"type": "message", "role": "user", "content": "Bye."}])
    assert added.data[0].id
    assert len(list(client.conversations.items.list(begun.id))) == 5
    assert client.conversations.update(begun.id, metadata={"for": "bob"}).metadata == {"for": "bob"}
    assert client.conversations.retrieve(begun.id).metadata == {"for": "bob"}
    assert client.conversations.delete(begun.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.conversations.retrieve(begun.id)
    with pytest.raises(openai.NotFoundError, match="never created, was deleted or has expired"):
        ask(client, False, input="Still there?", conversation=begun.id)


ITEMS: list[Any] = [
    {"role": "user", "content": "Hi"},
    {"role": "developer", "content": "Be brief."},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AA"}]},
    {"role": "assistant", "content": [{"type": "output_text", "text": "A dot."}]},
    {"type": "function_call", "call_id": "c1", "name": "read_file", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "x"},
    {"type": "custom_tool_call", "call_id": "c2", "name": "p", "input": "{}"},
    {"type": "custom_tool_call_output", "call_id": "c2", "output": "x", "status": None},
    {"type": "shell_call", "call_id": "c3", "action": {"commands": ["ls"]}},
    {"type": "shell_call_output", "call_id": "c3", "output": []},
]
"""Items as clients send them, without the fields that OpenAI's API adds."""


def test_stored_items_have_published_shape(client, upstream):
    upstream.on(CHAT, scripted_answer("Hi.", "stop", False))
    answer = client.responses.create(model="m", input=ITEMS)
    begun = client.conversations.create(items=ITEMS)
    strict = client.with_options(max_retries=0)
    strict._strict_response_validation = True
    assert len(strict.responses.input_items.list(answer.id, limit=99).data) == len(ITEMS)
    listed = strict.conversations.items.list(begun.id, limit=99).data
    assert len(listed) == len(ITEMS)
    assert strict.conversations.items.create(begun.id, items=ITEMS[:1]).data[0].content[0].text == "Hi"
    assert strict.conversations.items.retrieve(listed[-1].id, conversation_id=begun.id).status == "completed"


def test_invalid_conversation_requests_are_rejected(client):
    begun = client.conversations.create()
    with pytest.raises(openai.BadRequestError, match="at most 20"):
        client.conversations.items.create(begun.id, items=[{"role": "user", "content": "x"}] * 21)
    with pytest.raises(openai.BadRequestError, match="unknown type 'wrong'"):
        client.conversations.create(items=[{"type": "wrong"}])
    with pytest.raises(openai.BadRequestError, match="limit between 1 and 100"):
        client.conversations.items.list(begun.id, limit=0)


def test_store_file_outlives_server(tmp_path):
    """Without client keys and keys in conversations."""
    file, key = tmp_path / "answers.db", "sk-" + "a" * 40
    with ScriptedServer().on(CHAT, as_json(200, completion("Hello."))) as upstream:
        options = ("--store", str(file), "--api-key", "a-secret-of-ours")
        with serving(upstream.url + "/v1", *options) as url, _asking(url) as client:
            first = client.responses.create(model="m", input=f"My key is {key}.")
        with serving(upstream.url + "/v1", *options) as url, _asking(url) as client:
            client.responses.create(model="m", input="And?", previous_response_id=first.id, tools=TOOLS)
        asked = upstream.bodies()[-1]["messages"]
    assert [message["role"] for message in asked] == ["system", "user", "assistant", "user"]
    content = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert b"Hello." in content
    assert key.encode() not in content
    assert b"a-secret-of-ours" not in content
    assert file.stat().st_mode & 0o077 == 0


def _asking(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=url, api_key="a-secret-of-ours", max_retries=0)


def test_store_locked_by_another_program_is_an_error_in_json(upstream, tmp_path):
    file = tmp_path / "s.db"
    with serving(f"{upstream.url}/v1", "--store", str(file)) as url:
        assert httpx.get(f"{url}/responses/resp_x", timeout=30, trust_env=False).status_code == 404
        with sqlite3.connect(file) as other:
            other.execute("BEGIN EXCLUSIVE")
            response = httpx.post(f"{url}/conversations", json={}, timeout=30, trust_env=False)
            other.rollback()
        assert response.status_code == 503
        assert "stored responses are not accessible" in response.json()["error"]["message"]
        assert httpx.post(f"{url}/conversations", json={}, timeout=30, trust_env=False).status_code == 200
