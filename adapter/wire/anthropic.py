"""Anthropic's messages (``/v1/messages``) as OpenAI's chat completions, and back.

Source: https://docs.anthropic.com/en/api/messages and its streaming page. Differences: the system
prompt stands apart, a message is a list of blocks, results are blocks of the user, and a stream
opens and closes each block.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adapter.values.events import Json, JsonObject
from adapter.wire.errors import RequestError, checked_as, is_error, objects_in
from adapter.wire.sse import as_event
from adapter.wire.watching import EXTENSION

SAME = ("model", "max_tokens", "temperature", "top_p", "top_k", "stream")

STOP_REASONS = {"tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


def as_openai(body: JsonObject) -> JsonObject:
    """The request as OpenAI's. Raises RequestError for messages that are none."""
    messages = checked_as(list, body.get("messages"), "messages")
    request: JsonObject = {name: body[name] for name in (*SAME, EXTENSION) if name in body}
    request["messages"] = [message for each in messages for message in _messages(each)]
    if body.get("system"):
        request["messages"].insert(0, {"role": "system", "content": _text(body["system"])})
    if body.get("stop_sequences"):
        request["stop"] = body["stop_sequences"]
    if body.get("stream"):
        request["stream_options"] = {"include_usage": True}
    # Tools of a type of their own (web search, computer use) are run by Anthropic's servers: nobody here could.
    tools = [tool for tool in objects_in(body.get("tools"), "tools") if tool.get("type", "custom") == "custom"]
    if tools:
        request["tools"] = [{key: tool[key] for key in tool if key != "type"} for tool in tools]
        request |= _choice(checked_as(dict, body.get("tool_choice"), "tool_choice"))
    return request


def _choice(choice: Mapping[str, Json]) -> JsonObject:
    made: JsonObject = {"parallel_tool_calls": False} if choice.get("disable_parallel_tool_use") else {}
    match choice.get("type"):
        case "any":
            made["tool_choice"] = "required"
        case "none":
            made["tool_choice"] = "none"
        case "tool":
            made["tool_choice"] = {"type": "function", "function": {"name": str(choice.get("name"))}}
    return made


