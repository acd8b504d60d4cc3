"""Determine a run's exit code and last line of output, from the reason for its end and its calls' results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from adapter.agent.response_reader import AgentEvent
from adapter.conversation.guardrails.call_history import CallHistory, PastCall
from adapter.conversation.guardrails.invented_file_text import find_terms, is_invented
from adapter.conversation.guardrails.requested_file_changes import (
    find_file_action,
    find_names,
    find_replaced_names,
    find_text,
    find_unused_values,
    loses_text,
)
from adapter.conversation.session_steps import REASONS, Finished, Reason
from adapter.core.events import InvalidToolCall, JsonObject, ToolCall, ToolResult
from adapter.editing.resolved_edits import NEEDLESS
from adapter.editing.syntax_check import NO_LONGER_PARSES
from adapter.prompting.intent.bm25 import stem_word
from adapter.prompting.intent.text_values import find_paths
from adapter.prompting.intent.verbs import ACTIONS, sounds_like
from adapter.tools.argument_synonyms import OLD_TEXT
from adapter.tools.tool import ToolSet

HINTS: dict[Reason, str] = {
    "turns": "raise --max-turns, or split the task",
    "repetition": "try a larger model, or a smaller task",
    "unreadable": "try --constraint required, another --format, or a larger model",
    "cut_off": "request less, or raise the server's context size or token limit",
    "broken_off": "check the server's log, and retry",
    "stuck": "list the steps in the task, or try a larger model",
    "unsuccessful": "name the file and quote the text exactly, or try a larger model",
}
"""Advice for a conversation that ended without success."""

NO_CALL_HINT = "if you expected a change, try --constraint required, another --format, or a larger model"

EXIT_CODES: dict[Reason, int] = {"answered": 0, "exited": 0, "finished": 0, "interrupted": 130}
"""Exit codes by end reason; 1 for all others."""

ACTING = frozenset({"write", "delete", "execute"})
"""Effects of tools that change something. A run fails if all calls with such an effect failed."""

_CLAIM = re.compile(r"(?i)\b(?:I(?:\s+have|['’]ve)?(?:\s+also|\s+now|\s+\w+ly)*|successfully)\s+(\w+)")
_CHANGING = frozenset(
    stem_word(verb)
    for name in ("add", "create", "delete", "edit", "move")
    for verb in (*ACTIONS[name], "copy", "wrote")
)


_VARIABLE = re.compile(r"\{\{[^{}\n]{1,40}\}\}|\[[^\[\]\n]{1,40}\]|<[^<>\n]{1,40}>|\$\w+|%\w+%|\b[A-Z][A-Z_]{2,}\b")
"""Matches template variables in a task: {{name}}, [NAME], <name>, $name, %name% and NAME."""


@dataclass(slots=True)
class CallTally:
    """Counts of the results of all calls in a run, including calls in batches and by sub-agents."""

    tools: ToolSet
    calls: int = 0
    refused: int = 0
    failed: int = 0
    unreadable: int = 0
    acted: int = 0
    """Number of successful calls with an effect in `ACTING`."""
    changed: int = 0
    """Number of the calls in `acted` that changed files."""
    stopped: int = 0
    """Number of refused or failed calls with an effect in `ACTING`."""
    past: list[PastCall] = field(default_factory=list)
    """The calls with an effect in `ACTING`."""
    last_failed: bool = False
    """True if the last call with an effect in `ACTING` failed or was refused. A call that failed only because it would
    not have changed anything does not count.
    """

    results: list[str] = field(default_factory=list)
    """The results of calls that only read."""
    broken: dict[str, None] = field(default_factory=dict)
    """Paths of files whose syntax was valid before a change and is invalid now."""

    _arguments: dict[str, JsonObject] = field(default_factory=dict)

    def __call__(self, event: AgentEvent) -> None:
        match event:
            case InvalidToolCall():
                self.unreadable += 1
            case ToolCall():
                self._arguments[event.id] = event.arguments
            case ToolResult():
                self._count(event)

    def _count(self, result: ToolResult) -> None:
        self.calls += 1
        self.refused += result.denied
        self.failed += not result.ok and not result.denied
        tool = self.tools.match(result.name)
        if result.ok and (tool is None or tool.effect != "write"):
            self.results.append(result.content)
        if tool is not None and tool.effect in ACTING:
            self.acted += result.ok
            self.changed += result.ok and tool.effect != "execute"
            self.stopped += not result.ok
            arguments = self._arguments.get(result.call_id, {})
            self.past.append(PastCall(result.name, arguments, ok=result.ok, changes=tool.effect != "execute"))
            path = str(arguments.get("path", ""))
            if result.ok and NO_LONGER_PARSES in result.content:
                self.broken[path] = None
            elif result.ok:
                self.broken.pop(path, None)
            self.last_failed = not result.ok and not any(f": {kind}: " in (result.error or "") for kind in NEEDLESS)


def describe_run_outcome(
    done: Finished,
    tally: CallTally,
    task: str = "",
    read_file: Callable[[str], str] = lambda _: "",
    diff: str | None = None,
) -> tuple[int, str]:
    """Return the exit code and the last line of a run.

    Args:
        task: The user's request, or "" if it is not known.
        read_file: Returns the text of a file, or "".
        diff: The unified diff of all changes that the run made, or None if it is not known.
    """
    if done.reason in ("answered", "exited", "finished", "unsuccessful") and (why := _explain_inaction(tally)):
        return 1, f"nothing was done: {why}"
    code, hint, counts = EXIT_CODES.get(done.reason, 1), HINTS.get(done.reason), _format_counts(tally)
    is_end, is_stuck = done.reason in ("answered", "exited", "finished"), done.reason in ("repetition", "stuck")
    if is_end and not tally.acted and (find_file_action(task) or (tally.calls and _claims_change(done.content))):
        advice = HINTS["unsuccessful"] if done.reason == "finished" else NO_CALL_HINT
        return 1, f"nothing was changed: {f'{counts}: ' if tally.calls else ''}{advice}"
    if done.reason == "answered" and not tally.calls and any(map(read_file, find_paths(task))):
        return 1, f"nothing was done, although the task names a file: {NO_CALL_HINT}"
    if tally.changed and (is_end or is_stuck):
        if diff == "" and all(find_text(call, OLD_TEXT) for call in tally.past if call.ok and call.changes):
            return 1, f"nothing was changed, because the changes undo each other: {counts}"
        if tally.broken:
            return 1, f"{', '.join(tally.broken)} no longer parses: {counts}"
        changes = parse_diff(diff or "")
        flaws = (_find_unasked_deletion(task, tally, changes), *(_find_flaw(each, task, tally) for each in changes))
        if flaw := next(filter(None, flaws), ""):
            return 1, f"{flaw}: {counts}"
        left = [
            *_find_remaining_names(task, tally, changes, read_file),
            *(_find_unused_values(task, tally) if is_stuck else ()),
        ]
        if left:
            return 1, f"the change is incomplete; left to change: {', '.join(dict.fromkeys(left))} ({counts})"
    if is_stuck and tally.acted and not tally.last_failed:
        return 0, f"the {'change was made' if tally.changed else 'command was run'}: {counts}"
    if done.reason == "answered":
        return code, f"the model is done: {counts}" if tally.calls else f"{REASONS[done.reason]}: {NO_CALL_HINT}"
    if tally.calls and done.reason not in ("finished", "unsuccessful"):  # these two reasons imply exactly one call
        return code, f"{REASONS[done.reason]}, after {counts}" + (f": {hint}" if hint else "")
    return code, REASONS[done.reason] + (f": {hint}" if hint else "")


def _claims_change(answer: str) -> bool:
    return any(stem_word(match[1].lower()) in _CHANGING for match in _CLAIM.finditer(answer))


@dataclass(frozen=True, slots=True)
class DiffedFile:
    """The lines that a run removed from a file, and those that it added."""

    path: str
    is_new: bool
    removed: tuple[str, ...]
    added: tuple[str, ...]

    def is_described_by(self, task: str) -> bool:
        """Return whether the task describes the change: it contains all words that were added."""
        removed, added = find_terms("\n".join(self.removed)), find_terms("\n".join(self.added))
        return bool(added) and {term for term in added if not term.isdigit()} <= find_terms(task) | removed

    def fills_variable(self, variable: str) -> bool:
        """Return whether the change replaced a template variable."""
        return variable in "".join(self.removed) and variable not in "".join(self.added)

    def adds_variable(self, variable: str) -> bool:
        """Return whether the change added a template variable, which is then intended as text."""
        return variable in "".join(self.added) and variable not in "".join(self.removed)

    def find_replaced(self, task: str) -> set[str]:
        """Return the names that the change replaced, if both the old and a new name are in the task."""
        old, new = (find_names("\n".join(lines)) for lines in (self.removed, self.added))
        return (old - new) & find_names(task) if (new - old) & find_names(task) else set()


def parse_diff(diff: str) -> list[DiffedFile]:
    """Return the changes in a unified diff, in its order."""
    changes = []
    for part in re.split(r"(?m)^--- .*\n\+\+\+ ", diff)[1:]:
        path, *lines = part.splitlines()
        removed, added = (tuple(line[1:] for line in lines if line.startswith(sign)) for sign in "-+")
        changes.append(DiffedFile(path.removeprefix("b/"), lines[0].startswith("@@ -0,0 "), removed, added))
    return changes


def _find_unasked_deletion(task: str, tally: CallTally, changes: Sequence[DiffedFile]) -> str:
    """Describe a deletion of a file in which the task requests a change, or return "". A new file may replace it."""
    deletions = [call for call in tally.past if call.ok and sounds_like(call.name, "delete")]
    is_replaced = any(change.is_new for change in changes)
    unasked = (call for call in deletions if not is_replaced and loses_text(call, CallHistory(task), tally.tools))
    return next((f"{call.arguments.get('path')} was deleted, which the task does not ask for" for call in unasked), "")


def _find_flaw(change: DiffedFile, task: str, tally: CallTally) -> str:
    """Describe what shows that a change is not the requested one, or return "".

    If the task states the change, an addition removes nothing. Other changes may replace all lines, but if one is
    replaced as requested, the others must be mentioned. A number must not be written in place of that in the task.
    """
    removed, added, asked = (find_terms("\n".join(text)) for text in (change.removed, change.added, [task]))
    known = "\n".join([task, *change.removed, *tally.results])
    if change.is_new and is_invented(change.path, "\n".join(change.added), task, known, tally.tools):
        return f"the new text of {change.path} has no word of the task"
    if not change.is_described_by(task):
        return ""
    is_addition = find_file_action(task) == "add"
    lines = [
        (line, terms.isdisjoint(added if is_addition else asked | added))
        for line in change.removed
        if (terms := find_terms(line))
    ]
    lost = [line for line, is_lost in lines if is_lost]
    if lost and (is_addition or len(lost) < len(lines)):
        return f"{change.path} lost a line that the task does not mention ({lost[0].strip()})"
    wrong = sorted(term for term in added - asked - find_terms(known) if term.isdigit())
    is_open = any(term.isdigit() and term not in added | removed for term in asked)
    return f"{change.path} got {wrong[0]}, which is not in the task" if wrong and is_open else ""


def _find_remaining_names(
    task: str, tally: CallTally, changes: Sequence[DiffedFile], read_file: Callable[[str], str]
) -> Iterator[str]:
    """Yield the old names that remain in a file of the task, such as "greet in b.py". These are template variables of
    the task, names that a rename replaced, and names that were replaced only in another file.
    """
    replaced = find_replaced_names(CallHistory(task, tuple(tally.past)))
    elsewhere = {name for change in changes for name in change.find_replaced(task)}
    variables = [name for name in _VARIABLE.findall(task) if not any(change.adds_variable(name) for change in changes)]
    stated = [change for change in changes if change.is_described_by(task)]
    if not any(change.fills_variable(name) for change in stated for name in variables):
        variables = [name for name in variables if name[0] == "{" and find_file_action(task) in ("edit", "update")]
    for path in find_paths(task):
        text = read_file(path)
        names = replaced if any(change.path == path for change in changes) else replaced | elsewhere
        left = [*sorted(names & find_names(text)), *(name for name in variables if name in text)]
        yield from (f"{name} in {path}" for name in left)


def _find_unused_values(task: str, tally: CallTally) -> list[str]:
    """Return the values of the task that no change has used. A number may be a position rather than a part of the
    change, so numbers are returned only if none of the values was used.
    """
    paths, unused = find_paths(task), find_unused_values(CallHistory(task, tuple(tally.past)))
    values = [value for value in find_unused_values(CallHistory(task)) if value not in paths]
    is_none_used = bool(values) and set(values) <= set(unused)
    return [value for value in unused if is_none_used or not value[0].isdigit()]


def _explain_inaction(tally: CallTally) -> str:
    """Explain why the run achieved nothing: no call could be parsed, or every call that would have changed something
    was refused or failed. Return "" if a call succeeded."""
    if tally.acted:
        return ""
    if tally.unreadable and not tally.calls:
        return f"the model's {'call' if tally.unreadable == 1 else 'calls'} could not be parsed: {HINTS['unreadable']}"
    if tally.stopped or (tally.calls and tally.refused == tally.calls):
        return _format_counts(tally)
    return ""


def _format_counts(tally: CallTally) -> str:
    """Format the counts like ``3 calls, 1 refused, 1 failed``."""
    if tally.calls == 1 and (tally.refused or tally.failed):
        return "the call was refused" if tally.refused else "the call failed"
    if tally.calls > 1 and tally.calls in (tally.refused, tally.failed):
        return f"all {tally.calls} calls {'were refused' if tally.refused else 'failed'}"
    parts = [f"{tally.calls} call{'s' * (tally.calls != 1)}"]
    parts += [f"{count} {word}" for count, word in ((tally.refused, "refused"), (tally.failed, "failed")) if count]
    return ", ".join(parts)
