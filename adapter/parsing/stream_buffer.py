"""A buffer for text that arrives in chunks, with methods that consume the text.

A reader is a generator that consumes text from a `StreamBuffer`. It yields when it needs more text, and is resumed when
text has arrived or has ended (``source.final``). It waits while the last characters may become a marker. Every decision
therefore depends only on the text, never on the chunks. Each character is examined a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import TypeAlias, TypeVar

from adapter.parsing.marker_set import MarkerSet, MarkerSpan

T = TypeVar("T")
Reader: TypeAlias = Generator[None, None, T]
"""A generator that yields when it needs more text, and returns its result."""

SPACE = " \t\r\n\f\v\ufeff\u200b\u200c\u200d\u2060"
"""Whitespace between tokens, including invisible characters that some models emit."""

NAME_LIMIT = 200
"""Maximum length of a tool's or an argument's name and the text around it. Anything longer is prose after a stray
marker."""

HEAD_LIMIT = 300
"""Maximum number of characters before a call's arguments, in formats that write more than the name there, such as an
id."""

_spaces = re.compile(f"[{SPACE}]+")


class ValueSink:
    """Collects the chunks of a long value in ``consumed``.

    ``stop_pattern`` matches every chunk that may end the value. While the value's parser waits, other chunks are added
    without resuming the parser.
    """

    __slots__ = ("_start", "consumed", "stop_pattern")

    def __init__(self, consumed: list[str], stop_pattern: re.Pattern[str]) -> None:
        self.consumed, self.stop_pattern = consumed, stop_pattern
        self._start = len(consumed)

    def consume(self, piece: str) -> None:
        self.consumed.append(piece)
        if len(self.consumed) - self._start >= 256:  # a chunk of four characters needs sixty bytes
            self.consumed[self._start :] = ["".join(self.consumed[self._start :])]
            self._start += 1

    def wait(self, source: StreamBuffer) -> Reader[None]:
        """Wait for text that may end the value. Until then, chunks are added to the sink without resuming the
        parser."""
        if source.is_empty:
            source.sink = self
        yield
        source.sink = None


class StreamBuffer:
    """Text received but not yet consumed. ``finish_reason`` is set when the text is complete (``final``)."""

    __slots__ = ("_before", "_searched", "final", "finish_reason", "position", "sink", "text")

    def __init__(self, text: str = "", *, final: bool = False, finish_reason: str | None = None) -> None:
        self.text = text
        self.position = 0
        self.final = final
        self.finish_reason = finish_reason
        self._before = 0  # number of characters before ``text``
        self._searched: dict[MarkerSet, tuple[int, int]] = {}  # ranges without any marker, found by `search`
        self.sink: ValueSink | None = None

    @property
    def offset(self) -> int:
        """The offset of the next character, which equals the number of characters consumed."""
        return self._before + self.position

    @property
    def end(self) -> int:
        """The number of characters received."""
        return self._before + len(self.text)

    def find_last_span(self, length: int) -> tuple[int, int]:
        """Return the start and end offsets of the last ``length`` characters consumed."""
        return self.offset - length, self.offset

    def get_since(self, offset: int) -> str:
        """Return the buffered text from ``offset`` on."""
        return self.text[max(0, offset - self._before) :]

    def feed(self, piece: str) -> None:
        self._before += self.position
        self.text = self.text[self.position :] + piece if self.position < len(self.text) else piece
        self.position = 0

    def skip(self, piece: str) -> None:
        """Consume ``piece`` without examining it. All text before ``piece`` must already have been consumed."""
        self._before += len(piece)

    def push_back(self, text: str) -> None:
        """Put ``text`` back before the remaining text."""
        start = self.position - len(text)
        if start >= 0 and self.text.startswith(text, start):
            self.position = start
        else:
            self._before += start
            self.text = text + self.text[self.position :]
            self.position = 0

    def consume_rest(self) -> str:
        """Consume and return all buffered text."""
        rest = self.text[self.position :]
        self.position = len(self.text)
        return rest

    def scan(self, markers: MarkerSet) -> tuple[str, str]:
        """Consume and return the text before the next marker, and the marker, or "" if none is in the buffer."""
        marker = markers.search(self.text, self.position)
        start = self.position
        if marker is not None and (
            self.final
            or len(self.text) - marker[0] >= markers.longest
            or not (self.may_continue(marker, markers) or self.is_within(marker, markers))
        ):
            begin, self.position = marker
            return self.text[start:begin], self.text[begin : self.position]
        self.position = len(self.text) if self.final else markers.find_partial_start(self.text, start)
        return self.text[start : self.position], ""

    def search(self, markers: MarkerSet, end: int) -> MarkerSpan | None:
        """Return the position of the next marker that ends at ``end`` or earlier, or None. Nothing is consumed.

        Ranges without a marker are remembered. Otherwise, a series of opening markers would search the text after them
        repeatedly.
        """
        here = self.offset
        begin, clear = self._searched.get(markers, (here, here))
        if not begin <= here <= clear:
            begin = clear = here
        marker = markers.search(self.text, clear - self._before, end)
        if marker is None:
            looked_to = self._before + min(len(self.text), end)
            self._searched[markers] = begin, max(clear, looked_to - markers.longest + 1)
        return marker

    def may_continue(self, marker: MarkerSpan, markers: MarkerSet) -> bool:
        """Return whether ``marker`` may be the start of a longer marker that has not fully arrived."""
        if self.final or len(self.text) - marker[0] >= markers.longest or not markers.overlap:
            return False
        return markers.may_start_with(self.text[marker[0] :])

    def is_within(self, marker: MarkerSpan, markers: MarkerSet) -> bool:
        """Return whether ``marker`` may be inside a longer marker that began earlier and has not fully arrived."""
        return markers.nests and markers.find_partial_start(self.text, self.position) < marker[0]

    @property
    def is_empty(self) -> bool:
        """True if all buffered text was consumed."""
        return self.position >= len(self.text)

    @property
    def was_cut(self) -> bool:
        """True if the server reported that the text was cut off, for example by a length limit."""
        return self.finish_reason in ("length", "incomplete", "content_filter", "error", "cancelled")

    def read_until(self, markers: MarkerSet, consumed: list[str]) -> Reader[str]:
        """Consume text up to and including the next marker, and return the marker, or "" at the end of the text. Only
        the text before the marker is added to ``consumed``."""
        sink = ValueSink(consumed, markers.stop_pattern)
        while True:
            plain, marker = self.scan(markers)
            if plain:
                sink.consume(plain)
            if marker or self.final:
                return marker
            yield from sink.wait(self)

    def consume_through(self, markers: MarkerSet, consumed: list[str]) -> Reader[tuple[str, str]]:
        """Consume text and the next marker ("" at the end), add both to ``consumed``, and return them."""
        value: list[str] = []
        marker = yield from self.read_until(markers, value)
        consumed.extend([*value, marker])
        return "".join(value), marker

    def skip_to(self, markers: MarkerSet, consumed: list[str]) -> Reader[str]:
        """Consume the text before the next marker into ``consumed``. Return the marker without consuming it, or "" at
        the end of the text."""
        marker = yield from self.read_until(markers, consumed)
        self.push_back(marker)
        return marker

    def skip_space(self, consumed: list[str]) -> Reader[str]:
        """Consume whitespace into ``consumed``. Return the next character without consuming it, or "" at the end of the
        text."""
        while True:
            match = _spaces.match(self.text, self.position)
            if match is not None:
                consumed.append(match.group())
                self.position = match.end()
            if self.position < len(self.text):
                return self.text[self.position]
            if self.final:
                return ""
            yield

    def wait_for_character(self) -> Reader[None]:
        """Wait until a character is available or the text has ended."""
        while self.is_empty and not self.final:
            yield

    def begins_block(self) -> Reader[bool]:
        """Return whether a line break or a tag comes next. After a marker, any other text may be a sentence about the
        marker."""
        yield from self.wait_for_character()
        return not self.is_empty and self.text[self.position] in "\r\n<"

    def consume_marker(self, markers: MarkerSet, consumed: list[str] | None = None) -> Reader[str]:
        """Consume and return the marker at the current position, or return "". Add it to ``consumed`` if that is a
        list."""
        while True:
            marker = markers.match(self.text, self.position)
            if marker is not None and not self.may_continue(marker, markers):
                begin, self.position = marker
                if consumed is not None:
                    consumed.append(self.text[begin : self.position])
                return self.text[begin : self.position]
            ahead = self.text[self.position : self.position + markers.longest]
            if self.final or (ahead and not markers.may_start_with(ahead)):
                return ""
            yield

    def peek_after_space(self, markers: MarkerSet) -> Reader[tuple[str, str]]:
        """Return the first character after any whitespace, and the marker that begins there ("" if missing). Nothing is
        consumed."""
        ahead: list[str] = []
        char = yield from self.skip_space(ahead)
        marker = yield from self.consume_marker(markers, ahead)
        self.push_back("".join(ahead))
        return char, marker

    def is_next(self, markers: MarkerSet) -> Reader[bool]:
        """Return whether one of ``markers`` comes next. Nothing is consumed."""
        marker = yield from self.consume_marker(markers)
        self.push_back(marker)
        return bool(marker)

    def give_back(self, consumed: list[str], start: int) -> list[str]:
        """Put back the text in ``consumed`` from the index ``start`` on. Return it, for `consume_again`."""
        taken = consumed[start:]
        del consumed[start:]
        self.push_back("".join(taken))
        return taken

    def consume_again(self, consumed: list[str], taken: list[str]) -> None:
        """Undo `give_back`: consume ``taken``, the list that it returned, again."""
        consumed.extend(taken)
        self.position += sum(map(len, taken))

    def peek_match(
        self, pattern: re.Pattern[str], limit: int, may_continue: Callable[[str], object]
    ) -> Reader[re.Match[str] | None]:
        """Return the match of ``pattern`` in the next ``limit`` characters, or None. Nothing is consumed. Wait for more
        text while ``may_continue``, called with the text so far, returns a true value."""
        while True:
            ahead = self.text[self.position : self.position + limit]
            match = pattern.match(ahead)
            if match is not None or self.final or len(ahead) == limit or not may_continue(ahead):
                return match
            yield

    def consume_match(self, match: re.Match[str], consumed: list[str]) -> None:
        """Consume the text of a match from `peek_match`."""
        consumed.append(match.group())
        self.position += len(match.group())

    def is_cut_within(self, literal: str) -> bool:
        """Return whether the text ends here or within ``literal``: the unconsumed text is empty or its start."""
        rest = self.text[self.position : self.position + len(literal) + 1]
        return self.final and literal.lower().startswith(rest.lower())

    def consume_cut_marker(self, literal: str, consumed: list[str]) -> bool:
        """If the text ends within ``literal``, consume the part of it into ``consumed`` and return True. Otherwise,
        return False."""
        is_cut = not self.is_empty and self.is_cut_within(literal)
        if is_cut:
            consumed.append(self.consume_rest())
        return is_cut

    def consume_cut_tags(self, limit: int, consumed: list[str]) -> bool:
        """If the text was cut off, and the rest of it begins with a tag and has at most ``limit`` characters, consume
        the rest into ``consumed`` and return True. Otherwise, return False.

        The rest may be a call in other tags, which cannot be parsed inside the current tags.
        """
        rest = self.text[self.position : self.position + limit + 1]
        is_cut = self.was_cut and rest.startswith("<") and len(rest) <= limit
        consumed.append(self.consume_rest() if is_cut else "")
        return is_cut

    def consume_until(self, stop: str, limit: int, consumed: list[str]) -> Reader[str | None]:
        """Consume text up to and including the string ``stop`` into ``consumed``. Return the text before ``stop``. If
        ``stop`` does not occur within ``limit`` characters, or the text ends first, consume nothing and return None."""
        while True:
            end = self.text.find(stop, self.position, self.position + limit)
            if end >= 0:
                text = self.text[self.position : end]
                consumed.append(self.text[self.position : end + len(stop)])
                self.position = end + len(stop)
                return text
            if self.final or len(self.text) - self.position >= limit:
                return None
            yield

    def peek_marker(self, markers: MarkerSet, limit: int) -> Reader[str]:
        """Return the next marker if it begins within ``limit`` characters, or "". Nothing is consumed."""
        while True:
            marker = self.search(markers, self.position + limit + markers.longest)
            if marker is not None:
                begin, end = marker
                return self.text[begin:end] if begin - self.position <= limit else ""
            if self.final or len(self.text) - self.position >= limit + markers.longest:
                return ""
            yield
