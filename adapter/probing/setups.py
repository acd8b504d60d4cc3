"""One way to have a model call tools: what `adapter probe` tries, and a profile keeps."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.constraints.modes import Constraint
from adapter.prompt import Style


@dataclass(frozen=True, slots=True)
class Setup:
    """``native``: the server's own tool calling, which leaves the other words without meaning; else those
    of `adapter.wire.request.Options`."""

    format: str = "hermes"
    style: Style = "trained"
    constraint: Constraint = "off"
    native: bool = False

    @property
    def name(self) -> str:
        return "server's own" if self.native else f"{self.format}, {self.style}, {self.constraint}"
