"""Rank tools for a request with BM25 over their names, descriptions and parameters.

A value in a request is indexed as its kind, such as ``_time_``, and so is a parameter for such a value. A tool with a
time parameter therefore matches "wake me at 06:45", although they share no word.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from adapter.core.text.word_stems import stem_words
from adapter.prompting.intent.text_values import KINDS, find_paths, find_quoted
from adapter.prompting.intent.value_kinds import PATHS, find_value_kinds, get_description
from adapter.tools.coercion import list_types
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

K1, B = 1.2, 0.4
"""Parameters of BM25: the weight of a word's repetitions (0: none), and the penalty for long definitions."""
NAME_WEIGHT, DESCRIPTION_WEIGHT = 3, 2
"""Weights of a word in a tool's name and description. A word in a parameter has the weight 1."""
MISFIT_FACTOR = 0.06
"""Factor for the score of an unsuitable tool, which requires more paths or numbers than the request contains, has no
parameters for all of the request's quoted strings, or is risky and shares no word with the request."""


def list_request_terms(text: str) -> list[str]:
    """Return the stems of a request's words, with values replaced by their kinds."""
    quoted = find_quoted(text)
    text = _cut_out(text, quoted)
    paths = [path for path in find_paths(text) if not (KINDS["_mail_"].search(path) or re.fullmatch(r"[\d.]+", path))]
    text = _cut_out(text, paths)
    kinds = ["_text_"] * len(quoted)
    kinds += ["_folder_" if path.endswith(("/", "\\")) else "_path_" for path in paths]
    for kind, pattern in KINDS.items():
        text, times = pattern.subn(" ", text)
        kinds += [kind] * times
    return kinds + stem_words(text)


def _cut_out(text: str, pieces: Iterable[str]) -> str:
    """Replace ``pieces`` of ``text`` with spaces. The pieces must be in the order in which they occur."""
    rest, end = [], 0
    for piece in pieces:
        start = text.find(piece, end)
        rest.append(text[end:start])
        end = start + len(piece)
    return " ".join([*rest, text[end:]])


class ToolRanking:
    """A BM25 index of ``tools``."""

    def __init__(self, tools: ToolSet) -> None:
        self._tools = tools
        self._room = {tool.name: _count_text_room(tool) for tool in tools.values()}
        self._documents = {tool.name: Counter(_build_document(tool)) for tool in tools.values()}
        spread = Counter(word for document in self._documents.values() for word in document)
        count = len(tools)
        self._weights = {word: math.log(1 + (count - times + 0.5) / (times + 0.5)) for word, times in spread.items()}
        self._mean = sum(document.total() for document in self._documents.values()) / max(count, 1) or 1.0

    def score_tools(self, request: str) -> dict[str, float]:
        """Return each tool's score by its name, best first. The score is 0 if the tool shares no word with the
        request."""
        words = Counter(list_request_terms(request))
        scores = {name: self._score(name, words) for name in self._tools}
        return dict(sorted(scores.items(), key=lambda pair: -pair[1]))

    def find_shared_words(self, name: str, request: str) -> set[str]:
        """Return the stems of the words that a request shares with the tool ``name``. Kinds of values are excluded."""
        return {
            word for word in list_request_terms(request) if word in self._documents[name] and not word.startswith("_")
        }

    def _fits(self, name: str, words: Counter[str]) -> bool:
        tool, document = self._tools[name], self._documents[name]
        is_safe = not tool.is_risky or any(word in document and not word.startswith("_") for word in words)
        texts = min(words["_text_"], max(self._room.values()))
        return is_safe and texts <= self._room[name] and Counter(_list_needed_kinds(tool)) <= words

    def _score(self, name: str, words: Counter[str]) -> float:
        document = self._documents[name]
        norm = K1 * (1 - B + B * document.total() / self._mean)
        shared = ((self._weights[word], document[word]) for word in words.keys() & document.keys())
        score = sum(weight * times * (K1 + 1) / (times + norm) for weight, times in shared)
        return score if self._fits(name, words) else score * MISFIT_FACTOR


def _build_document(tool: Tool) -> Iterator[str]:
    yield from stem_words(tool.name) * NAME_WEIGHT
    yield from stem_words(tool.description) * DESCRIPTION_WEIGHT
    for name, schema in tool.properties.items():
        yield from stem_words(f"{name} {get_description(schema)}")
        yield from find_value_kinds(name, schema)
        yield from stem_words(" ".join(map(str, (schema.get("enum") or ()) if isinstance(schema, dict) else ())))


def _count_text_room(tool: Tool) -> int:
    """Return how many strings a call can contain in addition to its paths."""
    strings = (name for name, schema in tool.properties.items() if "string" in list_types(schema))
    return sum(PATHS.isdisjoint(find_value_kinds(name, tool.properties[name])) for name in strings)


def _list_needed_kinds(tool: Tool) -> Iterator[str]:
    for name in tool.required:
        if "array" not in list_types(tool.properties.get(name)):
            yield from find_value_kinds(name, tool.properties.get(name)) & {"_number_", "_path_"}
