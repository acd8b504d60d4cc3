"""What a command printed: kept within bounds while it runs, cleaned for a model afterwards."""

from __future__ import annotations

import re
import threading
from collections import deque

KEPT_BYTES = 256 * 1024
"""Kept of the start and again of the end; a result shows 50 KB of it at most."""

# ECMA-48: CSI, then the string sequences (OSC, DCS, SOS, PM, APC) up to BEL or ST, then two- and three-byte escapes.
_ESCAPES = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]|\x1b[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)?|\x1b[ -/]*[0-~]?|\x9b[0-?]*[ -/]*[@-~]"
)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BLANK_RUN = re.compile(r"\n{4,}")


class HeadAndTail:
    """Takes any number of bytes and holds the first and the last ``KEPT_BYTES`` of them."""

    def __init__(self, kept: int = KEPT_BYTES) -> None:
        self._kept = kept
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._total = 0

    def add(self, data: bytes) -> None:
        self._total += len(data)
        room = self._kept - len(self._head)
        self._head += data[:room]
        rest = data[room:] if room > 0 else data
        if not rest:
            return
        self._tail.append(rest)
        self._tail_size += len(rest)
        while self._tail_size - len(self._tail[0]) >= self._kept:
            self._tail_size -= len(self._tail.popleft())

    def raw(self) -> bytes:
        """What was kept, with a line that says how much is missing."""
        tail = b"".join(self._tail)[-self._kept :]
        omitted = self._total - len(self._head) - len(tail)
        gap = f"\n[... {omitted} bytes left out ...]\n".encode() if omitted else b""
        return bytes(self._head) + gap + tail

    def text(self) -> str:
        """What was kept, cleaned."""
        return strip_terminal_codes(self.raw().decode("utf-8", "replace"))


class UnreadOutput:
    """Output that one thread adds and another takes away, each byte once. Bounded as `HeadAndTail` is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept = HeadAndTail()

    def add(self, data: bytes) -> None:
        with self._lock:
            self._kept.add(data)

    def take(self, *, is_final: bool, whole_lines: bool) -> str:
        """What came since the last time, cleaned. Until it is final, an unfinished character stays for
        the next time; with ``whole_lines`` an unfinished line does."""
        with self._lock:
            data = self._kept.raw()
            self._kept = HeadAndTail()
            if not is_final:
                end = data.rfind(b"\n") + 1 if whole_lines else _end_of_characters(data)
                self._kept.add(data[end:])
                data = data[:end]
        return strip_terminal_codes(data.decode("utf-8", "replace"))


def _end_of_characters(data: bytes) -> int:
    """Where the last whole UTF-8 character ends; bytes that are no UTF-8 are not waited for."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte & 0xC0 == 0xC0:
            size = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if size > back else len(data)
        if byte < 0x80:
            break
    return len(data)


def strip_terminal_codes(text: str) -> str:
    """``text`` as a terminal would have left it, without colours, titles and progress bars. Linear."""
    text = _ESCAPES.sub("", text).replace("\r\n", "\n")
    text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _BLANK_RUN.sub("\n\n\n", _CONTROLS.sub("", text))
