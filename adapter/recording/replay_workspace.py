"""What came from outside a recorded conversation, given again from the record.

Nothing is asked of any server, of a person, of a sub-agent or of a function of the user's, and no program is run: what
these gave is in the record, with the files that they changed. A transcript is data, from whoever wrote it: programs
run again only when the user says so (`CommandReplayPolicy`), by the user's rules.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from adapter.backends.stream_chunks import Chunk
from adapter.conversation.message_rendering import Message
from adapter.core.callbacks import require_sync
from adapter.core.errors import ToolError, TransportError, UsageError
from adapter.core.events import Json, JsonObject, ToolResult
from adapter.core.turn import HasCalls
from adapter.dialects import Dialect, get_dialect
from adapter.protocols.usage import Usage
from adapter.recording.recorder import SessionRecorder, is_external_tool, resolve_in_root, restore
from adapter.recording.transcript import (
    ApprovalLine,
    EndLine,
    Header,
    Line,
    NestedCallLine,
    ResultLine,
    Transcript,
    TranscriptWriter,
    UserTool,
)
from adapter.tools.call_shapes import parse_arguments
from adapter.tools.function_tools import tool
from adapter.tools.operations import (
    AgentReport,
    KillCommand,
    Operation,
    Outcome,
    Question,
    ReadCommandOutput,
    RunCommand,
    RunProgram,
    RunSubagent,
    SearchHit,
    SearchWeb,
    StartCommand,
)
from adapter.tools.operations.capabilities import Capability
from adapter.tools.operations.permissions import ApprovalDecision, ApprovalRequest, Approver, PermissionRule
from adapter.tools.tool import Tool, ToolSet
from adapter.workspace import Workspace
from adapter.workspace.approval_flow import ApprovalFlow, make_policy
from adapter.workspace.capabilities.host import Host, WebAccess
from adapter.workspace.changes.plan import Plan
from adapter.workspace.sandbox.deadline import Deadline
from adapter.workspace.tool_results import error_result
from adapter.workspace.workspace import READ_ONLY

PROGRAMS = RunCommand | StartCommand | ReadCommandOutput | KillCommand | RunProgram


@dataclass(frozen=True, slots=True)
class CommandReplayPolicy:
    """Run the recorded programs again, each when ``mode`` and ``rules``, the user's and not the transcript's, allow it
    or ``ask`` does; in a sandbox, or not at all."""

    mode: str = "ask"
    rules: tuple[PermissionRule, ...] = ()
    ask: Approver | None = None

    def __post_init__(self) -> None:
        """Raises UsageError for an async approver."""
        if self.ask is not None:
            require_sync(self.ask, "the approver")


class ReplayChat:
    """Answers with a transcript's chunks, in their own boundaries, and stops as the recorded conversation did."""

    def __init__(self, transcript: Transcript) -> None:
        self._answers = list(transcript.answers)
        self._end = next((line for line in transcript.lines if isinstance(line, EndLine)), None)

    def stream(self, messages: Sequence[Message], *, stop: Sequence[str] = ()) -> Iterator[Chunk]:  # noqa: ARG002
        if not self._answers:
            raise TransportError("the conversation asks for one answer more than was recorded")
        for line in self._answers.pop(0):
            usage = None if line.prompt_tokens is None else Usage(line.prompt_tokens, line.written_tokens or 0)
            yield Chunk(line.text, line.reasoning, line.finish_reason, usage=usage)
        if self._end is not None and not self._answers:
            if self._end.reason == "interrupted":
                raise KeyboardInterrupt
            if self._end.reason == "failed":
                raise TransportError(self._end.content)


class _StubCapability:
    """A capability that exists only so that its tools are there: their results are the recorded ones."""

    kinds: Mapping[str, str] = {}

    def ask(self, questions: Sequence[Question]) -> Sequence[Sequence[str]]:
        raise ToolError(_unrecorded(f"{len(questions)} questions"))

    def run(self, task: RunSubagent, workspace: Workspace) -> AgentReport:  # noqa: ARG002
        raise ToolError(_unrecorded(f"the sub-agent {task.description!r}"))

    def search(self, wanted: SearchWeb) -> Sequence[SearchHit]:
        raise ToolError(_unrecorded(f"the search for {wanted.query!r}"))


