"""Parse a model's streamed answer, and report its chunks and events to an observer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from adapter.backends.stream_chunks import Chunk, NativeCallWriter
from adapter.conversation.message_rendering import Message
from adapter.conversation.session_steps import AskModel, Finished, RunTools
from adapter.core.callback_checks import build_result_error
from adapter.core.errors import UsageError
from adapter.core.events import Event, ReasoningDelta, ToolCall, ToolResult
from adapter.core.text.string_builder import StringBuilder
from adapter.core.turn import Turn
from adapter.grammars.reply_tool import ReplyParser
from adapter.parsing.format import Format
from adapter.parsing.formats import get_format
from adapter.parsing.parser import Parser

if TYPE_CHECKING:
    from adapter.backends.chat_client import Usage

AgentEvent: TypeAlias = "AskModel | Chunk | Event | Turn | RunTools | ToolResult | Finished"
"""An event that is reported to an observer. Events are reported in the order in which they occur."""


FIRST_CHECK, LAST_CHECK = 500, 20_000
"""Minimum and maximum length of an answer that is checked for a flood of calls, in characters."""


class ChatModel(Protocol):
    """A model that streams its answers: an `adapter.backends.chat_client.ChatClient`, or a recording."""

    def stream(self, messages: Sequence[Message], *, stop: Sequence[str] = ()) -> Iterator[Chunk]: ...


class AnswerReader:
    """Parses a streamed answer.

    Args:
        observe: Called with each chunk and event.
        is_flood: Returns whether an answer, given its text so far, has more calls than will be used.
        format: Format for converting calls back to text that the server parsed although the request had no tools.
        convert: Function that converts each chunk to chunks to parse, instead of the default conversion to ``format``.
    """

    def __init__(
        self,
        parser: Parser | ReplyParser,
        observe: Callable[[AgentEvent], None],
        is_flood: Callable[[str], bool] = lambda _: False,
        format: str | Format = "hermes",
        convert: Callable[[Chunk], Sequence[Chunk]] | None = None,
    ) -> None:
        self._parser, self._observe, self._is_flood = parser, observe, is_flood
        self._text, self._next_check = StringBuilder(), FIRST_CHECK
        self._events: list[Event] = []
        self.finish_reason: str | None = None  # as the server reports it
        self._is_stopped = False
        self._usage: Usage | None = None
        self._convert = convert or NativeCallWriter(get_format(format)).convert

    def feed(self, chunk: Chunk) -> None:
        if not isinstance(chunk, Chunk):
            raise UsageError(f"chat.stream must yield Chunk, got {chunk!r}")
        for each in self._convert(chunk):
            self._feed(each)

    def _feed(self, chunk: Chunk) -> None:
        self._observe(chunk)
        if chunk.reasoning:
            self._add([ReasoningDelta(chunk.reasoning, "")])
        self._text.add(chunk.text)
        self._add(self._parser.feed(chunk.text))
        self.finish_reason = chunk.finish_reason or self.finish_reason
        self._usage = chunk.usage or self._usage

    def stop_flood(self) -> bool:
        """Stop the answer if it has more calls than will be used, and return whether it was stopped.

        The parser recognizes calls without markers only at the end of its input. Therefore, the whole text is parsed
        again each time it has grown by half.
        """
        if not self._next_check <= self._text.size <= LAST_CHECK:
            return False
        self._next_check = self._text.size * 3 // 2
        if not self._is_flood(str(self._text)):
            return False
        self.feed(Chunk("", finish_reason="stop"))
        self._is_stopped = True
        return True

    def finish(self) -> tuple[Turn, Usage | None]:
        """Return the complete answer, and the server's token counts or None. A flood is cut after its last call."""
        self._add(self._parser.close(self.finish_reason or "incomplete"))
        if self._is_stopped and (calls := self.calls):
            del self._events[self._events.index(calls[-1]) + 1 :]
        return Turn.from_events(self._events), self._usage

    @property
    def calls(self) -> list[ToolCall]:
        """The calls parsed so far."""
        return [event for event in self._events if isinstance(event, ToolCall)]

    def build_partial_turn(self) -> Turn:
        """Return the part of a stopped answer received so far, without reporting it to the observer."""
        return Turn.from_events([*self._events, *self._parser.close("incomplete")])

    def _add(self, events: list[Event]) -> None:
        self._events += events  # first, so that a Ctrl-C in the observer loses no event that was already shown
        for event in events:
            self._observe(event)


def iter_chunks(stream: Callable[..., Any], messages: Sequence[Message], stop: Sequence[str], method: str) -> Any:
    """Return an iterator of the model's chunks. ``method``: ``__iter__`` or ``__aiter__``. Raises UsageError if
    ``stream`` returns an object without this method."""
    chunks = stream(messages, stop=stop)
    if not hasattr(type(chunks), method) or isinstance(chunks, str):
        expected = "an iterator of Chunk" if method == "__iter__" else "an async iterator of Chunk"
        raise build_result_error(
            stream, "the chat", chunks, f"{expected} (`Agent` uses an iterator, `AsyncAgent` an async one)"
        )
    return chunks
