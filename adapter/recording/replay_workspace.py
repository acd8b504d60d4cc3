"""Replay a recorded conversation, with recorded results for tools that depend on anything outside of the workspace.

No server, person, sub-agent or custom function is called, and no program runs. The results and file changes of all
these are taken from the transcript. A transcript is untrusted data: recorded programs run again only if the user
requests it (`CommandReplayPolicy`), and under the user's permission rules.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from adapter.backends.stream_chunks import Chunk
from adapter.conversation.message_rendering import Message
from adapter.core.callback_checks import require_sync
from adapter.core.errors import ToolError, TransportError, UsageError
from adapter.core.events import ERROR_LABEL, Json, JsonObject, ToolResult
from adapter.core.turn import HasCalls
from adapter.dialects import Dialect, get_dialect
from adapter.protocols.usage import Usage
from adapter.recording.session_recorder import SessionRecorder, is_external_tool, resolve_in_root, restore_snapshot
from adapter.recording.transcript import Transcript, TranscriptWriter
from adapter.recording.transcript_lines import ApprovalLine, EndLine, Header, Line, NestedCallLine, ResultLine, UserTool
from adapter.tools import operations as ops
from adapter.tools.function_tools import tool
from adapter.tools.json_call_extraction import parse_arguments
from adapter.tools.operations.capabilities import Capability
from adapter.tools.operations.permissions import ApprovalDecision, ApprovalRequest, Approver, PermissionRule
from adapter.tools.tool import Tool, ToolSet
from adapter.workspace import Workspace
from adapter.workspace.approval_flow import ApprovalFlow, make_policy
from adapter.workspace.capabilities.host_capabilities import Host, WebAccess
from adapter.workspace.changes.operation_plan import Plan
from adapter.workspace.pausable_deadline import Deadline
from adapter.workspace.tool_results import build_error_result
from adapter.workspace.workspace import READ_ONLY


@dataclass(frozen=True, slots=True)
class CommandReplayPolicy:
    """Permission to run the recorded programs again, in a sandbox.

    Each program must be allowed by ``mode``, ``rules`` or ``ask``. The mode and the rules are chosen by the user, not
    taken from the transcript.
    """

    mode: str = "ask"
    rules: tuple[PermissionRule, ...] = ()
    ask: Approver | None = None

    def __post_init__(self) -> None:
        """Raise UsageError if the approver is async."""
        if self.ask is not None:
            require_sync(self.ask, "the approver")


class ReplayChat:
    """A chat that streams the recorded chunks, and ends or fails as the recorded conversation did."""

    def __init__(self, transcript: Transcript) -> None:
        self._answers = list(transcript.answers)
        self._end = next((line for line in transcript.lines if isinstance(line, EndLine)), None)

    def stream(self, messages: Sequence[Message], *, stop: Sequence[str] = ()) -> Iterator[Chunk]:  # noqa: ARG002
        if not self._answers:
            raise TransportError("the conversation requests more responses than were recorded")
        for line in self._answers.pop(0):
            usage = None if line.prompt_tokens is None else Usage(line.prompt_tokens, line.written_tokens or 0)
            yield Chunk(line.text, line.reasoning, line.finish_reason, usage=usage)
        if self._end is not None and not self._answers:
            if self._end.reason == "interrupted":
                raise KeyboardInterrupt
            if self._end.reason == "failed":
                raise TransportError(self._end.content)


class _StubCapability:
    """A capability that makes its tools available. It is never used, because the results of the tools are recorded."""

    kinds: Mapping[str, str] = {}

    def ask(self, questions: Sequence[ops.Question]) -> Sequence[Sequence[str]]:
        raise ToolError(_explain_unrecorded(f"{len(questions)} questions"))

    def run(self, task: ops.RunSubagent, workspace: Workspace) -> ops.AgentReport:  # noqa: ARG002
        raise ToolError(_explain_unrecorded(f"the sub-agent {task.description!r}"))

    def search(self, wanted: ops.SearchWeb) -> Sequence[ops.SearchHit]:
        raise ToolError(_explain_unrecorded(f"the search for {wanted.query!r}"))


def _explain_unrecorded(source: str) -> str:
    return (
        f"the transcript has no result for {source} inside a batch or code, and the call cannot be repeated; "
        "record with Host(events=recording.record_host_event), as `adapter run --record` does"
    )


class RecordedResults:
    """The recorded results of calls, and the user's recorded decisions."""

    def __init__(self, transcript: Transcript, recorder: TranscriptWriter, root: Path) -> None:
        self._recorder, self._root = recorder, root
        self._decisions = [line for line in transcript.lines if isinstance(line, ApprovalLine)]
        self._inner = [line for line in transcript.lines if isinstance(line, NestedCallLine)]
        self._pair_results = _pair_results(transcript.lines)
        self._positions = {id(line): position for position, line in enumerate(transcript.lines)}
        self._last_change: dict[str, int] = {}  # position of the latest change, by path
        self._lock = threading.RLock()

    def decide(self, approval: ApprovalRequest) -> ApprovalDecision:
        """Return the user's next decision about this tool. Calls of a batch may need approval in any order."""
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
        """Return the number of approval requests before the next recorded result, and that result. Return 0 and None if
        no result is left."""
        return next(self._pair_results, (0, None))

    def replay_result(self, questions: int, line: ResultLine) -> ToolResult:
        for _ in range(questions):
            self._decide(lambda _line: True, "")
        return self._to_result(line)

    def replay_nested_result(self, tool: Tool, arguments: JsonObject, tools: ToolSet) -> ToolResult:
        """Return the recorded result of an equal call inside a batch or code. Raises ToolError if there is none."""
        with self._lock:
            same = (one for one in self._inner if one.arguments == arguments and tools.match(one.name) is tool)
            line = next(same, None)
            if line is None:
                raise ToolError(_explain_unrecorded(tool.name))
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
        # The calls of a batch end in any order, and a call may have recorded a file that another call was writing.
        # So the last recorded state is used.
        position = self._positions[id(line)]
        changed = {name: file for name, file in line.changed.items() if self._last_change.get(name, 0) <= position}
        self._last_change |= dict.fromkeys(changed, position)
        restore_snapshot({name: file for name, file in changed.items() if file is not None}, self._root)
        for path in (resolve_in_root(self._root, name) for name, file in changed.items() if file is None):
            path.unlink(missing_ok=True)


