"""Parse calls inside a section: markers enclose all calls of an answer, and further markers enclose each call.

::

    <section> <call>...</call> <call>...</call> </section>

A call is emitted as soon as it is closed, so the section is not parsed as a whole. Its opening marker is parsed
together with the first call, later calls are parsed at their own opening markers, and its closing marker is a stray
closer. If other text follows a section's opening marker, the marker is only mentioned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from adapter.parsing.format import CUT, TEXT, BodyReader, BodyResult, BodySource, CallOpener
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import Reader, StreamBuffer
from adapter.parsing.tagged_json import TaggedJson
from adapter.parsing.wrapper_tags import is_tag, peek_namespace

NOISE_LIMIT = 200
"""Maximum number of characters between a section's opening marker and its first call."""

ERROR_LIMIT = 2_000
"""Maximum length of a closed section without calls that is reported as an invalid call."""

_SIGNS = frozenset("<{=")
"""A damaged call contains at least one of these characters. Other text before a section's first call is dropped."""


class CallSection:
    """Parses a section of calls: ``opens`` and ``closes`` are its markers, and ``call_opens`` the opening markers of
    the calls in it.

    Args:
        read_call: Parser for a call after any marker of ``call_opens``.
        misspelt: Spellings of the opening markers that are not part of the format.
        calls_anywhere: Whether a call without a section is also accepted in the middle of a line.
        keeps_space: See `CallOpener`.
        may_be_json: Whether the section may contain JSON instead of such calls. Each marker of ``closes`` then belongs
            to the opening marker at the same index.
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
        self._own_markers = {marker.lower() for marker in (*call_opens, *opens, *closes)}

    @property
    def openers(self) -> tuple[CallOpener, ...]:
        return (
            *(CallOpener(marker, self.read, self.keeps_space) for marker in self.opens),
            *(CallOpener(marker, self.read_alone, self.keeps_space) for marker in self.call_opens),
        )

    def read(self, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        """Parse the body after the section's opening marker, up to the end of its first call."""
        opening = consumed[-1]
        fixes = self._find_spelling_fixes(opening)
        at_line_start = source.at_line_start
        while char := (yield from source.skip_space(consumed)):
            marker = yield from source.consume_marker(self._opens, consumed)
            if not marker:
                break
            if marker.lower() == opening.lower():
                fixes.append("text-in-tag")  # doubled marker
        if not char:
            return CUT if at_line_start or source.was_cut else TEXT
        if at_line_start and (yield from self._wraps_other_call(source)):
            return TEXT if is_tag(opening) else BodyResult()
        if char in "{[" and opening.lower() in self._close_of:
            read_json = TaggedJson(opening, self._close_of[opening.lower()], may_list=True)
            return (yield from read_json(source, consumed)).with_repairs("foreign-body", *fixes)
        marker = yield from source.peek_marker(self._inner, NOISE_LIMIT)
        if not marker:
            return (yield from self._read_other_content(source, consumed, at_line_start))
        ahead: list[str] = []
        marker = yield from source.read_until(self._inner, ahead)
        noise = "".join(ahead)
        closes = self._closes.match(marker, 0) is not None
        if noise and not closes and ("`" in noise or not self._calls_anywhere):
            source.push_back(noise + marker)
            return TEXT  # prose about the markers, which may quote a whole call
        if noise and not closes and not _SIGNS.isdisjoint(noise):
            source.push_back(marker)
            consumed.append(noise)
            return BodyResult(error=f"the text after {opening} is not a call: {noise.strip()[:60]!r}")
        consumed += [noise, marker]
        if closes:
            return self._end_without_call(noise, at_line_start)
        if noise:
            fixes.append("text-in-tag")
        fixes += self._find_spelling_fixes(marker)
        result = yield from self._read_call(source, consumed)
        if result.not_a_call and source.final and len(source.text[source.position :].split()) < 2:
            consumed.append(source.consume_rest())
            return CUT  # cut within the first word, but a section's marker announces a call
        return result.with_fixes(*fixes)

    def read_alone(self, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        """Parse the body after the opening marker of a call: a later call of a section, or a call without a section."""
        if not (self._calls_anywhere or source.at_line_start or source.after_call):
            return TEXT
        fixes = self._find_spelling_fixes(consumed[-1])
        if not source.after_call:
            fixes.append("missing-open-tag")
        return (yield from self._read_call(source, consumed)).with_fixes(*fixes)

    def _wraps_other_call(self, source: BodySource) -> Reader[bool]:
        """Return whether the section directly contains a call with another family's markers."""
        _, marker = yield from source.peek_after_space(source.openers)
        kind = marker.lower()
        if kind in self._own_markers or (kind and any(own.startswith(kind) for own in self._own_markers)):
            return False
        return bool(marker) or (yield from peek_namespace(source)) != ""

    def _find_spelling_fixes(self, marker: str) -> list[str]:
        return ["misspelt-open-tag"] if marker.lower() in self._misspelt else []

    def _read_other_content(self, source: StreamBuffer, consumed: list[str], at_line_start: bool) -> Reader[BodyResult]:
        if not at_line_start:
            return TEXT
        marker = yield from source.peek_marker(self._inner, ERROR_LIMIT)
        if not marker and source.consume_cut_tags(ERROR_LIMIT, consumed):
            return CUT
        if not self._closes.match(marker, 0):
            return TEXT
        text, _ = yield from source.consume_through(self._inner, consumed)
        return self._end_without_call(text, at_line_start)

    def _end_without_call(self, text: str, at_line_start: bool) -> BodyResult:
        """Return the result for a section that contains ``text`` but no call: empty, `TEXT`, or an error if ``text``
        was probably meant as a call."""
        if not text.strip():
            return BodyResult()
        if not at_line_start:
            return TEXT
        return BodyResult(error=f"the text in {self.opens[0]} is not a call: {text.strip()[:60]!r}")
