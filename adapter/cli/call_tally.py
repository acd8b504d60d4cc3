"""Count the results of a run's calls."""

from __future__ import annotations

from dataclasses import dataclass, field

from adapter.agent.answer_reader import AgentEvent
from adapter.conversation.guardrails.call_history import PastCall
from adapter.conversation.guardrails.requested_file_changes import find_text
from adapter.conversation.session_steps import AskModel
from adapter.core.events import InvalidToolCall, JsonObject, ToolCall, ToolResult
from adapter.editing.resolved_edits import NEEDLESS
from adapter.editing.syntax_check import NO_LONGER_PARSES
from adapter.tools.argument_synonyms import CONTENT, PATH
from adapter.tools.tool_set import ToolSet

ACTING = frozenset({"write", "delete", "execute"})
"""Tool effects that change something. A run fails if all calls with these effects failed."""
FAILURE_FIELDS = ("exit_code", "exitCode", "timed_out")
"""Fields of a command's result. If the command failed, one of them is not 0 or False."""
NOT_RUN_CODES = (126, 127)
"""Exit codes of a shell for a command that does not exist or cannot be run."""


@dataclass(slots=True)
class CallTally:
    """Counts the results of all calls in a run, including calls in batches and by sub-agents."""

    tools: ToolSet
    calls: int = 0
    refused: int = 0
    failed: int = 0
    unreadable: int = 0
    acted: int = 0
    """Number of successful calls with an effect in `ACTING`."""
    changed: int = 0
    """Number of the calls in `acted` that changed files."""
    stopped: int = 0
    """Number of refused or failed calls with an effect in `ACTING`."""
    acting_calls: list[PastCall] = field(default_factory=list)
    """The calls with an effect in `ACTING`."""
    last_failed: bool = False
    """True if the last call with an effect in `ACTING` failed, was refused, or ran a command that failed. Failed calls
    that would have changed nothing are ignored."""

    results: list[str] = field(default_factory=list)
    """The results of successful calls that do not write files. Results with a text that the model wrote are left
    out."""
    broken: dict[str, None] = field(default_factory=dict)
    """Paths of files whose syntax was valid before a change and is invalid after it."""

    classified: str = ""
    """The kind of the task, as in `CallHistory.classified`."""

    _arguments: dict[str, JsonObject] = field(default_factory=dict)

    def __call__(self, event: AgentEvent) -> None:
        match event:
            case AskModel():
                self.classified = event.classified
            case InvalidToolCall():
                self.unreadable += 1
            case ToolCall():
                self._arguments[event.id] = event.arguments
            case ToolResult():
                self._count(event)

    def _count(self, result: ToolResult) -> None:
        self.calls += 1
        self.refused += result.denied
        self.failed += not result.ok and not result.denied
        tool = self.tools.match(result.name)
        written = [text for call in self.acting_calls if (text := find_text(call, CONTENT).strip())]
        if (
            result.ok
            and (tool is None or tool.effect != "write")
            and not any(map(result.content.__contains__, written))
        ):
            self.results.append(result.content)
        if tool is not None and tool.effect in ACTING:
            output = result.data if isinstance(result.data, dict) else {}
            self.acted += result.ok and not any(output.get(name) in NOT_RUN_CODES for name in FAILURE_FIELDS)
            self.changed += result.ok and tool.effect != "execute"
            self.stopped += not result.ok
            arguments = self._arguments.get(result.call_id, {})
            call = PastCall(result.name, arguments, ok=result.ok, changes=tool.effect != "execute")
            self.acting_calls.append(call)
            if result.ok and NO_LONGER_PARSES in result.content:
                self.broken[find_text(call, PATH)] = None
            is_needless = any(f": {kind}: " in (result.error or "") for kind in NEEDLESS)
            self.last_failed = (not result.ok and not is_needless) or any(map(output.get, FAILURE_FIELDS))

    def format_counts(self) -> str:
        """Format the counts like ``3 calls, 1 refused, 1 failed``."""
        if self.calls == 1 and (self.refused or self.failed):
            return "the call was refused" if self.refused else "the call failed"
        if self.calls > 1 and self.calls in (self.refused, self.failed):
            return f"all {self.calls} calls {'were refused' if self.refused else 'failed'}"
        parts = [f"{self.calls} call{'s' * (self.calls != 1)}"]
        parts += [f"{count} {word}" for count, word in ((self.refused, "refused"), (self.failed, "failed")) if count]
        return ", ".join(parts)
