"""A workspace: a directory, a dialect, a host and a rule about what needs approval."""

from __future__ import annotations

import copy
import os
import threading
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace

from rapidfuzz import fuzz, process

from adapter.approval import MODES, Approval, Approver, Policy, Rule, decided, rules_for
from adapter.calls import Invocation, normalise, resolve
from adapter.dialects import Dialect, get_dialect
from adapter.dialects.foreign import acting_tools, patch_in_command, understood
from adapter.errors import DeniedError, FormatError, ToolError, UsageError
from adapter.events import HasCalls, Json, JsonObject, ToolCall, ToolResult
from adapter.formats.reading.shapes import as_object
from adapter.functions import tool as as_tool
from adapter.host import ABSENT, Host
from adapter.operations import (
    BatchResults,
    DeleteMemory,
    Effect,
    FetchPage,
    FileEdit,
    FilesPatched,
    Finished,
    GrepHits,
    Listing,
    Media,
    Operation,
    Outcome,
    Patched,
    PatchFiles,
    Paths,
    ReadText,
    RunCommand,
    SkillLoaded,
    SymbolMatches,
    ViewMemory,
    WriteMemory,
    Written,
    effect_of,
)
from adapter.text.truncate import truncate
from adapter.text.visible import visible
from adapter.tools import Arguments, Tool, ToolSet
from adapter.workspace.clock import Clock
from adapter.workspace.desk import Desk
from adapter.workspace.faults import explained
from adapter.workspace.gate import Root
from adapter.workspace.history import Change, History, Undone
from adapter.workspace.hosted import Hosted
from adapter.workspace.media import described
from adapter.workspace.planned import Plan
from adapter.workspace.plans import plan
from adapter.workspace.sandbox import Choice, Confinement, Sandbox

READ_ONLY: frozenset[Effect] = frozenset({"read", "state", "network"})
"""What a sub-agent that only reads may do."""