class ReplayWorkspace(Workspace):
    """A workspace that uses recorded results for external tools, and the user's recorded decisions."""

    record: RecordedResults
    own: frozenset[str] = frozenset()
    programs: ApprovalFlow | None = None
    """Approval of recorded programs that run again; None if no program runs."""

    def run_programs(self, commands: CommandReplayPolicy) -> None:
        """Run recorded programs again. Raises UsageError for a rule about an unknown tool."""
        policy = make_policy(commands.mode, commands.rules, self.known_tools, frozenset())
        self.programs = replace(self._approvals, policy=policy, ask=commands.ask)

    def continue_as(self, header: Header) -> None:
        """Apply the settings that a recorded sub-agent inherited from its parent session."""
        self._allowed = READ_ONLY if header.read_only else None
        self._approvals.parent_path = header.above
        self._policy.granted.update(header.granted)
        self.tools = self._select_available_tools()

    def run_calls(self, turn: HasCalls, atomic: bool = False) -> list[ToolResult]:
        if atomic:
            raise UsageError("a replay cannot run calls atomically")
        results = []
        for call in turn.calls:
            questions, line = self.record.take_next_result()
            if self._find_recorded_tool(call.name, call.arguments) is None:
                result = self.run(call.name, call.arguments)
                if line is not None:
                    self.record.apply_changes(line)
            elif line is not None:
                result = self.record.replay_result(questions, line)
            else:
                result = build_error_result(call.name, ToolError(_explain_unrecorded(call.name)))
            results.append(replace(result, call_id=call.id))
        return results

    def run_within(self, name: str, arguments: Mapping[str, Json] | str, clock: Deadline | None) -> ToolResult:
        tool = self._find_recorded_tool(name, arguments)
        if tool is None:
            return super().run_within(name, arguments, clock)
        try:
            return self.record.replay_nested_result(tool, parse_arguments(arguments)[0], self.known_tools)
        except ToolError as error:
            return ToolResult.from_error(name, error)

    def _find_recorded_tool(self, name: str, arguments: Mapping[str, Json] | str) -> Tool | None:
        """Return the tool of a call if its result is taken from the recording; otherwise None."""
        tool, operation = self.tools.match(name), None
        try:
            invocation = self._validate_call(name, arguments)
            tool = tool or invocation.tool
            operation = invocation.validated and invocation.validated.to_operation()
        except ToolError:
            pass
        is_recorded = is_external_tool(tool, self.own) or (
            self.programs is None and isinstance(operation, ops.ProgramOperation)
        )
        return tool if is_recorded else None

    def _commit(self, name: str, planned: Plan, approval: ApprovalRequest) -> ops.Outcome:
        self._check_program(approval.operation, approval)
        return super()._commit(name, planned, approval)

    def _check_program(self, operation: ops.Operation, approval: ApprovalRequest) -> None:
        """Raise ToolError for a program that the user of the replay has not allowed."""
        if not isinstance(operation, ops.ProgramOperation):
            return
        if self.programs is None:
            raise ToolError(_explain_unrecorded(approval.tool))
        self.programs.require(approval, None)


