"""The calls of every format, for a parser that was told one of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from adapter.parsing.bare_json import UntaggedJson
from adapter.parsing.format import BodyReader, CallOpener
from adapter.parsing.formats import FORMATS


class CrossFormatReaders:
    """As `adapter.parsing.fallback_readers.FallbackReaders` says. Every format is among them, the told one too."""

    @cached_property
    def strays(self) -> frozenset[str]:
        return frozenset(marker.lower() for format in FORMATS.all for marker in format.stray_closers)

    @cached_property
    def stripped(self) -> tuple[BodyReader, ...]:
        return tuple(
            dict.fromkeys(
                format.read_without_markers for format in FORMATS.all if format.read_without_markers is not None
            )
        )

    @cached_property
    def bare(self) -> tuple[BodyReader, ...]:
        """Bare JSON is read in any case, and by the caller."""
        readers = dict.fromkeys(format.read_bare for format in FORMATS.all if format.read_bare is not None)
        return tuple(read for read in readers if not isinstance(read, UntaggedJson))

    def openers(self, names: Sequence[str]) -> dict[str, CallOpener]:
        """By their markers in lower case; at one that several formats have, the first of these reads."""
        first: dict[str, CallOpener] = {}
        for format in FORMATS.all:
            by_names = format.openers_for(names) if names and format.openers_for else ()
            for opener in (*format.openers, *by_names):
                first.setdefault(opener.marker.lower(), opener)
        return first


OTHERS = CrossFormatReaders()
