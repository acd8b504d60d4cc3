"""Build a workspace for replays, which uses recorded results for tools that depend on anything outside of it.

No server, person, sub-agent or custom function is called, and no program runs. Their results and file changes come from
the transcript. A transcript is untrusted: recorded programs run again only if the user requests it
(`CommandReplayPolicy`), and under the user's permission rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from adapter.core.callback_checks import require_sync
from adapter.core.errors import ToolError, UsageError
from adapter.core.events import Json, ToolResult
from adapter.core.turn import HasCalls
from adapter.dialects import Dialect, get_dialect
from adapter.recording.recorded_results import RecordedResults, explain_unrecorded
from adapter.recording.session_recorder import SessionRecorder, is_external_tool
from adapter.recording.transcript_lines import Header, UserTool
from adapter.tools import operations as ops
from adapter.tools.decoded_json_calls import parse_arguments
from adapter.tools.function_tools import tool
from adapter.tools.operations.capabilities import Capability
from adapter.tools.operations.permissions import ApprovalRequest, Approver, PermissionRule
from adapter.tools.tool import Tool
from adapter.workspace import Workspace
from adapter.workspace.approval_flow import ApprovalFlow, make_policy
from adapter.workspace.capabilities.host_capabilities import Host, WebAccess
from adapter.workspace.changes.operation_plan import Plan
from adapter.workspace.pausable_deadline import Deadline
from adapter.workspace.tool_results import build_error_result
from adapter.workspace.workspace import READ_ONLY


@dataclass(frozen=True, slots=True)
class CommandReplayPolicy:
    """The user's permission to run the recorded programs again, in a sandbox.

    Each program must be allowed by the approval mode ``mode``, by ``rules`` or by the approver ``ask``. None of them
    come from the transcript, which is untrusted.
    """

    mode: str = "ask"
    rules: tuple[PermissionRule, ...] = ()
    ask: Approver | None = None

    def __post_init__(self) -> None:
        """Raise UsageError if the approver is async."""
        if self.ask is not None:
            require_sync(self.ask, "the approver")


class _StubCapability:
    """A capability that makes its tools available. It is never used, because the results of the tools are recorded."""

    kinds: Mapping[str, str] = {}

    def ask(self, questions: Sequence[ops.Question]) -> Sequence[Sequence[str]]:
        raise ToolError(explain_unrecorded(f"{len(questions)} questions"))

    def run(self, task: ops.RunSubagent, workspace: Workspace) -> ops.AgentReport:  # noqa: ARG002
        raise ToolError(explain_unrecorded(f"the sub-agent {task.description!r}"))

    def search(self, wanted: ops.SearchWeb) -> Sequence[ops.SearchHit]:
        raise ToolError(explain_unrecorded(f"the search for {wanted.query!r}"))


class ReplayWorkspace(Workspace):
    """A workspace that uses recorded results for external tools, and the user's recorded decisions."""

    record: RecordedResults
    own: frozenset[str] = frozenset()
    """Names of the custom tools, whose results are recorded."""
    programs: ApprovalFlow | None = None
    """Approves recorded programs before they run again; None if no program runs."""

    def allow_programs(self, commands: CommandReplayPolicy) -> None:
        """Allow recorded programs to run again. Raises UsageError for a rule about an unknown tool."""
        policy = make_policy(commands.mode, commands.rules, self.known_tools, frozenset())
        self.programs = replace(self._approvals, policy=policy, ask=commands.ask)

    def apply_parent_settings(self, header: Header) -> None:
        """Apply the settings that a recorded sub-agent inherited from its parent session."""
        self._allowed = READ_ONLY if header.read_only else None
        self._approvals.parent_path = header.above
        self._policy.granted.update(header.granted)
        self.tools = self._select_available_tools()

    def run_calls(self, turn: HasCalls, atomic: bool = False) -> list[ToolResult]:
        if atomic:
            raise UsageError("a replay cannot run calls atomically; pass atomic=False")
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
                result = build_error_result(call.name, ToolError(explain_unrecorded(call.name)))
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
        """Return the called tool if its result comes from the recording, otherwise None."""
        tool, operation = self.tools.match(name), None
        try:
            invocation = self._calls.validate(name, arguments)
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
        """Raise ToolError if the operation runs a program that the replay's user has not allowed."""
        if not isinstance(operation, ops.ProgramOperation):
            return
        if self.programs is None:
            raise ToolError(explain_unrecorded(approval.tool))
        self.programs.require(approval, None)


def build_dialect(header: Header) -> Dialect:
    """Rebuild the recorded tool set from the dialect's tools and the recorded definitions of custom tools."""
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
        raise ToolError(explain_unrecorded(recorded.name))

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
