"""How a run ended, honestly: the exit code and the last line, by what became of its calls."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.agent.response_reader import AgentEvent
from adapter.conversation.session import REASONS, Finished, Reason
from adapter.core.events import InvalidToolCall, ToolResult
from adapter.tools.tool import ToolSet

HINTS: dict[Reason, str] = {
    "turns": "raise --max-turns, or make the task smaller",
    "repetition": "try a larger model, or a smaller task",
    "unreadable": "try --constraint required, another --format, or a larger model",
    "cut_off": "ask for less, or let the server write more (its context, or its limit of tokens)",
    "broken_off": "see its log, and ask again",
    "stuck": "name the steps, or try a larger model",
    "unsuccessful": "name the file and quote the text exactly, or try a larger model",
}
"""What a person can do about a conversation that came to nothing."""

NO_CALL_HINT = "if it should have acted, try --constraint required, another --format, or a larger model"

EXIT_CODES: dict[Reason, int] = {"answered": 0, "exited": 0, "finished": 0, "interrupted": 130}
"""Of runs in which something was done, or nothing had to be; of all others 1."""

ACTING = frozenset({"write", "delete", "execute"})
"""Effects of tools that do something: a run that was to and did not is no success. A look that fails is an answer."""


@dataclass(slots=True)
class CallTally:
    """What became of the calls of a run, those of batches and sub-agents included."""

    tools: ToolSet
    calls: int = 0
    refused: int = 0
    failed: int = 0
    unreadable: int = 0
    acted: int = 0
    """Calls that were to do something, and did."""
    stopped: int = 0
    """Calls that were to do something, and were refused or failed."""

    def __call__(self, happening: AgentEvent) -> None:
        match happening:
            case InvalidToolCall():
                self.unreadable += 1
            case ToolResult():
                self._count(happening)
            case _:
                pass

    def _count(self, result: ToolResult) -> None:
        self.calls += 1
        self.refused += result.denied
        self.failed += not result.ok and not result.denied
        tool = self.tools.match(result.name)
        if tool is not None and tool.effect in ACTING:
            self.acted += result.ok
            self.stopped += not result.ok


def exit_status(done: Finished, tally: CallTally) -> tuple[int, str]:
    """The exit code and the last line of a run."""
    if done.reason in ("answered", "exited", "finished", "unsuccessful") and (why := _nothing(tally)):
        return 1, f"nothing was done: {why}"
    code, hint, counts = EXIT_CODES.get(done.reason, 1), HINTS.get(done.reason), _counts(tally)
    if done.reason == "answered":
        return code, f"the model is done: {counts}" if tally.calls else f"{REASONS[done.reason]}: {NO_CALL_HINT}"
    if tally.calls and done.reason not in ("finished", "unsuccessful"):  # there it is one, and the reason says so
        return code, f"{REASONS[done.reason]}, after {counts}" + (f": {hint}" if hint else "")
    return code, REASONS[done.reason] + (f": {hint}" if hint else "")


def _nothing(tally: CallTally) -> str:
    """Why a run did nothing of what it was to do; empty when it did, or when there was only to look."""
    if tally.acted:
        return ""
    if tally.unreadable and not tally.calls:
        return f"the model's {'call' if tally.unreadable == 1 else 'calls'} could not be read. {HINTS['unreadable']}"
    if tally.stopped or (tally.calls and tally.refused == tally.calls):
        return _counts(tally)
    return ""


def _counts(tally: CallTally) -> str:
    """``3 calls, 1 refused, 1 failed``."""
    if tally.calls == 1 and (tally.refused or tally.failed):
        return "the call was refused" if tally.refused else "the call failed"
    if tally.calls > 1 and tally.calls in (tally.refused, tally.failed):
        return f"all {tally.calls} calls {'were refused' if tally.refused else 'failed'}"
    parts = [f"{tally.calls} call{'s' * (tally.calls != 1)}"]
    parts += [f"{count} {word}" for count, word in ((tally.refused, "refused"), (tally.failed, "failed")) if count]
    return ", ".join(parts)
