"""Parse a tool's name and then its arguments as one JSON object, between any markers.

::

    <opening>PREFIX NAME <separators...> {...}<closing>
    [TOOL_CALLS]get_time[ARGS]{}
    <|tool_call_begin|>functions.get_time:0<|tool_call_argument_begin|>{}<|tool_call_end|>
    <function=get_time>{}</function>

This is for formats without special rules. DeepSeek, Kimi and Mistral have their own parsers, which handle these models'
typical errors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from adapter.parsing.bracket_delimited_json import UntaggedJson
from adapter.parsing.format import CUT, TEXT, BodyReader, BodyResult, BodySource
from adapter.parsing.marker_set import MarkerSet
from adapter.parsing.stream_buffer import HEAD_LIMIT, Reader, StreamBuffer
from adapter.parsing.tagged_json import TaggedJson

_NAME = re.compile(r"[^\s<>{}\[\]()\"'`|,;]{1,200}")


class NameThenJsonReader:
    """Parses a name and its arguments after the marker ``opening``. An instance is a `BodyReader`.

    Args:
        closing: The closing marker. If it is empty, the call ends with its braces and cannot contain one of ``ends``.
        prefix: Text before each name (``functions.``).
        separators: The markers between the name and the arguments, in order. An id may come between two separators;
            models omit it together with the first separator. Without separators, the name ends at the brace or the end
            of its line.
        is_numbered: Whether a colon and a number follow the name.
        ends: Markers that can only occur after the call.
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
        self._no_arguments = f"the call after {opening} has no arguments"
        self._ends = tuple(dict.fromkeys((opening, *ends)))
        self._first = MarkerSet(*(separators or ("\n",)), "{")
        self._separators = MarkerSet(*separators) if separators else None
        self._left_out = [separators[-1].lower()] if len(separators) > 1 else []
        self._last = MarkerSet(separators[-1], opening) if len(separators) > 1 else None
        self._brace = MarkerSet("{")
        self._whole = self._build_json_reader(None)

    def __call__(self, source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        char = yield from source.skip_space(consumed)
        if not char:
            return CUT if source.at_line_start or source.was_cut else TEXT
        if char in "{[":
            return (yield from self._whole(source, consumed)).with_repairs("foreign-body")
        head: list[str] = []
        if not (yield from source.peek_marker(self._brace, HEAD_LIMIT)):
            if self._ends_before_arguments(source):
                consumed.append(source.consume_rest())
                return CUT if source.was_cut else BodyResult(error=self._no_arguments)
            return source.read_cut_head(consumed)
        marker = yield from source.read_until(self._first, head)
        name = self._parse_name("".join(head))
        if not name:
            source.push_back("".join([*head, marker]))
            return TEXT
        if marker != "{":
            head.append(marker)
        else:
            source.push_back(marker)
        if self._last is not None and marker != "{" and marker.lower() not in self._left_out:
            marker = yield from source.peek_marker(self._last, HEAD_LIMIT)
            if marker.lower() == self.opening.lower():  # the next call's
                source.push_back((yield from source.read_until(self._last, head)))
                consumed.extend(head)
                return BodyResult(error=self._no_arguments)
            if marker:
                head.append((yield from source.read_until(self._last, head)))
        space: list[str] = []
        char = yield from source.skip_space(space)
        if char != "{":
            source.push_back("".join([*head, *space]))
            return TEXT
        consumed.extend([*head, *space])
        return (yield from self._build_json_reader(name)(source, consumed))

    def _ends_before_arguments(self, source: StreamBuffer) -> bool:
        """Return whether the text ends after a name, a separator and possibly an id."""
        rest = source.text[source.position : source.position + HEAD_LIMIT + 1]
        if self._separators is None or not source.final or len(rest) > HEAD_LIMIT:
            return False
        found = self._separators.search(rest, 0)
        return found is not None and self._parse_name(rest[: found[0]]) != ""

    def _build_json_reader(self, name: str | None) -> BodyReader:
        if self.closing:
            return TaggedJson(self.opening, self.closing, name=name, may_list=True)
        return UntaggedJson("arguments", after_marker=True, name=name, ends=self._ends)

    def _parse_name(self, text: str) -> str:
        """Return the name in ``text``, or "" if it is invalid."""
        name = text.strip().removeprefix(self._prefix)
        if self._is_numbered:
            name = re.sub(r":\d+\Z", "", name)
        return name if _NAME.fullmatch(name) else ""


def build_word_reader(read: BodyReader) -> BodyReader:
    """Return a parser that calls ``read`` after a marker that is an ordinary word. In the middle of a line, it accepts
    only calls to known tools."""

    def read_after_word(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        if source.at_line_start or source.after_call:
            return (yield from read(source, consumed))
        source.may_be_text = True
        result = yield from read(source, consumed)
        return result if result.calls_known_tools(source.tools) else TEXT

    return read_after_word
