"""Decide whether the next answer is generated under a constraint, and under which one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.agent.retry_constraint import build_edit_constraint, build_no_call_constraint, build_retry_constraint
from adapter.conversation.guardrails.call_history import CallHistory
from adapter.conversation.session_steps import AskModel, Step
from adapter.core.events import JsonObject
from adapter.core.turn import Turn
from adapter.grammars.constraint_mode import Constraint
from adapter.tools.call_validation import is_valid
from adapter.tools.tool_set import ToolSet

if TYPE_CHECKING:
    from adapter.backends.chat_client import ChatClient


@dataclass
class AnswerConstraint:
    """The constraint on a model's answers, which may change after each answer.

    ``free`` and ``constrained`` are the request fields without and with the constraint. Without a ``client``, and with
    the mode ``off``, answers are never constrained.
    """

    mode: Constraint | None
    client: ChatClient | None
    format: str
    is_very_small: bool
    free: JsonObject
    constrained: JsonObject
    is_active: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.begin()

    @property
    def is_permanent(self) -> bool:
        return self.mode in ("prefer", "required")

    @property
    def fields(self) -> JsonObject:
        """The request fields for the next answer."""
        return self.constrained if self.is_active else self.free

    def begin(self) -> None:
        """Begin a new conversation."""
        self.is_active = self.is_permanent

    def update(self, turn: Turn, step: Step, history: CallHistory, tools: ToolSet) -> None:
        """Decide whether to constrain the answer after ``turn``.

        With the mode ``arguments``, constrain it if this answer has calls, but no valid one. Without a mode, constrain
        it to the tools that a guardrail requires, or to words if the model only repeated a call.
        """
        if self.is_permanent:
            return
        if self.mode == "arguments":
            is_tried = bool(turn.calls or turn.invalid)
            self.is_active = is_tried and not any(is_valid(call, tools) for call in turn.calls)
        elif isinstance(step, AskModel) and self.client is not None and self.mode != "off":
            required = ToolSet([tools[name] for name in step.held_to if name in tools])
            if step.in_words and not turn.reasoning:
                self._set(build_no_call_constraint(self.client))
            else:
                is_small = self.is_very_small
                self._set(build_retry_constraint(self.client, self.format, history, required, is_small=is_small))
        else:
            self.is_active = False

    def constrain_edit(self, history: CallHistory, tools: ToolSet) -> None:
        """Constrain a very small model's next answer, if its last edit needs help."""
        if self.client is not None and not self.is_active:
            self._set(build_edit_constraint(self.client, self.format, history, tools))

    def _set(self, fields: JsonObject) -> None:
        self.constrained, self.is_active = fields, bool(fields)