def build_dialect(header: Header) -> Dialect:
    """Build the recorded tool set from the dialect's tools and the recorded definitions of custom tools."""
    own = tuple(_build_own_tool(tool) for tool in header.own_tools)
    names = {tool.name for tool in own}
    try:
        dialect = get_dialect(header.dialect)
    except UsageError:
        if not own:
            raise
        dialect = Dialect(header.dialect, header.dialect, ())
    kept = tuple(tool for tool in dialect.defined if tool.name not in names)
    classes = [kind for kind in dialect.classes if kind.naming.name not in names]
    return replace(dialect, classes=classes, defined=(*kept, *own))


def _build_own_tool(recorded: UserTool) -> Tool:
    def refuse(**_arguments: Json) -> str:
        raise ToolError(_explain_unrecorded(recorded.name))

    definition = {"name": recorded.name, "description": recorded.description, "parameters": recorded.parameters}
    built = tool(definition, refuse, effect=recorded.effect)
    return replace(built, aliases=recorded.aliases, argument_aliases=recorded.argument_aliases)


def build_host(header: Header, folder: Path, recording: SessionRecorder) -> Host:
    """Build a host with the same capabilities as in the recorded session. No capability is ever called."""
    tools = build_dialect(header).tools
    capabilities = {tools[name].needs for name in header.tools if name in tools} if header.known else None

    def has(capability: Capability) -> bool:
        return capabilities is None or capability in capabilities

    if has("skills"):
        skill = folder / "skills" / "recorded"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text("---\nname: recorded\n---\nIn the transcript.\n", encoding="utf-8")
    return Host(
        questions=_StubCapability() if has("questions") else None,
        editor="embedded" if has("editor") else None,
        agents=_StubCapability() if has("agents") else None,
        search=_StubCapability() if has("search") else None,
        docs="embedded" if has("docs") else None,
        web=WebAccess() if has("web") else None,
        memory=has("memory"),
        events=recording.record_host_event,
        state=str(folder / "state"),
        skill_folders=(str(folder / "skills"),),
        media=frozenset(header.media),
    )


def _pair_results(lines: Sequence[Line]) -> Iterator[tuple[int, ResultLine]]:
    questions = 0
    for line in lines:
        if isinstance(line, ApprovalLine):
            questions += 1
        elif isinstance(line, ResultLine):
            yield questions, line
            questions = 0
