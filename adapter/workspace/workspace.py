"""A workspace: a directory, a dialect, a host and a rule about what needs approval."""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from types import NoneType

from adapter.core.arguments import NONE, PATH, check_types, shown
from adapter.core.callbacks import require_answer, require_sync, tool_observer, wrong_answer
from adapter.core.errors import FormatError, ToolError, UsageError
from adapter.core.events import Json, JsonObject, ToolCall, ToolResult
from adapter.core.turn import HasCalls
from adapter.dialects import Dialect, get_dialect
from adapter.dialects.cross_toolset import extract_apply_patch, translate_call
from adapter.tools.call_resolution import ResolvedCall, normalize_call, resolve_call
from adapter.tools.call_shapes import parse_arguments
from adapter.tools.function_tools import tool as as_tool
from adapter.tools.operations import Edits, Effect, Operation, Outcome, ReadText, effect_of
from adapter.tools.operations.capabilities import ABSENT
from adapter.tools.operations.permissions import ApprovalRequest, Approver, PermissionRule
from adapter.tools.tool import Tool, ToolSet, ValidatedCall
from adapter.workspace.approval_flow import ApprovalFlow, apply_decision, make_policy
from adapter.workspace.atomic_batch import run_atomically
from adapter.workspace.available_tools import available_tools, merge_tools, select_tools
from adapter.workspace.capabilities.host import Host
from adapter.workspace.capabilities.planner import SessionCapabilities
from adapter.workspace.changes.encoding_detection import encoding_named
from adapter.workspace.changes.history import History, RecordedChange, UndoResult
from adapter.workspace.changes.plan import Plan
from adapter.workspace.context import WorkspaceContext
from adapter.workspace.files.edit_strictness import resolve_edit_mode
from adapter.workspace.paths.os_errors import memory_errors_as_tool_errors, os_errors_explained
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.planner import plan_operation
from adapter.workspace.sandbox import confinement_notes
from adapter.workspace.sandbox.deadline import Deadline, with_deadline
from adapter.workspace.sandbox.sandbox import ActiveSandbox, Choice, SandboxSettings
from adapter.workspace.tool_results import changed_by_user, encodable_result, error_result, tool_result_for

READ_ONLY: frozenset[Effect] = frozenset({"read", "state", "network"})
"""What a sub-agent that only reads may do."""


