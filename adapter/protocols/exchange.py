"""One exchange as bytes: what the model's server sends becomes what the client reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from adapter.core.events import Json, JsonObject
from adapter.protocols.chunk_fast_path import MARK, ChunkTemplate, chunk_template, split_at_text
from adapter.protocols.openai_chat_response import BufferedCompletion, StreamedCompletion
from adapter.protocols.openai_errors import error_object, is_error
from adapter.protocols.sse import (
    DONE,
    MAX_EVENT_BYTES,
    PING,
    EventReader,
    LineReader,
    encode_event,
    encode_json,
    read_json,
)
from adapter.protocols.template_prompt import as_chat, streams_lines
from adapter.protocols.translated_request import TranslatedRequest

MAX_UNLIKE = 20
"""Events, each unlike the one before, after which none is expected to be like another."""

MAX_STREAM_BYTES = 256_000_000
"""Of a streamed answer, some two hundred a token."""

REFUSED = "it was refused, and asked in words"
"""What whoever looks on hears of a request with tools, or a prompt, that the server did not take."""


class StreamWriter(Protocol):
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
        return b"".join(map(encode_event, chunks))

    def end(self) -> bytes:
        return DONE


Answer = TypeVar("Answer", StreamedCompletion, BufferedCompletion)


class _Exchange(Generic[Answer]):
    """A request to the model server and its answer. ``as_body``: a request as that server takes it."""

    _answer: Answer

    def __init__(self, request: TranslatedRequest, as_body: Callable[[JsonObject], JsonObject] | None) -> None:
        self._request = request
        self._as_body = as_body or _as_it_is
        self._begin()

    def _begin(self) -> None:
        """Set up the answer to the request."""
        raise NotImplementedError

    def as_text(self) -> JsonObject | None:
        """The next body for a server that refuses the tools that it was given; None where it was given none."""
        if self._request.as_text is None:
            return None
        self._answer.cancel(REFUSED)
        self._request = replace(self._request.as_text(), account=self._request.account)
        self._begin()
        return self._as_body(self._request.body)

    def leave(self, why: str = "") -> None:
        """The client has gone, or has all it wants. ``why``: there was no answer."""
        self._answer.cancel(why)


class StreamedExchange(_Exchange[StreamedCompletion]):
    """A streamed exchange: `feed` takes the server's bytes in any pieces, `close` ends it.

    ``writer``: the client's side. ``reader`` and ``as_chunk``: the server's, where that is not OpenAI's.
    ``is_done``: no more is needed of the server's answer. Then `next_body` may have one more request;
    what comes of that is fed like what came before. ``as_body``: a request as that server takes it.
    """

    def __init__(
        self,
        request: TranslatedRequest,
        created: int,
        writer: StreamWriter | None = None,
        reader: EventReader | LineReader | None = None,
        as_chunk: Callable[[Json], Json] | None = None,
        as_body: Callable[[JsonObject], JsonObject] | None = None,
    ) -> None:
        self._created, self._given_reader = created, reader
        super().__init__(request, as_body)
        self.writer = writer or OpenAIWriter()
        self._as_chunk = as_chunk or as_chat
        self._like: ChunkTemplate | None = None
        self._around = (b"", b"")  # the text in an event for the client
        self._unlike = 0  # events in a row that were not like the one before
        self._has_failed = False
        self._size = 0
        self._is_over = False

    def _begin(self) -> None:
        self._answer = StreamedCompletion(self._request, self._created)
        self._reader = type(self._given_reader)() if self._given_reader else _reader_of(self._request)

    @property
    def waiting(self) -> int:
        """Bytes that have come and are not translated yet."""
        return self._reader.waiting

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

    def feed(self, piece: bytes) -> bytes:
        written = self._translated(self._reader.feed(piece))
        self._size += len(piece)
        if self._reader.waiting > MAX_EVENT_BYTES:
            message = f"the model server sent an event of more than {MAX_EVENT_BYTES:,} bytes"
        elif self._size > MAX_STREAM_BYTES:
            message = f"the model server sent more than {MAX_STREAM_BYTES:,} bytes, and no end"
        else:
            return written
        return written + self.fail(error_object(message, "upstream_error"))

    def close(self) -> bytes:
        rest = self._translated(self._reader.close()) + self._written(self._answer.close(has_ended=self._is_over))
        return rest if self._has_failed else rest + self.writer.end()

    def give_up(self) -> bytes | None:
        """The server did not take what was asked again: the answer before counts. None where nothing was."""
        chunks = self._answer.use_previous()
        if chunks is None:
            return None
        self._is_over = True
        return self._written(chunks)

    def fail(self, error: JsonObject) -> bytes:
        """End the stream with ``error``, which the client raises."""
        return self._written(self._answer.feed(error))

    def _translated(self, events: list[bytes]) -> bytes:
        return self._one_translated(events[0]) if len(events) == 1 else b"".join(map(self._one_translated, events))

    def _one_translated(self, event: bytes) -> bytes:
        if event == b"[DONE]":
            self._is_over = True
            return b""
        if self._like is not None and (text := self._like.text_of(event)) is not None:
            self._unlike = 0
            return self._text_translated(self._answer.feed_text(self._like.index, text), self._like.index)
        chunk = _read(event)
        written = self._written(self._answer.feed(self._as_chunk(chunk)))
        if self._unlike < MAX_UNLIKE and not self._answer.is_done:
            self._unlike += 1
            self._like = chunk_template(event, chunk)
            if self._like is not None:
                self._around = split_at_text(self._answer.text_chunk(self._like.index, MARK))
        return written

    def _text_translated(self, said: str | list[JsonObject], index: int) -> bytes:
        if not isinstance(said, str):
            return self._written(said)
        if not isinstance(self.writer, OpenAIWriter):
            return self.writer.write([self._answer.text_chunk(index, said)]) if said else b""
        return b"".join((self._around[0], encode_json(said), self._around[1])) if said else b""

    def _written(self, chunks: list[JsonObject]) -> bytes:
        if not chunks:
            return b""
        self._has_failed = self._has_failed or is_error(chunks[-1])  # nothing follows an error
        return self.writer.write(chunks)


class BufferedExchange(_Exchange[BufferedCompletion]):
    """An exchange in one piece: `feed` takes the body of a server's 200.

    ``as_completion`` and ``as_body``: the server's side, where that is not OpenAI's.
    """

    def __init__(
        self,
        request: TranslatedRequest,
        as_completion: Callable[[Json], Json] | None = None,
        as_body: Callable[[JsonObject], JsonObject] | None = None,
    ) -> None:
        super().__init__(request, as_body)
        self._as_completion = as_completion or as_chat

    def _begin(self) -> None:
        self._answer = BufferedCompletion(self._request)

    def give_up(self) -> JsonObject | None:
        """As `StreamedExchange.give_up`: the completion for the client."""
        return self._answer.use_previous()

    def feed(self, body: bytes) -> tuple[int, JsonObject] | JsonObject:
        """The status and the completion for a client, or the body of one more request to the server."""
        completion = self._as_completion(_read(body))
        if is_error(completion):
            return 502, completion
        if not isinstance(completion, dict) or not isinstance(completion.get("choices"), list):
            shown = body[:80].decode("utf-8", "replace")
            return 502, error_object(f"the model server answered {shown!r}, not a chat completion", "upstream_error")
        answer = self._answer.feed(completion)
        if isinstance(answer, TranslatedRequest):
            return self._as_body(answer.body)
        return (502 if is_error(answer) else 200), answer


def _reader_of(request: TranslatedRequest) -> EventReader | LineReader:
    return LineReader() if streams_lines(request.body) else EventReader()


def _read(data: bytes) -> Json:
    try:
        return read_json(data)
    except ValueError:
        shown = data[:80].decode("utf-8", "replace")
        return error_object(f"the model server sent {shown!r}, which is not JSON", "upstream_error")


def _as_it_is(value: Json) -> Json:
    return value
