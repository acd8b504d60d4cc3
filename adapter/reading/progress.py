"""Tells what is being written of a call, before it is one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from adapter.reading.argument_stream import ArgumentStream
from adapter.reading.verdicts import Verdicts
from adapter.tools.shapes import NAME_KEYS
from adapter.values.events import Event, ToolCall, ToolCallDelta, ToolCallProgress

HEAD_LIMIT = 1000
"""Characters in which a call's name is looked for."""


class Progress:
    """That of one call. ``stream``: what hands on its arguments, if anybody wants them."""

    def __init__(self, tool_names: Sequence[str], stream: ArgumentStream | None = None) -> None:
        self._stream = stream
        self._names = _pattern_for(tuple(tool_names))
        self._size = 0
        self._head = ""
        self._name: str | None = None
        self.id = ""
        """The id under which arguments were handed on; "" when none were."""

    def report(self, text: str, verdicts: Verdicts) -> list[Event]:
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
        self.id = self.id or verdicts.next_id(self._head)
        return [progress, ToolCallDelta(self.id, self._stream.name, fragment)]

    def rest(self, call: ToolCall) -> ToolCallDelta | None:
        """What has yet to be handed on of ``call``'s arguments; None when they contradict what was."""
        if self._stream is None or self._stream.name != call.name:
            return None
        text = self._stream.finish(call.arguments)
        return None if text is None else ToolCallDelta(self.id, call.name, text)


@lru_cache(maxsize=64)
def _pattern_for(names: tuple[str, ...]) -> re.Pattern[str]:
    """Finds a call's name where it begins: one of the session's tools, or, with none known, where formats put it."""
    if names:
        return re.compile(rf"(?<![\w.-])(?:functions\.)?({'|'.join(map(re.escape, names))})(?=[^\w-])")
    return re.compile(
        rf"[\"'](?:{'|'.join(NAME_KEYS)})[\"']\s*:\s*[\"']([^\"'\n]{{1,64}})[\"']"
        r"|(?:<function=|functions\.|(?<![A-Za-z_])call:|name=\")([\w.-]{1,64})(?=[^\w.-])"
    )
