"""What may happen: the one place where it is decided whether a call is allowed, asked for or denied.

In this order: a rule that denies; what the user allowed for the session; a rule
that asks; a rule that allows; what the mode says about the call's effect.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from adapter.core.arguments import NONE, check_types
from adapter.core.callbacks import failure, wrong_answer
from adapter.core.errors import UsageError
from adapter.tools.operations import CallFunction, Effect, Operation
from adapter.tools.operations.autorun_files import GIT_DATA, autorun_reason
from adapter.tools.operations.shell_words import (
    is_dynamic,
    may_match_command,
    possible_commands,
    rule_covers_command,
    simple_command,
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
"""By mode, what happens by effect; what is not named is allowed.

What the documents say: ProxyAI asks for edits, commands and, by a general question, skills; proto for edits, unless
the mode is auto-edit or yolo; Blade always for commands. Maki asks for neither skills nor pages: its dialect
says so by `Dialect.unasked`.
"""

NO_SANDBOX = "sandbox: NONE"
"""How a line about the sandbox begins where there is none."""


@dataclass(frozen=True, slots=True)
class FileDraft:
    """What one file of text holds, and would hold; "" where there is none yet."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A question. What is shown is what will be done.

    ``summary`` is one line, for a command the whole command line, with hidden
    characters spelled out. ``diff`` is the very change of a write. What rules
    are about: ``paths`` from the root, links resolved; ``command`` as it will run
    in ``cwd``; ``subject``, the title of a skill or the host of a web address.
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
    """What the model says it is for; nothing is decided by it."""
    sandbox: str = ""
    """Of what runs a program, a function of the user's or an MCP tool: what confines it, or that nothing does."""
    is_git: bool = False
    """Whether it changes git's own data, in any mode a question (`adapter.workspace.paths.git_detection`)."""
    draft: FileDraft | None = None
    """Of a change of one file of text: what a `ApprovalDecision` may put another text in the place of."""

    @property
    def caution(self) -> str:
        """Why a change is asked about where edits are not; "" when it is one of many."""
        if self.is_git:
            return GIT_DATA
        if isinstance(self.operation, CallFunction):
            return self.operation.notice
        return autorun_reason(self.paths) if self.effect in ("write", "delete") else ""

    @property
    def is_asked_once(self) -> bool:
        """Whether a yes holds for the tool until the session ends: of a foreign one that says that it only reads."""
        return isinstance(self.operation, CallFunction) and bool(self.operation.notice) and self.effect != "execute"

    @property
    def key(self) -> tuple[str, ...]:
        """What an answer is remembered for: this tool on this very object."""
        if self.is_asked_once:
            return (self.tool, self.effect)  # what is asked once is asked about the tool
        if self.command is not None:
            return (self.tool, "command", self.cwd, self.command)
        return (self.tool, self.effect, *(self.paths or (self.subject or self.summary,)))


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """An answer. ``remember``: for the same tool on the same object until the session ends.
    ``reason`` is passed on to the model. ``content``: what the file is to hold in place of ``ApprovalRequest.draft.after``;
    the model is told."""

    allowed: bool
    remember: bool = False
    reason: str = ""
    content: str | None = None


Approver: TypeAlias = Callable[[ApprovalRequest], "bool | ApprovalDecision"]
AsyncApprover: TypeAlias = Callable[[ApprovalRequest], "Awaitable[bool | ApprovalDecision]"]
"""For an `AsyncAgent` only."""


def to_decision(answer: object, approver: Approver) -> ApprovalDecision:
    """Return an approver's answer as a Decision. Raises UsageError for everything but a bool and a Decision of bools
    and texts: a truthy value is not a yes."""
    decision = answer if isinstance(answer, ApprovalDecision) else ApprovalDecision(answer)  # type: ignore[arg-type]
    is_valid = (
        isinstance(decision.allowed, bool)
        and isinstance(decision.remember, bool)
        and isinstance(decision.reason, str)
        and isinstance(decision.content, str | None)
    )
    if not is_valid:
        raise wrong_answer(approver, "the approver", answer, "True, False or a Decision, whose allowed is a bool")
    return decision


