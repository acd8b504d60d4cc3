"""Look up the recorded results of tools and the recorded decisions of the user, for a replay."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from adapter.core.errors import ToolError
from adapter.core.events import ERROR_LABEL, JsonObject, ToolResult
from adapter.recording.session_recorder import resolve_in_root, restore_snapshot
from adapter.recording.transcript import Transcript, TranscriptWriter
from adapter.recording.transcript_lines import ApprovalLine, Line, NestedCallLine, ResultLine
from adapter.tools.operations.permissions import ApprovalDecision, ApprovalRequest
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet


def explain_unrecorded(source: str) -> str:
    """Return the error for a nested call of ``source`` whose result was not recorded."""
    return (
        f"the transcript has no result for {source} inside a batch or code, and the call cannot be repeated; "
        "record with Host(events=recording.record_host_event), as `adapter run --record` does"
    )


class RecordedResults:
    """Supplies a replay with the recorded results of calls and the user's recorded decisions.

    ``recorder`` writes the transcript of the replay, and ``root`` is the folder in which recorded file changes are
    made.
    """

    def __init__(self, transcript: Transcript, recorder: TranscriptWriter, root: Path) -> None:
        self._recorder, self._root = recorder, root
        self._decisions = [line for line in transcript.lines if isinstance(line, ApprovalLine)]
        self._inner = [line for line in transcript.lines if isinstance(line, NestedCallLine)]
        self._pair_results = _pair_results(transcript.lines)
        self._positions = {id(line): position for position, line in enumerate(transcript.lines)}
        self._last_change: dict[str, int] = {}  # position of the latest change, by path
        self._lock = threading.RLock()

    def decide(self, approval: ApprovalRequest) -> ApprovalDecision:
        """Return the user's next recorded decision about this tool. Calls in a batch may need approval in any order."""
        return self._decide(lambda line: line.tool == approval.tool, approval.tool)

    def _decide(self, matches: Callable[[ApprovalLine], bool], tool: str) -> ApprovalDecision:
        with self._lock:
            line = next(filter(matches, self._decisions), None)
            if line is not None:
                self._decisions.remove(line)
            decision = ApprovalDecision(False) if line is None else line.decision
            self._recorder.write_line(ApprovalLine.from_decision(line.tool if line is not None else tool, decision))
            return decision

    def take_next_result(self) -> tuple[int, ResultLine | None]:
        """Return the number of recorded approvals before the next result, and this result. If no result is left, return
        0 and None."""
        return next(self._pair_results, (0, None))

    def replay_result(self, questions: int, line: ResultLine) -> ToolResult:
        """Return a recorded result, after repeating the ``questions`` recorded approvals before it and the recorded
        file changes."""
        for _ in range(questions):
            self._decide(lambda _line: True, "")
        return self._to_result(line)

    def replay_nested_result(self, tool: Tool, arguments: JsonObject, tools: ToolSet) -> ToolResult:
        """Return the recorded result of an equal call inside a batch or code. Raises ToolError if there is no such
        call."""
        with self._lock:
            same = (one for one in self._inner if one.arguments == arguments and tools.match(one.name) is tool)
            line = next(same, None)
            if line is None:
                raise ToolError(explain_unrecorded(tool.name))
            self._inner.remove(line)
            for name in line.asked:
                self._decide(lambda one, name=name: one.tool == name, name)  # type: ignore[misc]
            return self._to_result(line)

    def _to_result(self, line: ResultLine | NestedCallLine) -> ToolResult:
        self.apply_changes(line)
        error = None if line.ok else line.content.removeprefix(ERROR_LABEL).lstrip()
        return ToolResult(line.name, line.ok, line.content, error, user_message=line.user_message)

    def apply_changes(self, line: ResultLine | NestedCallLine) -> None:
        """Restore the file changes that ``line`` recorded."""
        # Calls in a batch end in any order, and a call may have recorded a file while another call was writing it. So
        # the last recorded state is used.
        position = self._positions[id(line)]
        changed = {name: file for name, file in line.changed.items() if self._last_change.get(name, 0) <= position}
        self._last_change |= dict.fromkeys(changed, position)
        restore_snapshot({name: file for name, file in changed.items() if file is not None}, self._root)
        for path in (resolve_in_root(self._root, name) for name, file in changed.items() if file is None):
            path.unlink(missing_ok=True)


def _pair_results(lines: Sequence[Line]) -> Iterator[tuple[int, ResultLine]]:
    questions = 0
    for line in lines:
        if isinstance(line, ApprovalLine):
            questions += 1
        elif isinstance(line, ResultLine):
            yield questions, line
            questions = 0
