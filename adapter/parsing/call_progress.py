"""Tells what is being written of a call, before it is one."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import lru_cache

from adapter.core.events import Event, InvalidToolCall, ToolCall, ToolCallDelta, ToolCallProgress
from adapter.parsing.argument_stream import ArgumentStream
from adapter.parsing.call_events import CallEventFactory
from adapter.parsing.format import ReadContext
from adapter.parsing.stream_buffer import StreamBuffer
from adapter.tools.call_shapes import NAME_KEYS

HEAD_LIMIT = 1000
"""Characters in which a call's name is looked for."""

MENDED = "its arguments had to be mended after the first of them were handed on. Write it again, in valid JSON."


class CallProgress:
    """That of one call, whose body begins at offset ``start`` of the model's text, after ``marker``.

    ``is_own``: the call stands in markers, or in a form that a format which is read has: others' may turn out to be
    text, and nothing is told of them. ``streams_arguments``: whether its arguments are handed on as they are written.
    """

    has_begun = False
    """Whether something was told."""
    _id = ""  # the id under which arguments were handed on
    _stream: ArgumentStream | None = None
    _name: str | None = None
    _head = ""
    _size = 0

    def __init__(
        self,
        context: ReadContext,
        verdicts: CallEventFactory,
        marker: str,
        start: int,
        *,
        is_own: bool,
        streams_arguments: bool,
    ) -> None:
        self._context, self._verdicts, self._marker, self._start = context, verdicts, marker, start
        self._is_own, self._streams_arguments = is_own, streams_arguments

    def report_from(self, source: StreamBuffer, piece: str) -> list[Event]:
        """The events for ``piece``, which came last, and for all before it of which nothing was told."""
        if self.has_begun:
            return self.report(piece)
        if self._context.may_be_text or not self._is_own:
            return []
        self.has_begun = True
        self._names = _pattern_for(tuple(self._context.tools))
        if self._streams_arguments:
            start = self._start - len(self._marker)
            self._stream = ArgumentStream(self._context, self._verdicts.normalise, start)
        return self.report(self._marker + source.since(self._start))  # a piece before this one may have been held back

    def report(self, text: str) -> list[Event]:
        """The events for ``text``, which was added to the call."""
        if self._name is None and self._size < HEAD_LIMIT:
            self._head += text
            found = self._names.search(self._head)
            self._name = found[found.lastindex or 0] if found else None
        self._size += len(text)
        progress = ToolCallProgress(text, self._name, self._size)
        if self._stream is None:
            return [progress]
        fragment = self._stream.feed(text)
        if not fragment or self._stream.name is None:
            return [progress]
        self._id = self._id or self._verdicts.next_id(self._head)
        return [progress, ToolCallDelta(self._id, self._stream.name, fragment)]

    def ending(self, events: list[Event]) -> list[Event]:
        """``events`` of the call's end, the first call among them with the id and the rest of what was handed on."""
        first = events[0]
        if not self._id or not isinstance(first, ToolCall):
            return events
        rest = self._rest(first)
        if rest is None:
            return [InvalidToolCall(first.raw, f"the call cannot be taken: {MENDED}", first.name), *events[1:]]
        return [ToolCallDelta(self._id, first.name, rest), replace(first, id=self._id), *events[1:]]

    def _rest(self, call: ToolCall) -> str | None:
        """What has yet to be handed on of ``call``'s arguments; None when they contradict what was."""
        if self._stream is None or self._stream.name != call.name:
            return None
        return self._stream.finish(call.arguments)


def keep_argument_deltas(events: list[Event]) -> list[Event]:
    """``events`` with the arguments of each call, as one piece, before those whose arguments were not handed on."""
    result: list[Event] = []
    for event in events:
        last = result[-1] if result else None
        if isinstance(event, ToolCall) and not (isinstance(last, ToolCallDelta) and last.id == event.id):
            result.append(ToolCallDelta(event.id, event.name, json.dumps(event.arguments, ensure_ascii=False)))
        result.append(event)
    return result


@lru_cache(maxsize=64)
def _pattern_for(names: tuple[str, ...]) -> re.Pattern[str]:
    """Finds a call's name where it begins: one of the session's tools, or, with none known, where formats put it."""
    if names:
        return re.compile(rf"(?<![\w.-])(?:functions\.)?({'|'.join(map(re.escape, names))})(?=[^\w-])")
    return re.compile(
        rf"[\"'](?:{'|'.join(NAME_KEYS)})[\"']\s*:\s*[\"']([^\"'\n]{{1,64}})[\"']"
        r"|(?:<function=|functions\.|(?<![A-Za-z_])call:|name=\")([\w.-]{1,64})(?=[^\w.-])"
    )
