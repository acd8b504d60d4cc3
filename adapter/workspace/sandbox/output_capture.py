"""Collect a limited amount of a command's output, and remove terminal codes from it."""

from __future__ import annotations

import codecs
import re
import sys
import threading
from collections import deque

KEPT_BYTES = 256 * 1024
"""Number of bytes kept at each end. A result shows at most 50 KB."""

# ECMA-48: CSI, then the string sequences (OSC, DCS, SOS, PM, APC) up to BEL or ST, then two- and three-byte escapes.
_ESCAPES = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]|\x1b[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)?|\x1b[ -/]*[0-~]?|\x9b[0-?]*[ -/]*[@-~]"
)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BLANK_RUN = re.compile(r"\n{4,}")


def _decode_for_console(error: UnicodeError) -> tuple[str, int]:
    """Decode the rest of a line from its first byte that is not UTF-8, with the code page of Windows consoles."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    end = error.object.find(b"\n", error.start) % (len(error.object) + 1)
    return error.object[error.start : end].decode("oem", "replace"), end


codecs.register_error("adapter.console", _decode_for_console)
DECODE_ERRORS = "adapter.console" if sys.platform == "win32" else "replace"
"""Error handler for decoding the output of programs as UTF-8."""


class HeadAndTail:
    """Collects output, but keeps only the first and the last ``limit`` bytes."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._total = 0

    def add(self, data: bytes) -> None:
        self._total += len(data)
        room = self._limit - len(self._head)
        self._head += data[:room]
        rest = data[room:] if room > 0 else data
        if not rest:
            return
        self._tail.append(rest)
        self._tail_size += len(rest)
        while self._tail_size - len(self._tail[0]) >= self._limit:
            self._tail_size -= len(self._tail.popleft())

    def join_raw(self) -> bytes:
        """Return the kept bytes, with a line between them that shows the number of bytes left out."""
        tail = b"".join(self._tail)[-self._limit :]
        omitted = self._total - len(self._head) - len(tail)
        gap = f"\n[... {omitted} bytes left out ...]\n".encode() if omitted else b""
        return bytes(self._head) + gap + tail

    def render_text(self) -> str:
        """Return the kept output as text, without terminal codes."""
        return strip_terminal_codes(self.join_raw().decode("utf-8", DECODE_ERRORS))


class UnreadOutput:
    """A buffer for output that one thread writes and another reads; limited in size like `HeadAndTail`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._buffer = HeadAndTail()

    def add(self, data: bytes) -> None:
        with self._lock:
            self._buffer.add(data)

    def take(self, *, is_final: bool, whole_lines: bool) -> str:
        """Return the output since the last call as text, without terminal codes.

        ``is_final``: True if no more output will follow. If False, an incomplete character at the end is kept for the
        next call. ``whole_lines``: True to also keep an incomplete line for the next call.
        """
        with self._lock:
            data = self._buffer.join_raw()
            self._buffer = HeadAndTail()
            if not is_final:
                end = data.rfind(b"\n") + 1 if whole_lines else _find_end_of_characters(data)
                self._buffer.add(data[end:])
                data = data[:end]
        return strip_terminal_codes(data.decode("utf-8", DECODE_ERRORS))


def _find_end_of_characters(data: bytes) -> int:
    """Return the end of the last complete UTF-8 character; bytes that are not UTF-8 count as complete."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte & 0xC0 == 0xC0:
            size = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if size > back else len(data)
        if byte < 0x80:
            break
    return len(data)


def strip_terminal_codes(text: str) -> str:
    """Return ``text`` as a terminal shows it, without colors, titles and overwritten lines, in linear time."""
    text = _ESCAPES.sub("", text).replace("\r\n", "\n")
    text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _BLANK_RUN.sub("\n\n\n", _CONTROLS.sub("", text))
