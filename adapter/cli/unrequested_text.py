"""Find text that a run wrote or changed although its task does not ask for it, by comparing the text with the task's
words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import PurePosixPath

from adapter.cli.folder_changes import DiffedFile
from adapter.conversation.guardrails.announced_action import wants_text
from adapter.conversation.guardrails.invented_file_text import PROSE_FILES, list_tool_words
from adapter.conversation.guardrails.requested_file_changes import list_result_lines
from adapter.core.text.word_stems import find_words, stem_word
from adapter.editing.repairs.omission_markers import is_omission_comment
from adapter.prompting.intent.text_values import find_paths, find_quoted
from adapter.prompting.intent.verbs import ACTIONS, asks_for, is_stop_word
from adapter.tools.tool_set import ToolSet

_LINE = r"\s(?:lines?|zeilen?|lignes?|l[ií]neas?|rig[ah]e?|linhas?|regels?)\b"
_PER_LINE = re.compile(rf"(?i)\b(?:per|each|own|separate|pro|eigene\w*|par|chaque|por|cada|ogni|elke){_LINE}")
_ONE_LINE = re.compile(rf"(?i)\b(?:one|single|eine[rn]?|seule|sola|única|unica|uma|één){_LINE}")
_SEPARATOR = re.compile(r"(?i)[,:;]|\b(?:and|to|und|bis|et|e|y|en)\b")
_UNWRITTEN = re.compile(
    r"(?im)^\s*(?:#|//)\s*(?:todo|(?:add|write|put)?\s*your|implement)\b.*\n*"
    r"\s*(?:pass|\.{3}|return(?:\s+none)?;?|raise NotImplementedError.*|\})?\s*(?:\n\s*\}\s*)?\Z"
)
"""Matches a comment that stands for the body of a function, and at most one empty statement."""
_LATER = re.compile(r"(?i)\b(?:todo|stub|placeholder|skeleton|later|abstract)")
_ESCAPED_BREAK = re.compile(r"(?:\\r)?\\n")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n")


@dataclass(frozen=True)
class TextComparison:
    """Compares the text that a run wrote to files with the task. ``task_words``: the words of the task, without its
    paths. ``results``: the results of calls."""

    task: str
    task_words: Collection[str]
    results: Sequence[str]
    tools: ToolSet
    changes: Sequence[DiffedFile]
    read_file: Callable[[str], str]

    @cached_property
    def values(self) -> set[str]:
        """The words of the task, except stop words, verbs and words that occur in its paths."""
        named = {stem_word(word) for path in find_paths(self.task) for word in find_words(path)}
        words = (word for word in self.task_words if stem_word(word) not in named)
        return {word for word in words if not is_stop_word(word) and not asks_for(word, *ACTIONS)}

    @cached_property
    def details(self) -> set[str]:
        """The values that may describe the text. Words of the tools, such as "file" and "text", do not count."""
        tool_words = list_tool_words(self.tools)
        return {word for word in self.values if stem_word(word) not in tool_words}

    @cached_property
    def removed(self) -> str:
        """All lines that the run removed."""
        return "\n".join(line for change in self.changes for line in change.removed)

    def find_flaws(self) -> Iterator[str]:
        """Yield a description of each text that the task does not ask for."""
        for change in self.changes:
            text = self.read_file(change.path)
            if self._is_joined(change, text):
                yield f"the lines of {change.path} were written as one line"
            if self._is_file_name(change):
                yield f"the new text of {change.path} is only the file's name"
            if change.is_new and (sentence := self._find_extra_sentence(change.path, text)):
                yield f"{change.path} got a text that the task does not contain ({sentence})"
            if any(is_omission_comment(line) for line in change.added if line not in (*change.removed, self.task)):
                yield f"{change.path} got a comment in place of the lines that it omits"
            if not _LATER.search(self.task) and any(_UNWRITTEN.search("\n".join(added)) for _, added in change.blocks):
                yield f"{change.path} got a comment in place of code"
        pairs = [(change.path, *pair) for change in self.changes if not change.is_new for pair in change.pairs]
        yield from self._find_unrequested_changes(pairs)

    def _is_joined(self, change: DiffedFile, text: str) -> bool:
        """Return whether several lines were written as one. A change that only joins lines is not an error, because the
        task may ask for it."""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if len(lines) != 1 or lines[0] not in map(str.strip, change.added) or _is_json(text):
            return False
        line = lines[0]
        if _PER_LINE.search(self.task) and not change.removed:
            items = (find_words(item) & self.values for item in _SEPARATOR.split(self.task))
            if sum(not item.isdisjoint(find_words(line)) for item in items) > 1:
                return True
        if "\\n" not in self.task + self.removed and _has_escaped_break(line):
            return True
        sources = [self.task.splitlines(), *([] if self.details else map(list_result_lines, self.results))]
        if change.is_new and any(_joins(line, source) for source in sources):
            return True
        old = [each.strip() for each in change.removed if re.search(r"\w", each)]
        is_kept = any(re.search(rf"(?<!\S){re.escape(each)}(?!\S)", line) for each in old)
        words = re.findall(r"\w+", line)
        is_all = not any({*words}.isdisjoint(re.findall(r"\w+", each)) for each in old)
        is_asked = _ONE_LINE.search(self.task) is not None
        return len(old) > 1 and not is_asked and is_kept and is_all and words != re.findall(r"\w+", " ".join(old))

    def _is_file_name(self, change: DiffedFile) -> bool:
        """Return whether a change only writes the file's name, although the task has other words."""
        text = "\n".join(change.added)
        new, path = find_words(text) - find_words(self.removed), PurePosixPath(change.path)
        is_name = path.name in text if path.suffix else new.isdisjoint(self.task_words)
        may_name_more = self.values and not self.values <= new and (change.is_new or change.removed)
        return bool(new and may_name_more) and is_name and new <= find_words(change.path)

    def _find_extra_sentence(self, path: str, text: str) -> str:
        """Return a sentence that has no word of the task, if the task ends with the text to write or quotes it, or "".

        A task that quotes a text must have no other details, because a word such as "heading" may ask for more text.
        """
        ending = re.search(r":\s+(\S[^\n]*)\Z", self.task)
        given = [each for each in find_quoted(self.task) if each in text]
        is_given = bool(given) and self.details <= find_words("\n".join(given))
        is_given |= ending is not None and ending[1] in text.splitlines()
        if not is_given or wants_text(self.task) or not (path.lower().endswith(PROSE_FILES) or "." not in path):
            return ""
        sentences = (sentence.strip() for sentence in _SENTENCE_END.split(text))
        found = ((sentence, find_words(sentence)) for sentence in sentences)
        return next((sentence for sentence, words in found if words and words.isdisjoint(self.task_words)), "")

    def _find_unrequested_changes(self, pairs: Sequence[tuple[str, str, str]]) -> Iterator[str]:
        """Describe changed lines without a word of the task, if other changed lines have all its words.

        Only changed lines whose new words are all in the task are considered to be requested.
        """
        found = [(path, line, find_words(old), find_words(line)) for path, old, line in pairs]
        explained = [(old, new) for _, _, old, new in found if old and new - old and new - old <= {*self.task_words}]
        words = {word for old, new in explained for word in old | new}
        # A number alone does not name a place, if the task names the place by words.
        asked = {word for word in self.task_words if not word.isdigit()} & words or {*self.task_words}
        explained = [(old - new, new - old) for old, new in explained if not asked.isdisjoint(old | new)]
        replaced = [new for old, new in explained if old and old <= {*self.task_words}]
        for path, line, old, new in found:
            if new - old in replaced and old - new and (old - new).isdisjoint(self.task_words):
                yield f"{path} was also changed where the task names nothing ({line.strip()})"
        for path, line, old, new in found if self.values and self.values <= words else ():
            if old != new and (old | new).isdisjoint(asked) and (old - new, new - old) not in explained:
                yield f"{path} was also changed where the task names nothing ({line.strip() or min(old)})"
        for path, before, line in pairs if explained and self.values and self.values <= words else ():
            if before != line and before.split() == line.split() != []:
                yield f"{path} was also changed where the task names nothing ({line.strip()})"


def _joins(line: str, source: Sequence[str]) -> bool:
    """Return whether ``line`` consists of several consecutive lines of ``source``."""
    lines = [" ".join(each.split()) for each in source if each.strip()]
    ends = [*accumulate(len(each) + 1 for each in lines)]
    text, joined = " ".join(lines) + " ", " ".join(line.split()) + " "
    start = text.find(joined)
    return start in (0, *ends) and start + len(joined) in ends and joined[:-1] not in lines


def _has_escaped_break(line: str) -> bool:
    """Return whether a line contains an escaped line break outside quotes."""
    first, *rest = _ESCAPED_BREAK.split(line)
    return any(rest) and not any(first.count(quote) % 2 for quote in "\"'`")


def _is_json(text: str) -> bool:
    with suppress(ValueError, RecursionError):
        return isinstance(json.loads(text), dict | list)
    return False
