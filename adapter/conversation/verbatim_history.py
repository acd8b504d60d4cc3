"""Reproduce a model's earlier answers byte for byte in its history, so that the server can reuse its prompt cache.

The server reuses the cache up to the first byte that differs from the previous prompt. Re-encoding a call may change
its spacing, repair it or correct its name.
"""

from __future__ import annotations

import re
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
from adapter.parsing.marker_tables import build_marker_tables, map_reasoning_markers
from adapter.prompting.escaping import escape_control_tokens, map_strings, unescape_control_tokens
from adapter.tools.tool_set import ToolSet


def build_verbatim_text(events: Iterable[Event]) -> str:
    """Return the verbatim text of an answer; see `VerbatimText`."""
    text = VerbatimText()
    text.receive(events)
    return text.build_text()


class VerbatimText:
    """Collects an answer's text from its events, exactly as the model wrote it.

    The text omits reasoning, as templates do, the tokens that end a turn, because templates add them, and text that the
    model wrote after its turn.
    """

    def __init__(self) -> None:
        self._text = StringBuilder()
        self._pending: list[str] = []  # markup that is kept only if the answer continues
        self._after_reasoning = False
        self._reasoning = StringBuilder()

    def receive(self, events: Iterable[Event]) -> None:
        for event in events:
            match event:
                case TextDelta(raw=raw) | ToolCall(raw=raw) | InvalidToolCall(raw=raw):
                    self.add(raw)
                case ContentReclassified():
                    self._text, self._pending, self._after_reasoning = StringBuilder(), [], True
                case ReasoningDelta(raw=raw):
                    self._reasoning.add(raw)
                    self._pending, self._after_reasoning = [], True
                case ReasoningReclassified():
                    self._text = StringBuilder(str(self._reasoning), str(self._text))
                case MarkupDelta(raw=raw) if any(
                    marker in raw.lower() for marker in map_reasoning_markers(FORMATS.all).values()
                ):
                    self._pending, self._after_reasoning = [], True  # empty reasoning
                case MarkupDelta(raw=raw) if not self._after_reasoning:
                    self._pending.append(raw)
                case _:
                    pass  # a call's progress, which the call's own event supersedes

    def add(self, raw: str) -> None:
        """Add text that is neither reasoning nor markup."""
        if self._pending:
            self._text.add("".join(self._pending))
            self._pending = []
        self._text.add(raw)
        self._after_reasoning = False

    def build_text(self) -> str:
        return str(self._text) + _find_closing_markup("".join(self._pending))


def _find_closing_markup(markup: str) -> str:
    """Return the part of ``markup`` that closes the last call, up to the end of the turn or the next turn."""
    found = _compile_turn_markers().search(markup)
    return markup[: found.start()] if found else markup


@cache
def _compile_turn_markers() -> re.Pattern[str]:
    """Return a pattern for the markers that end a turn or begin its next part. None of them can close a call."""
    tables = build_marker_tables(FORMATS.all, ())
    markers = {*tables.end_tokens, *tables.other_role_markers, *tables.result_markers, *tables.reasoning}
    return re.compile("|".join(map(re.escape, markers)), re.IGNORECASE)


def is_safe_to_replay(arguments: JsonObject, format: Format, tools: ToolSet) -> bool:
    """Return whether a call can be shown to the model as it wrote it, because its ``arguments`` contain no unescaped
    control tokens."""
    return bool(
        map_strings(lambda text: escape_control_tokens(unescape_control_tokens(text), format, tools), arguments)
        == arguments
    )
