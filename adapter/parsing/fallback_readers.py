"""Calls of another family than the one told: read where the told format has no marker, or can make nothing of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from adapter.parsing.format import BodyReader, BodyResult, CallOpener, ReadContext
from adapter.parsing.stream_buffer import Reader, StreamBuffer, give_back, take_again

MAX_GIVEN_BACK = 100_000
"""Characters that foreign readers may take and give back in one answer: without a bound cost grew with the square."""


class FallbackReaders(Protocol):
    """The formats whose calls, but nothing else of them, are read beside those of the told one."""

    @property
    def strays(self) -> frozenset[str]: ...
    @property
    def stripped(self) -> Sequence[BodyReader]: ...
    @property
    def bare(self) -> Sequence[BodyReader]: ...
    def openers(self, names: Sequence[str]) -> Mapping[str, CallOpener]:
        """By their markers in lower case. ``names``: those of the session's tools."""
        ...

    def __hash__(self) -> int: ...


class FallbackReader:
    """Reads a body in the format that is told (``own``), if it has this marker, else as another format (``other``).

    Where ``own`` makes no call of the body, ``other`` may. A call that ``other`` reads is marked as foreign.
    """

    def __init__(self, own: BodyReader | None, other: BodyReader) -> None:
        self._own, self._other = own, other

    def __call__(self, source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
        if self._own is None:
            return _marked((yield from self._other(source, span, context)))
        start, plain = len(span), context.close_at_first_marker
        result = yield from self._own(source, span, context)
        is_taken = not result.not_a_call and result.error is None
        if is_taken or (source.was_cut and source.is_empty) or context.reread_characters > MAX_GIVEN_BACK:
            return result
        taken = give_back(source, span, start)
        context.close_at_first_marker, context.may_be_text = plain, True
        again = _marked((yield from self._other(source, span, context)))
        is_cut = source.was_cut and source.is_empty and result.not_a_call and again.error is not None
        if again.calls or is_cut:  # what was cut off within a call has none in it
            return again
        context.reread_characters += sum(map(len, give_back(source, span, start)))
        context.close_at_first_marker = plain
        take_again(source, span, taken)
        return result


def merge_openers(own: Mapping[str, CallOpener], others: Mapping[str, CallOpener]) -> dict[str, CallOpener]:
    """``own`` openers by their markers, and those of ``others``; at a marker of both the own reader comes first."""
    openers = dict(own)
    for marker, other in others.items():
        mine = own.get(marker)
        if mine is None:
            openers[marker] = other._replace(read=FallbackReader(None, other.read))
        elif mine.read is not other.read:
            openers[marker] = mine._replace(read=FallbackReader(mine.read, other.read))
    return openers


def _marked(result: BodyResult) -> BodyResult:
    return result.adding("foreign-body") if result.calls and "foreign-body" not in result.fixes else result