def _messages(message: Json) -> Iterator[JsonObject]:
    """One message as OpenAI's: results each stand alone, before what else the user says."""
    if not isinstance(message, dict) or not isinstance(message.get("content"), str | list):
        raise RequestError(f"a message needs a role and content, got {str(message)[:80]!r}", "messages")
    role, content = message.get("role"), message["content"]
    if isinstance(content, str):
        yield {"role": role, "content": content}
        return
    blocks = [block for block in content if isinstance(block, dict)]
    for block in blocks:
        if block.get("type") == "tool_result":
            failed = "Error: " if block.get("is_error") else ""
            result = block.get("content") or ""
            listed = [] if isinstance(result, str) else checked_as(list, result, "messages.content.content")
            parts = result if isinstance(result, str) else [part for each in listed for part in _parts(each)]
            said: Json = (
                failed + parts if isinstance(parts, str) else [*_parts({"type": "text", "text": failed}), *parts]
            )
            yield {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": said}
    calls = [
        {
            "id": block.get("id"),
            "type": "function",
            "function": {"name": block.get("name"), "arguments": block.get("input")},
        }
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    rest = [part for block in blocks for part in _parts(block)]
    if rest or calls:
        yield {"role": role, "content": rest, **({"tool_calls": calls} if calls else {})}


def _parts(block: Json) -> list[Json]:
    """A block of text or an image as OpenAI's part; none for thinking, which is not shown to a model again."""
    match block:
        case {"type": "text", "text": str(text)}:
            return [{"type": "text", "text": text}] if text else []
        case {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}:
            return [{"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}]
        case {"type": "image", "source": {"type": "url", "url": url}}:
            return [{"type": "image_url", "image_url": {"url": url}}]
    return []


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    blocks = checked_as(list, content, "system")
    return "\n".join(part["text"] for block in blocks for part in _parts(block) if "text" in part)


class AnthropicWriter:
    """Chunks as Anthropic's events."""

    content_type = "text/event-stream; charset=utf-8"

    def __init__(self, model: str, message_id: str) -> None:
        self._message = _message(model, message_id, [], None, {})
        self._has_begun = False
        self._index = -1
        self._open: str | None = None  # the kind of the open block
        self._finish_reason: str | None = None
        self._usage: JsonObject = {}
        self.ping = _event({"type": "ping"})

    def write(self, chunks: list[JsonObject]) -> bytes:
        return b"".join(_event(event) for chunk in chunks for event in self._events(chunk))

    def end(self) -> bytes:
        closing = [*self._begin(), *self._close_block()]
        delta = {"stop_reason": _stop_reason(self._finish_reason), "stop_sequence": None}
        closing += [
            {"type": "message_delta", "delta": delta, "usage": _usage(self._usage)},
            {"type": "message_stop"},
        ]
        return b"".join(map(_event, closing))

    def _events(self, chunk: JsonObject) -> Iterator[JsonObject]:
        if is_error(chunk):
            yield as_error(chunk, 500)
            return
        yield from self._begin()
        self._usage = chunk.get("usage") or self._usage
        for choice in chunk["choices"]:
            delta = choice["delta"]
            self._finish_reason = choice["finish_reason"] or self._finish_reason
            if delta.get("reasoning_content"):
                yield from self._block({"type": "thinking", "thinking": "", "signature": ""})
                yield self._delta({"type": "thinking_delta", "thinking": delta["reasoning_content"]})
            if delta.get("content"):
                yield from self._block({"type": "text", "text": ""})
                yield self._delta({"type": "text_delta", "text": delta["content"]})
            for call in delta.get("tool_calls") or ():
                if "id" in call:
                    yield from self._close_block()
                    name = call["function"]["name"]
                    yield from self._block({"type": "tool_use", "id": call["id"], "name": name, "input": {}})
                if call["function"]["arguments"]:
                    yield self._delta({"type": "input_json_delta", "partial_json": call["function"]["arguments"]})

    def _begin(self) -> Iterator[JsonObject]:
        if not self._has_begun:
            self._has_begun = True
            yield {"type": "message_start", "message": self._message}

    def _block(self, block: JsonObject) -> Iterator[JsonObject]:
        """Open ``block``, unless one of its kind is open."""
        if self._open == block["type"]:
            return
        yield from self._close_block()
        self._index += 1
        self._open = block["type"]
        yield {"type": "content_block_start", "index": self._index, "content_block": block}

    def _delta(self, delta: JsonObject) -> JsonObject:
        return {"type": "content_block_delta", "index": self._index, "delta": delta}

    def _close_block(self) -> Iterator[JsonObject]:
        if self._open:
            self._open = None
            yield {"type": "content_block_stop", "index": self._index}


def as_answer(completion: JsonObject, model: str, message_id: str) -> JsonObject:
    """A whole answer in Anthropic's shape, from OpenAI's."""
    choice: JsonObject = next(iter(completion["choices"]), {"message": {}, "finish_reason": "stop"})
    message: Mapping[str, Any] = choice["message"]
    blocks: list[JsonObject] = []
    if message.get("reasoning_content"):
        blocks.append({"type": "thinking", "thinking": message["reasoning_content"], "signature": ""})
    if message.get("content"):
        blocks.append({"type": "text", "text": message["content"]})
    for call in message.get("tool_calls") or ():
        function = call["function"]
        arguments = json.loads(function["arguments"])
        blocks.append({"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments})
    return _message(model, message_id, blocks, _stop_reason(choice["finish_reason"]), completion.get("usage") or {})


def as_error(error: JsonObject, status: int) -> JsonObject:
    said = error["error"]
    message = said.get("message", "") if isinstance(said, dict) else str(said)
    return {"type": "error", "error": {"type": ERROR_TYPES.get(status, "api_error"), "message": message}}


def _message(
    model: str, message_id: str, blocks: Sequence[JsonObject], stop_reason: str | None, usage: JsonObject
) -> JsonObject:
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(blocks),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": _usage(usage),
    }


def _stop_reason(finish_reason: str | None) -> str:
    return STOP_REASONS.get(finish_reason or "", "end_turn")


def _usage(usage: JsonObject) -> JsonObject:
    return {"input_tokens": usage.get("prompt_tokens", 0), "output_tokens": usage.get("completion_tokens", 0)}


def _event(event: JsonObject) -> bytes:
    return f"event: {event['type']}\n".encode() + as_event(event)
