"""Approval modes, permission rules and approval requests: decide whether a call is allowed, denied or needs approval.

The first of these that applies decides: rules that deny, approvals in this session, rules that ask, rules that allow,
the mode's default for the call's effect.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from adapter.core.argument_checks import NONE, check_types
from adapter.core.callback_checks import build_callback_error, build_result_error
from adapter.core.errors import UsageError
from adapter.tools.operations import CallFunction, Effect, Operation
from adapter.tools.operations.autorun_files import GIT_DATA, explain_autorun
from adapter.tools.operations.shell_analysis import (
    is_dynamic,
    iter_possible_commands,
    may_match_command,
    parse_simple_command,
    rule_covers_command,
)

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

PermissionVerdict: TypeAlias = Literal["allow", "ask", "deny"]

MODES: Mapping[str, Mapping[Effect, PermissionVerdict]] = {
    "ask": {"write": "ask", "delete": "ask", "execute": "ask", "network": "ask", "skill": "ask"},
    "auto-edit": {"delete": "ask", "execute": "ask", "network": "ask", "skill": "ask"},
    "yolo": {},
    "plan": {"write": "deny", "delete": "deny", "execute": "deny", "network": "ask", "skill": "ask"},
}
"""Default verdict by mode and effect. Effects that are not listed are allowed.

The modes follow the dialects' documents. ProxyAI asks about edits, commands and, with a general question, skills. proto
asks about edits, unless the mode is auto-edit or yolo. Blade always asks about commands. Maki asks about neither skills
nor web pages (`Dialect.preapproved`).
"""

NO_SANDBOX = "sandbox: NONE"
"""Start of the sandbox description for an operation that runs without a sandbox."""


@dataclass(frozen=True, slots=True)
class FileDraft:
    """Current and proposed text of a file. The current text is "" if the file does not exist."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A request to approve one tool call, with the exact operation that will run.

    ``summary``: one line with hidden characters escaped; for a command, the whole command line. ``diff``: the exact
    change of a write. Rules are matched against ``paths`` (relative to the root, with links resolved), ``command`` (as
    it will run in ``cwd``) and ``subject`` (a skill's title or a web address's host).
    """

    tool: str
    operation: Operation
    effect: Effect
    summary: str
    diff: str = ""
    paths: tuple[str, ...] = ()
    command: str | None = None
    cwd: str = "."
    subject: str = ""
    label: str = ""
    """The purpose of the call, as the model states it. It does not affect any decision."""
    sandbox: str = ""
    """Description of the sandbox that a program, a user's function or an MCP tool will run in, or a note that there is
    none."""
    is_git: bool = False
    """True if the call changes git's own data. Such a change needs approval in every mode
    (`adapter.workspace.paths.git_data_detection`)."""
    draft: FileDraft | None = None
    """Current and proposed text, if the call changes one text file. An `ApprovalDecision` may replace ``after``."""
    state: Mapping[str, str] = field(default_factory=dict)
    """Identities of files that the call uses but the request does not show: a directory's entries, programs, skills."""

    @property
    def fingerprint(self) -> str:
        """A hash of everything that the approval covers. If it changes before the call runs, the call is refused."""
        covered = (self.tool, self.effect, self.summary, self.diff, self.paths, self.cwd, self.subject, self.is_git)
        return hashlib.sha256(repr((*covered, sorted(self.state.items()))).encode(errors="surrogatepass")).hexdigest()

    @property
    def caution(self) -> str:
        """Why a change needs approval even in auto-edit mode, or "" if it does not."""
        if self.is_git:
            return GIT_DATA
        if isinstance(self.operation, CallFunction):
            return self.operation.notice
        return explain_autorun(self.paths) if self.effect in ("write", "delete") else ""

    @property
    def is_asked_once(self) -> bool:
        """True if one approval covers all calls to the tool in this session, as for external tools that declare
        themselves read-only."""
        return isinstance(self.operation, CallFunction) and bool(self.operation.notice) and self.effect != "execute"

    @property
    def key(self) -> tuple[str, ...]:
        """The key for a stored decision: the tool, and the exact command, paths or other subject."""
        if self.is_asked_once:
            return (self.tool, self.effect)  # approval covers the whole tool
        if self.command is not None:
            return (self.tool, "command", self.cwd, self.command, self.fingerprint)
        if self.effect in ("execute", "skill"):
            return (self.tool, self.effect, self.subject or self.summary, self.fingerprint)
        return (self.tool, self.effect, *(self.paths or (self.subject or self.summary,)))


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """An approver's decision on one request."""

    allowed: bool
    remember: bool = False
    """True to apply the decision to the same tool and object until the session ends."""
    reason: str = ""
    """The reason for the decision, as text for the model."""
    content: str | None = None
    """New content for the file, which replaces ``ApprovalRequest.draft.after``. The model is informed of it."""


