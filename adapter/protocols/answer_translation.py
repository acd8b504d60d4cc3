"""Translate the bytes of the model server's answer into the bytes of the client's response."""

from __future__ import annotations

from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from adapter.conversation.message_content import get_reasoning
from adapter.core.events import Json, JsonObject
from adapter.core.json.load import load_json
from adapter.protocols.chunk_fast_path import MARK, ChunkTemplate, build_chunk_template, split_at_text
from adapter.protocols.openai_chat_response import DIED, BufferedCompletion, StreamedCompletion
from adapter.protocols.openai_errors import build_error_object, convert_to_error_object, find_error_status, is_error
from adapter.protocols.reasoning_budget import remove_budget
from adapter.protocols.sse import (
    DONE,
    MAX_EVENT_BYTES,
    PING,
    EventReader,
    LineReader,
    encode_event,
    encode_json,
    is_cut,
)
from adapter.protocols.template_prompt import convert_to_chat, streams_lines
from adapter.protocols.translated_request import TranslatedRequest
from adapter.protocols.usage import get_object

MAX_MISSES = 20
"""The fast path for text is disabled after this number of consecutive events that match no `ChunkTemplate`."""

MAX_STREAM_BYTES = 256_000_000
"""Maximum size of a streamed answer, in bytes. The event for one token takes about two hundred bytes."""

REJECTED = "rejected by the server; retried as plain text"
"""Outcome reported to observers if the server rejected the tools or the chat template of a request."""
REJECTED_BUDGET = "rejected by the server; retried without the reasoning budget"
"""Outcome reported to observers if the server rejected the field of the reasoning budget."""


class AnswerWriter(Protocol):
    """Writes one answer in the format of the client's API: a stream as bytes, or a whole completion as JSON."""

    content_type: str
    ping: bytes
    """A keepalive message, which clients ignore."""

    def build_response(self, completion: JsonObject) -> JsonObject: ...

    def write(self, chunks: list[JsonObject]) -> bytes:
        """Encode chunks of an OpenAI stream as events of the client's API."""
        ...

    def encode_end(self) -> bytes:
        """Return the final bytes of a stream that ended without an error."""
        ...


class OpenAIWriter:
    """Passes on a completion, and encodes chunks as server-sent events, because both are in OpenAI's format."""

    content_type = "text/event-stream; charset=utf-8"
    ping = PING

    def build_response(self, completion: JsonObject) -> JsonObject:
        return completion

    def write(self, chunks: list[JsonObject]) -> bytes:
        return b"".join(map(encode_event, chunks))

    def encode_end(self) -> bytes:
        return DONE


Answer = TypeVar("Answer", StreamedCompletion, BufferedCompletion)


class _Exchange(Generic[Answer]):
    """A request to the model server and its answer. ``created`` is the answer's time stamp in seconds since 1970."""

    _answer: Answer

    def __init__(self, request: TranslatedRequest, created: int = 0) -> None:
        self.request, self._created = request, created
        self._begin()

    def _begin(self) -> None:
        """Create the answer object for the request."""
        raise NotImplementedError

    def switch_to_text(self) -> JsonObject | None:
        """Switch to a generated prompt, because the server rejected the tools or the chat template. Return the body of
        the new request, or None if the rejected request already had a generated prompt."""
        if self.request.as_text is None:
            return None
        return self._replace_request(self.request.as_text(), REJECTED)

    def remove_budget(self) -> JsonObject | None:
        """Remove the budget field that the server rejected, so that only this library limits reasoning. Return the body
        of the new request, or None if the rejected request had no such field."""
        body = remove_budget(self.request.body)
        if len(body) == len(self.request.body):
            return None
        return self._replace_request(replace(self.request, body=body), REJECTED_BUDGET)

    def _replace_request(self, request: TranslatedRequest, why: str) -> JsonObject:
        self._answer.cancel(why)
        self.request = replace(request, stats=self.request.stats)
        self._begin()
        return self.request.body

    def cancel(self, why: str = "") -> None:
        """Stop an answer that the client no longer needs. ``why`` is reported to observers if no answer has begun."""
        self._answer.cancel(why)


