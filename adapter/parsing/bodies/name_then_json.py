"""Reads a name and then its arguments as one JSON object, between markers that a description gives.

::

    <opening>PREFIX NAME <separators...> {...}<closing>

    [TOOL_CALLS]get_time[ARGS]{}
    <|tool_call_begin|>functions.get_time:0<|tool_call_argument_begin|>{}<|tool_call_end|>
    <function=get_time>{}</function>

For formats that are no more than this; DeepSeek's, Kimi's and Mistral's own readers know the slips of their models.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from adapter.parsing.bare_json import UntaggedJson
from adapter.parsing.format import CUT_OFF, TEXT, BodyReader, BodyResult, ReadContext
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import Reader, StreamBuffer, peek_marker, read_until, skip_space
from adapter.parsing.tagged_json import TaggedJson

HEAD_LIMIT = 300
"""Characters of a name, an id and what stands between them; more is prose after the opening marker."""

_NAME = re.compile(r"[^\s<>{}\[\]()\"'`|,;]{1,200}")


class NameThenJsonReader:
    """Reads what follows ``opening``. An instance is a `BodyReader`.

    ``prefix``: what stands before each name (``functions.``). ``separators``: the markers between the name and the
    arguments, in their order; between two of them an id may stand, and models leave it out with the first. With none
    the name ends its line, or where the brace begins. ``is_numbered``: a colon and a number follow the name.
    ``closing``: "" where the call ends with its braces; one of ``ends`` cannot stand in it then.
    """

    def __init__(
        self,
        opening: str,
        closing: str,
        *,
        prefix: str = "",
        separators: Sequence[str] = (),
        is_numbered: bool = False,
        ends: tuple[str, ...] = (),
    ) -> None:
        self.opening, self.closing, self._prefix, self._is_numbered = opening, closing, prefix, is_numbered
        self._ends = tuple(dict.fromkeys((opening, *ends)))
        self._first = MarkerSet(*(separators or ("\n",)), "{")
        self._left_out = separators[-1:] if len(separators) > 1 else ()
        self._last = MarkerSet(separators[-1]) if len(separators) > 1 else None
        self._brace = MarkerSet("{")
        self._whole = self._json(None)

    def __call__(self, source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
        char = yield from skip_space(source, span)
        if not char:
            return BodyResult(error=CUT_OFF) if context.at_line_start or source.was_cut else TEXT
        if char in "{[":
            return (yield from self._whole(source, span, context)).adding("foreign-body")
        head: list[str] = []
        if not (yield from peek_marker(source, self._brace, HEAD_LIMIT)):
            return self._cut(source, span)
        marker = yield from read_until(source, self._first, head)
        name = self._name("".join(head))
        if not name:
            source.push_back("".join([*head, marker]))
            return TEXT
        if marker != "{":
            head.append(marker)
        else:
            source.push_back(marker)
        if self._last is not None and marker != "{" and marker not in self._left_out:
            marker = yield from peek_marker(source, self._last, HEAD_LIMIT)
            if marker:
                head.append((yield from read_until(source, self._last, head)))
        space: list[str] = []
        char = yield from skip_space(source, space)
        if char != "{":
            source.push_back("".join([*head, *space]))
            return TEXT
        span.extend([*head, *space])
        return (yield from self._json(name)(source, span, context))

    def _json(self, name: str | None) -> BodyReader:
        if self.closing:
            return TaggedJson(self.opening, self.closing, name=name, may_list=True)
        return UntaggedJson("arguments", after_marker=True, name=name, ends=self._ends)

    def _name(self, text: str) -> str:
        """The name in ``text``, "" when it is none."""
        name = text.strip().removeprefix(self._prefix)
        if self._is_numbered:
            name = re.sub(r":\d+\Z", "", name)
        return name if _NAME.fullmatch(name) else ""

    def _cut(self, source: StreamBuffer, span: list[str]) -> BodyResult:
        """No arguments follow: the text ends before them, or the marker was only mentioned."""
        rest = source.text[source.position :]
        if not source.final or any(char.isspace() for char in rest.strip()) or len(rest) > HEAD_LIMIT:
            return TEXT
        span.append(source.rest())
        return BodyResult(error=CUT_OFF)


def after_word(read: BodyReader) -> BodyReader:
    """Reads after a marker that is a plain word: within a line only calls of tools of the session."""

    def read_after_word(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
        if context.at_line_start or context.after_call:
            return (yield from read(source, span, context))
        context.may_be_text = True
        reading = yield from read(source, span, context)
        is_known = all(context.tools.match(call.name) for call in reading.calls)
        return reading if reading.calls and is_known else TEXT

    return read_after_word
