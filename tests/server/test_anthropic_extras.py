"""Anthropic's unmodified SDK: threads, documents, structured output, client tools and token counting."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter

from adapter.server.token_counting import estimate_prompt_tokens
from tests.model_text import call
from tests.scripted_server import CHAT, Reply, ScriptedServer, as_json, as_stream, delta
from tests.server.clients import streamed_and_whole
from tests.server.test_serve_anthropic import ASK, OFFERED, ask, says
from tests.server.test_wrap import completion
from tests.serving import serving


@pytest.fixture
def client(anthropic: Any, shared: tuple[ScriptedServer, str]) -> Iterator[Any]:
    with anthropic.Anthropic(base_url=shared[1].removesuffix("/v1"), api_key="k", max_retries=0) as client:
        yield client


def shown(upstream: ScriptedServer) -> str:
    return json.dumps(upstream.bodies()[-1]["messages"], ensure_ascii=False)


def test_tool_runner_continues_without_threads(anthropic, client, upstream):
    """The first request asks for a thread and is rejected; then the SDK sends the whole conversation."""

    @anthropic.beta_tool  # type: ignore[untyped-decorator]
    def add(a: int, b: int) -> str:
        """Add two numbers.

        Args:
            a: One.
            b: Another.
        """
        return str(a + b)

    upstream.on(CHAT, says(call("add", a=2, b=3), False), says("It is 5.", False))
    runner = client.beta.messages.tool_runner(
        model="m", max_tokens=99, tools=[add], messages=[{"role": "user", "content": "2 + 3?"}]
    )
    assert runner.until_done().content[0].text == "It is 5."
    first, second = upstream.bodies()
    assert "<tool_response>\n5\n</tool_response>" in second["messages"][-1]["content"]
    assert len(second["messages"]) == len(first["messages"]) + 2


def test_sdk_memory_tool_works(client, upstream, tmp_path):
    """Its published parameters are described to the model; the client runs it."""
    from anthropic.tools import BetaLocalFilesystemMemoryTool

    memory = BetaLocalFilesystemMemoryTool(base_path=str(tmp_path))
    written = call("memory", command="create", path="/memories/a.md", file_text="Blue.")
    upstream.on(CHAT, says(written, False), says("Noted.", False))
    runner = client.beta.messages.tool_runner(
        model="m", max_tokens=99, tools=[memory], messages=[{"role": "user", "content": "Remember blue."}]
    )
    assert runner.until_done().content[0].text == "Noted."
    (file,) = tmp_path.rglob("a.md")
    assert file.read_text() == "Blue."
    assert "in /memories" in json.dumps(upstream.bodies()[0]["messages"][0])


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ({"type": "bash_20250124", "name": "bash"}, {"command": "ls"}, "keeps its state"),
        ({"type": "text_editor_20250124", "name": "str_replace_editor"}, {"command": "view", "path": "a"}, "undo_edit"),
        (
            {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 9},
            {"command": "insert", "path": "a", "insert_line": 0, "insert_text": "x"},
            "insert_text",
        ),
    ],
)
@streamed_and_whole
def test_client_tools_are_called(client, upstream, tool, arguments, expected, stream):
    upstream.on(CHAT, says(call(tool["name"], **arguments), stream))
    (block,) = ask(client, stream, tools=[tool]).content
    assert (block.name, block.input) == (tool["name"], arguments)
    assert expected in shown(upstream)


def test_documents_and_search_results_are_included(client, upstream):
    """In user messages and tool results."""
    upstream.on(CHAT, says("Ok.", False))
    text = {"type": "document", "title": "Plan", "source": {"type": "text", "media_type": "text/plain", "data": "Go."}}
    encoded = {"type": "document", "source": {"type": "base64", "media_type": "text/csv", "data": "YSxi"}}
    found = {"type": "search_result", "source": "https://a.b", "title": "A", "content": [{"type": "text", "text": "x"}]}
    parts = {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "inner"}]}}
    called = {"type": "tool_use", "id": "c", "name": "read_file", "input": {"path": "a"}}
    history = [
        {"role": "user", "content": [text, encoded]},
        {"role": "assistant", "content": [called]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [found, parts]}]},
    ]
    ask(client, False, messages=history)
    said = upstream.bodies()[0]["messages"]
    assert said[1]["content"] == "Document: Plan\n\nGo.\na,b"
    assert "Document: A\nSource: https://a.b\n\nx\ninner" in said[-1]["content"]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}, "is a PDF that cannot be read"),
        ({"type": "base64", "media_type": "text/plain", "data": "/w=="}, "not valid UTF-8 text in base64"),
        (
            {"type": "url", "url": "https://a.b/c.pdf"},
            "a document URL or an uploaded document, which this server does not fetch",
        ),
        ({"type": "file", "file_id": "f"}, "does not fetch; send its text"),
    ],
)
def test_unsupported_documents_are_rejected(anthropic, client, upstream, source, why):
    with pytest.raises(anthropic.BadRequestError, match=why):
        ask(client, False, messages=[{"role": "user", "content": [{"type": "document", "source": source}]}])
    assert upstream.bodies() == []


def test_structured_output_is_forwarded(client, upstream):
    """As the response format of a chat; the SDK reads it."""
    from pydantic import BaseModel

    class Page(BaseModel):
        title: str

    upstream.on(CHAT, as_json(200, completion('{"title": "Adapter"}')))
    answer = client.messages.parse(model="m", max_tokens=9, messages=ASK, output_format=Page)
    assert answer.parsed_output == Page(title="Adapter")
    assert upstream.bodies()[0]["response_format"]["json_schema"]["schema"]["properties"]["title"]


@pytest.mark.parametrize(("said", "thinks"), [("disabled", False), ("enabled", True), ("adaptive", None)])
def test_thinking_is_forwarded(client, upstream, said, thinks):
    upstream.on(CHAT, says("Ok.", False))
    thinking = {"type": said} | ({"budget_tokens": 1024} if thinks else {})
    raw = client.messages.with_raw_response.create(
        model="m", max_tokens=9999, messages=ASK, thinking=thinking, output_config={"effort": "max"}
    )
    body = upstream.bodies()[0]
    assert body.get("chat_template_kwargs") == (None if thinks is None else {"enable_thinking": thinks})
    assert body.get("reasoning_effort") == (None if thinks is False else "high")
    assert raw.headers.get("adapter-left-out") is None
    assert raw.headers.get("adapter-reasoning") == ("budget=1024" if thinks else None)


def test_unsupported_fields_are_dropped_and_reported(client, upstream):
    upstream.on(CHAT, says("Ok.", False))
    blocks = [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, {"type": "text", "text": "Hm"}]
    raw = client.messages.with_raw_response.create(
        model="m",
        max_tokens=9,
        messages=[*ASK, {"role": "assistant", "content": blocks}, *ASK],
        tools=OFFERED,
        metadata={"user_id": "u"},
    )
    assert raw.headers["adapter-left-out"] == "metadata, block server_tool_use, tool web_search_20250305"


def deferred(name: str) -> dict[str, Any]:
    return {"name": name, "description": f"Does {name}.", "input_schema": SCHEMA, "defer_loading": True}


SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
SEARCH: dict[str, Any] = {"name": "ToolSearch", "description": "Finds tools.", "input_schema": SCHEMA}


def described(upstream: ScriptedServer) -> list[str]:
    lines = upstream.bodies()[-1]["messages"][0]["content"].splitlines()
    return [json.loads(line)["function"]["name"] for line in lines if line.startswith('{"type": "function"')]


def test_deferred_tool_is_available_after_reference(client, upstream):
    """As Claude Code sends them: its own search answers with references, and the tools wait among the others."""
    tools = [SEARCH, deferred("TaskList"), deferred("Placeholder")]
    upstream.on(CHAT, says(call("ToolSearch"), False), says(call("TaskList"), False))
    first = client.beta.messages.create(model="m", max_tokens=9, messages=ASK, tools=tools)
    assert described(upstream) == ["ToolSearch"]
    found = {"type": "tool_result", "tool_use_id": first.content[0].id,
             "content": [{"type": "tool_reference", "tool_name": "TaskList"}]}  # fmt: skip
    talk = [*ASK, {"role": "assistant", "content": first.content}, {"role": "user", "content": [found]}]
    raw = client.beta.messages.with_raw_response.create(model="m", max_tokens=9, messages=talk, tools=tools)
    assert described(upstream) == ["ToolSearch", "TaskList"]
    assert "<tool_response>\\nThe tool TaskList can be called from here on." in shown(upstream)
    assert raw.parse().content[0].name == "TaskList"
    assert "adapter-left-out" not in raw.headers


def test_server_searched_tools_are_all_available(client, upstream):
    upstream.on(CHAT, says("Ok.", False))
    search = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
    client.beta.messages.create(model="m", max_tokens=9, messages=ASK, tools=[search, deferred("a"), deferred("b")])
    assert described(upstream) == ["a", "b"]


def test_messages_add_and_remove_tools(client, upstream):
    upstream.on(CHAT, says("Ok.", False))
    named = [{"type": "tool_reference", "name": name} for name in ("a", "ToolSearch")]
    inline = {"type": "tool_definition", "definition": {**SEARCH, "name": "c"}}
    changes = [
        {"type": "tool_addition", "tool": named[0]},
        {"type": "tool_removal", "tool": named[1]},
        {"type": "tool_addition", "tool": inline},
    ]
    talk = [*ASK, {"role": "assistant", "content": "Hm."}, {"role": "system", "content": changes}, *ASK]
    client.beta.messages.create(model="m", max_tokens=9, messages=talk, tools=[SEARCH, deferred("a"), deferred("b")])
    assert described(upstream) == ["a", "c"]
    assert "The tool ToolSearch can no longer be called." in shown(upstream)


def test_count_tokens_uses_final_prompt(client, upstream):
    """About, for a server without a tokenizer; with the tools, which are most of it."""
    bare = client.messages.count_tokens(model="m", messages=ASK).input_tokens
    assert 3 < bare < 30
    assert client.messages.count_tokens(model="m", messages=ASK, tools=OFFERED).input_tokens > bare + 50
    assert upstream.bodies() == []


def test_long_prompt_is_estimated_from_its_beginning():
    short = estimate_prompt_tokens({"messages": [{"role": "user", "content": "word " * 1_000}]})
    long = estimate_prompt_tokens({"messages": [{"role": "user", "content": "word " * 100_000}]})
    assert 800 < short < 1_300
    assert 95 < long / short < 105


def test_stream_starts_with_prompt_tokens(client, upstream):
    """About; its end has the server's figure."""
    upstream.on(CHAT, says("Ok.", True))
    counted = client.messages.count_tokens(model="m", messages=ASK, tools=OFFERED).input_tokens
    events = list(client.messages.create(model="m", max_tokens=9, messages=ASK, tools=OFFERED, stream=True))
    assert events[0].message.usage.input_tokens == counted
    assert [event.usage.input_tokens for event in events if event.type == "message_delta"] == [5]