Approver: TypeAlias = Callable[[ApprovalRequest], "bool | ApprovalDecision"]
AsyncApprover: TypeAlias = Callable[[ApprovalRequest], "Awaitable[bool | ApprovalDecision]"]
"""An async approver, for `AsyncAgent` only."""


def to_decision(answer: object, approver: Approver) -> ApprovalDecision:
    """Convert an approver's answer to an `ApprovalDecision`. Raises UsageError unless the answer is a bool, or an
    `ApprovalDecision` of bools and strings. Other truthy values do not approve."""
    decision = answer if isinstance(answer, ApprovalDecision) else ApprovalDecision(answer)  # type: ignore[arg-type]
    has_bools = isinstance(decision.allowed, bool) and isinstance(decision.remember, bool)
    if not (has_bools and isinstance(decision.reason, str) and isinstance(decision.content, str | None)):
        expected = "True, False, or an ApprovalDecision whose fields are bools and strings"
        raise build_result_error(approver, "the approver", answer, expected)
    return decision


def ask_approver(approver: Approver, approval: ApprovalRequest) -> ApprovalDecision:
    """Call the approver. Raises UsageError, and allows nothing, if it fails or returns an invalid answer."""
    try:
        answer = approver(approval)
    except UsageError:
        raise  # raised by a nested approver, which the error names
    except Exception as error:
        raise build_callback_error(approver, "the approver", error, "The call was refused; nothing was done") from error
    return to_decision(answer, approver)


@dataclass(frozen=True, slots=True)
class PermissionRule:
    """A rule that allows, denies or requires approval for calls to a tool: ``Bash(git status)``, ``Edit(src/**)``,
    ``Read``.

    ``tool`` is a name in the dialect, or ``*``. A ``pattern`` of None matches every call. Otherwise, it depends on the
    kind of tool:

    - For commands, it is the first words of the command. A final ``*`` also allows options.
    - For files, it is a ``.gitignore`` pattern.
    - For skills and hosts, it is a title or a name, with ``*`` as a wildcard.

    Raises UsageError for a pattern that can never match.
    """

    verdict: PermissionVerdict
    tool: str = "*"
    pattern: str | None = None

    def __post_init__(self) -> None:
        check_types("Rule", tool=(self.tool, str), pattern=(self.pattern, str, NONE))
        if self.verdict not in get_args(PermissionVerdict):
            raise UsageError(f"unknown rule verdict {self.verdict!r}; expected allow, ask or deny")
        if self.pattern is not None and (not self.pattern.strip() or self.pattern.strip()[0] in "!#"):
            raise UsageError(
                f"the rule {str(self)!r} matches nothing; expected the first words of a command or a path pattern"
            )

    @classmethod
    def parse(cls, verdict: PermissionVerdict, text: str) -> PermissionRule:
        """Parse a rule in the syntax of settings: ``Tool`` or ``Tool(pattern)``."""
        check_types("Rule.parse", text=(text, str))
        tool, bracket, rest = text.strip().partition("(")
        if not tool.strip() or (bracket and not rest.endswith(")")):
            raise UsageError(f"invalid rule {text!r}: expected TOOL or TOOL(PATTERN), such as Bash(git status)")
        return cls(verdict, tool.strip(), rest[:-1] if bracket else None)

    @classmethod
    def from_text(cls, text: str) -> PermissionRule:
        """Parse a rule as ``str(rule)`` writes it: ``deny Bash(rm)``."""
        check_types("Rule.from_text", text=(text, str))
        verdict, _, rest = text.strip().partition(" ")
        if verdict not in get_args(PermissionVerdict):
            raise UsageError(f"invalid rule {text!r}: expected allow, ask or deny, then a tool, such as deny Bash(rm)")
        return cls.parse(verdict, rest)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"{self.verdict} {self.tool}" + (f"({self.pattern})" if self.pattern is not None else "")

    def matches(self, approval: ApprovalRequest) -> bool:
        """Return whether the rule matches this call. An ``allow`` rule must cover the whole call; for ``ask`` and
        ``deny``, any part suffices."""
        if self.tool not in ("*", approval.tool):
            return False
        if self.pattern is None:
            return True
        if approval.command is not None:
            return self._matches_command(approval.command)
        if approval.subject:
            return _compile_pattern(self.pattern).match_file(approval.subject)
        if self.verdict == "allow":
            return bool(approval.paths) and all(_matches_path(self.pattern, path) for path in approval.paths)
        return any(_restricts_path(self.pattern, path) for path in approval.paths)

    def _matches_command(self, line: str) -> bool:
        rule = tuple((self.pattern or "").split())
        if self.verdict == "allow":
            command = parse_simple_command(line)
            return command is not None and rule_covers_command(rule, command)
        return any(may_match_command(rule, command) for command in iter_possible_commands(line))


@lru_cache(maxsize=256)
def _compile_pattern(pattern: str) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([pattern], backend="simple")


