"""Determine a run's exit code and summary line, from the reason for its end and its calls' results."""

from __future__ import annotations

import re
from collections.abc import Callable

from adapter.cli.call_tally import CallTally
from adapter.cli.change_flaws import find_change_flaw
from adapter.cli.folder_changes import NO_CHANGES, FolderChanges
from adapter.conversation.guardrails.refusals_and_claims import asks_for_answer, has_content
from adapter.conversation.guardrails.requested_files import find_file_action
from adapter.conversation.guardrails.unused_tool import RUNS
from adapter.conversation.session_steps import REASONS, Finished, Reason
from adapter.core.text.word_stems import find_words
from adapter.prompting.intent.text_values import find_paths, find_quoted
from adapter.prompting.intent.verbs import find_requested_action

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

LONG_RESULT = 6
"""Number of words that results must exceed for an answer to count as a copy of them."""
_ASKS_NUMBER = re.compile(
    r"""\b(?:how\s+(?:many|much|old|long|far|high|large|big|tall|heavy)\b(?!\s+(?:better|worse))|wie\s?(?:viele?|alt|lang|hoch|groß|teuer)
    |combien|cuánt[oa]s?|quant[oaie]s?)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_STATES_NUMBER = re.compile(
    r"""\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|twenty|thirty|hundred|half|all|both
    |no|none|not|nothing|empty|same|zero|kein\w*|nicht\w*|eine?n?|zwei|drei|vier|aucun\w*|pas|rien|ningun\w*|nada|nessun\w*)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches answers to a question for a number, also in words or without one."""
_CODE_NAME = re.compile(r"\b[a-z]+_\w+\b")
_ENDED: tuple[Reason, ...] = ("answered", "exited", "finished")
_STUCK: tuple[Reason, ...] = ("repetition", "stuck")


def describe_run_outcome(
    done: Finished,
    tally: CallTally,
    task: str = "",
    read_file: Callable[[str], str] = lambda _: "",
    changes: FolderChanges = NO_CHANGES,
) -> tuple[int, str]:
    """Return a run's exit code and the summary line to print last.

    ``task`` is the user's request, or "" if unknown. `find_change_flaw` explains ``read_file`` and ``changes``.
    """
    if why := _explain_inaction(done, tally, task, read_file):
        return 1, why
    counts, is_stuck = tally.format_counts(), done.reason in _STUCK
    is_done = tally.calls and (is_stuck or done.reason in _ENDED)
    if is_done and (flaw := find_change_flaw(tally, task, read_file, changes, is_stuck=is_stuck)):
        return 1, f"{flaw} ({counts})"
    if done.reason == "answered" and _lacks_number(done.content, task, tally):
        return 1, f"the answer has no number, although the task asks for one ({counts})"
    if is_stuck and tally.acted and not tally.last_failed:
        return 0, f"the {'change was made' if tally.changed else 'command was run'}: {counts}"
    return EXIT_CODES.get(done.reason, 1), _describe_end(done.reason, tally)


def _explain_inaction(done: Finished, tally: CallTally, task: str, read_file: Callable[[str], str]) -> str:
    """Explain why a run that the model ended achieved nothing, or return ""."""
    if tally.acted or done.reason not in (*_ENDED, "unsuccessful"):
        return ""
    counts = tally.format_counts()
    if tally.unreadable and not tally.calls:
        calls = "call" if tally.unreadable == 1 else "calls"
        return f"nothing was done: the model's {calls} could not be parsed: {HINTS['unreadable']}"
    may_be_answered = done.reason == "answered" and bool(tally.results) and _asks_for_answer(task, tally)
    if (tally.stopped and not may_be_answered) or (tally.calls and tally.refused == tally.calls):
        return f"nothing was done: {counts}"
    if done.reason == "unsuccessful":
        return ""
    if find_file_action(task) or tally.classified not in ("", "answer", "run"):
        advice = HINTS["unsuccessful"] if done.reason == "finished" else NO_CALL_HINT
        return f"nothing was changed: {f'{counts}: ' if tally.calls else ''}{advice}"
    asks_to_run = RUNS.match(task) or (RUNS.search(task) and find_requested_action(task)[0] == "run")
    if asks_to_run and any(tool.effect == "execute" for tool in tally.tools.values()):
        return f"nothing was run, although the task asks for it: {NO_CALL_HINT}"
    if done.reason == "answered" and not tally.calls and any(map(read_file, find_paths(task))):
        return f"nothing was done, although the task names a file: {NO_CALL_HINT}"
    if done.reason == "answered" and (value := _find_new_value(task, tally)):
        return f"nothing was changed, although the task names the new value {value}: {NO_CALL_HINT}"
    is_answer = _asks_for_answer(task, tally) or _informs(done.content, task, tally)
    if done.reason == "answered" and tally.calls and task and not is_answer:
        return f"nothing was changed, and the answer says nothing about the files: {counts}: {NO_CALL_HINT}"
    return ""


def _lacks_number(answer: str, task: str, tally: CallTally) -> bool:
    """Return whether a task asks for a number, a result contains some, and the answer has none."""
    is_asked = _ASKS_NUMBER.search(task) and any(re.search(r"\d", result) for result in tally.results)
    return bool(is_asked) and not _STATES_NUMBER.search(answer)


def _asks_for_answer(task: str, tally: CallTally) -> bool:
    return asks_for_answer(task) or tally.classified == "answer"


def _find_new_value(task: str, tally: CallTally) -> str:
    """Return a quoted text or code name that a task about a file contains and no result does, or ""."""
    paths = find_paths(task)
    if not paths or _asks_for_answer(_CODE_NAME.sub("it", task), tally):
        return ""
    known = "\n".join([*paths, *tally.results])
    return next((value for value in (*find_quoted(task), *_CODE_NAME.findall(task)) if value not in known), "")


def _informs(answer: str, task: str, tally: CallTally) -> bool:
    """Return whether an answer informs the user. A mere copy of long results does not count."""
    known = find_words(task)
    new, read = find_words(answer) - known, find_words("\n".join(tally.results)) - known
    is_copy = new <= read and 2 * len(new) > len(read) > LONG_RESULT
    return not is_copy and has_content(answer, task)


def _describe_end(reason: Reason, tally: CallTally) -> str:
    if reason == "answered":
        return f"the model is done: {tally.format_counts()}" if tally.calls else f"{REASONS[reason]}: {NO_CALL_HINT}"
    is_counted = tally.calls and reason not in ("finished", "unsuccessful")  # these two imply exactly one call
    hint = f": {HINTS[reason]}" if reason in HINTS else ""
    return f"{REASONS[reason]}{f', after {tally.format_counts()}' if is_counted else ''}{hint}"
