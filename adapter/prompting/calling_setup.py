"""One way to have a model call tools: what `adapter probe` tries, and a profile keeps."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.grammars.constraint_mode import Constraint
from adapter.prompting.system_prompt import Style


@dataclass(frozen=True, slots=True)
class CallingSetup:
    """``native``: the server's own tool calling, which leaves the other words without meaning; else those
    of `adapter.protocols.translation_options.TranslationOptions`. ``own``: the prompt that the model's template makes, whatever the ``style``."""

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