class Workspace:
    """Run tool calls inside the directory ``root``, and return a ToolResult for each.

    ``approve`` is a mode or a callable; ``ask`` answers what a mode does not
    allow by itself, without it such calls are refused. Only True, or a `ApprovalDecision` whose ``allowed`` is True, allows;
    an approver that raises, or returns anything but a bool or a `ApprovalDecision`, raises UsageError, with nothing done.
    ``rules`` decide about
    single tools, paths and commands before the mode does. ``only`` names the tools
    to offer, all of the dialect's when None; ``tools`` are functions of yours
    besides them. ``host`` gives what some tools need; those that need what it has not are not offered.
    What is needed to undo changes, and to put right one that a crash cut off, is kept below ``state``,
    by default the user's state directory. ``echo`` is given the output of tools that show it to the user, as
    it comes. ``sandbox`` says how programs are confined. ``edits``: "exact" takes an edit only where its old text
    stands as it was given, "tolerant" also where it has slips, None does what each tool's document says.
    ``encoding``: of files that are not UTF-8, which is guessed otherwise. Raises UsageError for a directory, dialect,
    mode, tool or encoding that does not exist, and for an approver, ``echo`` or part of ``host`` that is async:
    only `AsyncAgent` awaits these. Functions of ``tools`` may be async.
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
        check_types(
            "Workspace",
            root=(root, *PATH),
            ask=(ask, Callable, NONE),
            only=(only, Iterable, NONE),
            state=(state, *PATH, NONE),
            echo=(echo, Callable, NONE),
            rules=(rules, Iterable),
            tools=(tools, Iterable),
            host=(host, Host, NONE),
            encoding=(encoding, str, NONE),
        )
        self.dialect = get_dialect(dialect)
        self.host = host or Host()
        self.host.require_sync()
        if ask is not None:
            require_sync(ask, "the approver")
        own = [_as_tool(tool) for tool in tools]
        for tool in own:
            tool.require_sync()
        whole = merge_tools(self.dialect.tools, own)
        self._policy = make_policy(approve, rules, whole, self.dialect.preapproved)
        self._writing = threading.RLock()
        self._allowed: frozenset[Effect] | None = None
        self._sandbox = sandbox if isinstance(sandbox, SandboxSettings) else SandboxSettings(sandbox)
        self.edits = resolve_edit_mode(edits)
        self.encoding = encoding_named(encoding)
        self._state = None if state is None else os.fspath(state)
        self._echo = None if echo is None else tool_observer(echo, "echo")
        self._whole = whole if only is None else select_tools(whole, only)
        self._desk = self._new_desk(WorkspaceRoot(root), ())
        self._hosted = SessionCapabilities(self.host, self._desk.root, self)
        self._approvals = ApprovalFlow(
            self._policy,
            ask if isinstance(approve, str) else approve,
            self._desk.root,
            self._desk.confinement,
            self._hosted.person,
        )
        self.tools: ToolSet = self._offered()

    @property
    def root(self) -> str:
        """The directory's real path, for people to read."""
        return self._desk.root.path

    @property
    def history(self) -> History:
        """The changes of this directory, by whichever session."""
        return self._desk.history

    @property
    def recovered(self) -> tuple[str, ...]:
        """What was put right when the workspace was opened, because a program had died in the middle of a change."""
        return self._desk.history.recovered

    @property
    def sandbox(self) -> str:
        """What confines what the tools run, for people: a line about programs, one about functions of the user's and
        MCP tools; empty when no tool runs any."""
        return confinement_notes.session_confinement_note(self.tools.values(), self._desk.confinement)

    @property
    def mode(self) -> str:
        return self._policy.mode

    @property
    def rules(self) -> tuple[PermissionRule, ...]:
        return self._policy.rules

    @property
    def known_tools(self) -> ToolSet:
        """All tools of the session, also those that it cannot offer here."""
        return self._whole

    @property
    def is_read_only(self) -> bool:
        return self._allowed == READ_ONLY

    @property
    def above(self) -> tuple[str, ...]:
        """For a part of a session in a folder: where that is in the session's workspace."""
        return self._approvals.above

    @property
    def granted(self) -> frozenset[tuple[str, ...]]:
        """What the user has allowed for the session: the keys of `ApprovalRequest`."""
        return frozenset(self._policy.granted)

    def wrap_approver(self, watch: Callable[[Approver], Approver]) -> None:
        """Have all questions go through what ``watch`` makes of the one who answers them."""
        require_sync(watch, "watch")
        if self._approvals.ask is not None:
            asking = watch(self._approvals.ask)
            if not callable(asking):
                raise wrong_answer(watch, "watch", asking, "an approver")
            require_sync(asking, "the approver")
            self._approvals.ask = asking

    def close(self) -> None:
        self._hosted.close()
        self._desk.close()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def tool_names(self, aliases: bool = False) -> list[str]:
        """The names of the tools; with ``aliases`` also their documented second names."""
        own = [name for name in self.tools if name not in self.dialect.tools]
        return [name for name in self.dialect.tool_names(aliases) if self.tools.match(name)] + own

    def run(self, name: str, arguments: Mapping[str, Json] | str) -> ToolResult:
        """Do what one call asks for. What a model can get wrong becomes a result, never an exception."""
        return self.run_within(name, arguments, None)

    def run_within(self, name: str, arguments: Mapping[str, Json] | str, clock: Deadline | None) -> ToolResult:
        """`run`, for code that has only the time of ``clock``: nothing is begun when it is up."""
        check_types("Workspace.run", name=(name, str), arguments=(arguments, Mapping, str))
        try:
            with memory_errors_as_tool_errors(name):
                return encodable_result(self._perform(self._resolved_call(name, arguments), clock))
        except ToolError as error:
            result = replace(
                error_result(name, error), data=self._failure(name, arguments, error), sandbox=error.sandbox
            )
            return encodable_result(result)

    def run_calls(self, turn: HasCalls, atomic: bool = False) -> list[ToolResult]:
        """One result per call of ``turn``, in the same order, with the call's id.

        ``atomic``: when one call fails or is refused, or the program dies, the changes
        of all are taken back. Commands cannot be, so none is run then.
        """
        if not hasattr(turn, "calls"):
            raise UsageError(f"Workspace.run_calls takes a Turn, got {shown(turn)}; adapter.parse(text) makes one")
        if atomic:
            return run_atomically(self._desk, turn.calls, self.run, self._check_undoable)
        return [replace(self.run(call.name, call.arguments), call_id=call.id) for call in turn.calls]

    def preview(self, name: str, arguments: Mapping[str, Json] | str) -> ToolResult:
        """What ``run`` would do, and its diff, without doing it or asking anybody; not ``ok`` when it would fail."""
        check_types("Workspace.preview", name=(name, str), arguments=(arguments, Mapping, str))
        try:
            with memory_errors_as_tool_errors(name):
                _, planned, _ = self._plan(self._resolved_call(name, arguments), None)
            return ToolResult(name, ok=True, content=planned.summary, diff=planned.diff)
        except ToolError as error:
            return error_result(name, error)

    def changes(self) -> tuple[RecordedChange, ...]:
        """The changes that this session made and has not undone, newest first."""
        return self._desk.history.changes(self._desk.history.session)

    def undo(self) -> UndoResult:
        """Take back the newest of ``changes()``, and nothing else.

        A file that was changed since keeps those changes where they do not touch. Raises ToolError,
        with nothing done, when they do, or when there is nothing to undo.
        """
        with os_errors_explained("nothing was undone"):
            return self._desk.history.undo(self._desk.history.session)

    def redo(self) -> UndoResult:
        """Make the change again that ``undo()`` took back last. Raises ToolError when one was made since."""
        with os_errors_explained("nothing was redone"):
            return self._desk.history.redo(self._desk.history.session)

    def perform(self, operation: Operation) -> Outcome:
        """Perform an operation for the program itself, with the approval it needs. Raises ToolError when it fails."""
        kind = type(operation).__name__
        with os_errors_explained(f"{kind} was not done"), memory_errors_as_tool_errors(kind):
            planned = plan_operation(self._desk, operation, self._hosted)
            approvals = self._approvals.needed(kind, operation, planned, self.tools)
        for approval in approvals:
            planned = apply_decision(planned, self._approvals.require(approval, None))
        with os_errors_explained(f"{kind} was not completed"), memory_errors_as_tool_errors(kind):
            return planned.commit()

    def operation_of(self, name: str, arguments: JsonObject) -> Operation | None:
        """What a call would ask for; None when it is not valid."""
        try:
            validated = self._resolved_call(name, arguments).validated
        except ToolError:
            return None
        return validated.operation() if validated is not None else None

    def read(self, operation: Operation) -> Outcome:
        """The outcome of an operation that only reads, for the program itself. Raises ToolError when it fails."""
        if effect_of(operation) != "read":
            raise UsageError(f"{type(operation).__name__} changes things: it needs a tool call and approval")
        with os_errors_explained("it could not be read"), memory_errors_as_tool_errors(type(operation).__name__):
            return plan_operation(self._desk, operation, self._hosted).commit()

    def subsession(self, *, host: Host, read_only: bool = False, cwd: str | None = None) -> Workspace:
        """A session beside this one, for a sub-agent: the same rules, grants and locks, a todo list of its own.

        ``host``: what it has of the host. ``cwd``: the folder it works in, inside this workspace. Close it.
        Raises ToolError for a folder that is not there.
        """
        host.require_sync()
        other = copy.copy(self)
        other.host = host
        other._allowed = READ_ONLY if read_only else self._allowed
        root, above = self._desk.root, self.above
        if cwd is not None:
            with root.open_directory(cwd) as (_, place):
                root = WorkspaceRoot("/".join((self.root, *place.parts)))
            if root.path.split("/") != [*self.root.rstrip("/").split("/"), *place.parts]:
                root.close()
                raise ToolError(f"{place.shown} changed while it was being opened; try again")
            above = (*above, *place.parts)
        other._desk = other._new_desk(root, above, owner=self._desk)
        other._hosted = SessionCapabilities(host, root, other)
        other._hosted.share(self._hosted)
        other._approvals = replace(self._approvals, root=root, confinement=other._desk.confinement, above=above)
        other.tools = other._offered()
        return other

    def _new_desk(
        self, root: WorkspaceRoot, above: tuple[str, ...], owner: WorkspaceContext | None = None
    ) -> WorkspaceContext:
        shared = owner if owner is not None and owner.root is root else None
        history = shared.history if shared is not None else History(root, self._state)
        confinement = shared.confinement if shared is not None else self._confinement(root, above)
        return WorkspaceContext(
            root,
            history,
            echo=self._echo,
            owner=owner,
            confinement=confinement,
            encoding=self.encoding,
            edits=self.edits,
        )

    def _confinement(self, root: WorkspaceRoot, above: tuple[str, ...]) -> ActiveSandbox:
        """What confines commands in ``root``: of rules about paths, as much as the sandbox can keep."""

        def kept_from(effects: tuple[Effect, ...]) -> Callable[[str], bool] | None:
            names = frozenset(tool.name for tool in self._whole.values() if tool.effect in effects)
            is_denied = self._policy.denied_paths(names)
            return is_denied and (lambda path: is_denied("/".join((*above, path))))

        return ActiveSandbox(
            self._sandbox,
            root.path,
            hidden=kept_from(("read",)),
            frozen=kept_from(("write", "delete")),
            own=root.hidden,
            session=root.path.removesuffix("".join(f"/{part}" for part in above)) or "/",
        )

    def _offered(self) -> ToolSet:
        return available_tools(self._whole, self.host, self._hosted.skills, self._allowed)

    def _resolved_call(self, name: str, arguments: Mapping[str, Json] | str) -> ResolvedCall:
        """What a call asks for, also one of another dialect's tools. Raises ToolError."""
        patch = extract_apply_patch(arguments)
        if patch is not None:
            call = self._resolved_call("apply_patch", {"patches": patch})
            return replace(call, notes=(*call.notes, f"{name} was not run: the patch in its command was applied"))
        self._check_present(name)
        if self.tools.match(name) is None and self.dialect.tools.match(name) is None:
            meant = translate_call(name, arguments, self.tools, self.dialect)
            if meant is not None:
                return meant
        return resolve_call(name, arguments, self.tools)

    def _failure(self, name: str, arguments: Mapping[str, Json] | str, error: ToolError) -> Json:
        tool = self._whole.match(name)
        if tool is None or tool.failure is None:
            return None
        try:
            given, _ = parse_arguments(arguments if isinstance(arguments, str | dict) else dict(arguments))
        except FormatError:
            given = {}
        data = tool.failure(normalize_call(name, given, self._whole)[1], error)
        require_answer(tool.failure, "Tool.failure", data, (dict, list, str, int, float, NoneType), "JSON")
        return data

    def _check_present(self, name: str) -> None:
        """Raises ToolError that says why a tool of the dialect is not there, and what to do instead."""
        tool = self._whole.match(name)
        if tool is None or tool.name in self.tools:
            return
        self._check_allowed(tool, tool.effect)
        if tool.needs is not None:
            why, instead = ABSENT[tool.needs]
            raise ToolError(f"{tool.name} is not available: {why}. {instead}")
        if tool.program:
            raise ToolError(f"{tool.name} is not available: {tool.program} is not installed here. Use another tool")

    def _check_allowed(self, tool: Tool, effect: Effect) -> None:
        if self._allowed is not None and effect not in self._allowed:
            message = f"{tool.name} is not for this sub-agent, which only reads. Say in your answer what to change"
            raise ToolError(message)

    def _check_undoable(self, call: ToolCall) -> None:
        """Raises ToolError for what cannot be part of a batch."""
        invocation = self._resolved_call(call.name, call.arguments)
        if invocation.validated is not None and effect_of(invocation.validated.operation()) == "execute":
            raise ToolError(f"{call.name} cannot be taken back: send it alone, after the changes")

    def _plan(
        self, invocation: ResolvedCall, clock: Deadline | None
    ) -> tuple[ValidatedCall, Plan, list[ApprovalRequest]]:
        """What a call would do, if no rule forbids that. Raises ToolError."""
        tool, call = invocation.tool, invocation.validated
        if call is None:
            raise ToolError(f"{tool.name} can only be run by the client that defined it")
        operation = with_deadline(call.operation(), clock)
        if isinstance(operation, ReadText) and clock is None:  # code that calls a tool sees no images
            operation = replace(operation, media=self.host.media)
        # The operation says what happens to the world, whatever the tool was declared as.
        effect = effect_of(operation)
        self._check_allowed(tool, effect)
        with os_errors_explained(f"{tool.name} was not done"):
            self._approvals.refuse_denied(tool, operation, self.tools)
            planned = plan_operation(self._desk, operation, self._hosted, clock)
            given = invocation.arguments.get(tool.label)
            label = given if isinstance(given, str) else ""
            approvals = self._approvals.needed(tool.name, operation, planned, self.tools)
            return call, planned, [replace(approval, label=label) for approval in approvals]

    def _perform(self, invocation: ResolvedCall, clock: Deadline | None) -> ToolResult:
        name = invocation.tool.name
        # From the plan to its commit nobody else writes: a file changes only by plans that have seen it.
        with self._writing if _may_write(invocation) else nullcontext():
            call, planned, approvals = self._plan(invocation, clock)
            asked = planned
            for approval in approvals:
                planned = apply_decision(planned, self._approvals.require(approval, clock))
            told = "" if planned is asked else changed_by_user(planned)
            if clock is not None and clock.remaining <= 0:
                raise ToolError(f"the time is up; {name} was not done")
            outcome = self._approvals.without_hidden(self._commit(name, planned, approvals[-1]), name)
        sandbox = confinement_notes.confinement_result_note(approvals[-1].operation, outcome, self._desk.confinement)
        return replace(tool_result_for(invocation, call, outcome, told), sandbox=sandbox)

    def _commit(self, name: str, planned: Plan, approval: ApprovalRequest) -> Outcome:
        try:
            with os_errors_explained(f"{name} was not completed"):
                return planned.commit()
        except ToolError as error:
            error.sandbox = approval.sandbox
            raise


def _as_tool(given: Tool | Callable[..., object] | None) -> Tool:
    if given is None:
        raise UsageError("Workspace: tools must be functions or Tools, got None")
    return given if isinstance(given, Tool) else as_tool(given)


def _may_write(invocation: ResolvedCall) -> bool:
    call = invocation.validated
    return call is not None and effect_of(call.operation()) in ("write", "delete")
