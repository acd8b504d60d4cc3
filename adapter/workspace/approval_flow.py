"""Approve operations: apply the rules, then the mode, and ask the approver if neither decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import zip_longest

from rapidfuzz import fuzz, process

from adapter.core.callback_checks import require_sync
from adapter.core.errors import DeniedError, ToolError, UsageError
from adapter.core.text.display_escaping import escape_for_display
from adapter.dialects.call_translation import find_tools_for_effect
from adapter.tools import operations as ops
from adapter.tools.operations.permissions import (
    MODES,
    ApprovalDecision,
    ApprovalRequest,
    Approver,
    PermissionPolicy,
    PermissionRule,
    ask_approver,
    resolve_rules,
)
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet
from adapter.workspace.approved_content import ApprovedContent
from adapter.workspace.changes.history import RecordedChange
from adapter.workspace.changes.operation_plan import Plan
from adapter.workspace.paths.git_data_detection import holds_repository, is_git_data
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.pausable_deadline import Deadline
from adapter.workspace.sandbox import sandbox_notes
from adapter.workspace.sandbox.sandbox import ActiveSandbox

_CANCELLATION: ContextVar[Callable[[], bool]] = ContextVar("cancellation", default=lambda: False)
MAX_LISTED = 5
"""Maximum number of changes listed when an approval no longer applies."""


@contextmanager
def allow_cancelling_approvals(is_cancelled: Callable[[], bool]) -> Iterator[None]:
    """Within the ``with`` body, refuse all approvals once ``is_cancelled`` returns True.

    This also applies to threads that run in a copy of the current context. If the user is being asked at that moment,
    the answer is ignored.
    """
    token = _CANCELLATION.set(is_cancelled)
    try:
        yield
    finally:
        _CANCELLATION.reset(token)


def _require_not_cancelled() -> None:
    if _CANCELLATION.get()():
        raise DeniedError("the run was cancelled before the approval; nothing was done")


def make_policy(
    approve: str | Approver, rules: Iterable[PermissionRule], tools: ToolSet, preapproved: frozenset[ops.Effect]
) -> PermissionPolicy:
    """Build a session's permission policy.

    Args:
        approve: The name of an approval mode, or an approver, which implies the mode ``ask``.
        tools: The session's tools, whose names and aliases the rules may use.
        preapproved: Effects that need no approval.

    Raises UsageError if the mode, or the tool of a rule, does not exist.
    """
    mode = "ask" if callable(approve) else approve
    _check_mode(mode)
    if callable(approve):
        require_sync(approve, "the approver")
    named = resolve_rules({name: tool.name for tool in tools.values() for name in (tool.name, *tool.aliases)}, rules)
    for rule in named:
        if rule.pattern is not None and rule.tool in tools and tools[rule.tool].function is not None:
            raise UsageError(
                f"invalid rule {str(rule)!r}: a rule for a custom function cannot have a pattern; pass only "
                "the tool's name"
            )
    return PermissionPolicy(mode, named, preapproved)


@dataclass(slots=True)
class ApprovalFlow:
    """Approves the operations of a session or subsession."""

    policy: PermissionPolicy
    ask: Approver | None
    root: WorkspaceRoot
    sandbox: ActiveSandbox
    approval_lock: AbstractContextManager[object]
    """Held while the user is asked, so that there is only one question at a time."""
    approved_skills: ApprovedContent
    """Skills that were approved before, in any session."""
    parent_path: tuple[str, ...] = ()
    """Path from the session's workspace to ``root``, prepended to the paths that rules and approvers see."""

    def refuse_denied(self, tool: Tool, operation: ops.Operation, tools: ToolSet) -> None:
        """Raise DeniedError if a rule forbids the operation. Call this before planning, because errors of the planner
        may quote files."""
        unplanned = Plan(tool.name, lambda: ops.TaskFinished())
        whole = self._build_approval(tool.name, operation, unplanned)
        for approval in (whole, *self.list_required_approvals(tool.name, operation, unplanned, tools)):
            if (rule := self.policy.find_denial(approval)) is not None:
                raise DeniedError(
                    _describe_forbidden(f"the rule {str(rule)!r}", " ".join((tool.name, *approval.paths)))
                )

    def list_required_approvals(
        self, tool: str, operation: ops.Operation, planned: Plan, tools: ToolSet
    ) -> list[ApprovalRequest]:
        """Return the approval requests of an operation, usually one.

        A patch of several files gets one request per file and per tool that could make the same edit. The rules of all
        these tools then apply.
        """
        if not isinstance(operation, ops.PatchFiles):
            return [replace(self._build_approval(tool, operation, planned), draft=planned.draft)]
        requests = []
        for edit, diff in zip(operation.files, planned.diffs or ("",) * len(operation.files), strict=True):
            part = Plan(_describe_edit(edit), planned.commit, diff)
            is_by_program = tool == type(operation).__name__  # called by the program, see `Workspace.perform`
            names = [tool] if is_by_program else [each.name for each in find_tools_for_effect(edit, tools, tool)]
            requests += [self._build_approval(name, replace(operation, files=(edit,)), part) for name in names]
        return [replace(requests[0], draft=planned.draft)] if len(requests) == 1 else requests

    def _build_approval(self, tool: str, operation: ops.Operation, planned: Plan) -> ApprovalRequest:
        effect = ops.find_effect(operation)
        paths = planned.paths or tuple(self._iter_resolved_paths(operation))
        command, cwd = getattr(operation, "command", None), getattr(operation, "cwd", None)
        return ApprovalRequest(
            tool,
            operation,
            effect,
            planned.summary,
            planned.diff,
            paths=tuple("/".join((*self.parent_path, path)) for path in paths),
            command=command if isinstance(command, str) else None,
            cwd="/".join((*self.parent_path, cwd if isinstance(cwd, str) else ".")),
            subject=planned.subject,
            is_git=effect in ("write", "delete") and self._affects_git(operation, paths),
            sandbox=sandbox_notes.build_sandbox_notice(operation, self.sandbox),
            state=planned.state,
        )

    def _affects_git(self, operation: ops.Operation, paths: Iterable[str]) -> bool:
        """Return whether the operation changes git's data or creates a repository."""
        top = self.root.path
        if any(is_git_data(top, path.split("/")) for path in paths):
            return True
        if isinstance(operation, ops.Move | ops.Copy):
            with self.root.locate(operation.source, follow=False, parents="assume") as resolved:
                return resolved.is_directory and holds_repository("/".join((top, *resolved.parts)))
        return False

    def _iter_resolved_paths(self, operation: ops.Operation) -> Iterator[str]:
        """Yield the paths that rules apply to: each path of the operation and, if it is a link, the link's target."""
        if isinstance(operation, ops.ViewMemory | ops.WriteMemory | ops.DeleteMemory):
            return  # not in the workspace
        if ops.find_effect(operation) == "read" and not self.policy.rules:
            return
        for path in _iter_paths(operation):
            places = []
            for follow in (False, True):
                with self.root.locate(path, follow=follow, parents="assume") as resolved:
                    places.append(resolved.display_path)
            yield from dict.fromkeys(places)

    def review_undo(self, change: RecordedChange, paths: Sequence[str], diff: str) -> None:
        """Request approval of an undo that needs it, for instance because it restores a file that runs code later, such
        as a git hook. Raises DeniedError if approval is refused."""
        operation = ops.PatchFiles(tuple(ops.FileEdit(path, "update") for path in paths))
        is_git = self._affects_git(operation, paths)
        summary = f"undo: {change.summary} ({', '.join(map(escape_for_display, paths))})"
        request = ApprovalRequest("undo", operation, "write", summary, diff, tuple(paths), is_git=is_git)
        if request.caution:
            self.require(request, None)

    def require(self, approval: ApprovalRequest, deadline: Deadline | None) -> ApprovalDecision | None:
        """Raise DeniedError unless the rules, mode or approver allow the operation.

        Return the approver's decision, or None if the approver was not asked. ``deadline`` is paused meanwhile.
        """
        verdict, rule = self.policy.decide(approval)
        if verdict == "deny":
            why = f"the rule {str(rule)!r}" if rule else f"the approval mode {self.policy.mode!r}"
            raise DeniedError(_describe_forbidden(why, approval.summary))
        if verdict == "allow" or (rule is None and self._is_trusted(approval)):
            return None
        return self._ask_approver(approval, deadline)

    def _is_trusted(self, approval: ApprovalRequest) -> bool:
        return approval.effect == "skill" and self.approved_skills.holds(approval.fingerprint.encode())

    def _ask_approver(self, approval: ApprovalRequest, deadline: Deadline | None) -> ApprovalDecision | None:
        """Ask the approver, and pause the deadline meanwhile. Returns and raises the same as `require`."""
        if self.ask is None:
            raise DeniedError(
                f"{approval.tool} needs the user's approval ({approval.summary}), but no approver is available. "
                f"Nothing was done; do not try it again. The user can allow it with an approval mode other "
                f"than {self.policy.mode!r}: auto-edit allows edits, yolo everything"
            )
        with self.approval_lock, deadline.pause() if deadline is not None else nullcontext():
            if self.policy.decide(approval)[0] == "allow":
                return None  # another thread got the approval while this one waited for the lock
            _require_not_cancelled()
            decision = ask_approver(self.ask, approval)
            _require_not_cancelled()
            if decision.allowed and (decision.remember or approval.is_asked_once):
                self.policy.granted.add(approval.key)
        if decision.allowed and approval.effect == "skill":
            self.approved_skills.add(approval.fingerprint.encode())
        if not decision.allowed:
            reason, instead = "", "do not try it again, ask the user what to do instead"
            if decision.reason:
                reason, instead = f" ({decision.reason})", "follow the user's reason, do not try the same again"
            raise DeniedError(f"the user did not approve{reason}: {approval.summary}. Nothing was done; {instead}")
        return decision

    def remove_hidden(self, outcome: ops.Outcome, tool: str) -> ops.Outcome:
        """Remove search results in files that the rules hide from the tool."""

        def is_shown(path: str) -> bool:
            return not self.policy.is_hidden(tool, "/".join((*self.parent_path, path)))

        match outcome:
            case ops.GrepResult(hits=hits):
                kept = tuple(hit for hit in hits if is_shown(hit.path))
                return replace(outcome, hits=kept, total=outcome.total - len(hits) + len(kept))
            case ops.SymbolMatches(matches=matches, files=files):
                left = tuple(match for match in matches if is_shown(match.path))
                seen = tuple((path, count) for path, count in files if is_shown(path))
                return replace(outcome, matches=left, files=seen, total=sum(count for _, count in seen))
            case ops.PathList(paths=paths):
                return replace(outcome, paths=tuple(filter(is_shown, paths)))
            case ops.Listing(path=path, entries=entries):
                prefix = "" if path == "." else f"{path}/"
                return replace(outcome, entries=tuple(entry for entry in entries if is_shown(prefix + entry.path)))
            case _:
                return outcome