class Workspace:
    """Runs tool calls in the directory ``root`` and answers each with a ToolResult.

    ``approve`` is a mode or a callable; ``ask`` answers what a mode does not
    allow by itself, without it such calls are refused. ``rules`` decide about
    single tools, paths and commands before the mode does. ``only`` names the tools
    to offer, all of the dialect's when None; ``tools`` are functions of yours
    besides them. ``host`` gives what some tools need; those that need what it has not are not offered.
    What is needed to undo changes, and to put right one that a crash cut off, is kept below ``state``,
    by default the user's state directory. ``echo`` is given the output of tools that show it to the user, as
    it comes. ``sandbox`` says how programs are confined. Raises UsageError for a directory, dialect, mode or
    tool that does not exist.
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
        rules: Iterable[Rule] = (),
        tools: Iterable[Tool | Callable[..., object]] = (),
        host: Host | None = None,
        sandbox: Sandbox | Choice = "auto",
    ) -> None:
        self.dialect = get_dialect(dialect)
        self.host = host or Host()
        mode = approve if isinstance(approve, str) else "ask"
        _check_mode(mode)
        whole = _joined(self.dialect.tools, [tool if isinstance(tool, Tool) else as_tool(tool) for tool in tools])
        named = rules_for({name: tool.name for tool in whole.values() for name in (tool.name, *tool.aliases)}, rules)
        for rule in named:
            if rule.pattern is not None and rule.tool in whole and whole[rule.tool].function is not None:
                raise UsageError(
                    f"the rule {str(rule)!r} has a pattern, but a function of yours has nothing it could match"
                )
        self._policy = Policy(mode, named, self.dialect.unasked)
        self._ask = ask if isinstance(approve, str) else approve
        self._writing = threading.RLock()
        self._allowed: frozenset[Effect] | None = None
        self._above: tuple[str, ...] = ()
        self._sandbox = sandbox if isinstance(sandbox, Sandbox) else Sandbox(sandbox)
        self._state, self._echo = None if state is None else os.fspath(state), echo
        self._whole = whole if only is None else _chosen(whole, only)
        self._desk = self._new_desk(Root(root))
        self.tools: ToolSet = self._offered()

    @property
    def root(self) -> str:
        """The directory's real path, for people to read."""
        return self._desk.root.path

    @property
    def recovered(self) -> tuple[str, ...]:
        """What was put right when the workspace was opened, because a program had died in the middle of a change."""
        return self._desk.history.recovered

    @property
    def sandbox(self) -> str:
        """What confines the programs that tools run, in one line for people; empty when no tool runs any."""
        return self._desk.confinement.text if any(tool.effect == "execute" for tool in self.tools.values()) else ""

    @property
    def mode(self) -> str:
        return self._policy.mode

    @property
    def rules(self) -> tuple[Rule, ...]:
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
        return self._above

    @property
    def granted(self) -> frozenset[tuple[str, ...]]:
        """What the user has allowed for the session: the keys of `Approval`."""
        return frozenset(self._policy.granted)

    def watch_approvals(self, watch: Callable[[Approver], Approver]) -> None:
        """Have all questions go through what ``watch`` makes of the one who answers them."""
        if self._ask is not None:
            self._ask = watch(self._ask)

    def close(self) -> None:
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

    def run_within(self, name: str, arguments: Mapping[str, Json] | str, clock: Clock | None) -> ToolResult:
        """`run`, for code that has only the time of ``clock``: nothing is begun when it is up."""
        try:
            return self._perform(self._resolved_call(name, arguments), clock)
        except ToolError as error:
            return replace(_failed(name, error), data=self._failure(name, arguments, error))

    def run_calls(self, turn: HasCalls, atomic: bool = False) -> list[ToolResult]:
        """One result per call of ``turn``, in the same order, with the call's id.

        ``atomic``: when one call fails or is refused, or the program dies, the changes
        of all are taken back. Commands cannot be, so none is run then.
        """
        if atomic:
            return self._run_batch(turn.calls)
        return [replace(self.run(call.name, call.arguments), call_id=call.id) for call in turn.calls]

    def preview(self, name: str, arguments: Mapping[str, Json] | str) -> ToolResult:
        """What ``run`` would do, and its diff, without doing it or asking anybody; not ``ok`` when it would fail."""
        try:
            _, planned, _ = self._plan(self._resolved_call(name, arguments), None)
            return ToolResult(name, ok=True, content=planned.summary, diff=planned.diff)
        except ToolError as error:
            return _failed(name, error)

    def changes(self) -> tuple[Change, ...]:
        """The changes that this session made and has not undone, newest first."""
        return self._desk.history.changes(self._desk.history.session)

    def undo(self) -> Undone:
        """Take back the newest of ``changes()``, and nothing else.

        A file that was changed since keeps those changes where they do not touch. Raises ToolError,
        with nothing done, when they do, or when there is nothing to undo.
        """
        with explained("nothing was undone"):
            return self._desk.history.undo(self._desk.history.session)

    def do(self, operation: Operation) -> Outcome:
        """Perform an operation for the program itself, with the approval it needs. Raises ToolError when it fails."""
        kind = type(operation).__name__
        with explained(f"{kind} was not done"):
            planned = plan(self._desk, operation)
            approvals = self._approvals(kind, operation, planned)
        for approval in approvals:
            self._require_approval(approval, None)
        with explained(f"{kind} was not completed"):
            return planned.commit()

    def operation_of(self, name: str, arguments: JsonObject) -> Operation | None:
        """What a call would ask for; None when it is not valid."""
        try:
            validated = self._resolved_call(name, arguments).validated
        except ToolError:
            return None
        return validated.operation() if validated is not None else None

    def look(self, operation: Operation) -> Outcome:
        """The outcome of an operation that only reads, for the program itself. Raises ToolError when it fails."""
        if effect_of(operation) != "read":
            raise UsageError(f"{type(operation).__name__} changes things: it needs a tool call and approval")
        with explained("it could not be read"):
            return plan(self._desk, operation).commit()

    def part(self, *, host: Host, read_only: bool = False, cwd: str | None = None) -> Workspace:
        """A session beside this one, for a sub-agent: the same rules, grants and locks, a todo list of its own.

        ``host``: what it has of the host. ``cwd``: the folder it works in, inside this workspace. Close it.
        Raises ToolError for a folder that is not there.
        """
        other = copy.copy(self)
        other.host = host
        other._allowed = READ_ONLY if read_only else self._allowed
        root = self._desk.root
        if cwd is not None:
            with root.open_directory(cwd) as (_, place):
                root = Root("/".join((self.root, *place.parts)))
            if root.path.split("/") != [*self.root.rstrip("/").split("/"), *place.parts]:
                root.close()
                raise ToolError(f"{place.shown} changed while it was being opened; try again")
            other._above = (*self._above, *place.parts)
        other._desk = other._new_desk(root, owner=self._desk)
        other._hosted.share(self._hosted)
        other.tools = other._offered()
        return other

    @property
    def _hosted(self) -> Hosted:
        assert self._desk.hosted is not None  # made by _new_desk
        return self._desk.hosted

    def _new_desk(self, root: Root, owner: Desk | None = None) -> Desk:
        shared = owner if owner is not None and owner.root is root else None
        history = shared.history if shared is not None else History(root, self._state)
        hosted = Hosted(self.host, root, self)
        confinement = shared.confinement if shared is not None else self._confinement(root)
        return Desk(root, history, echo=self._echo, hosted=hosted, owner=owner, confinement=confinement)

    def _confinement(self, root: Root) -> Confinement:
        """What confines commands in ``root``: of rules about paths, as much as the sandbox can keep."""

        def kept_from(effects: tuple[Effect, ...]) -> Callable[[str], bool] | None:
            names = frozenset(tool.name for tool in self._whole.values() if tool.effect in effects)
            is_denied = self._policy.denied_paths(names)
            above = self._above
            return is_denied and (lambda path: is_denied("/".join((*above, path))))

        return Confinement(
            self._sandbox,
            root.path,
            hidden=kept_from(("read",)),
            frozen=kept_from(("write", "delete")),
            own=root.hidden,
        )

    def _offered(self) -> ToolSet:
        """The tools whose needs the host meets, and whose effects are allowed, with what there is to choose from."""
        present = self.host.capabilities() | ({"skills"} if self._hosted.skills else set())
        allowed = self._allowed
        return ToolSet(
            self._with_choices(tool)
            for tool in self._whole.values()
            if (tool.needs is None or tool.needs in present) and (allowed is None or tool.effect in allowed)
        )

    def _with_choices(self, tool: Tool) -> Tool:
        if tool.needs == "skills":
            return _with_choices(tool, {skill.title: skill.description for skill in self._hosted.skills})
        if tool.needs == "agents" and self.host.agents is not None:
            return _with_choices(tool, self.host.agents.kinds)
        return tool

    def _resolved_call(self, name: str, arguments: Mapping[str, Json] | str) -> Invocation:
        """What a call asks for, also one of another dialect's tools. Raises ToolError."""
        patch = patch_in_command(arguments)
        if patch is not None:
            call = self._resolved_call("apply_patch", {"patches": patch})
            return replace(call, notes=(*call.notes, f"{name} was not run: the patch in its command was applied"))
        self._check_present(name)
        if self.tools.match(name) is None and self.dialect.tools.match(name) is None:
            meant = understood(name, arguments, self.tools, self.dialect)
            if meant is not None:
                return meant
        return resolve(name, arguments, self.tools)

    def _failure(self, name: str, arguments: Mapping[str, Json] | str, error: ToolError) -> Json:
        tool = self._whole.match(name)
        if tool is None or tool.failure is None:
            return None
        try:
            given, _ = as_object(arguments if isinstance(arguments, str | dict) else dict(arguments))
        except FormatError:
            given = {}
        return tool.failure(normalise(name, given, self._whole)[1], error)

    def _check_present(self, name: str) -> None:
        """Raises ToolError that says why a tool of the dialect is not there, and what to do instead."""
        tool = self._whole.match(name)
        if tool is None or tool.name in self.tools:
            return
        self._check_allowed(tool, tool.effect)
        if tool.needs is not None:
            why, instead = ABSENT[tool.needs]
            raise ToolError(f"{tool.name} is not available: {why}. {instead}")

    def _check_allowed(self, tool: Tool, effect: Effect) -> None:
        if self._allowed is not None and effect not in self._allowed:
            message = f"{tool.name} is not for this sub-agent, which only reads. Say in your answer what to change"
            raise ToolError(message)

    def _plan(self, invocation: Invocation, clock: Clock | None) -> tuple[Arguments, Plan, list[Approval]]:
        """What a call would do, if no rule forbids that. Raises ToolError."""
        tool, call = invocation.tool, invocation.validated
        if call is None:
            raise ToolError(f"{tool.name} can only be run by the client that defined it")
        operation = _in_time(call.operation(), clock)
        if isinstance(operation, ReadText) and clock is None:  # code that calls a tool sees no images
            operation = replace(operation, media=self.host.media)
        # The operation says what happens to the world, whatever the tool was declared as.
        effect = effect_of(operation)
        self._check_allowed(tool, effect)
        with explained(f"{tool.name} was not done"):
            self._refuse_denied(tool, operation)
            planned = plan(self._desk, operation, clock)
            given = invocation.arguments.get(tool.label)
            label = given if isinstance(given, str) else ""
            approvals = self._approvals(tool.name, operation, planned)
            return call, planned, [replace(approval, label=label) for approval in approvals]

    def _perform(self, invocation: Invocation, clock: Clock | None) -> ToolResult:
        name = invocation.tool.name
        # From the plan to its commit nobody else writes: a file changes only by plans that have seen it.
        with self._writing if _may_write(invocation) else nullcontext():
            call, planned, approvals = self._plan(invocation, clock)
            for approval in approvals:
                self._require_approval(approval, clock)
            if clock is not None and clock.remaining <= 0:
                raise ToolError(f"the time is up; {name} was not done")
            with explained(f"{name} was not completed"):
                outcome = self._without_hidden(planned.commit(), name)
        text, data = _media_shown(outcome) if isinstance(outcome, Media) else call.render(outcome)
        return ToolResult(
            name=name,
            ok=True,
            content=truncate(text, max_lines=invocation.tool.max_lines),
            data=data,
            diff=_diff(outcome),
            notes=(*invocation.notes, *call.notes(), *outcome.notes),
            user_message=_user_message(outcome),
            images=_images(outcome),
            ends=isinstance(outcome, Finished),
            sandbox=approval.sandbox,
        )

    def _run_batch(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """All calls as one change, or a result for each that says why not."""
        results: list[ToolResult] = []
        seen = self._desk.seen.saved()
        try:
            for call in calls:
                self._check_undoable(call)
            with explained("no call was run"), self._desk.history.batch():
                for call in calls:
                    result = self.run(call.name, call.arguments)
                    results.append(replace(result, call_id=call.id))
                    if not result.ok:
                        raise _BatchFailed(f"{call.name} failed: {result.error}")
        except ToolError as error:
            self._desk.seen.restore(seen)
            left = "".join(f". But {note}" for note in self._desk.history.take_notes())
            reason = ToolError(
                f"no call of this answer took effect, because {error}{left}. Correct that, and send all again"
            )
            answers = [replace(_failed(call.name, reason), call_id=call.id) for call in calls]
            if isinstance(error, _BatchFailed):
                answers[len(results) - 1] = results[-1]
            return answers
        return results

    def _check_undoable(self, call: ToolCall) -> None:
        """Raises ToolError for what cannot be part of a batch."""
        invocation = self._resolved_call(call.name, call.arguments)
        if invocation.validated is not None and effect_of(invocation.validated.operation()) == "execute":
            raise ToolError(f"{call.name} cannot be taken back: send it alone, after the changes")

    def _refuse_denied(self, tool: Tool, operation: Operation) -> None:
        """Raises ToolError for what a rule denies, before it is planned: a failed plan quotes from the file."""
        unplanned = Plan(tool.name, lambda: Finished())
        whole = self._approval(tool.name, operation, unplanned)
        for approval in (whole, *self._approvals(tool.name, operation, unplanned)):
            if (rule := self._policy.denial(approval)) is not None:
                raise DeniedError(_forbidden(f"the rule {str(rule)!r}", " ".join((tool.name, *approval.paths))))

    def _approvals(self, tool: str, operation: Operation, planned: Plan) -> list[Approval]:
        """What must be allowed: of a patch over several files each edit, by the session's tool for such edits."""
        if not isinstance(operation, PatchFiles):
            return [self._approval(tool, operation, planned)]
        found = []
        for edit, diff in zip(operation.files, planned.diffs or ("",) * len(operation.files), strict=True):
            part = Plan(_summary(edit), planned.commit, diff)
            is_own = tool == type(operation).__name__  # the program's, see `do`
            names = [tool] if is_own else [each.name for each in acting_tools(edit, self.tools, tool)]
            found += [self._approval(name, replace(operation, files=(edit,)), part) for name in names]
        return found

    def _approval(self, tool: str, operation: Operation, planned: Plan) -> Approval:
        effect = effect_of(operation)
        paths = planned.paths or tuple(self._resolved(operation))
        command, cwd = getattr(operation, "command", None), getattr(operation, "cwd", None)
        return Approval(
            tool,
            operation,
            effect,
            planned.summary,
            planned.diff,
            paths=tuple("/".join((*self._above, path)) for path in paths),
            command=command if isinstance(command, str) else None,
            cwd="/".join((*self._above, cwd if isinstance(cwd, str) else ".")),
            subject=planned.subject,
            sandbox=self._desk.confinement.text if effect == "execute" else "",
        )

    def _resolved(self, operation: Operation) -> Iterator[str]:
        """The paths that rules are about: each name that the operation gives, and where links lead from it."""
        root = self._desk.root
        if isinstance(operation, ViewMemory | WriteMemory | DeleteMemory):
            return  # not in the workspace
        if effect_of(operation) == "read" and not self._policy.rules:
            return
        for path in _paths_in(operation):
            places = []
            for follow in (False, True):
                with root.locate(path, follow=follow, parents="imagine") as place:
                    places.append(place.shown)
            yield from dict.fromkeys(places)

    def _require_approval(self, approval: Approval, clock: Clock | None) -> None:
        """Raises ToolError unless rules, mode or whoever is asked allow it."""
        verdict, rule = self._policy.verdict(approval)
        if verdict == "deny":
            why = f"the rule {str(rule)!r}" if rule else f"the approve mode {self._policy.mode!r}"
            raise DeniedError(_forbidden(why, approval.summary))
        if verdict == "allow":
            return
        if self._ask is None:
            raise DeniedError(
                f"{approval.tool} needs the user's approval ({approval.summary}) and nobody can be asked here. "
                f"Nothing was done; do not try it again. The user can allow it by starting with another "
                f"approve mode than {self._policy.mode!r}: auto-edit allows edits, yolo everything"
            )
        with self._hosted.person, clock.paused() if clock is not None else nullcontext():
            if self._policy.verdict(approval)[0] == "allow":
                return  # remembered while this was waiting for its turn
            decision = decided(self._ask(approval))
            if decision.allowed and decision.remember:
                self._policy.granted.add(approval.key)
        if not decision.allowed:
            reason = f" ({decision.reason})" if decision.reason else ""
            raise DeniedError(
                f"the user did not approve{reason}: {approval.summary}. Nothing was done; do not try it again, "
                "ask the user what to do instead"
            )

    def _without_hidden(self, outcome: Outcome, tool: str) -> Outcome:
        """What a search found, without the paths that a rule denies the tool."""

        def is_shown(path: str) -> bool:
            return not self._policy.hides(tool, "/".join((*self._above, path)))

        match outcome:
            case GrepHits(hits=hits):
                kept = tuple(hit for hit in hits if is_shown(hit.path))
                return replace(outcome, hits=kept, total=outcome.total - len(hits) + len(kept))
            case SymbolMatches(matches=matches, files=files):
                left = tuple(match for match in matches if is_shown(match.path))
                seen = tuple((path, count) for path, count in files if is_shown(path))
                return replace(outcome, matches=left, files=seen, total=sum(count for _, count in seen))
            case Paths(paths=paths):
                return replace(outcome, paths=tuple(filter(is_shown, paths)))
            case Listing(path=path, entries=entries):
                above = "" if path == "." else f"{path}/"
                return replace(outcome, entries=tuple(entry for entry in entries if is_shown(above + entry.path)))
            case _:
                return outcome


def _paths_in(operation: Operation) -> Iterator[str]:
    """The paths that an operation names."""
    if isinstance(operation, PatchFiles):
        for edit in operation.files:
            yield from filter(None, (edit.path, edit.moved_to))
    for key in ("path", "source", "destination"):
        path = getattr(operation, key, None)
        if isinstance(path, str):
            yield path


def _summary(edit: FileEdit) -> str:
    moved = f", move it to {visible(edit.moved_to)}" if edit.moved_to else ""
    return f"{edit.action} {visible(edit.path)}{moved}"


def _may_write(invocation: Invocation) -> bool:
    call = invocation.validated
    return call is not None and effect_of(call.operation()) in ("write", "delete")


def _forbidden(why: str, what: str) -> str:
    return f"{why} forbids it: {what}. Nothing was done; do not try it again"


def _joined(tools: ToolSet, own: Sequence[Tool]) -> ToolSet:
    for tool in own:
        if tools.match(tool.name) is not None:
            raise UsageError(f"the tool {tool.name!r} is there already; give yours another name")
        if tool.validate is None:
            raise UsageError(f"the tool {tool.name!r} has no function to run; make it with adapter.tool(..., function)")
    return ToolSet([*tools.values(), *own])


def _chosen(tools: ToolSet, names: Iterable[str]) -> ToolSet:
    chosen = []
    for name in names:
        tool = tools.match(name)
        if tool is None:
            near = " or ".join(tools.nearest(name)) or ", ".join(tools)
            raise UsageError(f"this dialect has no tool {name!r}; did you mean {near}?")
        chosen.append(tool)
    return ToolSet(chosen)


def _with_choices(tool: Tool, choices: Mapping[str, str]) -> Tool:
    """``tool``, its description naming what there is; the names stand in the first sentence, which is all that
    short prompts show."""
    first, end, rest = tool.description.partition(".")
    explained_ = "".join(f"\n- {name}: {text}" for name, text in choices.items() if text)
    return replace(tool, description=f"{first} ({' | '.join(choices)}){end}{rest}{explained_}")


def _in_time(operation: Operation, clock: Clock | None) -> Operation:
    """The operation with no more time than its caller has."""
    if clock is not None and isinstance(operation, RunCommand | FetchPage):
        return replace(operation, timeout_s=max(min(operation.timeout_s, clock.remaining), 0.1))
    return operation


def _check_mode(mode: str) -> None:
    if mode in MODES:
        return
    near = process.extractOne(mode, list(MODES), scorer=fuzz.ratio, score_cutoff=50)
    suggestion = f" (did you mean {near[0]!r}?)" if near else ""
    raise UsageError(f"unknown approve mode {mode!r}; expected {', '.join(MODES)} or a callable{suggestion}")


def _diff(outcome: Outcome) -> str:
    if isinstance(outcome, BatchResults):
        return "".join(result.diff for result in outcome.results)
    return outcome.diff if isinstance(outcome, Written | Patched | FilesPatched) else ""


def _media_shown(media: Media) -> tuple[str, Json]:
    """What stands for a file in the text, and the file itself."""
    text = f"{media.path}: {described(media.mime, len(media.data), media.data)}, attached."
    return text, {"path": media.path, "kind": media.kind, "mime": media.mime, "data": _base64(media)}


def _base64(media: Media) -> str:
    return b64encode(media.data).decode("ascii")


def _images(outcome: Outcome) -> tuple[str, ...]:
    match outcome:
        case BatchResults(results=results):
            return tuple(image for result in results for image in result.images)
        case Media(kind="image", mime=mime):
            return (f"data:{mime};base64,{_base64(outcome)}",)
        case _:
            return ()


def _failed(name: str, error: ToolError) -> ToolResult:
    return ToolResult(name, ok=False, content=truncate(f"tool_error: {error}"), error=str(error))


class _BatchFailed(ToolError):
    """A call of a batch failed: its own result says why."""


def _user_message(outcome: Outcome) -> str:
    if isinstance(outcome, BatchResults):
        return "\n\n".join(result.user_message for result in outcome.results if result.user_message)
    return outcome.text if isinstance(outcome, SkillLoaded) and outcome.delivery == "message" else ""
