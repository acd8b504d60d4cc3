"""The calls of every format, for a reader that was told one of them: a format is loaded when a text has its marker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial

from adapter.formats import FORMATS, index
from adapter.reading.foreign import ReadLater
from adapter.reading.format import BodyReader, Opener


class Others:
    """As `adapter.reading.foreign.Others` says, by what `index` has. Every format is among them, the told one too."""

    strays = frozenset(index.STRAYS)

    def __init__(self) -> None:
        self.stripped = tuple(ReadLater(partial(_stripped, name)) for name in index.STRIPPED)
        self.bare = tuple(ReadLater(partial(_bare, name)) for name in index.BARE)

    def openers(self, names: Sequence[str]) -> dict[str, Opener]:
        """By their markers in lower case; at one that several formats have, the first of these reads."""
        openers = dict(self._openers)
        ranks = {name: rank for rank, name in enumerate(FORMATS)}
        for format in reversed(index.BY_NAMES if names else ()):
            by_names = FORMATS[format].openers_for
            for opener in reversed(by_names(names) if by_names else ()):
                marker = opener.marker.lower()
                first = index.OPENERS.get(marker)
                if first is None or ranks[format] < ranks[first]:
                    openers[marker] = opener
        return openers

    @cached_property
    def _openers(self) -> Mapping[str, Opener]:
        return {
            marker: Opener(marker, ReadLater(partial(_at_marker, name, marker)), marker in index.KEEPING_SPACE)
            for marker, name in index.OPENERS.items()
        }


def _at_marker(format: str, marker: str) -> BodyReader:
    return next(opener.read for opener in FORMATS[format].openers if opener.marker.lower() == marker)


def _stripped(format: str) -> BodyReader:
    read = FORMATS[format].stripped
    assert read is not None, f"{format} reads nothing stripped: run python -m tests.generate"
    return read


def _bare(format: str) -> BodyReader:
    read = FORMATS[format].bare
    assert read is not None, f"{format} reads nothing bare: run python -m tests.generate"
    return read


OTHERS = Others()
