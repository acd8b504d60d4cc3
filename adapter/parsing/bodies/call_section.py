"""Calls in a section: the section has markers of its own, and each call in it has too.

::

    <section> <call>...</call> <call>...</call> </section>

A call is handed on when it is closed, so the section is no body to be read as a
whole: its opening marker is read together with the first call, further calls
open for themselves, and its closing marker is a stray. A section marker with
anything else after it was only mentioned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from adapter.parsing.format import CUT_OFF, TEXT, BodyReader, BodyResult, CallOpener, ReadContext
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import Reader, StreamBuffer, peek_marker, read_until, skip_space, take_marker
from adapter.parsing.tagged_json import TaggedJson

NOISE_LIMIT = 200
"""Characters of text between a section's marker and its first call."""

ERROR_LIMIT = 2_000
"""Characters within which a section without a call must be closed, to be taken as a failed call."""


class CallSection:
    """The markers of a section and of the calls in it.

    ``read_call`` reads a call after any of ``call_opens`` has been taken.
    ``misspelt``: spellings of the opening markers that the format does not have.
    ``calls_anywhere``: whether a call without a section counts in the middle of a line too.
    ``may_be_json``: JSON in place of such calls is read too; each of ``closes`` then belongs to its opening marker.
    """

    def __init__(
        self,
        *,
        opens: Sequence[str],
        closes: Sequence[str],
        call_opens: Sequence[str],
        read_call: BodyReader,
        misspelt: Iterable[str] = (),
        calls_anywhere: bool = True,
        keeps_space: bool = False,
        may_be_json: bool = False,
    ) -> None:
        self.opens, self.closes, self.call_opens, self.keeps_space = opens, closes, call_opens, keeps_space
        self._read_call, self._calls_anywhere = read_call, calls_anywhere
        self._misspelt = {spelling.lower() for spelling in misspelt}
        self._opens = MarkerSet(*opens)
        self._close_of = dict(zip(map(str.lower, opens), closes, strict=True)) if may_be_json else {}
        self._closes = MarkerSet(*closes)
        self._inner = MarkerSet(*call_opens, *closes)

    @property
    def openers(self) -> tuple[CallOpener, ...]:
        return (
            *(CallOpener(marker, self.read, self.keeps_space) for marker in self.opens),
            *(CallOpener(marker, self.read_alone, self.keeps_space) for marker in self.call_opens),
        )

    def read(self, source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
        """What follows the section's opening marker, up to the end of its first call."""
        opening = span[-1]
        fixes = self._fixes(opening)
        at_line_start = context.at_line_start
        while char := (yield from skip_space(source, span)):
            again = yield from take_marker(source, self._opens)
            if not again:
                break
            span.append(again)
            fixes.append("text-in-tag")  # the marker written twice
        if not char:
            return BodyResult(error=CUT_OFF) if at_line_start or source.was_cut else TEXT
        if char in "{[" and opening.lower() in self._close_of:
            read_json = TaggedJson(opening, self._close_of[opening.lower()], may_list=True)
            return (yield from read_json(source, span, context)).adding("foreign-body", *fixes)
        marker = yield from peek_marker(source, self._inner, NOISE_LIMIT)
        if not marker:
            return (yield from self._read_other(source, span, at_line_start))
        ahead: list[str] = []
        marker = yield from read_until(source, self._inner, ahead)
        noise = "".join(ahead)
        closes = self._closes.match(marker, 0) is not None
        if noise and not closes and ("`" in noise or not self._calls_anywhere):
            source.push_back(noise + marker)
            return TEXT  # prose about the markers, which may quote a whole call
        span += [noise, marker]
        if closes:
            return self._without_call(noise, at_line_start)
        if noise:
            fixes.append("text-in-tag")
        fixes += self._fixes(marker)
        reading = yield from self._read_call(source, span, context)
        if reading.not_a_call and source.final and len(source.text[source.position :].split()) < 2:
            span.append(source.rest())
            return BodyResult(error=CUT_OFF)  # within the first word: the section says that a call was meant
        return reading.repaired(*fixes)

    def read_alone(self, source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
        """A call after its own opening marker: the next of a section, or one without a section."""
        if not (self._calls_anywhere or context.at_line_start or context.after_call):
            return TEXT
        fixes = self._fixes(span[-1])
        if not context.after_call:
            fixes.append("missing-open-tag")
        return (yield from self._read_call(source, span, context)).repaired(*fixes)

    def _fixes(self, marker: str) -> list[str]:
        return ["misspelt-open-tag"] if marker.lower() in self._misspelt else []

    def _read_other(self, source: StreamBuffer, span: list[str], at_line_start: bool) -> Reader[BodyResult]:
        if not at_line_start:
            return TEXT
        found = yield from peek_marker(source, self._inner, ERROR_LIMIT)
        rest = source.text[source.position : source.position + ERROR_LIMIT + 1]
        if not found and source.was_cut and rest.startswith("<") and len(rest) <= ERROR_LIMIT:
            span.append(source.rest())
            return BodyResult(
                error=CUT_OFF
            )  # a call in other tags, which are read only where these are not around them
        if not self._closes.match(found, 0):
            return TEXT
        text: list[str] = []
        marker = yield from read_until(source, self._inner, text)
        span.extend([*text, marker])
        return self._without_call("".join(text), at_line_start)

    def _without_call(self, text: str, at_line_start: bool) -> BodyResult:
        """A section that closes before any call: nothing was called, or what stands in it is no call."""
        if not text.strip():
            return BodyResult()
        if not at_line_start:
            return TEXT
        return BodyResult(error=f"the text in {self.opens[0]} is not a call: {text.strip()[:60]!r}")
