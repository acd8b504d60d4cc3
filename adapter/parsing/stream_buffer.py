"""Text that arrives in pieces, and the few ways in which readers take it.

A reader is a generator: it takes text from a `StreamBuffer` and yields when it needs
more. It is resumed when more has come, or when none will (``source.final``).
Every decision depends on the text alone, never on where it was split, because
a piece that may still become a marker is waited for; and every character is
looked at a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import TypeAlias, TypeVar

from adapter.parsing.marker_set import Found, MarkerSet

T = TypeVar("T")
Reader: TypeAlias = Generator[None, None, T]
"""Yields when it needs more text; returns what it read."""

SPACE = " \t\r\n\f\v\ufeff\u200b\u200c\u200d\u2060"
"""White space between tokens, with the invisible characters that some models emit."""

_spaces = re.compile(f"[{SPACE}]+")


class ValueSink:
    """Takes a long value into ``span``. While its reader waits, pieces at whose beginning ``matters`` does not match,
    which could not change what the reader does, may be put into it without asking the reader."""

    __slots__ = ("_start", "matters", "span")

    def __init__(self, span: list[str], matters: re.Pattern[str]) -> None:
        self.span, self.matters = span, matters
        self._start = len(span)

    def take(self, piece: str) -> None:
        self.span.append(piece)
        if len(self.span) - self._start >= 256:  # a stream's piece of four characters takes sixty bytes
            self.span[self._start :] = ["".join(self.span[self._start :])]
            self._start += 1

    def wait(self, source: StreamBuffer) -> Reader[None]:
        """Yield for more text than what went into the sink."""
        if source.is_empty:
            source.sink = self
        yield
        source.sink = None


class StreamBuffer:
    """The text not yet taken. ``finish_reason`` is known once the text is ``final``."""

    __slots__ = ("_before", "_clear", "final", "finish_reason", "position", "sink", "text")

    def __init__(self, text: str = "", *, final: bool = False, finish_reason: str | None = None) -> None:
        self.text = text
        self.position = 0
        self.final = final
        self.finish_reason = finish_reason
        self._before = 0  # characters that came before ``text``
        self._clear: dict[MarkerSet, tuple[int, int]] = {}  # offsets between which `search` found that none begins
        self.sink: ValueSink | None = None

    @property
    def offset(self) -> int:
        """How many characters have been taken since the text began."""
        return self._before + self.position

    @property
    def end(self) -> int:
        """How many characters have come since the text began."""
        return self._before + len(self.text)

    def since(self, offset: int) -> str:
        """What has come from ``offset`` on, of a place that was reached with the last piece."""
        return self.text[max(0, offset - self._before) :]

    def feed(self, piece: str) -> None:
        self._before += self.position
        self.text = self.text[self.position :] + piece if self.position < len(self.text) else piece
        self.position = 0

    def skip(self, piece: str) -> None:
        """Take ``piece``, which comes after all else was taken, without looking at it."""
        self._before += len(piece)

    def push_back(self, text: str) -> None:
        """Put text back in front of what is left."""
        start = self.position - len(text)
        if start >= 0 and self.text.startswith(text, start):
            self.position = start
        else:
            self._before += start
            self.text = text + self.text[self.position :]
            self.position = 0

    def rest(self) -> str:
        """Take all that is there."""
        rest = self.text[self.position :]
        self.position = len(self.text)
        return rest

    def scan(self, markers: MarkerSet) -> tuple[str, str]:
        """Take the text up to the next marker, and the marker; "" for it when none has come (yet)."""
        found = markers.search(self.text, self.position)
        start = self.position
        if found is not None and (
            self.final
            or len(self.text) - found[0] >= markers.longest
            or not (self.may_go_on(found, markers) or self.is_within(found, markers))
        ):
            begin, self.position = found
            return self.text[start:begin], self.text[begin : self.position]
        self.position = len(self.text) if self.final else markers.held(self.text, start)
        return self.text[start : self.position], ""

    def search(self, markers: MarkerSet, end: int) -> Found | None:
        """The first marker that begins here or later and ends by ``end``, nothing taken.

        Where none was, none is looked for again, so that openers in a row do not each look through all that follows.
        """
        here = self.offset
        begin, clear = self._clear.get(markers, (here, here))
        if not begin <= here <= clear:
            begin = clear = here
        found = markers.search(self.text, clear - self._before, end)
        if found is None:
            looked_to = self._before + min(len(self.text), end)
            self._clear[markers] = begin, max(clear, looked_to - markers.longest + 1)
        return found

    def may_go_on(self, found: Found, markers: MarkerSet) -> bool:
        """Whether a longer marker may still be arriving in this one's place."""
        if self.final or len(self.text) - found[0] >= markers.longest or not markers.overlap:
            return False
        return markers.may_start_with(self.text[found[0] :])

    def is_within(self, found: Found, markers: MarkerSet) -> bool:
        """Whether a marker that began before this one, and holds it, may still be arriving."""
        return markers.nests and markers.held(self.text, self.position) < found[0]

    @property
    def is_empty(self) -> bool:
        """Whether all that has come was taken."""
        return self.position >= len(self.text)

    @property
    def was_cut(self) -> bool:
        """Whether the server said that the text ended too early."""
        return self.finish_reason in ("length", "incomplete", "content_filter", "error", "cancelled")