def ask_approver(approver: Approver, approval: ApprovalRequest) -> ApprovalDecision:
    """Ask for approval. Raises UsageError, with nothing allowed, when the approver raises or does not decide."""
    try:
        answer = approver(approval)
    except UsageError:
        raise  # of an approver inside this one, which it names
    except Exception as error:
        raise failure(approver, "the approver", error, "It counts as a refusal; nothing was done") from error
    return to_decision(answer, approver)


@dataclass(frozen=True, slots=True)
class PermissionRule:
    """A standing decision about a tool: ``Bash(git status)``, ``Edit(src/**)``, ``Read``.

    ``tool`` is a name of the dialect or ``*``. ``pattern`` None means every call; else
    for commands words that the command begins with (a final ``*`` admits
    options, too), for files a pattern as in ``.gitignore``, for skills and hosts a
    title or a name in which ``*`` stands for anything. Raises UsageError for what could never match.
    """

    verdict: PermissionVerdict
    tool: str = "*"
    pattern: str | None = None

    def __post_init__(self) -> None:
        check_types("Rule", tool=(self.tool, str), pattern=(self.pattern, str, NONE))
        if self.verdict not in get_args(PermissionVerdict):
            raise UsageError(f"unknown verdict {self.verdict!r} of a rule; expected allow, ask or deny")
        if self.pattern is not None and (not self.pattern.strip() or self.pattern.strip()[0] in "!#"):
            raise UsageError(f"the rule {self} matches nothing; expected a command, or a path pattern")

    @classmethod
    def parse(cls, verdict: PermissionVerdict, text: str) -> PermissionRule:
        """A rule as it is written in settings: ``Tool`` or ``Tool(pattern)``."""
        check_types("Rule.parse", text=(text, str))
        tool, bracket, rest = text.strip().partition("(")
        if not tool.strip() or (bracket and not rest.endswith(")")):
            raise UsageError(f"{text!r} is no rule; expected a tool, or a tool and a pattern: Bash(git status)")
        return cls(verdict, tool.strip(), rest[:-1] if bracket else None)

    @classmethod
    def from_text(cls, text: str) -> PermissionRule:
        """A rule as ``str`` writes it: ``deny Bash(rm)``."""
        check_types("Rule.from_text", text=(text, str))
        verdict, _, rest = text.strip().partition(" ")
        if verdict not in get_args(PermissionVerdict):
            raise UsageError(f"{text!r} is no rule; expected allow, ask or deny, then a tool: deny Bash(rm)")
        return cls.parse(verdict, rest)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"{self.verdict} {self.tool}" + (f"({self.pattern})" if self.pattern is not None else "")

    def matches(self, approval: ApprovalRequest) -> bool:
        """Whether the rule is about this call. An ``allow`` must be about all of it, the others about a part."""
        if self.tool not in ("*", approval.tool):
            return False
        if self.pattern is None:
            return True
        if approval.command is not None:
            return self._matches_command(approval.command)
        if approval.subject:
            return _spec(self.pattern).match_file(approval.subject)
        found = (_is_named(self.pattern, path) for path in approval.paths)
        return bool(approval.paths) and (all(found) if self.verdict == "allow" else any(found))

    def _matches_command(self, line: str) -> bool:
        rule = tuple((self.pattern or "").split())
        if self.verdict == "allow":
            command = simple_command(line)
            return command is not None and rule_covers_command(rule, command)
        return any(may_match_command(rule, command) for command in possible_commands(line))


@lru_cache(maxsize=256)
def _spec(pattern: str) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([pattern], backend="simple")


def _is_named(pattern: str, path: str) -> bool:
    """Whether the pattern names the path; as a directory, too: ``secrets/`` is also about ``secrets`` itself."""
    return _spec(pattern).match_file(path) or _spec(pattern).match_file(f"{path}/")


def _as_folder(pattern: str) -> str:
    """The folder that all of whose contents the pattern names: ``/secrets/`` for ``secrets/**``."""
    return f"/{pattern.removesuffix('/**').lstrip('/')}/" if pattern.endswith("/**") else pattern


