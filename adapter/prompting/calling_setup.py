"""A setup for tool calling: `adapter probe` compares setups, and profiles store the best."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.grammars.constraint_mode import Constraint
from adapter.prompting.system_prompt import Style


@dataclass(frozen=True, slots=True)
class CallingSetup:
    """``native``: the server's own tool calling, which ignores the other fields; these are those of
    `adapter.protocols.translation_options.TranslationOptions`. ``uses_template``: the model's chat template, which
    ignores ``style``."""

    format: str = "hermes"
    style: Style = "trained"
    constraint: Constraint = "off"
    native: bool = False
    uses_template: bool = False

    @property
    def name(self) -> str:
        if self.native:
            return "server's own"
        return f"{self.format}, {'own prompt' if self.uses_template else self.style}, {self.constraint}"
