"""Translate a chat completion to an Anthropic message, whose content is a list of blocks.

A stream opens, fills and closes the blocks in turn. Source: https://docs.anthropic.com/en/api/messages-streaming.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from adapter.core.events import Json, JsonObject
from adapter.protocols.answer_parts import AnswerPart, AnswerParts, Step
from adapter.protocols.custom_and_legacy_tools import read_object
from adapter.protocols.openai_errors import CONTEXT_CODE, find_error_status, get_error_text, is_error
from adapter.protocols.sse import encode_event
from adapter.protocols.usage import Usage

STOP_REASONS = {"tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}
"""Anthropic's stop reasons by OpenAI's finish reason. All others become ``end_turn``."""

ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""Types of errors by HTTP status (https://platform.claude.com/docs/en/api/errors)."""


class AnthropicWriter:
    """Encodes chunks as events of Anthropic's stream, and a buffered completion as a message."""

    content_type = "text/event-stream; charset=utf-8"

    def __init__(self, model: str, message_id: str, prompt_tokens: int = 0, stops: Json = None) -> None:
        """Create a writer. ``prompt_tokens`` is an estimate of the prompt's length, used until the server reports it.
        ``stops`` are the client's stop sequences."""
        self._model, self._id, self._prompt_tokens = model, message_id, prompt_tokens
        self._stops = stops if isinstance(stops, list) else []
        self._answer = AnswerParts()
        self._has_begun = False
        self.ping = _encode_event({"type": "ping"})

    def build_response(self, completion: JsonObject) -> JsonObject:
        """Convert a complete chat completion to a message."""
        answer = self._answer = AnswerParts.from_completion(completion)
        blocks = [_build_block(part, part.text) for part in answer.parts]
        return self._build_message(blocks, None, answer.usage) | self._build_ending() | answer.notice

    def write(self, chunks: list[JsonObject]) -> bytes:
        return b"".join(_encode_event(event) for chunk in chunks for event in self._build_events(chunk))

    def encode_end(self) -> bytes:
        closing = [*self._begin(), *_build_step_events(self._answer.close())]
        closing += [
            {
                "type": "message_delta",
                "delta": self._build_ending(),
                "usage": _convert_usage(self._answer.usage or Usage(self._prompt_tokens)),
                **self._answer.notice,
            },
            {"type": "message_stop"},
        ]
        return b"".join(map(_encode_event, closing))

    def _build_events(self, chunk: JsonObject) -> Iterator[JsonObject]:
        if is_error(chunk):
            yield to_error(chunk, find_error_status(chunk))
            return
        progress = chunk.get("prompt_progress")  # llama.cpp reports the prompt's length before the answer begins
        if isinstance(progress, dict) and isinstance(progress.get("total"), int):
            self._prompt_tokens = progress["total"]
        yield from self._begin()
        yield from _build_step_events(self._answer.feed(chunk))

    def _build_ending(self) -> JsonObject:
        """Return the stop reason and, if one of the client's stop sequences ended the text, this sequence. vLLM and
        SGLang report it."""
        reason, stop = self._answer.finish_reason, self._answer.stop_sequence
        if reason == "stop" and stop in self._stops:
            return {"stop_reason": "stop_sequence", "stop_sequence": stop}
        return {"stop_reason": STOP_REASONS.get(reason, "end_turn"), "stop_sequence": None}

    def _begin(self) -> Iterator[JsonObject]:
        if not self._has_begun:
            self._has_begun = True
            yield {"type": "message_start", "message": self._build_message([], None, None)}

    def _build_message(self, blocks: list[JsonObject], stop_reason: str | None, usage: Usage | None) -> JsonObject:
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": blocks,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": _convert_usage(usage or Usage(self._prompt_tokens)),
        }


def _build_block(part: AnswerPart, text: str) -> JsonObject:
    match part.kind:
        case "reasoning":
            return {"type": "thinking", "thinking": text, "signature": ""}
        case "text":
            return {"type": "text", "text": text}
        case "call":
            return {"type": "tool_use", "id": part.call_id, "name": part.name, "input": read_object(text)}


_DELTAS = {
    "reasoning": ("thinking_delta", "thinking"),
    "text": ("text_delta", "text"),
    "call": ("input_json_delta", "partial_json"),
}


def _build_step_events(steps: Iterable[Step]) -> Iterator[JsonObject]:
    for action, part, text in steps:
        match action:
            case "open":
                yield {"type": "content_block_start", "index": part.index, "content_block": _build_block(part, "")}
            case "add":
                kind, key = _DELTAS[part.kind]
                yield {"type": "content_block_delta", "index": part.index, "delta": {"type": kind, key: text}}
            case "close":
                if part.kind == "reasoning":  # Claude Code discards reasoning that has no signature
                    signature = {"type": "signature_delta", "signature": ""}
                    yield {"type": "content_block_delta", "index": part.index, "delta": signature}
                yield {"type": "content_block_stop", "index": part.index}


def to_error(error: JsonObject, status: int) -> JsonObject:
    """Convert an error object and its HTTP status to Anthropic's format."""
    error_type = ERROR_TYPES.get(status, "invalid_request_error" if 400 <= status < 500 else "api_error")
    message, detail = get_error_text(error), error.get("error")
    if isinstance(detail, dict) and detail.get("code") == CONTEXT_CODE:  # by which Claude Code recognizes the error
        message = f"prompt is too long: {message}"
    return {"type": "error", "error": {"type": error_type, "message": message}}


def build_thread_error() -> JsonObject:
    """Return the error for a request that continues a stored thread. On this error, Anthropic's SDK sends the whole
    conversation instead."""
    error = to_error({"error": {"message": "threads are not supported; send the whole conversation"}}, 400)
    error["error"]["details"] = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    return error


def _convert_usage(usage: Usage) -> JsonObject:
    """Return the usage in Anthropic's format. Its ``input_tokens`` do not include cached tokens."""
    cached, stored = usage.reused or 0, usage.stored or 0
    return {
        "input_tokens": usage.prompt - cached - stored,
        "cache_creation_input_tokens": stored,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.written,
    }


def _encode_event(event: JsonObject) -> bytes:
    return f"event: {event['type']}\n".encode() + encode_event(event)
