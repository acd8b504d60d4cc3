"""Compare the net changes of a run with its task, and report signs that they are wrong or incomplete.

The checks compare values, so that most of them work in any language:

- Files that parsed before still parse, and new text has a word of the task.
- The result has the quoted words and the new files that the task names.
- If the run replaced a value with another one from the task, no file named in the task still has the old value.
- A renaming adds no lines, and the correction of a misspelled word changes no other words.
- A change made only of words of the task removes no line without such a word, and adds no other number.
- Exactly the files that the task asks to delete or move are gone. A question changes no file.
- No text was written that the task does not ask for, such as an extra sentence (`unrequested_text`).
- If the run ended because the model repeated itself, the change has a word of the task, and all its values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import PurePath

from adapter.cli.call_tally import CallTally
from adapter.cli.folder_changes import DiffedFile, FolderChanges, parse_diff
from adapter.cli.unrequested_text import TextComparison
from adapter.conversation.guardrails.call_history import CallHistory
from adapter.conversation.guardrails.copied_text import list_strings
from adapter.conversation.guardrails.invented_file_text import is_invented
from adapter.conversation.guardrails.refusals_and_claims import asks_for_answer, expects_information
from adapter.conversation.guardrails.requested_file_changes import (
    CHANGES,
    find_names,
    find_text,
    loses_text,
)
from adapter.conversation.guardrails.requested_files import ABOUT, find_file_action, list_first_paths, list_target_paths
from adapter.core.text.word_stems import STOP_WORDS, find_words
from adapter.editing.syntax_check import UncheckableError, find_syntax_error
from adapter.prompting.intent.removals import find_unrelated_line
from adapter.prompting.intent.spelling import find_misspelled_word, is_correction
from adapter.prompting.intent.template_variables import VARIABLE, find_lost_word
from adapter.prompting.intent.text_values import find_paths, find_quoted
from adapter.prompting.intent.verbs import asks_for, find_requested_action, is_question, sounds_like
from adapter.tools.argument_synonyms import CONTENT, OLD_TEXT, PATH, SOURCE

MAX_DIGITS = 18
"""Maximum number of digits of a number that is compared. Python limits the conversion of longer ones."""
UNITS = (1, 60, 1_000, 1_024, 3_600, 86_400)
"""Factors to convert a number of the task to the unit of a file, such as minutes to seconds."""
MAX_UNKNOWN_WORDS = 4
"""A task without a known verb may ask for a deletion if it has at most this number of words, not counting the path."""
CHANGING = ("add", "create", "edit", "move", "delete", "reset")
"""Actions that change files."""
_EXCEPT = re.compile(
    r"""\b(?:but|except|if|keep|leave|not|other|than|unless|außer|falls|nicht|ohne|wenn|pas|sauf|si|excepto|menos|salvo
    |eccetto|non|tranne|exceto|não|se)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches words for something that must stay."""
_ALL = re.compile(
    r"""(?:\b(?:all|any|each|every|alle|jede|tous|toutes|todos|todas|tutti|tutte)\s+(?:(?:of\s+)?(?:the|my|die|les|los|i)\s+)?|(?=[`'"]?\*))
    [`'"]?(?:\*?\.(\w{1,5})\b|(\w{2,5})[ -](?:files|dateien|fichiers|archivos|file)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches "all .tmp files", "every log file" and "*.bak"; the groups are the suffix."""
_INTO = re.compile(r"(?i)\b(?:in|into|to|dans|en|em|nach|nel)\s[`'\"]?([\w./-]+\.\w+)")
"""Matches the path that something is saved to."""


def find_change_flaw(
    tally: CallTally, task: str, read_file: Callable[[str], str], changes: FolderChanges, *, is_stuck: bool
) -> str:
    """Describe the first sign that the changes of a run are wrong or incomplete, or return "".

    ``read_file`` returns the text of a file, or "". ``is_stuck`` is True if the run ended because the model repeated
    itself.
    """
    if changes.diff == "" and all(find_text(call, OLD_TEXT) for call in tally.acting_calls if call.ok and call.changes):
        return "nothing was changed, because the changes undo each other"
    comparison = Comparison(
        tally, task, read_file, parse_diff(changes.diff or ""), is_stuck, changes.deleted, changes.kept
    )
    if changes.is_unchanged and comparison.target and tally.acted and not tally.changed:
        return "nothing was changed"
    if flaw := next(comparison.find_flaws(), ""):
        return flaw
    left = ", ".join(dict.fromkeys(comparison.find_left_values()))
    return f"the change is incomplete; left to change: {left}" if left else ""


@dataclass(frozen=True)
class Comparison:
    """A task, and the results of its run; see `find_change_flaw`."""

    tally: CallTally
    task: str
    read_file: Callable[[str], str]
    changes: Sequence[DiffedFile] = ()
    is_stuck: bool = False
    deleted: Sequence[str] = ()
    """The files that commands deleted."""
    kept: Sequence[str] = ()
    """The files that existed before and after the run."""

    @cached_property
    def paths(self) -> list[str]:
        """The paths that the task names."""
        return find_paths(self.task)

    @cached_property
    def is_renaming(self) -> bool:
        return find_requested_action(self.task)[0] == "move" or self.tally.classified == "rename"

    @cached_property
    def task_words(self) -> set[str]:
        """The words of the task, except its paths."""
        return find_words(re.sub("|".join(map(re.escape, self.paths)) or r"\Z", " ", self.task))

    @cached_property
    def texts(self) -> TextComparison:
        results, tools = self.tally.results, self.tally.tools
        return TextComparison(self.task, self.task_words, results, tools, self.changes, self.read_file)

    @cached_property
    def added(self) -> str:
        """All lines that the run added."""
        return "\n".join(line for change in self.changes for line in change.added)

    @cached_property
    def known(self) -> str:
        """All text that the run wrote or removed, and the files that the task names, in lower case."""
        paths = (change.path for change in self.changes)
        calls = (text for call in self.tally.acting_calls if call.ok for text in list_strings(call.arguments))
        return "\n".join([*paths, self.texts.removed, self.added, *calls, *map(self.read_file, self.paths)]).lower()

    @cached_property
    def added_words(self) -> set[str]:
        return find_words(self.added)

    @cached_property
    def known_numbers(self) -> set[int]:
        """The numbers in the task, with and without separators, and in the results."""
        plain = re.sub(r"(?<=\d)[,.](?=\d{3})", "", self.task)
        return _find_numbers("\n".join([self.task, plain, *self.tally.results]))

    def find_flaws(self) -> Iterator[str]:
        """Yield a description of each sign that the run did not change exactly what the task asks for."""
        if broken := [path for path in self.tally.broken if _has_syntax_error(path, self.read_file(path))]:
            yield f"{', '.join(broken)} no longer parses"
        action = find_file_action(self.task)
        done = {"delete": "deleted", "move": "moved"}.get(action)
        for path in list_first_paths(self.task) if done and not _EXCEPT.search(self.task) else ():
            if self.read_file(path):
                yield f"{path} was not {done}"
        yield from (f"{path} was not deleted" for path in self._find_kept_files())
        if self.target and self._is_target_unchanged():
            yield f"{self.target} was not changed"
        yield from self._find_unrequested_deletions()
        new, old = self.added_words, find_words(self.texts.removed)
        if self.task_words.isdisjoint(new - old or old) and not done:
            is_asked = is_question(self.task) or expects_information(self.task)
            if is_asked and not asks_for(self.task, *CHANGING):
                yield from (f"{change.path} was changed, although the task is a question" for change in self.changes)
            if self.is_stuck and self.added and not any(path in self.added for path in self.paths):
                yield "no change has a word of the task"
        known = "\n".join([self.task, *self.tally.results])
        filled = [name for name in VARIABLE.findall(self.task) if self._is_filled(name)]
        kept = {*self.paths}.difference(list_target_paths(self.task))
        for change in self.changes:
            if change.path in kept:
                yield f"{change.path} was changed, although the task does not ask for it"
            text, old_text = "\n".join(change.added), f"{known}\n{self.texts.removed}"
            is_whole = change.is_new or text.strip() == self.read_file(change.path).strip()
            if is_whole and is_invented(change.path, text, self.task, old_text, self.tally.tools):
                yield f"the new text of {change.path} has no word of the task"
            is_longer = len(change.added) > len(change.removed) > 0
            if is_longer and self.is_renaming and not asks_for(self.task, "add", "create", "edit"):
                yield f"{change.path} got other lines, although the task only asks for a new name"
            if line := self._find_lost_line(change, is_addition=action == "add"):
                yield f"{change.path} lost a line that the task does not mention ({line})"
            if word := find_lost_word(filled, "\n".join(change.removed), self.added, self.task):
                yield f"{change.path} lost a word that the task does not mention ({word})"
            word = find_misspelled_word(self.task, "\n".join(change.removed))
            if word and not all(is_correction(word, *pair) for pair in change.pairs):
                yield f"more than the spelling of {word} was changed in {change.path}"
            if number := self._find_other_number(change):
                yield f"{change.path} got {number}, which is not in the task"
        yield from (f"{path} is empty, although the task states its text" for path in self._find_empty_files())
        yield from self.texts.find_flaws()

    def _find_empty_files(self) -> Iterator[str]:
        """Yield the paths of the files that were written without a word, if the task states or quotes a text."""
        ending = re.findall(r":\s+(\S[^\n]*)\Z", self.task)
        stated = find_words("\n".join([*find_quoted(self.task), *ending, *re.findall(r"\d{2,}", self.task)]))
        for call in self.tally.acting_calls if stated & self.task_words else ():
            path = find_text(call, PATH)
            is_write = not {*CONTENT}.isdisjoint(call.arguments) and {*OLD_TEXT}.isdisjoint(call.arguments)
            if call.ok and is_write and not re.search(r"\w", self.read_file(path)):
                yield path

    @cached_property
    def target(self) -> str:
        """The existing file that the task asks to change, or ""."""
        path = next(iter(self.paths), "")
        is_asked = find_file_action(self.task) in CHANGES and not ABOUT.search(self.task[: self.task.index(path)])
        return path if is_asked and self.read_file(path) else ""

    def _is_target_unchanged(self) -> bool:
        """Return whether the run only created files unrelated to the paths in the task. A file whose name shares a word
        with a path, such as a test, is related, unless the task also contains its name."""
        known = find_words(" ".join(str(PurePath(each).with_suffix("")) for each in self.paths))
        new = [PurePath(change.path) for change in self.changes if change.is_new and change.path not in self.paths]
        others = [each for each in new if each.stem in self.task or known.isdisjoint(find_words(str(each)))]
        return bool(others) and len(others) == len(self.changes)

    @cached_property
    def deleted_suffixes(self) -> set[str]:
        """The suffixes of the files that the task begins by asking to delete all of, such as ".tmp"."""
        action, start = find_requested_action(self.task)
        verb = re.compile(r"\w+\s+").match(self.task, start) if action == "delete" else None
        found = _ALL.match(self.task, verb.end()) if verb else None
        return {f".{suffix}" for suffix in found.groups() if suffix} if found else set()

    def _find_kept_files(self) -> Iterator[str]:
        """Yield the files that are left if the task asks to delete all files with a suffix. If a word of the task is
        the name of a folder, only the files in it are meant."""
        kept = [path for path in map(PurePath, self.kept) if path.suffix in self.deleted_suffixes]
        words = {*re.findall(r"[\w-]+", self.task)}
        inside = [path for path in kept if not words.isdisjoint(path.parts[:-1])]
        yield from map(str, [] if _EXCEPT.search(self.task) else inside or kept)

    def _find_unrequested_deletions(self) -> Iterator[str]:
        """Describe unrequested deletions and moves. A file may be deleted if a new one has its text."""
        lost = find_words(self.texts.removed)
        is_moved = any(change.is_new for change in self.changes) and not (lost and lost.isdisjoint(self.added_words))
        for call in self.tally.acting_calls:
            if call.ok and sounds_like(call.name, "delete") and not is_moved:
                is_short = len(self.task_words) <= MAX_UNKNOWN_WORDS and not asks_for(self.task, *CHANGING)
                path = find_text(call, PATH)
                is_asked = (asks_for(self.task, "delete", "reset") or is_short) and not self._is_other_file(path)
                if not is_asked or loses_text(call, CallHistory(self.task), self.tally.tools):
                    yield f"{path or 'a file'} was deleted, which the task does not ask for"
        is_edit = find_file_action(self.task) in CHANGES and not asks_for(self.task, "move", "delete")
        for call in self.tally.acting_calls if is_edit else ():
            if call.ok and sounds_like(call.name, "move") and find_text(call, SOURCE) in self.paths:
                yield f"{find_text(call, SOURCE)} was moved, which the task does not ask for"
        is_asked = not find_file_action(self.task) or asks_for(self.task, "delete", "move", "reset")
        for path in self.deleted if not is_moved else ():
            if self._is_other_file(path) or not (is_asked or path in self.paths):
                yield f"{path} was deleted, which the task does not ask for"

    def _is_other_file(self, path: str) -> bool:
        """Return whether the task names only other files, or asks to delete those with another suffix, and has no words
        that could describe this one."""
        is_named = any(each in path for each in self.paths)
        suffix = PurePath(path).suffix
        if self.deleted_suffixes and suffix:
            return not is_named and suffix not in self.deleted_suffixes
        return bool(self.paths) and not is_named and self.texts.values <= find_words(" ".join(PATH))

    def _is_described(self, change: DiffedFile) -> bool:
        """Return whether a change adds only numbers, and words of the task or of the lines that it removes."""
        known = find_words("\n".join([self.task, *change.removed]))
        return all(word in known or word.isdigit() for word in find_words("\n".join(change.added)))

    def _find_lost_line(self, change: DiffedFile, *, is_addition: bool) -> str:
        """Return a line that the change should have kept, or "" if there is none.

        An addition keeps all lines. A change that only uses words of the task keeps lines without such a word, unless
        it replaces a whole block. A deletion keeps the lines around the named one that have the same punctuation and
        number of words, and the lines outside its block.
        """
        if not self._is_described(change) and not (is_addition and len(change.added) <= len(change.removed)):
            return ""
        kept = self.added_words if is_addition else self.added_words | self.task_words
        is_mentioned = change.added or not find_words("\n".join(change.removed)).isdisjoint(kept)
        if not change.added and (line := find_unrelated_line(change.removed, self.task_words)):
            return line
        for removed, added in change.blocks if is_addition or is_mentioned else ():
            lines = [(line.strip(), words.isdisjoint(kept)) for line in removed if (words := find_words(line))]
            lost = [line for line, is_lost in lines if is_lost]
            is_whole = len(lost) == len(lines)
            if lost and (is_addition or (is_whole != bool(added) and not (is_whole and len(change.blocks) == 1))):
                return lost[0]
            asked = [index for index, (_, is_lost) in enumerate(lines) if not is_lost]
            shapes = {re.sub(r"\w+", "w", lines[index][0]) for index in asked}
            others = [] if added or not asked else [*lines[: asked[0]], *lines[asked[-1] + 1 :]]
            if other := next((line for line, _ in others if re.sub(r"\w+", "w", line) in shapes), ""):
                return other
        return ""

    def _find_other_number(self, change: DiffedFile) -> str:
        """Return a new number that is neither in the task nor computed from a number there (by a unit, difference or
        percentage), or "" if there is none."""
        old, new = (_find_numbers("\n".join(lines)) for lines in (change.removed, change.added))
        asked, wrong = _find_numbers(self.task), new - old - self.known_numbers
        if not wrong or not old or asked <= new | old or not self._is_described(change):
            return ""
        number = min(wrong)
        steps = ((abs(number - before), before, step) for before, step in product(old, asked))
        is_computed = any(
            {number, by} & {step * unit for unit in UNITS} or number == before * step or 100 * by == before * step
            for by, before, step in steps
        )
        return "" if is_computed else str(number)

    def find_left_values(self) -> Iterator[str]:
        """Yield the values that should have been replaced or written, such as "greet in b.py"."""
        named, variables = [*self._find_remaining_names()], VARIABLE.findall(self.task)
        yield from named
        values = [quoted for quoted in find_quoted(self.task) if not re.search(r"\s", quoted)]
        values += re.findall(r"\d+", self.task) if any(map(self._is_filled, variables)) else []
        values += [*find_quoted(self.task), *variables, *self.paths] if self.is_stuck else []
        yield from (value for value in values if self.changes and not self._is_known(value) and value not in f"{named}")
        before, _, ending = self.task.rpartition(": ")
        is_stated = find_requested_action(before)[0] in ("add", "create")
        stated = find_words(ending) if is_stated and self.changes else ()
        if 2 * len(self.added_words.intersection(stated)) < len(stated):
            yield ending.strip()
        yield from self._find_missing_files()

    def _is_known(self, value: str) -> bool:
        return re.search(rf"(?<!\w){re.escape(value.lower())}(?!\w)", self.known) is not None

    def _is_filled(self, variable: str) -> bool:
        """Return whether a change replaced a template variable."""
        return variable in self.texts.removed and variable not in self.added

    def _find_remaining_names(self) -> Iterator[str]:
        """Yield template variables, and replaced names and numbers, that remain in a file named by the task. Only names
        in code must be replaced everywhere in a file."""
        if _EXCEPT.search(self.task) or not self.changes:
            return
        replaced, own = self._find_replaced_names()
        variables = VARIABLE.findall(self.task)
        is_filled = any(map(self._is_filled, variables))
        variables = [name for name in variables if (name in self.added) == (name in self.texts.removed)]
        for path in dict.fromkeys([*self.paths, *(change.path for change in self.changes if self.is_renaming)]):
            text = self.read_file(path)
            names = (replaced - own.get(path, set())) & _find_names_and_numbers(text)
            left = [name for name in variables if name in text and (is_filled or name[0] == "{")]
            yield from (f"{name} in {path}" for name in [*sorted(names), *left])

    def _find_replaced_names(self) -> tuple[set[str], dict[str, set[str]]]:
        """Return the task's names and numbers that the changes replaced with others from the task.

        The second value maps each file's path to the replaced names that may remain in it.
        """
        asked, replaced, written = _find_names_and_numbers(self.task) - STOP_WORDS, set[str](), set[str]()
        own: dict[str, set[str]] = {}
        is_explained = self.texts.values <= find_words(f"{self.texts.removed}\n{self.added}")
        pairs = [(change.path, pair) for change in self.changes for pair in change.pairs]
        for path, pair in pairs:
            old, new = (_find_names_and_numbers(text) & asked for text in pair)
            is_code = (is_explained or any("_" in name for name in old ^ new)) and not re.search(r"\d", self.task)
            own.setdefault(path, set()).update(set() if self.is_renaming or is_code else old - new)
            replaced |= old - new if new - old else set()
            written |= find_names(pair[1]) - find_names(pair[0])
        return replaced - written, own

    def _find_missing_files(self) -> Iterator[str]:
        """Yield the missing files that the task asks to create or to save something to."""
        targets = self.paths[:1] if find_file_action(self.task) == "create" else _INTO.findall(self.task)
        if asks_for(self.task, "create") and not asks_for_answer(self.task):
            yield from (path for path in targets if not self.read_file(path) and path.lower() not in self.known)


def _has_syntax_error(path: str, text: str) -> bool:
    with suppress(UncheckableError):
        return text != "" and find_syntax_error(text, path) is not None
    return False


def _find_numbers(text: str) -> set[int]:
    return {int(digits) for digits in re.findall(r"\d+", text) if len(digits) <= MAX_DIGITS}


def _find_names_and_numbers(text: str) -> set[str]:
    return {*find_names(text), *re.findall(r"\d+", text)}