def _iter_paths(operation: ops.Operation) -> Iterator[str]:
    if isinstance(operation, ops.PatchFiles):
        for edit in operation.files:
            yield from filter(None, (edit.path, edit.moved_to))
    for key in ("path", "source", "destination"):
        path = getattr(operation, key, None)
        if isinstance(path, str):
            yield path


def _describe_edit(edit: ops.FileEdit) -> str:
    moved = f", move it to {escape_for_display(edit.moved_to)}" if edit.moved_to else ""
    return f"{edit.action} {escape_for_display(edit.path)}{moved}"


def require_unchanged(approved: Sequence[ApprovalRequest], current: Sequence[ApprovalRequest]) -> None:
    """Raise a ToolError that lists the differences if the current state is not the approved one."""
    for before, now in zip_longest(approved, current):
        if before is not None and now is not None and before.fingerprint == now.fingerprint:
            continue
        was, became = (request.summary if request else "nothing" for request in (before, now))
        states = [request.state if request else {} for request in (before, now)]
        changes = "; ".join(_describe_state_changes(*states)) or ("" if was != became else "the content changed")
        raise ToolError(
            f"the state changed while approval was requested, so nothing was done. Approved: {was}. "
            f"Now: {became}{f' ({changes})' if changes else ''}. Check it, then make the call again for a new approval"
        )


