"""Who is told what happens in a run or a chat."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.agent.response_reader import AgentEvent
from adapter.cli.console import Console
from adapter.cli.exit_status import CallTally
from adapter.recording.recorder import SessionRecorder
from adapter.tools.operations.permissions import ApprovalDecision, ApprovalRequest
from adapter.workspace.capabilities.host import HostEvent, NestedCall


@dataclass(slots=True)
class ObserverGroup:
    """Who is told what happens: the console, the tally, and the recording where there is one."""

    console: Console
    tally: CallTally
    recording: SessionRecorder | None = None

    def ask(self, approval: ApprovalRequest) -> bool | ApprovalDecision:
        ask = self.console.ask if self.recording is None else self.recording.asking(self.console.ask)
        return ask(approval)

    def observe(self, happening: AgentEvent) -> None:
        self.console(happening)
        self.tally(happening)
        if self.recording is not None:
            self.recording(happening)

    def observe_nested(self, event: HostEvent) -> None:
        if isinstance(event, NestedCall):
            self.tally(event.result)
        if self.recording is not None:
            self.recording.inner(event)
