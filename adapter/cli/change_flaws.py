"""Find signs that a run did not make the changes that its task requests.

The task is compared with the net changes of the run, that is, with its diff. All checks prefer a miss to a false alarm.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from rapidfuzz import fuzz

from adapter.cli.call_tally import CallTally
from adapter.conversation.guardrails.call_history import CallHistory
from adapter.conversation.guardrails.copied_text import list_strings
from adapter.conversation.guardrails.invented_file_text import find_terms, is_invented
from adapter.conversation.guardrails.refusals_and_claims import asks_for_answer
from adapter.conversation.guardrails.requested_file_changes import (
    find_file_action,
    find_names,
    find_replaced_names,
    find_text,
    find_unused_values,
    list_first_paths,
    loses_text,
)
from adapter.core.text.words import STOP_WORDS
from adapter.editing.syntax_check import UncheckableError, find_syntax_error
from adapter.prompting.intent.text_values import find_paths, find_quoted
from adapter.prompting.intent.verbs import asks_for, sounds_like
from adapter.tools.argument_synonyms import OLD_TEXT, PATH

MIN_MISSPELLED, MIN_RATIO = 5, 80
"""Minimum length of a misspelled word, and minimum similarity to the right one in percent: "litsen" and "listen"."""
_LISTED = re.compile(
    r"(?i)\b(?:add|append|insert|put)\s+(?!(?:entries|items|it|more|one|something|that|them|this)\b)[`'\"]?([\w-]+)[`'\"]?"
    r"\s+(?:in|into|on|to)\s+(?:the\s+)?(?:[\w-]+\s+){0,3}(?:array|enum|list)\b"
)
"""Matches the item that a task adds to a list: "add pear to the list of fruits"."""
_VARIABLE = re.compile(r"\{\{[^{}\n]{1,40}\}\}|\[[^\[\]\n]{1,40}\]|<[^<>\n]{1,40}>|\$\w+|%\w+%|\b[A-Z][A-Z_]{2,}\b")
"""Matches template variables in a task: {{name}}, [NAME], <name>, $name, %name% and NAME."""
_FILLS = re.compile(r"(?i)\b(?:fill|füll\w*|rellen\w*|rempli\w*|compila|preenche\w*)\b")
"""Matches verbs of tasks to fill in a template."""
_EXCEPT = re.compile(
    r"""\b(?:but|except|if|keep|not|other|than|unless|außer|falls|nicht|ohne|wenn|pas|sauf|si|excepto|menos|salvo|eccetto|non
    |tranne|exceto|não|se)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches words for files that must stay."""
_ITEM = re.compile(r":\s+[-*+]\s+([^\n:]+?)\.?\s*\Z")
"""Matches the text of a list item at the end of a task: "Append to a.md: - one more"."""
_INTO = re.compile(r"(?i)\b(?:in|into|to|dans|en|em|nach|nel)\s[`'\"]?([\w./-]+\.\w+)")
"""Matches the path that something is saved to."""
_SETTINGS = re.compile(r"(?i).*(?:\.(?:cfg|conf|ini|json|properties|toml|ya?ml)|(?:^|/)\.env[.\w]*)")
"""Matches paths of settings files, in which a task probably sets a value."""
_SET_NUMBER = re.compile(
    r"(?<![\w.,/-])(?<!\bby\s)(?<!\bum\s)(?<!\bline\s)\d+(?:\.\d+)*(?=\s*(?:[.,;!?)]\s|[.!?)]?\Z))", re.IGNORECASE
)
"""Matches numbers at the end of a clause: "set the port to 80.", but not "indent with 4 spaces"."""
_CODE_NAME = re.compile(r"(?<![\w./-])[A-Za-z]\w*_(?!case\b)\w+(?!\.?\w|[/-])")
"""Matches names with an underscore, except names of notations, such as snake_case."""


def find_change_flaw(
    tally: CallTally, task: str, read_file: Callable[[str], str], diff: str | None, *, is_stuck: bool
) -> str:
    """Describe the first sign that the changes of a run are wrong or incomplete, or return "".

    ``read_file`` returns the text of a file, or "". ``diff`` is the unified diff of all changes, or None if unknown.
    ``is_stuck`` is True if the run ended because the model repeated itself.
    """
    if diff == "" and all(find_text(call, OLD_TEXT) for call in tally.acting_calls if call.ok and call.changes):
        return "nothing was changed, because the changes undo each other"
    if broken := [path for path in tally.broken if _has_syntax_error(path, read_file(path))]:
        return f"{', '.join(broken)} no longer parses"
    changes = parse_diff(diff or "")
    flaws = (
        _find_remaining_file(task, read_file),
        _find_unasked_deletion(task, tally, changes),
        _find_missing_addition(task, changes, is_stuck=is_stuck),
        *(_find_flaw(each, task, tally) for each in changes),
    )
    if flaw := next(filter(None, flaws), ""):
        return flaw
    left = [
        *_find_remaining_names(task, tally, changes, read_file),
        *_find_missing_names(task, tally, changes, read_file),
    ]
    named = "\n".join(left)
    left += [value for value in _find_unused_values(task, tally) if value not in named] if is_stuck else []
    return f"the change is incomplete; left to change: {', '.join(dict.fromkeys(left))}" if left else ""


def _has_syntax_error(path: str, text: str) -> bool:
    with suppress(UncheckableError):
        return text != "" and find_syntax_error(text, path) is not None
    return False


@dataclass(frozen=True, slots=True)
class DiffedFile:
    """The lines that a run removed from a file, and the lines that it added."""

    path: str
    is_new: bool
    removed: tuple[str, ...]
    added: tuple[str, ...]

    def is_described_by(self, task: str) -> bool:
        """Return whether the task describes the change: it contains all words that were added."""
        removed, added = find_terms("\n".join(self.removed)), find_terms("\n".join(self.added))
        return bool(added) and {term for term in added if not term.isdigit()} <= find_terms(task) | removed

    def has_word_of(self, task: str, *, is_addition: bool) -> bool:
        """Return whether a changed line (or, for ``is_addition``, an added line) contains a word or number of the task.
        The path of the file does not count."""
        terms = find_terms("\n".join(self.added if is_addition else [*self.added, *self.removed]))
        return not find_terms(task.replace(self.path, "")).isdisjoint(terms)

    def fills_variable(self, variable: str) -> bool:
        """Return whether the change replaced a template variable."""
        return variable in "".join(self.removed) and variable not in "".join(self.added)

    def keeps_variable(self, variable: str) -> bool:
        """Return whether the change replaced lines with a template variable, and left the variable."""
        return variable in "".join(self.removed) and variable in "".join(self.added)

    def adds_variable(self, variable: str) -> bool:
        """Return whether the change added a template variable, which is then intended as text."""
        return variable in "".join(self.added) and variable not in "".join(self.removed)

    def find_replaced(self, task: str) -> set[str]:
        """Return the names and numbers that the change replaced, if both an old and a new one are in the task."""
        old, new = (_find_names_and_numbers("\n".join(lines)) for lines in (self.removed, self.added))
        asked = _find_names_and_numbers(task)
        return (old - new) & asked - STOP_WORDS if (new - old) & asked - STOP_WORDS else set()


def parse_diff(diff: str) -> list[DiffedFile]:
    """Return the changes in a unified diff, in its order."""
    changes = []
    # A removed line "-- x" and an added line "++ y" look like a header, but no hunk follows them. Only "\n" ends lines.
    for part in re.split(r"(?m)^--- (?:a/.*|/dev/null)\n\+\+\+ (?=(?:b/.*|/dev/null)\n@@ )", diff)[1:]:
        path, *lines = (line.removesuffix("\r") for line in part.split("\n"))
        removed, added = (tuple(line[1:] for line in lines if line.startswith(sign)) for sign in "-+")
        changes.append(DiffedFile(path.removeprefix("b/"), lines[0].startswith("@@ -0,0 "), removed, added))
    return changes


def _find_names_and_numbers(text: str) -> set[str]:
    return {*find_names(text), *re.findall(r"\d+", text)}


def _find_remaining_file(task: str, read_file: Callable[[str], str]) -> str:
    """Describe a file that the task deletes or moves, but that still exists, or return "". If the task excepts files
    ("all except a.md"), nothing is reported."""
    done = {"delete": "deleted", "move": "moved"}.get(find_file_action(task))
    remaining = (path for path in list_first_paths(task) if done and not _EXCEPT.search(task) and read_file(path))
    return next((f"{path} was not {done}" for path in remaining), "")


def _find_unasked_deletion(task: str, tally: CallTally, changes: Sequence[DiffedFile]) -> str:
    """Describe the deletion of a file that the task wanted to change, not delete, or return "". Nothing is reported if
    the run created a new file, which may replace the deleted one."""
    deletions = [call for call in tally.acting_calls if call.ok and sounds_like(call.name, "delete")]
    is_replaced = any(change.is_new for change in changes)
    unasked = (call for call in deletions if not is_replaced and loses_text(call, CallHistory(task), tally.tools))
    return next(
        (f"{find_text(call, PATH) or 'a file'} was deleted, which the task does not ask for" for call in unasked), ""
    )


def _find_missing_addition(task: str, changes: Sequence[DiffedFile], *, is_stuck: bool) -> str:
    """Describe an addition that adds nothing, or return "". If the run is stuck, also report that no change contains a
    word of the task."""
    action = find_file_action(task)
    is_addition = action == "add"
    if is_addition and changes and not any(line.strip() for change in changes for line in change.added):
        return "nothing was added"
    is_related = any(change.has_word_of(task, is_addition=is_addition) for change in changes)
    is_unrelated = is_stuck and changes and not is_related and action not in ("delete", "move")
    return "no change has a word of the task" if is_unrelated else ""


def _find_flaw(change: DiffedFile, task: str, tally: CallTally) -> str:
    """Describe how a change differs from the one that the task requests, or return "".

    An addition must not remove lines that the task does not mention. Another change may replace all lines of a file,
    but if the task mentions only some of them, the others must remain. If the task states a number that the change does
    not contain, the change must not contain an invented number.
    """
    removed, added, asked = (find_terms("\n".join(text)) for text in (change.removed, change.added, [task]))
    known = "\n".join([task, *change.removed, *tally.results])
    if change.is_new and is_invented(change.path, "\n".join(change.added), task, known, tally.tools):
        return f"the new text of {change.path} has no word of the task"
    is_addition, is_described = find_file_action(task) == "add", change.is_described_by(task)
    if not is_described and not (is_addition and len(change.added) <= len(change.removed)):
        return ""
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
    return f"{change.path} got {wrong[0]}, which is not in the task" if wrong and is_open and is_described else ""


def _find_remaining_names(
    task: str, tally: CallTally, changes: Sequence[DiffedFile], read_file: Callable[[str], str]
) -> Iterator[str]:
    """Yield the old names that remain in a file of the task, such as "greet in b.py". These are template variables of
    the task, names that a rename replaced, and names that were replaced only in another file.
    """
    replaced = find_replaced_names(CallHistory(task, tuple(tally.acting_calls)))
    elsewhere = {name for change in changes for name in change.find_replaced(task)}
    variables = [name for name in _VARIABLE.findall(task) if not any(change.adds_variable(name) for change in changes)]
    filled = [(change, name) for change in changes for name in variables if change.fills_variable(name)]
    if _FILLS.search(task):
        kept = {name for change in changes for name in variables if change.keeps_variable(name)}
        variables = [name for name in variables if name in kept or any(name == other for _, other in filled)]
    elif not any(not name[0].isalpha() or change.is_described_by(task) for change, name in filled):
        variables = [name for name in variables if name[0] == "{" and find_file_action(task) in ("edit", "update")]
    for path in find_paths(task):
        text = read_file(path)
        changed = next((change for change in changes if change.path == path), None)
        others = (
            elsewhere
            if changed is None
            else {name for name in elsewhere - changed.find_replaced(task) if name.isdigit()}
        )
        names = (replaced | others) & _find_names_and_numbers(text)
        left = [*sorted(names), *(name for name in variables if name in text)]
        yield from (f"{name} in {path}" for name in left)


def _find_missing_names(
    task: str, tally: CallTally, changes: Sequence[DiffedFile], read_file: Callable[[str], str]
) -> Iterator[str]:
    """Yield the parts of the task that the run does not contain: names of code, such as "add_tax", items to add to a
    list, a list item at the end of the task, and numbers to fill in. The changed lines, the files that the task names
    and the results of calls are searched."""
    known = _list_known_text(task, tally, changes, read_file)
    names = [name for name in _CODE_NAME.findall(task) if name not in known]
    names += [name for name in _LISTED.findall(task) if name.lower() not in known.lower()]
    names += [number for number in re.findall(r"\d+", task) if _FILLS.search(task) and number not in known]
    names += [item for item in _ITEM.findall(task) if item.lower() not in known.lower()]
    yield from names if changes else ()
    yield from find_omissions(task, tally, read_file, changes)


def _list_known_text(
    task: str, tally: CallTally, changes: Sequence[DiffedFile], read_file: Callable[[str], str]
) -> str:
    lines = (line for change in changes for line in (change.path, *change.removed, *change.added))
    return "\n".join([*lines, *map(read_file, find_paths(task)), *tally.results])


def find_omissions(
    task: str, tally: CallTally, read_file: Callable[[str], str], changes: Sequence[DiffedFile] = ()
) -> Iterator[str]:
    """Yield the parts of a task in any language that the run has not done: files that do not exist, values that a file
    of settings does not have, and misspelled words that a file still has."""
    if asks_for_answer(task):
        return
    known, paths = _list_known_text(task, tally, changes, read_file), find_paths(task)
    made = "\n".join(text for call in tally.acting_calls if call.ok for text in list_strings(call.arguments))
    targets = paths[:1] if find_file_action(task) == "create" else _INTO.findall(task)
    for path in targets if asks_for(task, "create") else ():
        if not read_file(path) and path not in f"{known}\n{made}":
            yield path
    if any(_SETTINGS.fullmatch(path) and read_file(path) for path in paths):
        values = [*(text for text in find_quoted(task) if not re.search(r"\s", text)), *_SET_NUMBER.findall(task)]
        yield from (value for value in values if value not in known)
    names = find_names(task) - find_names("\n".join(paths))
    for path in paths:
        present = find_names(read_file(path))
        for old in sorted(names & present):
            news = (new for new in names - find_names(known) if _corrects(new, old))
            yield from (f"{old} in {path}" for _ in news)


def _corrects(new: str, old: str) -> bool:
    """Return whether a word may be the correct spelling of another one, and not only another form of it."""
    is_form = new.lower().startswith(old.lower()) or old.lower().startswith(new.lower())
    return min(len(new), len(old)) >= MIN_MISSPELLED and not is_form and fuzz.ratio(new, old) >= MIN_RATIO


def _find_unused_values(task: str, tally: CallTally) -> list[str]:
    """Return the values in the task that no change has used. Numbers, which may be positions, are returned only if none
    was used."""
    paths, unused = find_paths(task), find_unused_values(CallHistory(task, tuple(tally.acting_calls)))
    values = [value for value in find_unused_values(CallHistory(task)) if value not in paths]
    is_none_used = bool(values) and set(values) <= set(unused)
    return [value for value in unused if is_none_used or not value[0].isdigit()]