def _unrecorded(what: str) -> str:
    return (
        f"the transcript does not say what {what} gave inside a batch or code, and it cannot be made again: "
        "record with Host(events=recording.inner), as `adapter run --record` does"
    )


class RecordedResults:
    """What came from outside: the results of calls, and the user's decisions on the way."""

    def __init__(self, transcript: Transcript, recorder: TranscriptWriter, root: Path) -> None:
        self._recorder, self._root = recorder, root
        self._decisions = [line for line in transcript.lines if isinstance(line, ApprovalLine)]
        self._inner = [line for line in transcript.lines if isinstance(line, NestedCallLine)]
        self._results = _results(transcript.lines)
        self._places = {id(line): place for place, line in enumerate(transcript.lines)}
        self._last_change: dict[str, int] = {}  # by path, the place of the line that made it
        self._taking = threading.RLock()

    def decide(self, approval: ApprovalRequest) -> ApprovalDecision:
        """The user's next answer about this tool; in a batch other tools may have been asked about before it."""
        return self._decide(lambda line: line.tool == approval.tool, approval.tool)

    def _decide(self, is_meant: Callable[[ApprovalLine], bool], tool: str) -> ApprovalDecision:
        with self._taking:
            line = next(filter(is_meant, self._decisions), None)
            if line is not None:
                self._decisions.remove(line)
            decision = ApprovalDecision(False) if line is None else line.decision
            self._recorder.approval(line.tool if line is not None else tool, decision)
            return decision

    def next_result(self) -> tuple[int, ResultLine | None]:
        """The result of the next call, with the number of questions before it."""
        return next(self._results, (0, None))

    def given(self, questions: int, line: ResultLine) -> ToolResult:
        for _ in range(questions):
            self._decide(lambda _line: True, "")
        return self._as_result(line)

    def inner_result(self, tool: Tool, arguments: JsonObject, tools: ToolSet) -> ToolResult:
        """What the same call gave inside a batch or code. Raises ToolError when that was not recorded."""
        with self._taking:
            same = (one for one in self._inner if one.arguments == arguments and tools.match(one.name) is tool)
            line = next(same, None)
            if line is None:
                raise ToolError(_unrecorded(tool.name))
            self._inner.remove(line)
            for asked in line.asked:
                self._decide(lambda one, asked=asked: one.tool == asked, asked)  # type: ignore[misc]
            return self._as_result(line)

    def _as_result(self, line: ResultLine | NestedCallLine) -> ToolResult:
        self.put_changes(line)
        error = None if line.ok else line.content.removeprefix("tool_error: ")
        return ToolResult(line.name, line.ok, line.content, error, user_message=line.user_message)

    def put_changes(self, line: ResultLine | NestedCallLine) -> None:
        """Have the files that ``line`` says were changed from outside as they were then."""
        # Calls of a batch end in another order each time, and one may have seen what another had half written:
        # what was recorded last stays.
        place = self._places[id(line)]
        changed = {name: file for name, file in line.changed.items() if self._last_change.get(name, 0) <= place}
        self._last_change |= dict.fromkeys(changed, place)
        restore({name: file for name, file in changed.items() if file is not None}, self._root)
        for path in (resolve_in_root(self._root, name) for name, file in changed.items() if file is None):
            path.unlink(missing_ok=True)


