"""`Format`: the description of how one model family writes calls and results.

The *body* of a call is the text after its opening marker. A format consists of its markers, the parsers for the bodies
after them (`BodyReader`), an encoder, and patterns that identify the format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from adapter.core.events import JsonObject
from adapter.parsing.call_encoders import encode_content_alone
from adapter.parsing.marker_set import MarkerSet, get_marker_set
from adapter.parsing.stream_buffer import HEAD_LIMIT, SPACE, Reader, StreamBuffer
from adapter.tools.decoded_json_calls import DecodedCall
from adapter.tools.tool_set import ToolSet

CUT_OFF = (
    "the call was cut off before its end, so nothing was run. "
    "Write it again, shorter, or in several calls with less text each."
)

NOT_CLOSED = (
    "the call is damaged or not closed before the next call begins, so it was not run. Write it again, complete and "
    "with all of its tags, quotes and brackets."
)


class JsonCall(NamedTuple):
    """The position of JSON that is certainly a call. ``start`` is its offset in the model's text.

    If the text before the JSON names the tool, ``name`` is that name, and the JSON holds only the arguments. Otherwise,
    the JSON is an object, or a list of objects, with the arguments under ``arguments_key``.
    """

    start: int
    name: str | None
    arguments_key: str


class BodySource(StreamBuffer):
    """The model's text from the current position on, and information for the parser of a call's body.

    The parser sets ``json_call`` as soon as it recognizes the first JSON call, and ``may_be_text`` while it may still
    return the whole body as text, which prevents early output. It sets ``close_at_first_marker`` if a stray quote hid a
    closing marker; from then on, the first closing marker closes a body. ``reread_characters`` counts the characters
    that were parsed as another family's call, rejected, and parsed again.

    Args:
        openers: Opening markers of calls in all formats that are parsed.
        expected: The only format that is parsed, or None to accept every format.
    """

    __slots__ = (
        "after_call", "at_line_start", "body_variants", "close_at_first_marker", "expected_format", "json_call",
        "may_be_text", "openers", "reread_characters", "tool_call_body", "tools"
    )  # fmt: skip

    def __init__(
        self,
        tools: ToolSet,
        openers: MarkerSet | None = None,
        expected: Format | None = None,
        text: str = "",
        *,
        final: bool = False,
    ) -> None:
        super().__init__(text, final=final)
        self.tools, self.openers = tools, openers or get_marker_set()
        self.expected_format = expected.name if expected else None
        self.tool_call_body = expected.tool_call_body if expected else None
        self.body_variants = expected.body_variants if expected else frozenset[str]()
        self.close_at_first_marker = False
        self.reread_characters = 0
        self.begin_body(at_line_start=True, after_call=False)

    def begin_body(self, *, at_line_start: bool, after_call: bool) -> None:
        """Prepare for the body of the next call. ``at_line_start``: whether the call begins a line. ``after_call``:
        whether it follows another call."""
        self.at_line_start, self.after_call, self.may_be_text = at_line_start, after_call, False
        self.json_call: JsonCall | None = None

    def begin_json(self, start: int, name: str | None, arguments_key: str) -> None:
        if self.json_call is None and not self.may_be_text:
            self.json_call = JsonCall(start, name, arguments_key)

    def peek_call(
        self, pattern: re.Pattern[str], limit: int, may_continue: Callable[[str], object]
    ) -> Reader[re.Match[str] | None]:
        """Return the match of `peek_match` if its first group is one of the session's tools or empty, or None. While
        this method waits for more text, ``may_be_text`` is set."""
        may_be_text, self.may_be_text = self.may_be_text, True
        match = yield from self.peek_match(pattern, limit, may_continue)
        self.may_be_text = may_be_text
        return None if match is None or (match[1] and self.tools.match(match[1]) is None) else match

    def read_cut_head(self, consumed: list[str]) -> BodyResult:
        """Return an error if the text ends within the first word after a call's opening marker. Otherwise, return
        `TEXT`: the marker is only mentioned."""
        rest = self.text[self.position : self.position + HEAD_LIMIT + 1]
        if not self.final or len(rest) > HEAD_LIMIT or len(rest.split()) > 1:
            return TEXT
        consumed.append(self.consume_rest())
        return CUT


class OpaqueSection(NamedTuple):
    """A section of the answer, reasoning or content, in which no calls are parsed. A header begins it.

    - ``ends``: markers that end the section at the end of the text or before a marker of ``before``.
    - ``starts``: markers of the next section, which also end this one.
    - ``glued_starts``: the same, except after a space, where they are only quoted.
    - ``closes``: markers that always end the section.
    - ``weak_start``: a marker that begins the next section if the text after it matches the pattern.
    """

    is_reasoning: bool
    ends: tuple[str, ...]
    before: tuple[str, ...]
    starts: tuple[str, ...] = ()
    glued_starts: tuple[str, ...] = ()
    closes: tuple[str, ...] = ()
    weak_start: tuple[str, re.Pattern[str]] = ("", re.compile(""))


class BodyResult(NamedTuple):
    """The result of parsing a call's body: calls and their repairs (``fixes``), an error message for the model, or
    neither. If ``not_a_call`` is true, the text is content."""

    calls: tuple[DecodedCall, ...] = ()
    fixes: tuple[str, ...] = ()
    error: str | None = None
    not_a_call: bool = False
    unfinished: bool = False
    """True if the body ends inside a value. More text might then remove the error."""
    section: OpaqueSection | None = None
    """The section that begins after the parsed header, or None."""

    def with_repairs(self, *fixes: str) -> BodyResult:
        return self._replace(fixes=(*self.fixes, *fixes)) if fixes else self

    def with_fixes(self, *fixes: str) -> BodyResult:
        """Return the result with the repairs ``fixes`` added, if it has calls."""
        return self.with_repairs(*fixes) if self.calls else self

    def remove_fixes(self, *names: str) -> BodyResult:
        """Return the result without the repairs ``names``, for a format that requires the repaired spelling."""
        calls = (call._replace(fixes=_remove_fixes(call.fixes, names)) for call in self.calls)
        return self._replace(calls=tuple(calls), fixes=_remove_fixes(self.fixes, names))

    def calls_known_tools(self, tools: ToolSet) -> bool:
        """Return whether the result has calls and all of them name known tools."""
        return bool(self.calls) and all(tools.match(call.name) for call in self.calls)


def _remove_fixes(fixes: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(fix for fix in fixes if fix not in names)


TEXT = BodyResult(not_a_call=True)
CUT = BodyResult(error=CUT_OFF)

BodyReader: TypeAlias = Callable[[BodySource, list[str]], Reader[BodyResult]]
"""A body parser: it parses the text after a call's opening marker, and appends all text that it consumes to the
list."""


def try_readers(*readers: BodyReader) -> BodyReader:
    """Return a body parser that tries ``readers`` in order, until one of them does not return `TEXT` or consumes more
    than whitespace."""

    def read(source: BodySource, consumed: list[str]) -> Reader[BodyResult]:
        result = TEXT
        for reader in readers:
            start = len(consumed)
            result = yield from reader(source, consumed)
            if not result.not_a_call or "".join(consumed[start:]).strip(SPACE):
                break
        return result

    return read


def list_distinct_readers(readers: Iterable[BodyReader | None]) -> tuple[BodyReader, ...]:
    return tuple(dict.fromkeys(read for read in readers if read is not None))


class CallOpener(NamedTuple):
    """A marker that opens a call, and the parser of the body after it.

    ``keeps_space``: whether whitespace before the marker is content; otherwise, it is part of the chat template.
    """

    marker: str
    read: BodyReader
    keeps_space: bool = False


@dataclass(frozen=True, slots=True)
class Format:
    """The notation of one model family for calls, results and reasoning.

    ``encode_calls`` and ``encode_result`` write previous calls and results as the model was trained to see them.
    """

    name: str
    openers: tuple[CallOpener, ...]
    encode_calls: Callable[[list[tuple[str, JsonObject]]], str]
    encode_result: Callable[[str, str, str], str] = encode_content_alone
    """Encodes a result: (tool name, content, call id) -> text."""
    aliases: tuple[str, ...] = ()
    build_tool_openers: Callable[[Sequence[str]], tuple[CallOpener, ...]] | None = None
    """Builds the opening markers that contain a tool's name, from the names of the session's tools."""
    build_namespace_opener: Callable[[str], CallOpener] | None = None
    """Builds the opening marker ``<NAMESPACE:invoke`` from the namespace, which includes the colon."""
    read_unmarked: BodyReader | None = None
    """Parser for calls without markers at the start of a message or paragraph."""
    tool_call_body: str | None = None
    """The notation that this format writes in the tag ``<tool_call>``, which several formats share: json, function or
    pairs."""
    body_variants: frozenset[str] = frozenset()
    """Names of notations that this format writes after markers that it shares with other formats. The modules in
    `adapter.parsing.bodies` define these names."""
    marks_plain_text: bool = False
    """True if the opening marker may also precede plain text."""
    read_header: BodyReader | None = None
    """Parser for the rest of a header at the start of an answer, for prompts that end inside a header."""
    read_stripped_start: BodyReader | None = None
    """Parser for a call or header at the start of an answer, after the server has stripped its opening markers."""
    reasoning: Mapping[str, str] = field(default_factory=lambda: {"<think>": "</think>"})
    """Maps the opening markers of reasoning to their closing markers."""
    starts_in_reasoning: bool = False
    """True if the chat template always opens reasoning at the end of the prompt."""
    answer_tags: Mapping[str, str] = field(default_factory=dict)
    """Tags around an answer that follows reasoning; elsewhere, they are content. Those that are control tokens also end
    unclosed reasoning, and begin an answer without reasoning."""
    stray_closers: tuple[str, ...] = ()
    """Closing markers that are markup even without an opening marker."""
    end_tokens: tuple[str, ...] = ()
    """Tokens at the end of a turn, or of a part of it, that the server should have stripped."""
    channel_markers: tuple[str, ...] = ()
    """Markers of parts of a turn other than reasoning. They end unclosed reasoning."""
    other_role_markers: tuple[str, ...] = ()
    """Markers that begin another role's turn. The text after them does not belong to the model's turn."""
    result_markers: tuple[str, ...] = ()
    """Markers that begin a tool result after a call. The model invented it, so the text after them is dropped from its
    turn."""
    stop_sequences: tuple[str, ...] = ()
    """Strings that stop the generation."""
    special_tokens: tuple[str, ...] = ()
    """Tokens that the server must not strip."""
    control_tokens: tuple[str, ...] = ()
    """Further control tokens of one model, which its server or files list. `adapter.prompting.escaping` escapes them in
    untrusted text."""
    model_patterns: tuple[str, ...] = ()
    """Regular expressions for the names of models that use the format."""
    template_fingerprints: tuple[str, ...] = ()
    """Strings that identify the chat templates of these models."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__