def test_llama_cpp_reports_prompt_tokens(anthropic):
    """With the template, then the tokenizer; and the length of the prompt before an answer."""
    progress = {**delta(), "prompt_progress": {"total": 77, "cache": 0, "processed": 7}}
    stream = as_stream(progress, delta("Ok."), delta(finish_reason="stop"))
    server = ScriptedServer().on("/props", as_json(200, {"model_path": "/m/qwen3.gguf"}, server="llama.cpp"))
    server.on("/apply-template", as_json(200, {"prompt": "<|im_start|>user"})).on(CHAT, stream)
    server.on("/tokenize", as_json(200, {"tokens": [1, 2, 3]})).on("/v1/models", _models())
    with server, serving(server.url, "--prompt", "words") as url:
        client = anthropic.Anthropic(base_url=url.removesuffix("/v1"), api_key="k", max_retries=0)
        assert client.messages.count_tokens(model="m", messages=ASK, tools=OFFERED).input_tokens == 3
        (asked,) = server.bodies("/apply-template")
        assert "# Tools" in asked["messages"][0]["content"]
        assert server.bodies("/tokenize") == [
            {"content": "<|im_start|>user", "add_special": True, "parse_special": True}
        ]
        first, *_ = client.messages.create(model="m", max_tokens=9, messages=ASK, tools=OFFERED, stream=True)
        assert first.message.usage.input_tokens == 77
        assert server.bodies()[0]["return_progress"] is True
        client.close()