class StreamedExchange(_Exchange[StreamedCompletion]):
    """A request whose answer is streamed. `feed` takes the server's bytes in pieces of any size and returns bytes for
    the client; `close` ends the stream.

    ``writer`` encodes the answer in the client's API; the default is OpenAI's. Once `is_done` is True, the caller
    ignores the rest of the server's answer. `build_next_body` may then return a follow-up request, whose answer is also
    passed to `feed`.
    """

    def __init__(self, request: TranslatedRequest, created: int, writer: AnswerWriter | None = None) -> None:
        super().__init__(request, created)
        self.writer = writer or OpenAIWriter()
        self._template: ChunkTemplate | None = None
        self._affixes = (b"", b"")  # bytes before and after the text in the client's events
        self._misses = 0  # consecutive events without a common template
        self._has_failed = False
        self._size = 0
        self._has_ended = False

    def _begin(self) -> None:
        self._held: Json = None  # a chunk with a finish reason, until the next event
        self._unsent = b""
        self._answer = StreamedCompletion(self.request, self._created)
        self._reader = LineReader() if streams_lines(self.request.body) else EventReader()

    @property
    def waiting(self) -> int:
        """Number of bytes received but not yet translated."""
        return self._reader.waiting

    @property
    def is_done(self) -> bool:
        return self._has_ended or self._answer.is_done or self._answer.awaits_more

    @property
    def early_error(self) -> JsonObject | None:
        """The error that ended the answer before the model wrote anything, or None."""
        return self._answer.early_error

    def build_next_body(self) -> JsonObject | None:
        """Return the body of a follow-up request, such as a retry, or None if the answer is complete."""
        self._unsent = self._flush()  # a stream may end without [DONE]
        request = self._answer.begin_next_request()
        if request is None:
            return None
        self._has_ended = False
        self._reader = type(self._reader)()
        return request.body

    def feed(self, piece: bytes) -> bytes:
        written, self._unsent = self._unsent + self._translate(self._reader.feed(piece)), b""
        self._size += len(piece)
        if self._size > MAX_EVENT_BYTES or self._size > MAX_STREAM_BYTES:
            written += self._check_size()
        return written

    def close(self) -> bytes:
        last = [event for event in self._reader.close() if not is_cut(event)]  # others are lost with the connection
        rest = self._translate(last) + self._flush()
        rest += self._write(self._answer.close(has_ended=self._has_ended))
        return rest if self._has_failed else rest + self.writer.encode_end()

    def give_up(self) -> bytes | None:
        """Return the rest of the answer that preceded a follow-up request, after the server rejected that request.
        Return None if there was no follow-up request."""
        chunks = self._answer.use_previous()
        if chunks is None:
            return None
        self._has_ended = True
        return self._flush() + self._write(chunks)

    def fail(self, error: JsonObject) -> bytes:
        """End the stream with ``error``, and return its last bytes."""
        return self._flush() + self._write(self._answer.feed(error))

    def _check_size(self) -> bytes:
        """End the stream with an error if an event or the whole stream is too long. Return its last bytes, or b""."""
        if self._reader.waiting > MAX_EVENT_BYTES:
            message = f"the model server sent an event of more than {MAX_EVENT_BYTES:,} bytes"
        elif self._size > MAX_STREAM_BYTES:
            message = f"the model server sent more than {MAX_STREAM_BYTES:,} bytes without ending its answer"
        else:
            return b""
        return self.fail(build_error_object(message, "upstream_error"))

    def _translate(self, events: list[bytes]) -> bytes:
        return self._translate_event(events[0]) if len(events) == 1 else b"".join(map(self._translate_event, events))

    def _translate_event(self, event: bytes) -> bytes:
        if event == b"[DONE]" or not event:  # some proxies keep the connection alive with empty events
            self._has_ended = self._has_ended or bool(event)
            return self._flush() if event else b""
        if self._held is None and self._template is not None and (text := self._template.find_text(event)) is not None:
            self._misses = 0
            return self._translate_text(self._answer.feed_text(self._template.index, text), self._template.index)
        chunk = _read(event)
        written = self._translate_chunk(convert_to_chat(chunk))
        if self._misses < MAX_MISSES and not self._answer.is_done:
            self._misses += 1
            self._template = build_chunk_template(event, chunk)
            if self._template is not None:
                self._affixes = split_at_text(self._answer.build_text_chunk(self._template.index, MARK))
        return written

    def _translate_chunk(self, chunk: Json) -> bytes:
        """Translate a chunk. A chunk with a finish reason is held back until the next event, because some proxies (Open
        WebUI) send a finish reason with each chunk, and only the last one of a choice counts."""
        choices, written = _list_choices(chunk), b""
        if self._held is not None:
            continued = [each.get("index") for each in choices if _has_content(each)]
            for choice in _list_choices(self._held):
                if choice.get("index") in continued:
                    choice["finish_reason"] = None
            written = self._flush()
        if any(each.get("finish_reason") for each in choices):
            self._held = chunk
            return written
        return written + self._write(self._answer.feed(chunk))

    def _flush(self) -> bytes:
        """Return the bytes that were held back."""
        unsent, held = self._unsent, self._held
        self._unsent, self._held = b"", None
        return unsent if held is None else unsent + self._write(self._answer.feed(held))

    def _translate_text(self, text: str | list[JsonObject], index: int) -> bytes:
        if not isinstance(text, str):
            return self._write(text)
        if not isinstance(self.writer, OpenAIWriter):
            return self.writer.write([self._answer.build_text_chunk(index, text)]) if text else b""
        before, after = self._affixes
        return before + encode_json(text) + after if text else b""

    def _write(self, chunks: list[JsonObject]) -> bytes:
        if not chunks:
            return b""
        self._has_failed = self._has_failed or is_error(chunks[-1])  # an error is the last event
        return self.writer.write(chunks)