class ReplayWorkspace(Workspace):
    """A workspace in which what came from outside it comes from the record, the user's answers on the way included."""

    record: RecordedResults
    own: frozenset[str] = frozenset()
    programs: ApprovalFlow | None = None
    """What allows programs to be run again; None: they never are."""

    def run_programs(self, commands: CommandReplayPolicy) -> None:
        """Have programs run again. Raises UsageError for a rule about no tool of this session."""
        policy = make_policy(commands.mode, commands.rules, self.known_tools, frozenset())
        self.programs = replace(self._approvals, policy=policy, ask=commands.ask)

    def continue_as(self, header: Header) -> None:
        """What a sub-agent has of the session that it is a part of."""
        self._allowed = READ_ONLY if header.read_only else None
        self._approvals.above = header.above
        self._policy.granted.update(header.granted)
        self.tools = self._offered()

    def run_calls(self, turn: HasCalls, atomic: bool = False) -> list[ToolResult]:
        if atomic:
            raise UsageError("a recorded conversation has no batches")
        results = []
        for call in turn.calls:
            questions, line = self.record.next_result()
            if self._outside(call.name, call.arguments) is None:
                result = self.run(call.name, call.arguments)
                if line is not None:
                    self.record.put_changes(line)
            elif line is not None:
                result = self.record.given(questions, line)
            else:
                result = error_result(call.name, ToolError(_unrecorded(call.name)))
            results.append(replace(result, call_id=call.id))
        return results

    def run_within(self, name: str, arguments: Mapping[str, Json] | str, clock: Deadline | None) -> ToolResult:
        tool = self._outside(name, arguments)
        if tool is None:
            return super().run_within(name, arguments, clock)
        try:
            return self.record.inner_result(tool, parse_arguments(arguments)[0], self.known_tools)
        except ToolError as error:
            return ToolResult(name, ok=False, content=f"tool_error: {error}", error=str(error))

    def _outside(self, name: str, arguments: Mapping[str, Json] | str) -> Tool | None:
        """The tool of this call, if what it gives comes from the record."""
        tool, operation = self.tools.match(name), None
        try:
            invocation = self._resolved_call(name, arguments)
            tool = tool or invocation.tool
            operation = invocation.validated and invocation.validated.operation()
        except ToolError:
            pass
        is_given = is_external_tool(tool, self.own) or (self.programs is None and isinstance(operation, PROGRAMS))
        return tool if is_given else None

    def _commit(self, name: str, planned: Plan, approval: ApprovalRequest) -> Outcome:
        self._check_program(approval.operation, approval)
        return super()._commit(name, planned, approval)

    def _check_program(self, operation: Operation, approval: ApprovalRequest) -> None:
        """Raises ToolError for a program that the user, here and now, has not allowed."""
        if not isinstance(operation, PROGRAMS):
            return
        if self.programs is None:
            raise ToolError(_unrecorded(approval.tool))
        self.programs.require(approval, None)


def dialect_of(header: Header) -> Dialect:
    """The recorded tool set: the dialect's own tools, and the user's, of which only the description is left."""
    own = tuple(_own_tool(tool) for tool in header.own_tools)
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


def _own_tool(recorded: UserTool) -> Tool:
    def function(**_arguments: Json) -> str:
        raise ToolError(_unrecorded(recorded.name))

    definition = {"name": recorded.name, "description": recorded.description, "parameters": recorded.parameters}
    made = tool(definition, function, effect=recorded.effect)
    return replace(made, aliases=recorded.aliases, argument_aliases=recorded.argument_aliases)


def host_of(header: Header, folder: Path, recording: SessionRecorder) -> Host:
    """The capabilities that the session had, none of which is ever asked."""
    tools = dialect_of(header).tools
    had = {tools[name].needs for name in header.tools if name in tools} if header.known else None

    def has(capability: Capability) -> bool:
        return had is None or capability in had

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
        events=recording.inner,
        state=str(folder / "state"),
        skill_folders=(str(folder / "skills"),),
        media=frozenset(header.media),
    )


def _results(lines: Sequence[Line]) -> Iterator[tuple[int, ResultLine]]:
    questions = 0
    for line in lines:
        if isinstance(line, ApprovalLine):
            questions += 1
        elif isinstance(line, ResultLine):
            yield questions, line
            questions = 0
