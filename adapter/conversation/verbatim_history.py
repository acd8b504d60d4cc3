"""What a model is shown of its own earlier answers: what it wrote, byte for byte.

A server keeps the state of the prompt it has read, and of the answer it wrote, and
reuses it as far as the next prompt begins with the same bytes. A call that is encoded
anew (other spacing, a repair, a name put right) ends that: the rest is read again.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from adapter.core.events import (
    ContentReclassified,
    Event,
    InvalidToolCall,
    JsonObject,
    MarkupDelta,
    ReasoningDelta,
    ReasoningReclassified,
    TextDelta,
    ToolCall,
)
from adapter.core.text.string_builder import StringBuilder
from adapter.parsing.format import Format
from adapter.parsing.formats import FORMATS
from adapter.parsing.marker_tables import build_marker_tables, reasoning_markers
from adapter.prompting.escaping import escape_control_tokens, map_strings, unescape_control_tokens
from adapter.tools.tool import ToolSet


def verbatim_text(events: Iterable[Event]) -> str:
    """An answer as it was written, without what is not to be shown again; see `VerbatimText`."""
    written = VerbatimText()
    written.take(events)
    return written.text()


class VerbatimText:
    """Takes the events of an answer as they come, and gives its text.

    Left out are reasoning, which templates leave out too, the tokens that end a turn,
    which templates put there themselves, and what the model went on to say as somebody else.
    """

    def __init__(self) -> None:
        self._kept = StringBuilder()
        self._waiting: list[str] = []  # markup that counts only if more of the answer follows
        self._after_reasoning = False
        self._reasoning = StringBuilder()

    def take(self, events: Iterable[Event]) -> None:
        for event in events:
            match event:
                case TextDelta(raw=raw) | ToolCall(raw=raw) | InvalidToolCall(raw=raw):
                    self.add(raw)
                case ContentReclassified():
                    self._kept, self._waiting, self._after_reasoning = StringBuilder(), [], True
                case ReasoningDelta(raw=raw):
                    self._reasoning.add(raw)
                    self._waiting, self._after_reasoning = [], True
                case ReasoningReclassified():
                    self._kept = StringBuilder(str(self._reasoning), str(self._kept))
                case MarkupDelta(raw=raw) if any(
                    marker in raw.lower() for marker in reasoning_markers(FORMATS.all).values()
                ):
                    self._waiting, self._after_reasoning = [], True  # reasoning with nothing in it
                case MarkupDelta(raw=raw) if not self._after_reasoning:
                    self._waiting.append(raw)
                case _:
                    pass  # progress of a call, which has an event of its own

    def add(self, raw: str) -> None:
        """Take what is no reasoning and no markup."""
        if self._waiting:
            self._kept.add("".join(self._waiting))
            self._waiting = []
        self._kept.add(raw)
        self._after_reasoning = False

    def text(self) -> str:
        return str(self._kept) + _own_end("".join(self._waiting))


def _own_end(markup: str) -> str:
    """Of the markup after the last call what closes it: up to where the turn ends or somebody else's begins."""
    lowered = markup.lower()
    return markup[: min((at for marker in _turn_markers() if (at := lowered.find(marker)) >= 0), default=len(markup))]


@cache
def _turn_markers() -> frozenset[str]:
    """The markers that end a turn, or begin another part of one: no call ends with these."""
    tables = build_marker_tables(FORMATS.all, ())
    return frozenset({*tables.ends, *tables.next_turns, *tables.results, *tables.reasoning})


def is_safe_to_replay(arguments: JsonObject, format: Format, tools: ToolSet) -> bool:
    """Whether a model may be shown its call as it wrote it: whatever could act bears the mark of `neutralise`."""
    return bool(
        map_strings(lambda text: escape_control_tokens(unescape_control_tokens(text), format, tools), arguments)
        == arguments
    )
