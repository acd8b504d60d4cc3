"""One answer of a model, read while it comes, and what whoever watches the loop is told of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from adapter.backends.stream_chunks import Chunk
from adapter.conversation.message_rendering import Message
from adapter.conversation.session import AskModel, Finished, RunTools
from adapter.core.callbacks import wrong_answer
from adapter.core.errors import UsageError
from adapter.core.events import Event, ReasoningDelta, ToolResult
from adapter.core.turn import Turn
from adapter.grammars.reply_tool import ReplyParser
from adapter.parsing.parser import Parser

if TYPE_CHECKING:
    from adapter.backends.chat_client import Usage

AgentEvent: TypeAlias = "AskModel | Chunk | Event | Turn | RunTools | ToolResult | Finished"
"""What an observer is told, in the order in which it happens."""


class ChatModel(Protocol):
    """A model that answers in pieces: `adapter.backends.chat_client.ChatClient`, a recording, a guided model."""

    def stream(self, messages: Sequence[Message], *, stop: Sequence[str] = ()) -> Iterator[Chunk]: ...


class ResponseReader:
    """One answer of the model, read as it comes. ``observe`` is told of each piece and event."""

    def __init__(self, parser: Parser | ReplyParser, observe: Callable[[AgentEvent], None]) -> None:
        self._parser, self._observe = parser, observe
        self._events: list[Event] = []
        self._finish_reason: str | None = None
        self._usage: Usage | None = None

    def feed(self, chunk: Chunk) -> None:
        if not isinstance(chunk, Chunk):
            raise UsageError(f"chat.stream gave {chunk!r}; expected a Chunk")
        self._observe(chunk)
        if chunk.reasoning:
            self._add([ReasoningDelta(chunk.reasoning, "")])
        self._add(self._parser.feed(chunk.text))
        self._finish_reason = chunk.finish_reason or self._finish_reason
        self._usage = chunk.usage or self._usage

    @property
    def finish_reason(self) -> str | None:
        """Why it ended, as the server says; None for a chat that says nothing of it."""
        return self._finish_reason

    def finish(self) -> tuple[Turn, Usage | None]:
        """The whole answer, and what the server counted."""
        self._add(self._parser.close(self._finish_reason or "incomplete"))
        return Turn.from_events(self._events), self._usage

    def partial_turn(self) -> Turn:
        """What there is of an answer that was stopped; nobody is told."""
        return Turn.from_events([*self._events, *self._parser.close("incomplete")])

    def _add(self, events: list[Event]) -> None:
        for event in events:
            self._observe(event)
        self._events += events


def chunks_of(stream: Callable[..., Any], messages: Sequence[Message], stop: Sequence[str], method: str) -> Any:
    """Return the model's pieces. ``method``: ``__iter__`` or ``__aiter__``. Raises UsageError for any other answer."""
    chunks = stream(messages, stop=stop)
    if not hasattr(type(chunks), method) or isinstance(chunks, str):
        expected = "an iterator of Chunk" if method == "__iter__" else "an async iterator of Chunk"
        raise wrong_answer(stream, "the chat", chunks, f"{expected} (`Agent` iterates, `AsyncAgent` iterates async)")
    return chunks
