"""Check answers against the APIs' published shapes: no field is missing or has a wrong type.

The types come from the SDKs, in pydantic's strict mode. The tables here name the fields that each API promises:
OpenAI's OpenAPI document, the specification of Open Responses, Anthropic's and Ollama's references.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from pydantic import TypeAdapter

USAGE = ("prompt_tokens", "completion_tokens", "total_tokens")
CHAT = ("id", "object", "created", "model", "choices")
RESPONSE = (
    *("id", "object", "created_at", "completed_at", "status", "incomplete_details", "model", "previous_response_id"),
    *("instructions", "output", "error", "tools", "tool_choice", "truncation", "parallel_tool_calls", "text", "top_p"),
    *("presence_penalty", "frequency_penalty", "top_logprobs", "temperature", "reasoning", "user", "usage"),
    *("max_output_tokens", "max_tool_calls", "store", "background", "service_tier", "metadata", "safety_identifier"),
    "prompt_cache_key",
)
MAY_BE_NULL = {
    *("completed_at", "incomplete_details", "previous_response_id", "instructions", "error", "reasoning", "usage"),
    *("user", "max_output_tokens", "max_tool_calls", "safety_identifier", "prompt_cache_key"),
}
MESSAGE = ("id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage")
OLLAMA_END = (
    *("done_reason", "total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count"),
    "eval_duration",
)


def require(value: Any, names: Iterable[str], nullable: Iterable[str] | None = None) -> None:
    """Fail if a field is missing, or is null although the API does not allow it."""
    missing = [name for name in names if name not in value]
    assert not missing, f"{missing} missing in {json.dumps(value)[:400]}"
    null = [key for key, each in value.items() if each is None and nullable is not None and key not in nullable]
    assert not null, f"{null} null in {json.dumps(value)[:400]}"


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    import anthropic.types
    import ollama
    import openai.types.chat
    import openai.types.responses

    types: dict[str, Any] = {
        "chat": openai.types.chat.ChatCompletion,
        "chunk": openai.types.chat.ChatCompletionChunk,
        "response": openai.types.responses.Response,
        "response event": openai.types.responses.ResponseStreamEvent,
        "message": anthropic.types.Message,
        "message event": anthropic.types.RawMessageStreamEvent,
        "/api/chat": ollama.ChatResponse,
        "/api/generate": ollama.GenerateResponse,
    }
    return TypeAdapter(types[name])


def _typed(name: str, value: Any) -> None:
    _adapter(name).validate_json(json.dumps(value), strict=True)


def check_chat(answer: Any) -> None:
    _typed("chat", answer)
    require(answer, CHAT, ())
    assert answer["id"].startswith("chatcmpl-")
    for choice in answer["choices"]:
        assert choice.keys() >= {"index", "message", "logprobs", "finish_reason"}
        assert not choice.keys() & {"delta", "text"}
        require(choice, (), ["logprobs"])
        require(choice["message"], ("role", "content", "refusal"), ("content", "refusal"))
    if "usage" in answer:
        require(answer["usage"], USAGE, ())


def check_chat_stream(chunks: Sequence[Any], *, wants_usage: bool) -> None:
    for chunk in chunks:
        _typed("chunk", chunk)
        require(chunk, CHAT, ())
        for choice in chunk["choices"]:
            require(choice, ("index", "delta", "finish_reason"), ("finish_reason", "logprobs"))
    assert len({(each["id"], each["created"], each["model"], each["object"]) for each in chunks}) == 1
    assert all(chunks[0][key] for key in ("id", "object", "created", "model"))
    *_, last = chunks
    *before, finish = [each for each in chunks if each["choices"]]
    assert finish["choices"][0]["finish_reason"]
    assert not any(each["choices"][0]["finish_reason"] for each in before)
    assert [each for each in chunks if "usage" in each] == ([last] if wants_usage else [])
    assert bool(last["choices"]) is not wants_usage


def check_response(answer: Any) -> None:
    _typed("response", answer)
    require(answer, RESPONSE, MAY_BE_NULL)
    assert (answer["completed_at"] is not None) is (answer["status"] == "completed")
    for item in answer["output"]:
        require(item, ("id", "type"))
    for tool in answer["tools"]:
        if tool["type"] == "function":
            require(tool, ("name", "description", "parameters", "strict"))
    if answer["usage"]:
        require(answer["usage"]["input_tokens_details"], ("cached_tokens", "cache_write_tokens"), ())
        require(answer["usage"]["output_tokens_details"], ("reasoning_tokens",), ())


def check_response_stream(events: Sequence[Any]) -> Any:
    """Return the last response. Each delta belongs to a content part and an item that are open."""
    open_items: dict[str, Any] = {}
    open_parts: set[tuple[str, int]] = set()
    for number, event in enumerate(events):
        _typed("response event", event)
        assert event["sequence_number"] == number
        kind = event["type"]
        if "response" in event:
            check_response(event["response"])
        elif kind == "response.output_item.added":
            open_items[event["item"]["id"]] = event["item"]
        elif kind == "response.output_item.done":
            del open_items[event["item"]["id"]]
        else:
            assert event["item_id"] in open_items, kind
        if kind == "response.content_part.added":
            open_parts.add((event["item_id"], event["content_index"]))
        elif kind == "response.content_part.done":
            open_parts.remove((event["item_id"], event["content_index"]))
        elif "content_index" in event:
            assert (event["item_id"], event["content_index"]) in open_parts, kind
    assert not open_items
    assert not open_parts
    assert [each["type"] for each in events[:2]] == ["response.created", "response.in_progress"]
    done = [each["item"] for each in events if each["type"] == "response.output_item.done"]
    assert done == events[-1]["response"]["output"]
    return events[-1]["response"]


def check_message(answer: Any) -> None:
    _typed("message", answer)
    require(answer, MESSAGE)
    assert answer["stop_reason"]
    _check_tokens(answer["usage"])


def _check_tokens(usage: Any) -> None:
    require(usage, ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"), ())


def check_message_stream(events: Sequence[Any]) -> None:
    opened: list[int] = []
    for event in events:
        _typed("message event", event)
        match event["type"]:
            case "content_block_start":
                assert event["index"] == len(opened)
                opened.append(event["index"])
            case "content_block_delta" | "content_block_stop":
                assert event["index"] == opened[-1]
    assert events[0]["type"] == "message_start"
    require(events[0]["message"], MESSAGE)
    assert [each["type"] for each in events[-2:]] == ["message_delta", "message_stop"]
    _check_tokens(events[-2]["usage"])


def check_ollama(path: str, lines: Sequence[Any]) -> None:
    for line in lines:
        _typed(path, line)
        require(line, ("model", "created_at", "done", "message" if path == "/api/chat" else "response"), ())
    assert [each["done"] for each in lines] == [False] * (len(lines) - 1) + [True]
    require(lines[-1], OLLAMA_END, ())