@dataclass(slots=True)
class PermissionPolicy:
    """The mode, the rules and what was granted in this session.

    ``unasked``: effects that the dialect's document asks no approval for; its
    mode asks are dropped, its denials are not.
    """

    mode: str = "ask"
    rules: tuple[PermissionRule, ...] = ()
    unasked: frozenset[Effect] = frozenset()
    granted: set[tuple[str, ...]] = field(default_factory=set)

    def verdict(self, approval: ApprovalRequest) -> tuple[PermissionVerdict, PermissionRule | None]:
        """What is to happen, and the rule that says so; None when it is the mode or an earlier answer."""
        denial = self.denial(approval)
        if denial is not None:
            return "deny", denial
        matching = [rule for rule in self.rules if rule.matches(approval)]
        if approval.key in self.granted:
            return "allow", None
        for verdict in ("ask", "allow"):
            for rule in matching:
                if rule.verdict == verdict:
                    return ("ask" if self._needs_a_person(approval) else verdict), rule
        default = self._by_default(approval)
        return ("ask" if default == "allow" and self._needs_a_person(approval) else default), None

    def denied_paths(self, tools: frozenset[str]) -> Callable[[str], bool] | None:
        """Whether a path is denied to one of ``tools``, or to all; None when no rule denies any."""
        patterns = [
            pattern
            for rule in self.rules
            if rule.verdict == "deny" and rule.pattern and rule.tool in ("*", *tools)
            for pattern in (rule.pattern, _as_folder(rule.pattern))
        ]
        return (lambda path: any(_is_named(pattern, path) for pattern in patterns)) if patterns else None

    def denial(self, approval: ApprovalRequest) -> PermissionRule | None:
        """The rule that denies this call, whatever else is said."""
        return next((rule for rule in self.rules if rule.verdict == "deny" and rule.matches(approval)), None)

    def _by_default(self, approval: ApprovalRequest) -> PermissionVerdict:
        if approval.effect == "read" and self._is_limited(approval.tool):
            return "deny"
        verdict = MODES[self.mode].get(approval.effect, "allow")
        if verdict == "allow" and self.mode != "yolo" and approval.is_asked_once:
            return "ask"
        if verdict == "allow" and self.mode == "auto-edit" and approval.caution:
            return "ask"
        return "allow" if verdict == "ask" and approval.effect in self.unasked else verdict

    def _is_limited(self, tool: str) -> bool:
        """A reading tool that is allowed some paths is allowed no others: without that the rule would say nothing."""
        return any(rule.verdict == "allow" and rule.tool == tool and rule.pattern for rule in self.rules)

    def _needs_a_person(self, approval: ApprovalRequest) -> bool:
        """Whether neither a rule nor the mode can allow it."""
        return approval.is_git or self._may_hide(approval)

    def _may_hide(self, approval: ApprovalRequest) -> bool:
        """Whether a denied command may hide behind an expansion; then only the user can allow it."""
        line = approval.command
        return line is not None and is_dynamic(line) and self._denies_commands(approval.tool)

    def _denies_commands(self, tool: str) -> bool:
        return any(rule.verdict != "allow" and rule.tool in ("*", tool) and rule.pattern for rule in self.rules)

    def is_hidden(self, tool: str, path: str) -> bool:
        """Whether a rule denies ``tool`` this path, so that it is left out of listings and matches."""
        about = (rule for rule in self.rules if rule.verdict == "deny" and rule.tool in ("*", tool) and rule.pattern)
        return any(_is_named(rule.pattern or "", path) for rule in about)


def resolve_rules(names: Mapping[str, str], rules: Iterable[PermissionRule]) -> tuple[PermissionRule, ...]:
    """``rules`` under the tools' own names; ``names`` gives these by every name.

    Raises UsageError for a tool that is not there: a rule that is never asked must not look like one that is kept.
    """
    named = []
    for rule in rules:
        if not isinstance(rule, PermissionRule):
            raise UsageError(f"{rule!r} is no Rule; make one by Rule.parse('deny', 'run_command(rm)')")
        if rule.tool != "*" and rule.tool not in names:
            raise UsageError(
                f"the rule {str(rule)!r} names no tool; there are: {', '.join(dict.fromkeys(names.values()))}"
            )
        named.append(PermissionRule(rule.verdict, names.get(rule.tool, rule.tool), rule.pattern))
    return tuple(named)
