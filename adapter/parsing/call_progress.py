"""Report the progress of a call while the model writes it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import lru_cache

from adapter.core.events import Event, InvalidToolCall, ToolCall, ToolCallDelta, ToolCallProgress
from adapter.parsing.argument_stream import ArgumentStream
from adapter.parsing.call_events import CallEventFactory
from adapter.parsing.format import BodySource
from adapter.tools.decoded_json_calls import NAME_KEYS

HEAD_LIMIT = 1000
"""Maximum number of characters at a call's start that are searched for its name."""

FIRST_PIECE = 100
"""Minimum number of characters of arguments in a call's first `ToolCallDelta`. Shorter arguments are emitted with their
call, so that deltas are rarely emitted for a call that turns out to be damaged."""

REPAIRED_LATE = "its arguments needed a repair after the first of them were streamed. Write it again, in valid JSON."


class CallProgress:
    """Reports the progress of one call while the model writes it.

    Args:
        marker: The call's opening marker, or "".
        start: The offset of the text after the marker in the model's text.
        is_certain: Whether the call has markers, or the expected format needs none. Other calls may turn out to be
            text, so their progress is not reported.
        streams_arguments: Whether to emit the arguments while the model writes them.
    """

    has_begun = False
    """True once an event has been reported."""
    _id = ""  # the id of the emitted argument deltas
    _unsent = ""  # arguments that were not emitted yet
    _stream: ArgumentStream | None = None
    _name: str | None = None
    _head = ""
    _size = 0

    def __init__(
        self,
        source: BodySource,
        call_events: CallEventFactory,
        marker: str,
        start: int,
        *,
        is_certain: bool,
        streams_arguments: bool,
    ) -> None:
        self._source, self._call_events, self._marker, self._start = source, call_events, marker, start
        self._is_certain, self._streams_arguments = is_certain, streams_arguments

    def report_from(self, piece: str) -> list[Event]:
        """Return the events for ``piece``, the newest chunk of the call, and for earlier chunks that were not reported
        yet. Return nothing while the call may still turn out to be text."""
        if self.has_begun:
            return self.report(piece)
        if self._source.may_be_text or not self._is_certain:
            return []
        self.has_begun = True
        self._name_pattern = _build_name_pattern(tuple(self._source.tools))
        if self._streams_arguments:
            start = self._start - len(self._marker)
            self._stream = ArgumentStream(self._source, self._call_events.normalize, start)
        # Earlier pieces may have been buffered.
        return self.report(self._marker + self._source.get_since(self._start))

    def report(self, text: str) -> list[Event]:
        """Return the events for ``text``, the next part of the call."""
        if self._name is None and self._size < HEAD_LIMIT:
            self._head += text
            match = self._name_pattern.search(self._head)
            self._name = match[match.lastindex or 0] if match else None
        self._size += len(text)
        progress = ToolCallProgress(text, self._name, self._size)
        if self._stream is None:
            return [progress]
        self._unsent += self._stream.feed(text)
        is_short = not self._id and len(self._unsent) < FIRST_PIECE
        if not self._unsent or is_short or self._stream.name is None:
            return [progress]
        fragment, self._unsent = self._unsent, ""
        # The id does not depend on the call's text: an intact call inside a damaged one has the same text.
        self._id = self._id or self._call_events.make_next_id(f"{self._start} {self._stream.name}")
        return [progress, ToolCallDelta(self._id, self._stream.name, fragment)]

    def finish(self, events: list[Event]) -> list[Event]:
        """Return the final ``events`` of the call, adapted to arguments that were already streamed. The remaining
        arguments are added, and the first call gets the id of the streamed arguments. If the streamed arguments belong
        to a damaged call, its error comes first, so that no other call completes them."""
        first = events[0]
        if not self._id or not isinstance(first, ToolCall):
            return events
        rest = self._finish_arguments(first)
        damaged = [event for event in events if isinstance(event, InvalidToolCall) and event.name is None]
        if rest is None and damaged:
            return damaged + [event for event in events if event not in damaged]
        if rest is None:
            return [InvalidToolCall(first.raw, f"the call is invalid: {REPAIRED_LATE}", first.name), *events[1:]]
        return [ToolCallDelta(self._id, first.name, rest), replace(first, id=self._id), *events[1:]]

    def _finish_arguments(self, call: ToolCall) -> str | None:
        """Return the rest of the arguments of ``call``, or None if they contradict the emitted part."""
        if self._stream is None or self._stream.name != call.name:
            return None
        return self._stream.finish(call.arguments)


def add_argument_deltas(events: list[Event]) -> list[Event]:
    """Return ``events`` with a `ToolCallDelta` before each call: if its arguments were not streamed, one with all
    arguments is inserted."""
    result: list[Event] = []
    for event in events:
        last = result[-1] if result else None
        if isinstance(event, ToolCall) and not (isinstance(last, ToolCallDelta) and last.id == event.id):
            result.append(ToolCallDelta(event.id, event.name, json.dumps(event.arguments, ensure_ascii=False)))
        result.append(event)
    return result


@lru_cache(maxsize=64)
def _build_name_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for a call's name: one of ``names``, or any name if ``names`` is empty."""
    if names:
        return re.compile(rf"(?<![\w.-])(?:functions\.)?({'|'.join(map(re.escape, names))})(?=[^\w-])")
    return re.compile(
        rf"[\"'](?:{'|'.join(NAME_KEYS)})[\"']\s*:\s*[\"']([^\"'\n]{{1,64}})[\"']"
        r"|(?:<function=|functions\.|(?<![A-Za-z_])call:|name=\")([\w.-]{1,64})(?=[^\w.-])"
    )
