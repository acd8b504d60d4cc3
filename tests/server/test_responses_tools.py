"""Tools of the responses API other than functions, with the unmodified SDK: called, answered and sent back."""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any, get_args, get_origin, get_type_hints

import openai
import pytest
from openai.types.responses import ResponseInputItemParam

from adapter.protocols import openai_responses_request
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.request_body_parsing import MAX_TEXT
from adapter.protocols.translation_options import TranslationOptions
from tests.model_text import call
from tests.scripted_server import CHAT
from tests.server.clients import connected, streamed_and_whole
from tests.server.test_routes_responses import ask
from tests.server.test_serve import scripted_answer
from tests.serving import serving_here
from tests.workspace.files.test_read_file import make_pdf

READ = {
    "type": "function",
    "name": "read",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
}
TOOLS: list[Any] = [
    {"type": "namespace", "name": "mcp__files", "description": "Files.", "tools": [READ]},
    {"type": "custom", "name": "sql", "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}},
    {"type": "apply_patch"},
    {"type": "shell", "environment": {"type": "local"}},
    {"type": "local_shell"},
    {"type": "tool_search", "execution": "client", "description": "Find tools."},
    {"type": "web_search"},
]


CALLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "mcp__files__read": (
        {"path": "a.py"},
        {"type": "function_call", "name": "read", "namespace": "mcp__files", "arguments": '{"path": "a.py"}'},
    ),
    "sql": ({"input": "SELECT 1"}, {"type": "custom_tool_call", "name": "sql", "input": "SELECT 1"}),
    "apply_patch": (
        {"type": "update_file", "path": "a.py", "diff": "@@\n-x\n+y\n"},
        {
            "type": "apply_patch_call",
            "operation": {"type": "update_file", "path": "a.py", "diff": "@@\n-x\n+y\n"},
        },
    ),
    "shell": ({"command": "ls -l"}, {"type": "shell_call", "action": {"commands": ["ls -l"]}}),
    "local_shell": (
        {"command": "ls -l"},
        {"type": "local_shell_call", "action": {"type": "exec", "command": ["bash", "-lc", "ls -l"], "env": {}}},
    ),
    "tool_search": (
        {"query": "weather"},
        {"type": "tool_search_call", "execution": "client", "arguments": {"query": "weather"}},
    ),
}


@pytest.mark.parametrize("name", CALLS)
@streamed_and_whole
def test_call_becomes_client_item(client, upstream, name, stream):
    """The model gets its own text when the client sends the item back."""
    arguments, expected = CALLS[name]
    upstream.on(CHAT, scripted_answer(call(name, **arguments), "stop", stream), scripted_answer("Ok.", "stop", False))
    answer = ask(client, stream, tools=TOOLS)
    (item,) = answer.output
    shown = item.model_dump(exclude_none=True)
    assert {key: shown[key] for key in expected} == expected
    assert shown["call_id"]
    assert shown["status"] == "completed"
    result: Any = {"type": f"{shown['type']}_output", "call_id": shown["call_id"], "output": "fine"}
    if name == "shell":
        result["output"] = [{"stdout": "fine\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
    if name == "tool_search":
        found = {"type": "namespace", "name": "fine", "description": "-", "tools": [{**READ, "defer_loading": True}]}
        result |= {"type": "tool_search_output", "execution": "client", "status": "completed", "tools": [found]}
    back = [{"role": "user", "content": "Go."}, item.model_dump(exclude_none=True), result]
    ask(client, False, tools=TOOLS, input=back)
    *_, called, told = upstream.bodies()[-1]["messages"]
    written = json.loads(called["content"].split("\n")[1])
    assert (written["name"], written["arguments"]) == (name, arguments)
    assert "fine" in told["content"]


def test_unsupported_tools_are_dropped_and_reported(client, upstream):
    """In a response header."""
    upstream.on(CHAT, scripted_answer("Ok.", "stop", False))
    raw = client.responses.with_raw_response.create(
        model="m", input="Hi", tools=TOOLS, truncation="auto", text={"verbosity": "low"}
    )
    assert raw.headers["adapter-left-out"] == "tool web_search, truncation, text.verbosity"
    assert "adapter-left-out" not in client.responses.with_raw_response.create(model="m", input="Hi").headers


def test_namespaced_tool_can_be_forced(client, upstream):
    upstream.on(CHAT, scripted_answer(call("mcp__files__read", path="a"), "stop", False))
    ask(client, False, tools=TOOLS, tool_choice={"type": "function", "name": "read"})
    assert "Answer with a call to mcp__files__read." in upstream.bodies()[0]["messages"][-1]["content"]
    chosen: Any = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "shell"}]}
    ask(client, False, tools=TOOLS, tool_choice=chosen)
    assert "Answer with a call to shell." in upstream.bodies()[1]["messages"][-1]["content"]


def test_plain_file_text_becomes_diff(client, upstream):
    upstream.on(CHAT, scripted_answer(call("apply_patch", type="create_file", path="a", diff="x\ny\n"), "stop", False))
    (item,) = ask(client, False, tools=TOOLS).output
    assert item.operation.diff == "+x\n+y\n"


