"""Define the settings that determine how a model calls tools. `adapter probe` compares setups, and a profile stores the
best one."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.grammars.constraint_mode import Constraint
from adapter.prompting.system_prompt import Style


@dataclass(frozen=True, slots=True)
class CallingSetup:
    """A combination of format, prompt style and constraint for a model's tool calls.

    Fields without a description are the same as in `adapter.protocols.translation_options.TranslationOptions`.
    """

    format: str = "hermes"
    style: Style = "trained"
    constraint: Constraint = "off"
    native: bool = False
    """True to use the server's own tool calling, which ignores all other fields."""
    uses_template: bool = False
    """True to use the model's chat template, which ignores ``style``."""
    reasoning_budget: int | None = None
    """Maximum number of tokens of reasoning in an answer."""

    @property
    def name(self) -> str:
        if self.native:
            return "server's own"
        return f"{self.format}, {'own prompt' if self.uses_template else self.style}, {self.constraint}"
