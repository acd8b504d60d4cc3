"""Calls of another family than the one told: read where the told format has no marker, or can make nothing of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from adapter.reading.format import BodyReader, Context, Opener, Reading
from adapter.reading.source import Reader, Source

MAX_GIVEN_BACK = 100_000
"""Characters that foreign readers may take and give back in one answer: without a bound cost grew with the square."""


class Others(Protocol):
    """The formats whose calls, but nothing else of them, are read beside those of the told one."""

    @property
    def strays(self) -> frozenset[str]: ...
    @property
    def stripped(self) -> Sequence[BodyReader]: ...
    @property
    def bare(self) -> Sequence[BodyReader]: ...
    def openers(self, names: Sequence[str]) -> Mapping[str, Opener]:
        """By their markers in lower case. ``names``: those of the session's tools."""
        ...

    def __hash__(self) -> int: ...


def openers_with_foreign(own: Mapping[str, Opener], others: Mapping[str, Opener]) -> dict[str, Opener]:
    """``own`` openers by their markers, and those of ``others``; at a marker of both the own reader comes first."""
    openers = dict(own)
    for marker, other in others.items():
        mine = own.get(marker)
        if mine is None:
            openers[marker] = other._replace(read=foreign(other.read))
        elif mine.read is not other.read:
            openers[marker] = mine._replace(read=_own_or_foreign(mine.read, foreign(other.read)))
    return openers


def foreign(read: BodyReader) -> BodyReader:
    """Reads a call in a format that is not the one told, and says so."""

    def read_foreign(source: Source, span: list[str], context: Context) -> Reader[Reading]:
        reading = yield from read(source, span, context)
        return reading.adding("foreign-body") if reading.calls and "foreign-body" not in reading.fixes else reading

    return read_foreign


def _own_or_foreign(own: BodyReader, other: BodyReader) -> BodyReader:
    """Reads as ``own``, and what that can make no call of as ``other``, if it can."""

    def read(source: Source, span: list[str], context: Context) -> Reader[Reading]:
        start, plain = len(span), context.plain
        reading = yield from own(source, span, context)
        if not (reading.is_text or reading.error is not None) or (source.was_cut and source.is_empty):
            return reading
        if context.given_back > MAX_GIVEN_BACK:
            return reading
        taken = span[start:]
        _give_back(source, span, start)
        context.plain, context.may_be_text = plain, True
        again = yield from other(source, span, context)
        is_cut = source.was_cut and source.is_empty and reading.is_text and again.error is not None
        if again.calls or is_cut:  # what was cut off within a call has none in it
            return again
        context.given_back += sum(map(len, span[start:]))
        _give_back(source, span, start)
        context.plain = plain
        span.extend(taken)
        source.position += sum(map(len, taken))
        return reading

    return read


def _give_back(source: Source, span: list[str], start: int) -> None:
    text = "".join(span[start:])
    del span[start:]
    source.unread(text)