def test_text_file_is_included_and_others_rejected(client, upstream):
    upstream.on(CHAT, scripted_answer("Ok.", "stop", False))
    file = {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,SGVsbG8="}
    ask(client, False, input=[{"role": "user", "content": [file]}])
    assert upstream.bodies()[0]["messages"][-1]["content"] == "Document: a.txt\n\nHello"
    file = {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,SGVsbG8="}
    with pytest.raises(openai.BadRequestError, match=r"a\.pdf is a PDF that cannot be read"):
        ask(client, False, input=[{"role": "user", "content": [file]}])
    file = {"type": "input_file", "filename": "a.zip", "file_data": "data:application/zip;base64,SGVsbG8="}
    with pytest.raises(openai.BadRequestError, match=r"a\.zip of type 'application/zip', but only text"):
        ask(client, False, input=[{"role": "user", "content": [file]}])
    for kind, advice in (("input_file", "send its text"), ("input_image", "send its content as a data URL")):
        with pytest.raises(openai.BadRequestError, match=f"does not fetch; {advice}"):
            ask(client, False, input=[{"role": "user", "content": [{"type": kind, "file_id": "f"}]}])


@pytest.mark.parametrize("api", ["responses", "messages"])
def test_text_of_a_pdf_is_included(client, upstream, api):
    """Engines read no documents. The second request has it from the cache."""
    data = base64.b64encode(make_pdf("hello from a page")).decode()
    upstream.on(CHAT, scripted_answer("Ok.", "stop", False))
    for _ in range(2):
        if api == "responses":
            part = {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{data}"}
            ask(client, False, input=[{"role": "user", "content": [part]}])
        else:
            source = {"type": "base64", "media_type": "application/pdf", "data": data}
            message = {"role": "user", "content": [{"type": "document", "title": "a.pdf", "source": source}]}
            client.post("/messages", body={"model": "m", "max_tokens": 9, "messages": [message]}, cast_to=object)
        text = upstream.bodies()[-1]["messages"][-1]["content"]
        assert text == "Document: a.pdf\n\n--- page 1 of 1 ---\nhello from a page\n"


def test_number_of_pdfs_is_limited(client):
    part = {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,SGVsbG8="}
    with pytest.raises(openai.BadRequestError, match="at most 20 PDFs, got 21"):
        ask(client, False, input=[{"role": "user", "content": [part] * 21}])


def test_text_of_all_pdfs_is_limited(client):
    """It may be much longer than the PDFs, and is not part of the request's size."""
    data = base64.b64encode(make_pdf("a " * (MAX_TEXT // 2 - 1_000))).decode()
    part = {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{data}"}
    with pytest.raises(openai.BadRequestError, match="the PDFs contain more than 4,000,000 characters"):
        ask(client, False, input=[{"role": "user", "content": [part] * 2}])


def test_servers_of_one_process_read_pdfs_independently(upstream):
    """Each in the event loop of its own thread, several requests at a time."""
    upstream.on(CHAT, scripted_answer("Ok.", "stop", False))

    def send(url: str, number: int) -> None:
        data = base64.b64encode(make_pdf(f"page {number}")).decode()
        part = {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{data}"}
        with connected(f"{url}/v1") as client:
            ask(client, False, input=[{"role": "user", "content": [part]}])

    with serving_here(upstream.url) as one, serving_here(upstream.url) as two, ThreadPoolExecutor() as pool:
        list(pool.map(send, [one, two, one, two], range(4)))
    assert len(upstream.bodies()) == 4


def _kinds() -> list[str]:
    """All item types that the SDK can send."""
    found: list[str] = []
    for each in get_args(ResponseInputItemParam):
        hint = get_type_hints(each).get("type")
        while hint is not None and get_origin(hint) is not None and "Literal" not in str(get_origin(hint)):
            hint = get_args(hint)[0]
        found += [kind for kind in get_args(hint) if isinstance(kind, str)]
    return sorted(set(found))


def test_sdk_item_types_are_known():
    assert len(_kinds()) > 25


@pytest.mark.parametrize("kind", _kinds())
def test_every_sdk_item_is_accepted(kind):
    """Shown to the model or reported as dropped."""
    if kind == "item_reference":  # has been put in by then
        return
    dropped: list[str] = []
    item = {"type": kind, "id": "i", "call_id": "c", "role": "user", "content": "x", "name": "n", "arguments": "{}"}
    item |= {"output": "o", "input": "x", "tools": []}
    asked = openai_responses_request.convert_to_openai(
        {"input": [{"role": "user", "content": "Hi"}, item]}, dropped=dropped
    )
    assert len(asked["messages"]) > 1 or dropped == [f"item {kind}"] or kind == "reasoning"
    translate_chat_request(asked, TranslationOptions())


def test_deferred_tools_need_client_search():
    """Not before; tools that OpenAI's server would search are all described."""
    late = {"type": "namespace", "name": "late", "tools": [{**READ, "defer_loading": True}, {**READ, "name": "now"}]}

    def shown(execution: str, *items: Any) -> list[str]:
        tools = [{"type": "tool_search", "execution": execution}, late, {**READ, "name": "x", "defer_loading": True}]
        asked = openai_responses_request.convert_to_openai(
            {"input": [{"role": "user", "content": "Hi"}, *items], "tools": tools}
        )
        return list(translate_chat_request(asked, TranslationOptions()).tools)

    assert shown("client") == ["tool_search", "late__now"]
    found = {"type": "tool_search_output", "call_id": "c", "execution": "client", "tools": [late]}
    assert shown("client", found) == ["tool_search", "late__now", "late__read"]
    assert shown("server") == ["late__read", "late__now", "x"]
    assert shown("server", {**found, "call_id": None}) == ["late__read", "late__now", "x"]


def test_tools_introduced_later_can_be_called():
    later = {"type": "tool_search_output", "tools": [{**READ, "name": "write"}]}
    asked = openai_responses_request.convert_to_openai(
        {"input": [{"role": "user", "content": "Hi"}, later], "tools": [READ]}
    )
    assert list(translate_chat_request(asked, TranslationOptions()).tools) == ["read", "write"]
