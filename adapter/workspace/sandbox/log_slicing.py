"""Log slicing: of a long output the first lines, the last ones, and those between that tell of trouble.

Lines come in their own order and once each; every gap says how many lines it
leaves out. The program of the Promptly document asks its model which regular
expressions are worth a look; here they are fixed, so that the same output always
gives the same slice and nothing is sent anywhere.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from itertools import pairwise

from adapter.core.text.truncate import MAX_BYTES
from adapter.workspace.sandbox.output import HeadAndTail, strip_terminal_codes

ENDS = 250
"""Lines kept of the start, and again of the end."""
MAX_MATCHES = 100
"""Lines kept from between: the first ones, since later errors mostly follow from them."""
MAX_LINE_BYTES = 2_000
"""Of a line of output that are kept; a longer one ends in ``...``."""
_BLOCK_BYTES = 1_048_576
_SHORTER_ENDS = (ENDS, 100, 50, 20, 5)
"""Tried in turn until the slice is no longer than a result may be."""

PATTERNS = ("error", "fail", "exception", "traceback", "panic", "fatal", "abort", "assert", "warning", "denied")
"""Regular expressions, upper or lower case. They are plain words, so that a block without any is passed over fast."""
_WORDS = tuple(word.encode() for word in PATTERNS)
_ANY = re.compile(b"|".join(_WORDS), re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LogExcerpt:
    text: str
    skipped: int
    """Lines left out."""
    patterns: tuple[str, ...]
    """Of `PATTERNS`, those by which lines were kept."""


class LogSlice:
    """Takes any number of bytes and holds what a slice may need of them."""

    def __init__(self) -> None:
        self._whole = HeadAndTail()  # for an output that is short after all
        self._count = 0
        self._block = bytearray()
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque(maxlen=ENDS)
        self._matches: dict[int, bytes] = {}  # by 0-based line

    def add(self, data: bytes) -> None:
        self._whole.add(data)
        self._block += data
        if len(self._block) >= _BLOCK_BYTES:
            self._flush()

    def text(self) -> str:
        """All of it, as far as memory was granted."""
        return self._whole.text()

    def sliced(self) -> LogExcerpt | None:
        """The slice; None when there is no need for one. Ends the adding."""
        if self._block and not self._block.endswith(b"\n"):
            self._block += b"\n"
        self._flush()
        if self._count <= 2 * ENDS:
            return None
        sliced = self._slice(ENDS)
        for ends in _SHORTER_ENDS:
            sliced = self._slice(ends)
            if len(sliced.text.encode()) <= MAX_BYTES:
                break
        return sliced

    def _flush(self) -> None:
        """Take the whole lines; of an unfinished one no more than its start is kept."""
        cut = self._block.rfind(b"\n") + 1
        if cut:
            self._add_lines(bytes(self._block[:cut]))
        self._block = self._block[cut : cut + MAX_LINE_BYTES + 1]  # one more tells that it is cut

    def _add_lines(self, block: bytes) -> None:
        """``block`` ends in a line end."""
        first, self._count = self._count, self._count + block.count(b"\n")
        if first < ENDS:
            self._head += [_clipped(line) for line in block.split(b"\n", ENDS - first)[: ENDS - first]]
            del self._head[self._count :]
        self._tail.extend(_clipped(line) for line in block.rsplit(b"\n", ENDS + 1)[-ENDS - 1 : -1])
        if len(self._matches) >= MAX_MATCHES:
            return
        lowered = block.lower()
        if any(word in lowered for word in _WORDS):
            for number, line in enumerate(block.split(b"\n"), first):
                if len(self._matches) < MAX_MATCHES and number >= ENDS and _ANY.search(line):
                    self._matches[number] = _clipped(line)

    def _slice(self, ends: int) -> LogExcerpt:
        last = self._count - ends
        tail_start = self._count - len(self._tail)
        lines = dict(enumerate(self._head)) | self._matches | dict(enumerate(self._tail, tail_start))
        between = {n: line for n, line in lines.items() if ends <= n < last and _ANY.search(line)}
        kept = sorted(n for n in lines if n < ends or n >= last or n in between)
        parts = [_shown(lines[kept[0]])]
        for before, number in pairwise(kept):
            if number > before + 1:
                parts.append(f"[... {number - before - 1} lines left out ...]")
            parts.append(_shown(lines[number]))
        used = tuple(word for word in PATTERNS if any(word.encode() in line.lower() for line in between.values()))
        return LogExcerpt(strip_terminal_codes("\n".join(parts) + "\n"), self._count - len(kept), used)


def _clipped(line: bytes) -> bytes:
    return line if len(line) <= MAX_LINE_BYTES else line[: MAX_LINE_BYTES - 3] + b"..."


def _shown(line: bytes) -> str:
    return line.decode("utf-8", "replace")