def _describe_state_changes(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Yield descriptions of the first `MAX_LISTED` differences, then the number of further ones."""
    changed = sorted(name for name, _ in before.items() ^ now.items())
    names = list(dict.fromkeys(changed))
    for name in names[:MAX_LISTED]:
        kind = "is new" if name not in before else "is gone" if name not in now else "was changed"
        yield f"{escape_for_display(name)} {kind}"
    if len(names) > MAX_LISTED:
        yield f"and {len(names) - MAX_LISTED} more"


def apply_decision(planned: Plan, decision: ApprovalDecision | None) -> Plan:
    """Replace the plan's new file content with the approver's content, if the decision has any.

    Raises UsageError if the decision has content, but the plan does not change exactly one text file.
    """
    content = decision.content if decision is not None else None
    if content is None:
        return planned
    if planned.edited is None:
        raise UsageError(
            "the approver's decision has content, but only a change to one text file can be edited; omit the content"
        )
    return planned.edited(content)


def _describe_forbidden(why: str, what: str) -> str:
    return f"{why} forbids it: {what}. Nothing was done; do not try it again, continue without it"


def _check_mode(mode: str) -> None:
    if isinstance(mode, str) and mode in MODES:
        return
    near = process.extractOne(str(mode), list(MODES), scorer=fuzz.ratio, score_cutoff=50)
    suggestion = f" (did you mean {near[0]!r}?)" if near else ""
    raise UsageError(f"unknown approval mode {mode!r}; expected {', '.join(MODES)}{suggestion}")
