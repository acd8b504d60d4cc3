"""Parse the events of any OpenAI-compatible or Ollama stream into chunks of text."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from adapter.conversation.message_content import get_reasoning
from adapter.core.errors import TransportError
from adapter.core.events import Json, JsonObject
from adapter.parsing.format import Format
from adapter.prompting.escaping import escape_control_tokens
from adapter.protocols.openai_errors import convert_to_error_object, get_error_text, is_error
from adapter.protocols.sse import MAX_ANSWER_CHARACTERS
from adapter.protocols.template_prompt import convert_to_chat
from adapter.protocols.tool_call_deltas import NativeCalls, measure_calls
from adapter.protocols.usage import Usage, get_object, parse_usage

INCOMPLETE = "incomplete"
"""The finish reason of a stream that ended early. A call at the end of such a stream counts as truncated."""
MAX_MALFORMED = 20_000
"""Maximum length, in characters, of malformed arguments in the text. They are only shown, not used."""
_REASONS = {"tool_calls": "stop", "function_call": "stop"}


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk of an answer. The last chunks contain the ``finish_reason`` and, if the server reports it, the token
    ``usage``. ``raw`` is the server's event. ``reading`` has the number of prompt tokens processed so far and the
    total, which only llama.cpp reports."""

    text: str
    reasoning: str = ""
    finish_reason: str | None = None
    raw: JsonObject | None = None
    usage: Usage | None = None
    reading: tuple[int, int] | None = None


def parse_chunk(event: Json) -> Chunk:
    """Parse one event of an OpenAI-compatible server, or a line of Ollama's API. Raises TransportError for an error."""
    raw = convert_to_chat(get_object(event))
    if is_error(raw):
        raise TransportError(f"the model server stopped its answer: {get_error_text(convert_to_error_object(raw))}")
    choice = _get_choice(raw)
    delta = get_object(choice.get("delta"))
    return Chunk(
        _get_text(delta.get("content")),
        get_reasoning(delta),
        choice.get("finish_reason"),
        raw,
        parse_usage(raw),
        _parse_progress(raw),
    )


def list_native_calls(raw: JsonObject) -> list[Json]:
    """Return the calls, or fragments of calls, in a server's event."""
    calls = get_object(_get_choice(raw).get("delta")).get("tool_calls")
    return calls if isinstance(calls, list) else []


def _get_choice(raw: JsonObject) -> JsonObject:
    choices = raw.get("choices")
    return get_object(choices[0]) if isinstance(choices, list) and choices else {}


class NativeCallWriter:
    """Converts calls that a server has parsed back to text in ``format``. Each stream needs its own instance."""

    def __init__(self, format: Format) -> None:
        self._format, self._native = format, NativeCalls()

    def convert(self, chunk: Chunk) -> list[Chunk]:
        """Return the chunks that replace ``chunk``: the same chunk or, at the end of an answer with calls, two chunks:
        the text of all calls, and the finish reason. If the server's event has calls, ``raw`` is removed from the
        chunk."""
        if parts := list_native_calls(chunk.raw or {}):
            self._native.add(parts)
            chunk = replace(chunk, raw=None)
        if not chunk.finish_reason or not self._native.calls:
            return [chunk]
        calls = "\n".join(self._encode_call(call.name, str(call.arguments)) for call in self._native.calls)
        self._native = NativeCalls()
        reason = _REASONS.get(chunk.finish_reason, chunk.finish_reason)
        last = replace(chunk, text="", reasoning="", finish_reason=reason)
        return [Chunk(f"{chunk.text}\n{calls}", chunk.reasoning), last]

    def _encode_call(self, name: str, arguments: str) -> str:
        """Write a call as text. Truncated or malformed arguments are copied, so that the parser reports them. Their
        markers are escaped, because arguments that quote a call must not become a call."""
        try:
            value = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            return self._format.encode_calls([(name, value)])
        shown = escape_control_tokens(arguments[:MAX_MALFORMED], self._format)
        return f'<tool_call>\n{{"name": {json.dumps(name)}, "arguments": {shown}'


class ChunkReader:
    """Parses the events of one stream, limits its length, and completes a stream that ended early."""

    def __init__(self) -> None:
        self._characters = 0
        self._is_finished = False

    def parse(self, event: Json) -> Chunk:
        """Parse an event like `parse_chunk`. Also raises TransportError if the answer is longer than
        `MAX_ANSWER_CHARACTERS`, because some answers never end."""
        chunk = parse_chunk(event)
        self._characters += len(chunk.text) + len(chunk.reasoning)
        self._characters += measure_calls(list_native_calls(chunk.raw or {}))
        if self._characters > MAX_ANSWER_CHARACTERS:
            raise TransportError(
                f"the model's answer was stopped, because it has more than {MAX_ANSWER_CHARACTERS:,} characters; "
                "limit it with max_tokens"
            )
        self._is_finished = self._is_finished or chunk.finish_reason is not None
        return chunk

    def list_missing(self) -> list[Chunk]:
        """Return the last chunk of a stream that ended early, or nothing for other streams."""
        return [] if self._is_finished else [Chunk("", finish_reason=INCOMPLETE)]


def _parse_progress(raw: JsonObject) -> tuple[int, int] | None:
    """Return the processed and total tokens of llama.cpp's ``prompt_progress``. Cached tokens count as processed."""
    progress = raw.get("prompt_progress")
    done, total = (progress.get("processed"), progress.get("total")) if isinstance(progress, dict) else (None, None)
    return (done, total) if isinstance(done, int) and isinstance(total, int) else None


def _get_text(value: Json) -> str:
    return value if isinstance(value, str) else ""
