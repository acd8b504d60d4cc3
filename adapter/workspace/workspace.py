"""Run tool calls in a directory, with a dialect, a host, an approval policy and a sandbox."""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace

from adapter.core.argument_checks import NONE, PATH, check_types, format_value
from adapter.core.callback_checks import build_result_error, require_sync, wrap_tool_observer
from adapter.core.errors import ToolError, UsageError
from adapter.core.events import Json, JsonObject, ToolCall, ToolResult
from adapter.core.turn import HasCalls
from adapter.dialects import Dialect, get_dialect
from adapter.tools.call_validation import MatchedCall
from adapter.tools.operations import Edits, Effect, Operation, Outcome, ReadText, find_effect
from adapter.tools.operations.permissions import ApprovalRequest, Approver, PermissionRule
from adapter.tools.tool import Tool, ValidatedCall
from adapter.tools.tool_set import ToolSet
from adapter.workspace.approval_flow import ApprovalFlow, apply_decision, make_policy, require_unchanged
from adapter.workspace.approved_content import ApprovedContent
from adapter.workspace.atomic_calls import run_atomically
from adapter.workspace.available_tools import merge_tools, select_available_tools, select_tools, to_tool
from adapter.workspace.call_matcher import CallMatcher
from adapter.workspace.capabilities.capability_planner import SessionCapabilities
from adapter.workspace.capabilities.host_capabilities import Host
from adapter.workspace.changes.encoding_detection import parse_encoding
from adapter.workspace.changes.history import History, RecordedChange, UndoResult
from adapter.workspace.changes.operation_plan import Plan
from adapter.workspace.files.file_patching import resolve_edit_mode
from adapter.workspace.operation_planner import plan_operation
from adapter.workspace.paths.os_errors import convert_memory_errors, convert_os_errors
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.pausable_deadline import Deadline, with_deadline
from adapter.workspace.sandbox import sandbox_notes
from adapter.workspace.sandbox.sandbox import ActiveSandbox, Choice, SandboxSettings
from adapter.workspace.tool_results import build_error_result, build_tool_result, describe_user_change, make_encodable
from adapter.workspace.workspace_context import WorkspaceContext

READ_ONLY: frozenset[Effect] = frozenset({"read", "state", "network"})
"""Effects allowed to a read-only sub-agent."""


