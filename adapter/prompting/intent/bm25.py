"""Rank tools for a request with BM25 over their names, descriptions and parameters.

A value in a request is indexed as its kind, such as ``_time_``, and so is a parameter for such a value. Therefore, a
tool with a time parameter matches "wake me at 06:45", although the two have no word in common.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator

from adapter.core.events import Json
from adapter.prompting.intent.text_values import KINDS, find_paths, find_quoted
from adapter.tools.coercion import list_types
from adapter.tools.tool import Tool, ToolSet

K1, B = 1.2, 0.4
"""Parameters of BM25. ``K1``: how much repetitions of a word still count (0: not at all). ``B``: how much long
definitions are penalized."""
NAME_WEIGHT, DESCRIPTION_WEIGHT = 3, 2
"""Weights of a word in a tool's name and description. A word in a parameter has the weight 1."""
MISFIT_FACTOR = 0.06
"""Factor applied to the score of an unsuitable tool: one that requires more paths or numbers than the request contains,
has no parameters for all of the request's quoted strings, or is risky and shares no word with the request."""

_STOP_WORDS = """
a an the and or of to in on at by for from with without into is are was were be been am do does did has have had it its
this that these those i me my we our us you your he she they them what which who whom whose where when why how can could
would should will shall may might must please let need want like get got give make there here if than then so not no any
some all every one also just now tell about as s t re ll d m up out
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
_ENDING = re.compile(r"(?<=...)(?:ations?|ings?|ers?|ies|es|ed|s|e|y)$")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
PATHS = frozenset({"_path_", "_folder_"})
_HINTS = {
    "_mail_": r"^\S*mail|mail address|recipient",
    "_url_": r"ur[il]|link|website",
    "_date_": r"date|day|YYYY",
    "_time_": r"\btime|hour|HH",
    "_folder_": r"folder|director",
    "_path_": r"(?<!pro)file(?!d\b)|^(?!.*(?:folder|director)).*path",
    "_text_": r"text|message|content|subject|quer|pattern|title|command|search|body|note|comment",
    "_code_": r"\bid\b|_id|number of|sku|symbol|code|currenc",
    "_name_": r"\bname\b|[a-z]Name\b|_name\b",
}
"""Patterns for the name and description of a string parameter, by the kind of value that the parameter accepts."""
_RISKY = re.compile(r"(?i)delete|remove|unlink|erase|drop|move|rename|overwrite|run|shell|exec|kill")


def is_risky(tool: Tool) -> bool:
    """Return whether a tool deletes, moves or overwrites data, or executes commands."""
    return tool.effect in ("delete", "execute") or bool(_RISKY.search(tool.name))


def split_words(text: str) -> list[str]:
    """Return the words of ``text`` in lower case. snake_case and camelCase are split into words, CJK text into pairs of
    characters."""
    plain = "".join(each for each in unicodedata.normalize("NFD", text) if not unicodedata.combining(each))
    words = re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", plain).lower())
    pairs = (
        [word[at : at + 2] for at in range(max(len(word) - 1, 1))] if _CJK.search(word) else [word] for word in words
    )
    return [piece for word in pairs for piece in word]


def stem_word(word: str) -> str:
    """Return a word without its English ending."""
    return _ENDING.sub("", word)


def stem_words(text: str) -> list[str]:
    return [stem_word(word) for word in split_words(text) if word not in STOP_WORDS]


def list_request_terms(text: str) -> list[str]:
    """Return the stems of the words in a request, with values replaced by their kinds."""
    kinds = []
    for piece in find_quoted(text):
        text = text.replace(piece, " ", 1)
        kinds.append("_text_")
    for path in find_paths(text):
        if not KINDS["_mail_"].search(path) and not re.fullmatch(r"[\d.]+", path):
            text = text.replace(path, " ", 1)
            kinds.append("_folder_" if path.endswith(("/", "\\")) else "_path_")
    for kind, pattern in KINDS.items():
        text, times = pattern.subn(" ", text)
        kinds += [kind] * times
    return kinds + stem_words(text)


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
        """Return the score of each tool, best first. The score is 0 if the tool shares no word with the request."""
        words = Counter(list_request_terms(request))
        scores = {name: self._score(name, words) for name in self._tools}
        return dict(sorted(scores.items(), key=lambda pair: -pair[1]))

    def find_shared_words(self, name: str, request: str) -> set[str]:
        """Return the words that a request shares with a tool, excluding kinds of values."""
        return {
            word for word in list_request_terms(request) if word in self._documents[name] and not word.startswith("_")
        }

    def _fits(self, name: str, words: Counter[str]) -> bool:
        tool, document = self._tools[name], self._documents[name]
        is_safe = not is_risky(tool) or any(word in document and not word.startswith("_") for word in words)
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


def get_description(schema: Json) -> str:
    return str(schema.get("description") or "") if isinstance(schema, dict) else ""


def find_value_kinds(name: str, schema: Json) -> set[str]:
    """Return the kinds of values that a parameter accepts."""
    if not isinstance(schema, dict):
        return set()
    types, text = list_types(schema), f"{name} {get_description(schema)}"
    kinds = {kind for kind, hint in _HINTS.items() if "string" in types and re.search(f"(?i){hint}", text)}
    return kinds | {"_number_"} if (types | list_types(schema.get("items"))) & {"integer", "number"} else kinds


def _count_text_room(tool: Tool) -> int:
    """Return how many strings a call can contain in addition to its paths."""
    strings = (name for name, schema in tool.properties.items() if "string" in list_types(schema))
    return sum(PATHS.isdisjoint(find_value_kinds(name, tool.properties[name])) for name in strings)


def _list_needed_kinds(tool: Tool) -> Iterator[str]:
    for name in tool.required:
        if "array" not in list_types(tool.properties.get(name)):
            yield from find_value_kinds(name, tool.properties.get(name)) & {"_number_", "_path_"}
