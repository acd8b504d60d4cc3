"""Who is told what happens in a run or a chat."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.agent.answer import Observed
from adapter.commands.console import Console
from adapter.commands.endings import Tally
from adapter.operations.approval import Approval, Decision
from adapter.transcripts.recording import Recording
from adapter.workspace.hosted.host import HostEvent, InnerCall


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
