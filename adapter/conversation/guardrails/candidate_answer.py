"""Define the answer that guardrails check."""

from __future__ import annotations

import json
from dataclasses import dataclass

from adapter.core.events import InvalidToolCall, MarkupDelta, ToolCall
from adapter.core.turn import Turn
from adapter.parsing.marker_tables import INVENTED_RESULT

POSSIBLY_INTENDED = frozenset({"text-follows", "no-body"})
"""The parser's reasons for rejecting text that may nevertheless be an intended call."""


@dataclass(frozen=True, slots=True)
class CandidateAnswer:
    """An answer that guardrails check: its content, its calls, and the invalid and rejected ones."""

    content: str
    calls: tuple[ToolCall, ...] = ()
    invalid: tuple[InvalidToolCall, ...] = ()
    rejected: tuple[str, ...] = ()
    """The text of calls in the answer that the parser rejected."""
    has_reasoned: bool = False
    """True if the answer contains reasoning."""
    has_invented: bool = False
    """True if the answer contains a tool result that the model invented."""

    @classmethod
    def from_turn(cls, turn: Turn) -> CandidateAnswer:
        text = "".join(event.raw for event in turn.events) if turn.rejected else ""
        rejected = tuple(text[each.start : each.end] for each in turn.rejected if each.reason in POSSIBLY_INTENDED)
        has_invented = any(isinstance(event, MarkupDelta) and starts_with_tool_result(event) for event in turn.events)
        return cls(turn.content, turn.calls, turn.invalid, rejected, bool(turn.reasoning), has_invented)

    @property
    def text(self) -> str:
        """The whole answer as text."""
        calls = (json.dumps(call.arguments, ensure_ascii=False) for call in self.calls)
        return "\n".join([self.content, *calls, *(each.raw for each in self.invalid), *self.rejected])


def starts_with_tool_result(markup: MarkupDelta) -> bool:
    """Return whether ``markup`` is a marker of tool results, which a model must not write itself."""
    lowered = markup.raw.lower()
    return any(marker in lowered for marker in INVENTED_RESULT)
