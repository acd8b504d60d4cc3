"""What a format is: how one model family writes calls and results, as a table.

A newcomer adds a format in one file: its markers, a reader for what stands
between them, an encoder, and the facts by which it is recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from adapter.core.events import JsonObject
from adapter.parsing.encoding import content_alone
from adapter.parsing.stream_buffer import SPACE, Reader, StreamBuffer
from adapter.tools.call_shapes import DecodedCall
from adapter.tools.tool import ToolSet

CUT_OFF = (
    "the call was cut off before its end, so nothing was run. "
    "Write it again, shorter, or in several calls with less text each."
)


class JsonCall(NamedTuple):
    """A call that is certain to be what is being read, as JSON from offset ``start`` of the model's text on.

    ``name``: what is called, where the text before says it; the JSON is then the arguments alone. Else it
    is an object with the arguments under ``arguments_key``, or a list of such.
    """

    start: int
    name: str | None
    arguments_key: str


@dataclass(slots=True)
class ReadContext:
    """What a reader may know besides the text, and ``json_call``, what it tells of it before its end."""

    tools: ToolSet
    expected_format: str | None = None
    """The name of the one format that is read, None when any may come."""
    tool_call_body: str | None = None
    """That of the format that is read, see `Format`."""
    at_line_start: bool = True
    after_call: bool = False
    close_at_first_marker: bool = False
    """A stray quote hid a closing marker before: from here on the first marker closes."""
    json_call: JsonCall | None = None
    """Said by the reader of a body once it is committed; the first of a body."""

    may_be_text: bool = False
    """Set by a reader that may give all it takes back as text: nothing is certain then before its end."""
    reread_characters: int = 0
    """Characters that were read as another family's call, were none, and were read again."""

    def begin_body(self, *, at_line_start: bool, after_call: bool) -> None:
        """Forget the body before."""
        self.at_line_start, self.after_call = at_line_start, after_call
        self.json_call, self.may_be_text = None, False

    def begin_json(self, start: int, name: str | None, arguments_key: str) -> None:
        if self.json_call is None and not self.may_be_text:
            self.json_call = JsonCall(start, name, arguments_key)


class OpaqueSection(NamedTuple):
    """Text after a header that says what it is, and that is so whatever it quotes.

    One of ``ends`` ends it where the text ends or one of ``before`` follows;
    ``starts`` are headers that begin the next section even without such an end, ``glued_starts`` those that do
    where no space stands before them: after a space they are quoted. ``closes`` end it whatever follows.
    """

    is_reasoning: bool
    ends: tuple[str, ...]
    before: tuple[str, ...]
    starts: tuple[str, ...] = ()
    glued_starts: tuple[str, ...] = ()
    closes: tuple[str, ...] = ()


class BodyResult(NamedTuple):
    """What a reader made of a body: calls, or an error for the model, or (``is_text``) no call at all."""

    calls: tuple[DecodedCall, ...] = ()
    fixes: tuple[str, ...] = ()
    error: str | None = None
    not_a_call: bool = False
    unfinished: bool = False
    """The error is that the body ends inside a value: more text might mend it."""
    section: OpaqueSection | None = None
    """What was read is the header of this section."""

    def adding(self, *fixes: str) -> BodyResult:
        return self._replace(fixes=(*self.fixes, *fixes)) if fixes else self

    def repaired(self, *fixes: str) -> BodyResult:
        """The same with more fixes, if it has calls."""
        return self.adding(*fixes) if self.calls else self

    def without_fix(self, fix: str) -> BodyResult:
        return self._replace(fixes=tuple(other for other in self.fixes if other != fix))


TEXT = BodyResult(not_a_call=True)

BodyReader: TypeAlias = Callable[[StreamBuffer, list[str], ReadContext], Reader[BodyResult]]
"""Reads what follows an opener and appends all it takes to the span (the list of str)."""


def try_readers(*readers: BodyReader) -> BodyReader:
    """Reads as the first of ``readers`` that takes more than white space."""

    def read(source: StreamBuffer, span: list[str], context: ReadContext) -> Reader[BodyResult]:
        reading = TEXT
        for reader in readers:
            start = len(span)
            reading = yield from reader(source, span, context)
            if not reading.not_a_call or "".join(span[start:]).strip(SPACE):
                break
        return reading

    return read


class CallOpener(NamedTuple):
    """A marker that begins a call. ``keeps_space``: the white space before it is content, not the template's."""

    marker: str
    read: BodyReader
    keeps_space: bool = False


@dataclass(frozen=True, slots=True)
class Format:
    """How one model family writes a call.

    ``encode_calls`` and ``encode_result`` write history as the model was trained
    to see it. ``strays`` are closing markers that are never content on their own.
    ``stops`` end a turn; ``special_tokens`` must reach the parser unstripped; ``control_tokens``, beside those of the
    tables, are one model's, as its server or its files tell (`adapter.prompting.escaping.with_control_tokens`).
    ``reasoning`` maps the markers that open reasoning to those that close it, and
    ``starts_in_reasoning`` says that the template always opens it in the prompt. ``answers`` maps
    the markers around an answer that follows reasoning, which are plain words and so content elsewhere.
    ``ends`` are tokens that end a turn or a part of it and that a server should have stripped;
    ``channels`` open a part that is not reasoning, and so end reasoning that is not closed;
    ``next_turns`` begin somebody else's turn and, once there are calls, ``results`` an invented
    result: what follows them is not the model's to say. ``models`` and
    ``template_marks`` are regular expressions and literal pieces by which a model's
    name and a chat template tell the format.
    """

    name: str
    openers: tuple[CallOpener, ...]
    encode_calls: Callable[[list[tuple[str, JsonObject]]], str]
    encode_result: Callable[[str, str, str], str] = content_alone
    """(tool name, content, call id) -> text."""
    aliases: tuple[str, ...] = ()
    openers_for: Callable[[Sequence[str]], tuple[CallOpener, ...]] | None = None
    """Makes the openers that depend on the names of the session's tools."""
    read_bare: BodyReader | None = None
    """Reads calls that stand without markers where a message or paragraph begins."""
    tool_call_body: str | None = None
    """What this format writes in the ``<tool_call>`` envelope, which several share: json, function or pairs."""
    marks_plain_text: bool = False
    """Its opening marker also stands before plain text, so that it announces no call."""
    read_header: BodyReader | None = None
    """Reads what can only begin a message, the prompt having ended within a header; takes nothing of other text."""
    read_without_markers: BodyReader | None = None
    """Reads what begins a message with a word, its opening markers stripped by the server: a call of a tool of the
    session, or a header."""
    reasoning: Mapping[str, str] = field(default_factory=lambda: {"<think>": "</think>"})
    starts_in_reasoning: bool = False
    answer_tags: Mapping[str, str] = field(default_factory=dict)
    stray_closers: tuple[str, ...] = ()
    end_tokens: tuple[str, ...] = ()
    channel_markers: tuple[str, ...] = ()
    other_role_markers: tuple[str, ...] = ()
    result_markers: tuple[str, ...] = ()
    stop_sequences: tuple[str, ...] = ()
    special_tokens: tuple[str, ...] = ()
    control_tokens: tuple[str, ...] = ()
    model_patterns: tuple[str, ...] = ()
    template_fingerprints: tuple[str, ...] = ()

    __eq__ = object.__eq__
    __hash__ = object.__hash__
