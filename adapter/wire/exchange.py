"""One exchange as bytes: what the model's server sends becomes what the client reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from adapter.events import Json, JsonObject
from adapter.wire.answer import Answer, Whole
from adapter.wire.errors import error_object, is_error
from adapter.wire.llama_cpp import as_chat
from adapter.wire.request import Request
from adapter.wire.sse import DONE, MAX_EVENT_BYTES, PING, EventReader, LineReader, as_event, read_json


class Writer(Protocol):
    """How a client reads a stream. ``ping`` is what it skips."""

    content_type: str
    ping: bytes

    def write(self, chunks: list[JsonObject]) -> bytes: ...

    def end(self) -> bytes:
        """What closes a stream that `write` has not ended with an error."""
        ...


class OpenAIWriter:
    content_type = "text/event-stream; charset=utf-8"
    ping = PING

    def write(self, chunks: list[JsonObject]) -> bytes:
        return b"".join(map(as_event, chunks))

    def end(self) -> bytes:
        return DONE


class Streamed:
    """A streamed exchange: `feed` takes the server's bytes in any pieces, `close` ends it.

    ``writer``: the client's side. ``reader`` and ``as_chunk``: the server's, where that is not OpenAI's.
    ``is_done``: no more is needed of the server's answer. Then `next_body` may have one more request;
    what comes of that is fed like what came before. ``as_body``: a request as that server takes it.
    """

    def __init__(
        self,
        request: Request,
        created: int,
        writer: Writer | None = None,
        reader: EventReader | LineReader | None = None,
        as_chunk: Callable[[Json], Json] | None = None,
        as_body: Callable[[JsonObject], JsonObject] | None = None,
    ) -> None:
        self._request, self._created = request, created
        self._answer = Answer(request, created)
        self.writer = writer or OpenAIWriter()
        self._reader = reader or EventReader()
        self._as_chunk = as_chunk or as_chat
        self._as_body = as_body or _as_it_is
        self._has_failed = False
        self._is_over = False

    @property
    def is_done(self) -> bool:
        return self._is_over or self._answer.is_done or self._answer.awaits_more

    def next_body(self) -> JsonObject | None:
        request = self._answer.next_request()
        if request is None:
            return None
        self._is_over = False
        self._reader = type(self._reader)()
        return self._as_body(request.body)

    def as_text(self) -> JsonObject | None:
        """What to ask a server that refused the tools it was given; None where it was given none."""
        if self._request.as_text is None:
            return None
        self._request = self._request.as_text()
        self._answer = Answer(self._request, self._created)
        return self._as_body(self._request.body)

    def feed(self, piece: bytes) -> bytes:
        written = self._translated(self._reader.feed(piece))
        if self._reader.waiting <= MAX_EVENT_BYTES:
            return written
        message = f"the model server sent an event of more than {MAX_EVENT_BYTES:,} bytes"
        return written + self.fail(error_object(message, "upstream_error"))

    def close(self) -> bytes:
        rest = self._translated(self._reader.close()) + self._written(self._answer.close(has_ended=self._is_over))
        return rest if self._has_failed else rest + self.writer.end()

    def leave(self) -> None:
        """Nobody reads on: the client has gone, or all is said."""
        self._answer.leave()

    def fail(self, error: JsonObject) -> bytes:
        """End the stream with ``error``, which the client raises."""
        return self._written(self._answer.feed(error))

    def _translated(self, events: list[bytes]) -> bytes:
        chunks: list[JsonObject] = []
        for event in events:
            if event == b"[DONE]":
                self._is_over = True
            else:
                chunks += self._answer.feed(self._as_chunk(_read(event)))
        return self._written(chunks)

    def _written(self, chunks: list[JsonObject]) -> bytes:
        if not chunks:
            return b""
        self._has_failed = self._has_failed or is_error(chunks[-1])  # nothing follows an error
        return self.writer.write(chunks)


class Completed:
    """An exchange in one piece: `feed` takes the body of a server's 200.

    ``as_completion`` and ``as_body``: the server's side, where that is not OpenAI's.
    """

    def __init__(
        self,
        request: Request,
        as_completion: Callable[[Json], Json] | None = None,
        as_body: Callable[[JsonObject], JsonObject] | None = None,
    ) -> None:
        self._request = request
        self._whole = Whole(request)
        self._as_completion = as_completion or as_chat
        self._as_body = as_body or _as_it_is

    def as_text(self) -> JsonObject | None:
        """As `Streamed.as_text`."""
        if self._request.as_text is None:
            return None
        self._request = self._request.as_text()
        self._whole = Whole(self._request)
        return self._as_body(self._request.body)

    def feed(self, body: bytes) -> tuple[int, JsonObject] | JsonObject:
        """The status and the completion for a client, or the body of one more request to the server."""
        completion = self._as_completion(_read(body))
        if is_error(completion):
            return 502, completion
        if not isinstance(completion, dict) or not isinstance(completion.get("choices"), list):
            shown = body[:80].decode("utf-8", "replace")
            return 502, error_object(f"the model server answered {shown!r}, not a chat completion", "upstream_error")
        answer = self._whole.feed(completion)
        return self._as_body(answer.body) if isinstance(answer, Request) else (200, answer)


def _read(data: bytes) -> Json:
    try:
        return read_json(data)
    except ValueError:
        shown = data[:80].decode("utf-8", "replace")
        return error_object(f"the model server sent {shown!r}, which is not JSON", "upstream_error")


def _as_it_is(value: Json) -> Json:
    return value