def read_until(source: StreamBuffer, markers: MarkerSet, span: list[str]) -> Reader[str]:
    """Take text into ``span`` up to the next marker. Returns the marker, taken but not in ``span``; "" at the end."""
    sink = ValueSink(span, markers.matters)
    while True:
        plain, marker = source.scan(markers)
        if plain:
            sink.take(plain)
        if marker or source.final:
            return marker
        yield from sink.wait(source)


def skip_to(source: StreamBuffer, markers: MarkerSet, span: list[str]) -> Reader[str]:
    """Take text into ``span`` up to the next marker, which is not taken. Returns it; "" at the end."""
    marker = yield from read_until(source, markers, span)
    source.push_back(marker)
    return marker


def skip_space(source: StreamBuffer, span: list[str]) -> Reader[str]:
    """Take white space into ``span``. Returns the character after it, not taken; "" at the end."""
    while True:
        found = _spaces.match(source.text, source.position)
        if found is not None:
            span.append(found.group())
            source.position = found.end()
        if source.position < len(source.text):
            return source.text[source.position]
        if source.final:
            return ""
        yield


def take_marker(source: StreamBuffer, markers: MarkerSet) -> Reader[str]:
    """Take the marker that stands right here. Returns "" when there is none."""
    while True:
        found = markers.match(source.text, source.position)
        if found is not None and not source.may_go_on(found, markers):
            begin, source.position = found
            return source.text[begin : source.position]
        ahead = source.text[source.position : source.position + markers.longest]
        if source.final or (ahead and not markers.may_start_with(ahead)):
            return ""
        yield


def is_next(source: StreamBuffer, markers: MarkerSet) -> Reader[bool]:
    """Whether one of ``markers`` comes next. Takes nothing."""
    marker = yield from take_marker(source, markers)
    source.push_back(marker)
    return bool(marker)


def give_back(source: StreamBuffer, span: list[str], start: int) -> list[str]:
    """Put back all that was taken into ``span`` from ``start`` on. Returns it, for `take_again`."""
    taken = span[start:]
    del span[start:]
    source.push_back("".join(taken))
    return taken


def take_again(source: StreamBuffer, span: list[str], taken: list[str]) -> None:
    """Undo `give_back`: take the same text again."""
    span.extend(taken)
    source.position += sum(map(len, taken))


def peek_match(
    source: StreamBuffer, pattern: re.Pattern[str], limit: int, may_go_on: Callable[[str], object]
) -> Reader[re.Match[str] | None]:
    """The match of ``pattern`` with the next ``limit`` characters, which are not taken.

    It is waited for as long as ``may_go_on`` says of what has come that it may yet become one.
    """
    while True:
        ahead = source.text[source.position : source.position + limit]
        found = pattern.match(ahead)
        if found is not None or source.final or len(ahead) == limit or not may_go_on(ahead):
            return found
        yield


def take_match(source: StreamBuffer, found: re.Match[str], span: list[str]) -> None:
    """Take the text of a match that `match_ahead` found."""
    span.append(found.group())
    source.position += len(found.group())


def take_cut_marker(source: StreamBuffer, literal: str, span: list[str]) -> None:
    """Take the beginning of ``literal`` into ``span`` where the text ends within it."""
    rest = source.text[source.position :]
    if source.final and rest and literal.startswith(rest.lower()):
        span.append(source.rest())


def take_until(source: StreamBuffer, stop: str, limit: int, span: list[str]) -> Reader[str | None]:
    """Take text up to and with the character ``stop`` into ``span``; returns it without ``stop``.

    Returns None, nothing taken, when ``stop`` does not come within ``limit`` characters or the text ends first.
    """
    while True:
        end = source.text.find(stop, source.position, source.position + limit)
        if end >= 0:
            text = source.text[source.position : end]
            span.append(source.text[source.position : end + len(stop)])
            source.position = end + len(stop)
            return text
        if source.final or len(source.text) - source.position >= limit:
            return None
        yield


def peek_marker(source: StreamBuffer, markers: MarkerSet, limit: int) -> Reader[str]:
    """The marker that comes within ``limit`` characters, nothing taken; "" when none does."""
    while True:
        found = source.search(markers, source.position + limit + markers.longest)
        if found is not None:
            begin, end = found
            return source.text[begin:end] if begin - source.position <= limit else ""
        if source.final or len(source.text) - source.position >= limit + markers.longest:
            return ""
        yield
