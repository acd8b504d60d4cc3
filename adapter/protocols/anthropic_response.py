"""Translate a chat completion to an Anthropic message, whose content is a list of blocks.

A stream opens, fills and closes the blocks in turn. Source: https://docs.anthropic.com/en/api/messages-streaming.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adapter.core.events import JsonObject
from adapter.protocols.openai_errors import error_text, is_error
from adapter.protocols.sse import encode_event

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


class AnthropicWriter:
    """Encodes chunks as events of Anthropic's stream."""

    content_type = "text/event-stream; charset=utf-8"

    def __init__(self, model: str, message_id: str, prompt_tokens: int = 0) -> None:
        """``prompt_tokens``: an estimate, used if the server reports the number only after the answer."""
        self._message = _message(model, message_id, [], None, {"prompt_tokens": prompt_tokens})
        self._has_begun = False
        self._index = -1
        self._open: str | None = None  # type of the open block
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
        self._set_prompt_tokens(chunk)
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

    def _set_prompt_tokens(self, chunk: JsonObject) -> None:
        """Set the prompt's length as soon as llama.cpp reports it, which is before the answer begins."""
        progress = chunk.get("prompt_progress")
        if not self._has_begun and isinstance(progress, dict) and isinstance(progress.get("total"), int):
            self._message["usage"]["input_tokens"] = progress["total"]

    def _begin(self) -> Iterator[JsonObject]:
        if not self._has_begun:
            self._has_begun = True
            yield {"type": "message_start", "message": self._message}

    def _block(self, block: JsonObject) -> Iterator[JsonObject]:
        """Open ``block`` unless a block of the same type is already open."""
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
    """Convert a complete chat completion to a message."""
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
    error_type = ERROR_TYPES.get(status, "api_error")
    return {"type": "error", "error": {"type": error_type, "message": error_text(error)}}


def thread_error() -> JsonObject:
    """Return the error for a request that continues a thread. It makes the SDK send the whole conversation instead."""
    error = as_error({"error": {"message": "threads are not supported: send the whole conversation"}}, 400)
    error["error"]["details"] = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    return error


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
    return f"event: {event['type']}\n".encode() + encode_event(event)
