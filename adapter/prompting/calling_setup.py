"""A setup for tool calling. `adapter probe` compares setups, and a profile stores the best."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.grammars.constraint_mode import Constraint
from adapter.prompting.system_prompt import Style


@dataclass(frozen=True, slots=True)
class CallingSetup:
    """A setup for tool calling. ``native``: use the server's own tool calling, which ignores all other fields.
    ``uses_template``: use the model's chat template, which ignores ``style``. The other fields are the same as in
    `adapter.protocols.translation_options.TranslationOptions`. ``reasoning_budget``: maximum number of tokens of
    reasoning in an answer."""

    format: str = "hermes"
    style: Style = "trained"
    constraint: Constraint = "off"
    native: bool = False
    uses_template: bool = False
    reasoning_budget: int | None = None

    @property
    def name(self) -> str:
        if self.native:
            return "server's own"
        return f"{self.format}, {'own prompt' if self.uses_template else self.style}, {self.constraint}"