def _matches_path(pattern: str, path: str) -> bool:
    """Return whether the pattern matches the path as a file or as a directory."""
    return _compile_pattern(pattern).match_file(path) or _compile_pattern(pattern).match_file(f"{path}/")


def _restricts_path(pattern: str, path: str) -> bool:
    """Return whether the pattern matches the path in any letter case, as on macOS and Windows."""
    return _matches_path(pattern, path) or _matches_path(pattern.casefold(), path.casefold())


def _to_directory_pattern(pattern: str) -> str:
    """Convert a pattern for a directory's content, ``secrets/**``, to one for the directory, ``/secrets/``."""
    return f"/{pattern.removesuffix('/**').lstrip('/')}/" if pattern.endswith("/**") else pattern


@dataclass(slots=True)
class PermissionPolicy:
    """The mode, the rules and the approvals of this session.

    ``preapproved``: effects that need no approval according to the dialect's document. They are allowed where the mode
    would ask, and denied where it denies.
    """

    mode: str = "ask"
    rules: tuple[PermissionRule, ...] = ()
    preapproved: frozenset[Effect] = frozenset()
    granted: set[tuple[str, ...]] = field(default_factory=set)

    def decide(self, approval: ApprovalRequest) -> tuple[PermissionVerdict, PermissionRule | None]:
        """Return the verdict, and the rule that determined it, or None if the mode or an earlier approval did."""
        denial = self.find_denial(approval)
        if denial is not None:
            return "deny", denial
        if approval.key in self.granted:
            return "allow", None
        matching = [rule for rule in self.rules if rule.verdict != "deny" and rule.matches(approval)]
        rule = min(matching, key=lambda each: each.verdict == "allow", default=None)
        verdict = rule.verdict if rule else self._decide_by_default(approval)
        return ("ask" if verdict == "allow" and self._needs_approval(approval) else verdict), rule

    def build_denied_path_test(self, tools: frozenset[str]) -> Callable[[str], bool] | None:
        """Return a test for paths that a rule denies to one of ``tools``, or None if no rule could deny one."""
        patterns = [
            pattern
            for rule in self.rules
            if rule.verdict == "deny" and rule.pattern and rule.tool in ("*", *tools)
            for pattern in (rule.pattern, _to_directory_pattern(rule.pattern))
        ]
        return (lambda path: any(_restricts_path(pattern, path) for pattern in patterns)) if patterns else None

    def find_denial(self, approval: ApprovalRequest) -> PermissionRule | None:
        """Return a rule that denies this call, even if other rules allow it, or None."""
        return next((rule for rule in self.rules if rule.verdict == "deny" and rule.matches(approval)), None)

    def _decide_by_default(self, approval: ApprovalRequest) -> PermissionVerdict:
        if approval.effect == "read" and self._has_allowed_paths(approval.tool):
            return "deny"
        verdict = MODES[self.mode].get(approval.effect, "allow")
        if verdict == "allow" and self.mode != "yolo" and approval.is_asked_once:
            return "ask"
        if verdict == "allow" and self.mode == "auto-edit" and approval.caution:
            return "ask"
        return "allow" if verdict == "ask" and approval.effect in self.preapproved else verdict

    def _has_allowed_paths(self, tool: str) -> bool:
        """Return whether a rule allows ``tool`` to read certain paths. All other paths are then denied."""
        return any(rule.verdict == "allow" and rule.tool == tool and rule.pattern for rule in self.rules)

    def _needs_approval(self, approval: ApprovalRequest) -> bool:
        """Return whether only the user can allow the call, as when a shell expansion may run a denied command."""
        if approval.command is None or not is_dynamic(approval.command):
            return approval.is_git
        applicable = [rule for rule in self.rules if rule.tool in ("*", approval.tool) and rule.pattern]
        return approval.is_git or any(rule.verdict != "allow" for rule in applicable)

    def is_hidden(self, tool: str, path: str) -> bool:
        """Return whether a rule denies ``tool`` this path. Listings and search results omit such a path."""
        denying = [rule for rule in self.rules if rule.verdict == "deny" and rule.tool in ("*", tool)]
        return any(rule.pattern and _restricts_path(rule.pattern, path) for rule in denying)


def resolve_rules(names: Mapping[str, str], rules: Iterable[PermissionRule]) -> tuple[PermissionRule, ...]:
    """Replace the tool names in ``rules`` with canonical names. ``names`` maps every name to its canonical name. Raises
    UsageError for an unknown tool, because its rule would silently have no effect."""
    named = []
    for rule in rules:
        if not isinstance(rule, PermissionRule):
            raise UsageError(f"{rule!r} is not a PermissionRule; use PermissionRule.parse('deny', 'run_command(rm)')")
        if rule.tool != "*" and rule.tool not in names:
            raise UsageError(
                f"the rule {str(rule)!r} names an unknown tool; available: {', '.join(dict.fromkeys(names.values()))}"
            )
        named.append(PermissionRule(rule.verdict, names.get(rule.tool, rule.tool), rule.pattern))
    return tuple(named)