class Workspace:
    """Runs tool calls inside the directory ``root``, and returns a ToolResult for each.

    Args:
        dialect: The tool set to offer, or its name.
        approve: The name of an approval mode, or an approver.
        ask: The approver for calls that the mode does not allow; without one they are refused. Only True or an
            `ApprovalDecision` with ``allowed=True`` allows a call. An approver that raises, or returns another type,
            raises UsageError before anything is done.
        only: Names of the tools to offer, by default all of the dialect.
        state: Directory for undo data and crash recovery, by default in the user's state directory.
        echo: Called with the output of tools that show it to the user, as it arrives.
        rules: Allow or deny single tools, paths and commands before the mode applies.
        tools: Additional functions or tools.
        host: Capabilities that some tools need; a tool is not offered if its capability is missing.
        sandbox: The sandbox for programs.
        edits: "exact" requires an edit's old text to match exactly, "tolerant" also accepts small mistakes, None uses
            each tool's default.
        encoding: Encoding of files that are not UTF-8, by default detected.

    Raises UsageError for a directory, dialect, mode, tool or encoding that does not exist, and for an async approver,
    ``echo`` or part of ``host``, which need `AsyncAgent`. Functions of ``tools`` may be async.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        dialect: str | Dialect = "blade",
        approve: str | Approver = "ask",
        ask: Approver | None = None,
        only: Iterable[str] | None = None,
        *,
        state: str | os.PathLike[str] | None = None,
        echo: Callable[[str], object] | None = None,
        rules: Iterable[PermissionRule] = (),
        tools: Iterable[Tool | Callable[..., object]] = (),
        host: Host | None = None,
        sandbox: SandboxSettings | Choice = "auto",
        edits: Edits | None = None,
        encoding: str | None = None,
    ) -> None:
        check_types("Workspace", root=(root, *PATH), state=(state, *PATH, NONE), encoding=(encoding, str, NONE))
        check_types("Workspace", only=(only, Iterable, NONE), rules=(rules, Iterable), tools=(tools, Iterable))
        check_types("Workspace", ask=(ask, Callable, NONE), echo=(echo, Callable, NONE), host=(host, Host, NONE))
        self.dialect = get_dialect(dialect)
        self.host = host or Host()
        self.host.require_sync()
        if ask is not None:
            require_sync(ask, "the approver")
        added = [to_tool(tool) for tool in tools]
        for tool in added:
            tool.require_sync()
        whole = merge_tools(self.dialect.tools, added)
        self._policy = make_policy(approve, rules, whole, self.dialect.preapproved)
        self._writing = threading.RLock()
        self._allowed: frozenset[Effect] | None = None
        self._sandbox = sandbox if isinstance(sandbox, SandboxSettings) else SandboxSettings(sandbox)
        self.edits = resolve_edit_mode(edits)
        self.encoding = parse_encoding(encoding)
        self._state = None if state is None else os.fspath(state)
        self._echo = None if echo is None else wrap_tool_observer(echo, "echo")
        self._whole = whole if only is None else select_tools(whole, only)
        self._context = self._create_context(WorkspaceRoot(root), ())
        self._capabilities = SessionCapabilities(self.host, self._context.root, self)
        approver = ask if isinstance(approve, str) else approve
        approved, lock = ApprovedContent(self._context.history.store.home, "skills"), self._capabilities.approval_lock
        places = self._context.root, self._context.sandbox
        self._approvals = ApprovalFlow(self._policy, approver, *places, lock, approved)
        self.tools: ToolSet = self._select_available_tools()

    @property
    def root(self) -> str:
        """Real path of the directory, for display."""
        return self._context.root.path

    @property
    def history(self) -> History:
        """The change history of this directory, with the changes of all sessions."""
        return self._context.history

    @property
    def recovered(self) -> tuple[str, ...]:
        """Notes on changes that a crash had interrupted. Opening the workspace completed or reverted them."""
        return self._context.history.recovered

    @property
    def sandbox(self) -> str:
        """A description of how programs, custom functions and MCP tools are confined; empty without such tools."""
        return sandbox_notes.build_session_sandbox_note(self.tools.values(), self._context.sandbox)

    @property
    def mode(self) -> str:
        return self._policy.mode

    @property
    def rules(self) -> tuple[PermissionRule, ...]:
        return self._policy.rules

    @property
    def known_tools(self) -> ToolSet:
        """All tools in the session, including the tools that this machine cannot offer."""
        return self._whole

    @property
    def is_read_only(self) -> bool:
        return self._allowed == READ_ONLY

    @property
    def parent_path(self) -> tuple[str, ...]:
        """Path from the session's workspace to this subsession's directory."""
        return self._approvals.parent_path

    @property
    def granted(self) -> frozenset[tuple[str, ...]]:
        """Keys of the approval requests granted by the user for the whole session."""
        return frozenset(self._policy.granted)

    def wrap_approver(self, wrap: Callable[[Approver], Approver]) -> None:
        """Replace the approver with ``wrap(approver)``, if the session has an approver."""
        require_sync(wrap, "wrap")
        if self._approvals.ask is not None:
            approver = wrap(self._approvals.ask)
            if not callable(approver):
                raise build_result_error(wrap, "wrap", approver, "an approver")
            require_sync(approver, "the approver")
            self._approvals.ask = approver

    def close(self) -> None:
        self._capabilities.close()
        self._context.close()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def tool_names(self, aliases: bool = False) -> list[str]:
        """Return the names of the offered tools. ``aliases``: whether to also return their documented aliases."""
        added = [name for name in self.tools if name not in self.dialect.tools]
        return [name for name in self.dialect.list_tool_names(aliases) if self.tools.match(name)] + added

    def run(self, name: str, arguments: Mapping[str, Json] | str) -> ToolResult:
        """Run one call. If the model made a mistake, the result is an error; no exception is raised."""
        return self.run_within(name, arguments, None)

    def run_within(self, name: str, arguments: Mapping[str, Json] | str, deadline: Deadline | None) -> ToolResult:
        """Run one call. If there is a deadline, no operation starts after it."""
        check_types("Workspace.run", name=(name, str), arguments=(arguments, Mapping, str))
        try:
            with convert_memory_errors(name):
                return make_encodable(self._perform(self._calls.validate(name, arguments), deadline))
        except ToolError as error:
            data, result = self._calls.describe_failure(name, arguments, error), build_error_result(name, error)
            return make_encodable(replace(result, data=data, sandbox=error.sandbox))

    def run_calls(self, turn: HasCalls, atomic: bool = False) -> list[ToolResult]:
        """Run the calls of ``turn`` and return one result per call, in order, with the call's id.

        ``atomic``: whether to revert the changes of all calls if one of them fails or is refused, or if the program
        dies. Commands cannot be reverted, so an atomic turn does not run them.
        """
        if not hasattr(turn, "calls"):
            raise UsageError(
                f"Workspace.run_calls takes a Turn, got {format_value(turn)}; adapter.parse(text) returns one"
            )
        if atomic:
            return run_atomically(self._context, turn.calls, self.run, self._check_undoable)
        return [replace(self.run(call.name, call.arguments), call_id=call.id) for call in turn.calls]

    def preview(self, name: str, arguments: Mapping[str, Json] | str) -> ToolResult:
        """Return the summary and diff of a call without running it or asking for approval.

        The result is not ``ok`` if the call would fail.
        """
        check_types("Workspace.preview", name=(name, str), arguments=(arguments, Mapping, str))
        try:
            with convert_memory_errors(name):
                _, planned, _ = self._plan(self._calls.validate(name, arguments), None)
            return ToolResult(name, ok=True, content=planned.summary, diff=planned.diff)
        except ToolError as error:
            return build_error_result(name, error)

    def changes(self) -> tuple[RecordedChange, ...]:
        """Return the changes that this session made and has not undone, newest first."""
        return self._context.history.list_undoable_changes(self._context.history.session)

    def undo(self) -> UndoResult:
        """Undo the newest change in ``changes()``.

        Later edits of the same file are kept if they do not overlap with the change. Files that run code later need
        approval, as in any edit. Raises ToolError, and changes nothing, if later edits overlap, if approval is refused
        or if there is nothing to undo.
        """
        with convert_os_errors("nothing was undone"):
            return self._context.history.undo(self._context.history.session, self._approvals.review_undo)

    def redo(self) -> UndoResult:
        """Reapply the change that ``undo()`` reverted last. Raises ToolError if another change was made since."""
        with convert_os_errors("nothing was redone"):
            return self._context.history.redo(self._context.history.session, self._approvals.review_undo)

    def perform(self, operation: Operation) -> Outcome:
        """Perform an operation for the calling program, after any approval it needs. Raises ToolError on failure."""
        kind = type(operation).__name__
        with convert_os_errors(f"{kind} had no effect"), convert_memory_errors(kind):
            planned = plan_operation(self._context, operation, self._capabilities)
            approvals = self._approvals.list_required_approvals(kind, operation, planned, self.tools)
        decisions = [self._approvals.require(approval, None) for approval in approvals]
        if any(decisions):
            current = plan_operation(self._context, operation, self._capabilities)
            require_unchanged(approvals, self._approvals.list_required_approvals(kind, operation, current, self.tools))
        for decision in decisions:
            planned = apply_decision(planned, decision)
        with convert_os_errors(f"{kind} was not completed"), convert_memory_errors(kind):
            return planned.commit()

    def find_operation(self, name: str, arguments: JsonObject) -> Operation | None:
        """Return the operation of a call, or None if the call is invalid."""
        try:
            validated = self._calls.validate(name, arguments).validated
        except ToolError:
            return None
        return validated.to_operation() if validated is not None else None

    def read(self, operation: Operation) -> Outcome:
        """Perform a read-only operation for the calling program. Raises ToolError on failure."""
        if find_effect(operation) != "read":
            raise UsageError(f"{type(operation).__name__} is not read-only; use perform(), which requests approval")
        with convert_os_errors("the read failed"), convert_memory_errors(type(operation).__name__):
            return plan_operation(self._context, operation, self._capabilities).commit()

    def open_subsession(self, *, host: Host, read_only: bool = False, cwd: str | None = None) -> Workspace:
        """Open a session for a sub-agent. It shares rules, grants and locks, and has its own todo list.

        The caller closes it. ``host``: capabilities of the sub-agent. ``cwd``: its directory in this workspace. Raises
        ToolError if that directory does not exist.
        """
        host.require_sync()
        other = copy.copy(self)
        other.host = host
        other._allowed = READ_ONLY if read_only else self._allowed
        root, parent_path = self._context.root, self.parent_path
        if cwd is not None:
            with root.open_directory(cwd) as (_, resolved):
                root = WorkspaceRoot("/".join((self.root, *resolved.parts)))
            if self._context.root.find_parts(root) != resolved.parts:
                root.close()
                raise ToolError(f"{resolved.display_path} changed while it was being opened; try again")
            parent_path = (*parent_path, *resolved.parts)
        other._context = other._create_context(root, parent_path, owner=self._context)
        other._capabilities = SessionCapabilities(host, root, other)
        other._capabilities.share(self._capabilities)
        other._approvals = replace(self._approvals, root=root, sandbox=other._context.sandbox, parent_path=parent_path)
        other.tools = other._select_available_tools()
        return other

    operation_of, subsession = find_operation, open_subsession
    """Former names of these methods."""

    def _create_context(
        self, root: WorkspaceRoot, parent_path: tuple[str, ...], owner: WorkspaceContext | None = None
    ) -> WorkspaceContext:
        shared = owner if owner is not None and owner.root is root else None
        history = shared.history if shared is not None else History(root, self._state)
        sandbox = shared.sandbox if shared is not None else self._create_sandbox(root, parent_path)
        return WorkspaceContext(
            root, history, echo=self._echo, owner=owner, sandbox=sandbox, encoding=self.encoding, edits=self.edits
        )

    def _create_sandbox(self, root: WorkspaceRoot, parent_path: tuple[str, ...]) -> ActiveSandbox:
        """Build the sandbox for commands in ``root``, including the path rules that a sandbox can enforce."""

        def build_path_filter(effects: tuple[Effect, ...]) -> Callable[[str], bool] | None:
            names = frozenset(tool.name for tool in self._whole.values() if tool.effect in effects)
            is_denied = self._policy.build_denied_path_test(names)
            return is_denied and (lambda path: is_denied("/".join((*parent_path, path))))

        return ActiveSandbox(
            self._sandbox,
            root.path,
            hidden=build_path_filter(("read",)),
            frozen=build_path_filter(("write", "delete")),
            data_directory=root.hidden,
            session=root.path.removesuffix("".join(f"/{part}" for part in parent_path)) or "/",
        )

    def _select_available_tools(self) -> ToolSet:
        return select_available_tools(self._whole, self.host, self._capabilities.skills, self._allowed)

    @property
    def _calls(self) -> CallMatcher:
        return CallMatcher(self.dialect, self._whole, self.tools, self._allowed)

    def _check_undoable(self, call: ToolCall) -> None:
        """Raise ToolError if the call cannot be part of an atomic batch."""
        invocation = self._calls.validate(call.name, call.arguments)
        if invocation.validated is not None and find_effect(invocation.validated.to_operation()) == "execute":
            raise ToolError(f"{call.name} cannot be undone; send it alone, after the changes")

    def _plan(
        self, invocation: MatchedCall, deadline: Deadline | None
    ) -> tuple[ValidatedCall, Plan, list[ApprovalRequest]]:
        """Return the validated call, its plan and the approvals it needs. Raises ToolError if a rule forbids it."""
        tool, call = invocation.tool, invocation.validated
        if call is None:
            raise ToolError(f"{tool.name} can only be run by the client that defined it")
        operation = with_deadline(call.to_operation(), deadline)
        if isinstance(operation, ReadText) and deadline is None:  # code that calls a tool sees no images
            operation = replace(operation, media=self.host.media)
        # The operation's effect decides, not the effect that its tool declares.
        effect = find_effect(operation)
        self._calls.check_allowed(tool, effect)
        with convert_os_errors(f"{tool.name} was not done"):
            self._approvals.refuse_denied(tool, operation, self.tools)
            planned = plan_operation(self._context, operation, self._capabilities, deadline)
            value = invocation.arguments.get(tool.label)
            label = value if isinstance(value, str) else ""
            approvals = self._approvals.list_required_approvals(tool.name, operation, planned, self.tools)
            return call, planned, [replace(approval, label=label) for approval in approvals]

    def _perform(self, invocation: MatchedCall, deadline: Deadline | None) -> ToolResult:
        name = invocation.tool.name
        # No other write may run between plan and commit: a plan must have seen the file's current content.
        with self._writing if _may_write(invocation) else nullcontext():
            call, planned, approvals = self._plan(invocation, deadline)
            proposed = planned
            decisions = [self._approvals.require(approval, deadline) for approval in approvals]
            if any(decisions):
                require_unchanged(approvals, self._plan(invocation, deadline)[2])
            for decision in decisions:
                planned = apply_decision(planned, decision)
            suffix = "" if planned is proposed else describe_user_change(planned)
            if deadline is not None and deadline.remaining <= 0:
                raise ToolError(f"the time limit was reached; {name} was not run")
            outcome = self._approvals.remove_hidden(self._commit(name, planned, approvals[-1]), name)
        sandbox = sandbox_notes.build_sandbox_result_note(approvals[-1].operation, outcome, self._context.sandbox)
        return replace(build_tool_result(invocation, call, outcome, suffix), sandbox=sandbox)

    def _commit(self, name: str, planned: Plan, approval: ApprovalRequest) -> Outcome:
        try:
            with convert_os_errors(f"{name} was not completed"):
                return planned.commit()
        except ToolError as error:
            error.sandbox = approval.sandbox
            raise


def _may_write(invocation: MatchedCall) -> bool:
    call = invocation.validated
    return call is not None and find_effect(call.to_operation()) in ("write", "delete")