class BufferedExchange(_Exchange[BufferedCompletion]):
    """A request whose answer is not streamed. `feed` takes the body of the server's response with status 200."""

    def _begin(self) -> None:
        self._answer = BufferedCompletion(self.request, self._created)

    def give_up(self) -> JsonObject | None:
        """Return the completion that preceded a follow-up request, after the server rejected that request. Return None
        if there was no follow-up request."""
        return self._answer.use_previous()

    def feed(self, body: bytes) -> tuple[int, JsonObject] | JsonObject:
        """Return the client's status and completion, or the body of a follow-up request if the answer is retried."""
        completion = convert_to_chat(_read(body))
        if isinstance(completion, dict) and is_error(completion):
            died = build_error_object(DIED, "upstream_error")
            error = died if is_cut(body) else convert_to_error_object(completion)
            return find_error_status(error), error
        if not isinstance(completion, dict) or not isinstance(completion.get("choices"), list):
            excerpt = body[:80].decode("utf-8", "replace")
            return 502, build_error_object(
                f"the model server sent {excerpt!r}, expected a chat completion", "upstream_error"
            )
        answer = self._answer.feed(completion)
        if isinstance(answer, TranslatedRequest):
            return answer.body
        return (find_error_status(answer) if is_error(answer) else 200), answer


def _read(data: bytes) -> Json:
    try:
        return load_json(data)
    except ValueError:
        excerpt = data[:500].decode("utf-8", "replace")
        return build_error_object(f"the model server sent invalid JSON: {excerpt!r}", "upstream_error")


def _list_choices(chunk: Json) -> list[JsonObject]:
    choices = get_object(chunk).get("choices")
    return [each for each in choices if isinstance(each, dict)] if isinstance(choices, list) else []


def _has_content(choice: JsonObject) -> bool:
    delta = get_object(choice.get("delta"))
    return bool(delta.get("content") or delta.get("tool_calls") or get_reasoning(delta))