def _models() -> Reply:
    return as_json(200, {"data": [{"id": "m", "owned_by": "llamacpp"}]}, server="llama.cpp")


@pytest.mark.model
def test_real_llama_cpp_count_matches_usage(anthropic, random_engine):
    """count_tokens, message_start and the end agree. The end counts the tokens in the engine's cache separately."""
    with serving(random_engine.endpoint.base_url, "--constraint", "off") as url:
        client = anthropic.Anthropic(base_url=url.removesuffix("/v1"), api_key="k", max_retries=0)
        counted = client.messages.count_tokens(model="m", messages=ASK, tools=OFFERED).input_tokens
        for cached in (0, 1):  # the second time, the engine has the prompt in its cache
            events = list(client.messages.create(model="m", max_tokens=3, messages=ASK, tools=OFFERED, stream=True))
            (usage,) = (event.usage for event in events if event.type == "message_delta")
            ended = usage.input_tokens + (usage.cache_read_input_tokens or 0)
            assert (events[0].message.usage.input_tokens, ended) == (counted, counted)
            assert (usage.cache_read_input_tokens or 0) >= cached
        client.close()
    assert counted > 20


def test_models_are_listed_for_the_sdk(client, upstream):
    upstream.on("/v1/models", as_json(200, {"data": [{"id": "org/m:7b", "created": 1_700_000_000}]}))
    (listed,) = client.models.list().data
    assert client.models.retrieve("org/m:7b") == listed
    check = TypeAdapter(type(listed)).validate_python
    check(listed.model_dump(), strict=True)
    assert (listed.id, listed.display_name, listed.created_at.year) == ("org/m:7b", "org/m:7b", 2023)
