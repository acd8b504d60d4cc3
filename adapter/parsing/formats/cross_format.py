"""Readers of every format's calls, as a fallback for a parser with one expected format."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from adapter.parsing.bare_json import UntaggedJson
from adapter.parsing.format import BodyReader, CallOpener, distinct_readers
from adapter.parsing.formats import FORMATS


class CrossFormatReaders:
    """Implements `adapter.parsing.fallback_readers.FallbackReaders`. It includes the expected format."""

    @cached_property
    def stray_closers(self) -> frozenset[str]:
        return frozenset(marker.lower() for format in FORMATS.all for marker in format.stray_closers)

    @cached_property
    def markerless_readers(self) -> tuple[BodyReader, ...]:
        return distinct_readers(format.read_without_markers for format in FORMATS.all)

    @cached_property
    def bare(self) -> tuple[BodyReader, ...]:
        """Without bare JSON, which the caller parses in any case."""
        readers = distinct_readers(format.read_bare for format in FORMATS.all)
        return tuple(read for read in readers if not isinstance(read, UntaggedJson))

    def openers(self, names: Sequence[str]) -> dict[str, CallOpener]:
        """Return the openers by their markers in lower case; the first format wins at a shared marker."""
        first: dict[str, CallOpener] = {}
        for format in FORMATS.all:
            by_names = format.openers_for(names) if names and format.openers_for else ()
            for opener in (*format.openers, *by_names):
                first.setdefault(opener.marker.lower(), opener)
        return first


FALLBACK_READERS = CrossFormatReaders()
