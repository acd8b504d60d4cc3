"""Try other formats' parsers, or treat the text as content, if the expected format's parser finds no call."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from adapter.parsing.format import TEXT, BodyReader, BodyResult, BodySource, CallOpener
from adapter.parsing.stream_buffer import Reader

MAX_GIVEN_BACK = 100_000
"""Maximum number of characters per answer that fallback parsers may put back, which keeps the time linear."""


class FallbackReader:
    """A `BodyReader` that tries ``own``, the expected format's parser, and then ``other``, another format's parser.

    ``other`` is used if ``own`` is None or finds no call. Its calls get the repair ``foreign-body``.
    """

    def __init__(self, own: BodyReader | None, other: BodyReader) -> None:
        self._own, self._other = own, other

    def __call__(self, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        if self._own is None:
            return _mark_foreign((yield from self._other(source, consumed)))
        start, plain = len(consumed), source.close_at_first_marker
        result = yield from self._own(source, consumed)
        if _is_parsed(result) or (source.was_cut and source.is_empty) or source.reread_characters > MAX_GIVEN_BACK:
            return result
        taken = source.give_back(consumed, start)
        source.close_at_first_marker, source.may_be_text = plain, True
        fallback_result = _mark_foreign((yield from self._other(source, consumed)))
        is_cut = source.was_cut and source.is_empty and result.not_a_call and fallback_result.error is not None
        is_other = fallback_result.calls or (result.not_a_call and _is_parsed(fallback_result))
        if is_other or is_cut:  # the text was cut within a call
            return fallback_result
        source.reread_characters += sum(map(len, source.give_back(consumed, start)))
        source.close_at_first_marker = plain
        source.consume_again(consumed, taken)
        return result


def _is_parsed(result: BodyResult) -> bool:
    """Return whether a call or other markup was parsed."""
    return bool(result.calls) or (not result.not_a_call and result.error is None)


def read_call_or_text(
    read: BodyReader, source: BodySource, consumed: list[str], *, keeps_error: bool = False
) -> Reader[BodyResult]:
    """Parse a call whose opening marker is missing or broken, with the parser ``read``. Prose about calls looks the
    same. If there is no call, consume nothing and return `TEXT`.

    ``keeps_error``: whether to return the error of a call that cannot be parsed, instead of `TEXT`.
    """
    if source.reread_characters > MAX_GIVEN_BACK:
        return TEXT
    source.may_be_text, start = True, len(consumed)
    result = yield from read(source, consumed)
    if result.calls or (keeps_error and result.error is not None) or (source.was_cut and source.is_empty):
        return result
    source.reread_characters += sum(map(len, source.give_back(consumed, start)))
    return TEXT


def merge_openers(own: Mapping[str, CallOpener], others: Mapping[str, CallOpener]) -> dict[str, CallOpener]:
    """Merge two mappings of opening markers. For a marker in both, the parser of ``own`` is tried first. If a marker of
    ``others`` is a marker of ``own`` and a space, it is left out, because it would hide the shorter one."""
    openers = dict(own)
    for marker, other in others.items():
        own_opener = own.get(marker)
        if own_opener is None and marker.rstrip() in own:
            continue
        if own_opener is None:
            openers[marker] = mark_foreign_opener(other)
        elif own_opener.read is not other.read:
            openers[marker] = own_opener._replace(read=FallbackReader(own_opener.read, other.read))
    return openers


@lru_cache(maxsize=1024)
def mark_foreign_opener(opener: CallOpener) -> CallOpener:
    """Return ``opener`` with a parser that adds the repair ``foreign-body`` to its calls."""
    return opener._replace(read=FallbackReader(None, opener.read))


def _mark_foreign(result: BodyResult) -> BodyResult:
    return result.with_repairs("foreign-body") if result.calls and "foreign-body" not in result.fixes else result
