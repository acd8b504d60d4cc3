"""Parse and encode server-sent events, as far as chat completions use them: the ``data`` of each event.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream. Lines that end in a lone
carriage return, which no model server sends, are not split.
"""

from __future__ import annotations

import json

from pydantic_core import from_json, to_json

from adapter.core.events import Json

DONE = b"data: [DONE]\n\n"
PING = b": ping\n\n"
"""A comment as a keepalive: clients ignore it, and proxies see that the connection is alive."""
MAX_EVENT_BYTES = 8_000_000
"""Maximum size of one event, or of an answer that is not a stream; larger ones are not a model's answer."""
MAX_STRAY = 100
"""Number of bytes reported of an answer without events."""
_OTHER_FIELDS = (b":", b"event:", b"id:", b"retry:")


class _LineSplitter:
    """Splits bytes in any chunks into lines; a line in many chunks is joined once."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self.waiting = 0
        """Number of bytes after the last line end."""

    def feed(self, piece: bytes) -> list[bytes]:
        if b"\n" not in piece:
            self._held.append(piece)
            self.waiting += len(piece)
            return []
        if self._held:
            piece = b"".join((*self._held, piece))
            self._held.clear()
        *lines, rest = piece.split(b"\n")
        if rest:
            self._held.append(rest)
        self.waiting = len(rest)
        return lines


class EventReader:
    """Takes bytes in any chunks and returns the data of the events that they complete.

    An answer that is one JSON object, as from servers that ignore ``stream``, is one event at its end; so is the first
    line of an answer without events, such as an HTML page.
    """

    def __init__(self) -> None:
        self._lines = _LineSplitter()
        self._data: list[bytes] = []
        self._body: list[bytes] | None = None
        self._has_begun = False
        self._stray: bytes | None = b""
        """The first line that is not an event field; None once there was an event."""

    @property
    def waiting(self) -> int:
        """Number of received bytes that do not form an event yet."""
        held = self._data if self._body is None else self._body
        return self._lines.waiting + sum(map(len, held)) if held else self._lines.waiting

    def feed(self, piece: bytes) -> list[bytes]:
        if self._is_one(piece):
            self._has_begun, self._stray = True, None
            return [piece[6:-2].removesuffix(b"\r")]
        if not self._has_begun and (start := piece.lstrip()):
            self._has_begun = True
            self._body = [] if start.startswith(b"{") else None
        if self._body is not None:
            self._body.append(piece)
            return []
        events: list[bytes] = []
        for line in self._lines.feed(piece):
            if line.startswith(b"data:"):
                self._data.append(line[5:].removesuffix(b"\r").removeprefix(b" "))
                self._stray = None
            elif self._data and line in (b"", b"\r"):
                events.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                self._data = []
            elif self._stray == b"" and not line.startswith(_OTHER_FIELDS):
                self._stray = line.strip()[:MAX_STRAY]
        return events

    def _is_one(self, piece: bytes) -> bool:
        """Return whether a piece is exactly one event, the usual case; this check saves a third of the time per
        chunk."""
        is_event = piece.startswith(b"data: ") and piece.endswith(b"\n\n") and piece.find(b"\n") == len(piece) - 2
        return is_event and not (self._data or self._body or self._lines.waiting)

    def close(self) -> list[bytes]:
        """Return the event completed by the end of the stream, as some servers omit the last empty line."""
        if self._body is not None:
            body, self._body = b"".join(self._body), None
            return [body]
        events = self.feed(b"\n\n")
        return [self._stray] if self._stray else events


class LineReader:
    """Splits JSON lines, as in Ollama's streams, in the same way."""

    def __init__(self) -> None:
        self._lines = _LineSplitter()

    @property
    def waiting(self) -> int:
        return self._lines.waiting

    def feed(self, piece: bytes) -> list[bytes]:
        return [line for line in self._lines.feed(piece) if line.strip()]

    def close(self) -> list[bytes]:
        return self.feed(b"\n")


def encode_event(value: Json) -> bytes:
    return b"data: " + encode_json(value) + b"\n\n"


def encode_json(value: Json) -> bytes:
    """Encode ``value`` in UTF-8; lone surrogates, which UTF-8 cannot represent, become ``?``."""
    try:
        return to_json(value)  # a sixth of the time of json.dumps for a chunk
    except ValueError:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def read_json(data: bytes) -> Json:
    """Decode JSON. Raises ValueError."""
    try:
        return from_json(data)
    except ValueError:
        pass
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
