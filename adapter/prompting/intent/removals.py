"""Requests to remove something from a file: lines that may be removed, and lines that must stay."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

from adapter.core.text.word_stems import find_words
from adapter.prompting.intent.text_values import find_paths
from adapter.prompting.intent.verbs import ACTIONS, asks_for


def find_named_words(request: str) -> set[str]:
    """Return the words of ``request`` that may describe what to remove: all except verbs and paths."""
    for path in find_paths(request):
        request = request.replace(path, " ")
    return {word for word in find_words(request) if not asks_for(word, *ACTIONS)}


def find_removed_lines(old: str, new: str) -> list[str]:
    """Return the lines of ``old`` that ``new`` lacks, or [] if it has other lines."""
    kept = Counter(new.splitlines())
    if kept - Counter(old.splitlines()):
        return []
    removed = []
    for line in old.splitlines():
        if kept[line]:
            kept[line] -= 1
        else:
            removed.append(line)
    return removed


def find_unrelated_line(removed: Sequence[str], words: Collection[str]) -> str:
    """Return a removed line without any of ``words``, outside the block of a line that has such a word. Return "" if
    there is no such line.

    A block is a line with the lines after it that are not indented less.
    """
    indent = None
    for line in removed:
        depth = len(line) - len(line.lstrip())
        if not find_words(line).isdisjoint(words):
            indent = depth if indent is None else min(indent, depth)
        elif indent is not None and depth < indent and re.search(r"\w", line):
            return line.strip()
    return ""


def list_removals(request: str, text: str) -> list[str]:
    """Return the texts without one line that has a word of ``request``, and without the lines indented below it.

    If the last item of a JSON list or object is removed, the comma before it is removed as well.
    """
    words, lines = find_named_words(request), text.splitlines()
    texts = []
    for start, line in enumerate(lines):
        if find_words(line).isdisjoint(words):
            continue
        depth = len(line) - len(line.lstrip())
        below = (index for index, each in enumerate(lines) if index > start and each.strip())
        end = next((index for index in below if len(lines[index]) - len(lines[index].lstrip()) <= depth), len(lines))
        before, after = lines[:start], lines[end:]
        if before and before[-1].endswith(",") and after and re.match(r"\s*[\]})]", after[0]):
            before = [*before[:-1], before[-1][:-1]]
        texts.append("\n".join([*before, *after]) + "\n")
    return list(dict.fromkeys(texts))
