"""Reduce long output to its first lines, its last lines, and the lines between them that look like problems.

Lines keep their order and are not repeated. Each gap shows the number of lines left out. The program Promptly asks a
model for regular expressions that select such lines. Here the expressions are fixed, so excerpts are reproducible.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from itertools import pairwise

from adapter.core.text.truncate import MAX_BYTES
from adapter.workspace.sandbox.output_capture import DECODE_ERRORS, HeadAndTail, strip_terminal_codes

ENDS = 250
"""Number of lines kept at each end."""
MAX_MATCHES = 100
"""Maximum number of lines kept from the middle: the first ones, since they usually cause the later errors."""
MAX_LINE_BYTES = 2_000
"""Maximum length of a line, in bytes. A longer line ends with ``...``."""
_BLOCK_BYTES = 1_048_576
_SHORTER_ENDS = (ENDS, 100, 50, 20, 5)
"""Numbers of lines kept at each end, tried in turn until the excerpt fits in a result."""

PATTERNS = ("error", "fail", "exception", "traceback", "panic", "fatal", "abort", "assert", "warning", "denied")
"""Case-insensitive patterns of lines to keep. They are plain words, so that blocks without any are skipped quickly."""
_WORDS = tuple(word.encode() for word in PATTERNS)
_ANY = re.compile(b"|".join(_WORDS), re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ProblemExcerpt:
    text: str
    skipped: int
    """Number of lines left out."""
    patterns: tuple[str, ...]
    """Entries of `PATTERNS` that matched kept lines."""


class ProblemExcerptBuilder:
    """Collects output, but keeps only the bytes that an excerpt may need."""

    def __init__(self) -> None:
        self._whole = HeadAndTail()  # in case the output is short
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

    def render_text(self) -> str:
        """Return the whole output, within the limits of `HeadAndTail`."""
        return self._whole.render_text()

    def build_excerpt(self) -> ProblemExcerpt | None:
        """Return the excerpt, or None if the output is short enough to keep whole. No output can be added after this
        call.
        """
        if self._block and not self._block.endswith(b"\n"):
            self._block += b"\n"
        self._flush()
        if self._count <= 2 * ENDS:
            return None
        for ends in _SHORTER_ENDS:
            excerpt = self._slice(ends)
            if len(excerpt.text.encode()) <= MAX_BYTES:
                break
        return excerpt

    def _flush(self) -> None:
        """Process the complete lines, and keep the start of an incomplete line."""
        cut = self._block.rfind(b"\n") + 1
        if cut:
            self._add_lines(bytes(self._block[:cut]))
        self._block = self._block[cut : cut + MAX_LINE_BYTES + 1]  # one more byte than the limit marks the line as cut

    def _add_lines(self, block: bytes) -> None:
        """Add the lines of ``block``, which ends with a line ending."""
        first, self._count = self._count, self._count + block.count(b"\n")
        if first < ENDS:
            self._head += [_clip(line) for line in block.split(b"\n", ENDS - first)[: ENDS - first]]
            del self._head[self._count :]
        self._tail.extend(_clip(line) for line in block.rsplit(b"\n", ENDS + 1)[-ENDS - 1 : -1])
        if len(self._matches) >= MAX_MATCHES:
            return
        lowered = block.lower()
        if any(word in lowered for word in _WORDS):
            for number, line in enumerate(block.split(b"\n"), first):
                if len(self._matches) < MAX_MATCHES and number >= ENDS and _ANY.search(line):
                    self._matches[number] = _clip(line)

    def _slice(self, ends: int) -> ProblemExcerpt:
        last = self._count - ends
        tail_start = self._count - len(self._tail)
        lines = dict(enumerate(self._head)) | self._matches | dict(enumerate(self._tail, tail_start))
        between = {n: line for n, line in lines.items() if ends <= n < last and _ANY.search(line)}
        kept = sorted(n for n in lines if n < ends or n >= last or n in between)
        parts = [_decode(lines[kept[0]])]
        for before, number in pairwise(kept):
            if number > before + 1:
                parts.append(f"[... {number - before - 1} lines left out ...]")
            parts.append(_decode(lines[number]))
        used = tuple(word for word in PATTERNS if any(word.encode() in line.lower() for line in between.values()))
        return ProblemExcerpt(strip_terminal_codes("\n".join(parts) + "\n"), self._count - len(kept), used)


def _clip(line: bytes) -> bytes:
    return line if len(line) <= MAX_LINE_BYTES else line[: MAX_LINE_BYTES - 3] + b"..."


def _decode(line: bytes) -> str:
    return line.decode("utf-8", DECODE_ERRORS)
