"""Send the events of a run or a chat to the console, the call tally and the recording."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.agent.response_reader import AgentEvent
from adapter.cli.conversation_display import Console
from adapter.cli.run_outcome import CallTally
from adapter.recording.recorder import SessionRecorder
from adapter.tools.operations.permissions import ApprovalDecision, ApprovalRequest
from adapter.workspace.capabilities.host import HostEvent, NestedCall


@dataclass(slots=True)
class ObserverGroup:
    """The observers of a run: the console, the tally and, if requested, the recording."""

    console: Console
    tally: CallTally
    recording: SessionRecorder | None = None

    def ask(self, approval: ApprovalRequest) -> bool | ApprovalDecision:
        ask = self.console.ask if self.recording is None else self.recording.wrap_approver(self.console.ask)
        return ask(approval)

    def observe(self, event: AgentEvent) -> None:
        self.console(event)
        self.tally(event)
        if self.recording is not None:
            self.recording(event)

    def observe_nested(self, event: HostEvent) -> None:
        if isinstance(event, NestedCall):
            self.tally(event.result)
        if self.recording is not None:
            self.recording.record_host_event(event)
