"""What must be allowed before it is done: what rules and the mode say of an operation, and what the user answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from rapidfuzz import fuzz, process

from adapter.core.callbacks import require_sync
from adapter.core.errors import DeniedError, UsageError
from adapter.core.text.display_escaping import escape_for_display
from adapter.dialects.cross_toolset import tools_for_effect
from adapter.tools.operations import (
    Copy,
    DeleteMemory,
    Effect,
    FileEdit,
    GrepResult,
    Listing,
    Move,
    Operation,
    Outcome,
    PatchFiles,
    PathList,
    SymbolMatches,
    TaskFinished,
    ViewMemory,
    WriteMemory,
    effect_of,
)
from adapter.tools.operations.permissions import (
    MODES,
    ApprovalRequest,
    Approver,
    PermissionPolicy,
    PermissionRule,
    ask_approver,
    resolve_rules,
)
from adapter.tools.tool import Tool, ToolSet
from adapter.workspace.changes.plan import Plan
from adapter.workspace.paths.git_detection import holds_repository, is_git_data
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.sandbox import confinement_notes
from adapter.workspace.sandbox.deadline import Deadline
from adapter.workspace.sandbox.sandbox import ActiveSandbox


def make_policy(
    approve: str | Approver, rules: Iterable[PermissionRule], tools: ToolSet, unasked: frozenset[Effect]
) -> PermissionPolicy:
    """The mode (``ask`` where somebody decides) and the rules of a session. Raises UsageError for a mode or a tool that
    does not exist."""
    mode = "ask" if callable(approve) else approve
    _check_mode(mode)
    if callable(approve):
        require_sync(approve, "the approver")
    named = resolve_rules({name: tool.name for tool in tools.values() for name in (tool.name, *tool.aliases)}, rules)
    for rule in named:
        if rule.pattern is not None and rule.tool in tools and tools[rule.tool].function is not None:
            raise UsageError(
                f"the rule {str(rule)!r} has a pattern, but a function of yours has nothing it could match"
            )
    return PermissionPolicy(mode, named, unasked)


@dataclass(slots=True)
class ApprovalFlow:
    """What one session, or a part of one, may do. ``above``: where ``root`` is in the session's workspace; rules and
    people are told the whole path. ``person`` is held while somebody is asked: one question at a time."""

    policy: PermissionPolicy
    ask: Approver | None
    root: WorkspaceRoot
    confinement: ActiveSandbox
    person: AbstractContextManager[object]
    above: tuple[str, ...] = ()

    def refuse_denied(self, tool: Tool, operation: Operation, tools: ToolSet) -> None:
        """Raises ToolError for what a rule denies, before it is planned: a failed plan quotes from the file."""
        unplanned = Plan(tool.name, lambda: TaskFinished())
        whole = self._approval(tool.name, operation, unplanned)
        for approval in (whole, *self.needed(tool.name, operation, unplanned, tools)):
            if (rule := self.policy.denial(approval)) is not None:
                raise DeniedError(_forbidden(f"the rule {str(rule)!r}", " ".join((tool.name, *approval.paths))))

    def needed(self, tool: str, operation: Operation, planned: Plan, tools: ToolSet) -> list[ApprovalRequest]:
        """What must be allowed: of a patch over several files each edit, by the session's tool for such edits."""
        if not isinstance(operation, PatchFiles):
            return [replace(self._approval(tool, operation, planned), draft=planned.draft)]
        found = []
        for edit, diff in zip(operation.files, planned.diffs or ("",) * len(operation.files), strict=True):
            part = Plan(_summary(edit), planned.commit, diff)
            is_own = tool == type(operation).__name__  # the program's, see `do`
            names = [tool] if is_own else [each.name for each in tools_for_effect(edit, tools, tool)]
            found += [self._approval(name, replace(operation, files=(edit,)), part) for name in names]
        return [replace(found[0], draft=planned.draft)] if len(found) == 1 else found

    def _approval(self, tool: str, operation: Operation, planned: Plan) -> ApprovalRequest:
        effect = effect_of(operation)
        paths = planned.paths or tuple(self._resolved(operation))
        command, cwd = getattr(operation, "command", None), getattr(operation, "cwd", None)
        return ApprovalRequest(
            tool,
            operation,
            effect,
            planned.summary,
            planned.diff,
            paths=tuple("/".join((*self.above, path)) for path in paths),
            command=command if isinstance(command, str) else None,
            cwd="/".join((*self.above, cwd if isinstance(cwd, str) else ".")),
            subject=planned.subject,
            is_git=effect in ("write", "delete") and self._is_git(operation, paths),
            sandbox=confinement_notes.confinement_notice(operation, self.confinement),
        )

    def _is_git(self, operation: Operation, paths: Iterable[str]) -> bool:
        """Whether git's own data changes, or would be where it is not yet."""
        top = self.root.path
        if any(is_git_data(top, path.split("/")) for path in paths):
            return True
        if isinstance(operation, Move | Copy):
            with self.root.locate(operation.source, follow=False, parents="imagine") as place:
                return place.is_directory and holds_repository("/".join((top, *place.parts)))
        return False

    def _resolved(self, operation: Operation) -> Iterator[str]:
        """The paths that rules are about: each name that the operation gives, and where links lead from it."""
        if isinstance(operation, ViewMemory | WriteMemory | DeleteMemory):
            return  # not in the workspace
        if effect_of(operation) == "read" and not self.policy.rules:
            return
        for path in _paths_in(operation):
            places = []
            for follow in (False, True):
                with self.root.locate(path, follow=follow, parents="imagine") as place:
                    places.append(place.shown)
            yield from dict.fromkeys(places)

    def require(self, approval: ApprovalRequest, clock: Deadline | None) -> str | None:
        """Raises ToolError unless rules, mode or whoever is asked allow it. Gives a text to be written in its place."""
        verdict, rule = self.policy.verdict(approval)
        if verdict == "deny":
            why = f"the rule {str(rule)!r}" if rule else f"the approve mode {self.policy.mode!r}"
            raise DeniedError(_forbidden(why, approval.summary))
        return None if verdict == "allow" else self._answer(approval, clock)

    def _answer(self, approval: ApprovalRequest, clock: Deadline | None) -> str | None:
        """Whoever is asked allows it, or DeniedError is raised; the clock of the code that calls stands still."""
        if self.ask is None:
            raise DeniedError(
                f"{approval.tool} needs the user's approval ({approval.summary}) and nobody can be asked here. "
                f"Nothing was done; do not try it again. The user can allow it by starting with another "
                f"approve mode than {self.policy.mode!r}: auto-edit allows edits, yolo everything"
            )
        with self.person, clock.paused() if clock is not None else nullcontext():
            if self.policy.verdict(approval)[0] == "allow":
                return None  # remembered while this was waiting for its turn
            decision = ask_approver(self.ask, approval)
            if decision.allowed and (decision.remember or approval.is_asked_once):
                self.policy.granted.add(approval.key)
        if not decision.allowed:
            reason, instead = "", "do not try it again, ask the user what to do instead"
            if decision.reason:
                reason, instead = f" ({decision.reason})", "do as the user says there, do not try the same again"
            raise DeniedError(f"the user did not approve{reason}: {approval.summary}. Nothing was done; {instead}")
        return decision.content

    def without_hidden(self, outcome: Outcome, tool: str) -> Outcome:
        """What a search found, without the paths that a rule denies the tool."""

        def is_shown(path: str) -> bool:
            return not self.policy.is_hidden(tool, "/".join((*self.above, path)))

        match outcome:
            case GrepResult(hits=hits):
                kept = tuple(hit for hit in hits if is_shown(hit.path))
                return replace(outcome, hits=kept, total=outcome.total - len(hits) + len(kept))
            case SymbolMatches(matches=matches, files=files):
                left = tuple(match for match in matches if is_shown(match.path))
                seen = tuple((path, count) for path, count in files if is_shown(path))
                return replace(outcome, matches=left, files=seen, total=sum(count for _, count in seen))
            case PathList(paths=paths):
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
    moved = f", move it to {escape_for_display(edit.moved_to)}" if edit.moved_to else ""
    return f"{edit.action} {escape_for_display(edit.path)}{moved}"


def apply_decision(planned: Plan, content: str | None) -> Plan:
    """The plan, with the text that the user put in the place of the model's."""
    if content is None:
        return planned
    if planned.edited is None:
        raise UsageError("the decision has a content, but this is no change of one file of text: its draft is None")
    return planned.edited(content)


def _forbidden(why: str, what: str) -> str:
    return f"{why} forbids it: {what}. Nothing was done; do not try it again"


def _check_mode(mode: str) -> None:
    if isinstance(mode, str) and mode in MODES:
        return
    near = process.extractOne(str(mode), list(MODES), scorer=fuzz.ratio, score_cutoff=50)
    suggestion = f" (did you mean {near[0]!r}?)" if near else ""
    raise UsageError(f"unknown approve mode {mode!r}; expected {', '.join(MODES)}{suggestion}")
