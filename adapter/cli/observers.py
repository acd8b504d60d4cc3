"""Who is told what happens in a run or a chat."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.agent.response_reader import Observed
from adapter.cli.console import Console
from adapter.cli.exit_status import Tally
from adapter.recording.recorder import Recording
from adapter.tools.operations.permissions import Approval, Decision
from adapter.workspace.capabilities.host import HostEvent, InnerCall


@dataclass(slots=True)
class Witnesses:
    """Who is told what happens: the console, the tally, and the recording where there is one."""

    console: Console
    tally: Tally
    recording: Recording | None = None

    def ask(self, approval: Approval) -> bool | Decision:
        ask = self.console.ask if self.recording is None else self.recording.asking(self.console.ask)
        return ask(approval)

    def observe(self, happening: Observed) -> None:
        self.console(happening)
        self.tally(happening)
        if self.recording is not None:
            self.recording(happening)

    def observe_inner(self, event: HostEvent) -> None:
        if isinstance(event, InnerCall):
            self.tally(event.result)
        if self.recording is not None:
            self.recording.inner(event)
