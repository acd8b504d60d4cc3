"""Which tools a request is about, by its words: BM25 over what definitions and worked examples say.

What a request holds counts as words too: a path, a quotation, a number, an address. A tool has such a word where one of
its parameters takes such a value, so that "wake me at 06:45" is near a tool with a time though they share no word.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import lru_cache

from adapter.constraints.mentions import quoted, spelled_paths
from adapter.prompting.vocabulary import OTHERS, SIGN, in_english, is_english, without_accents
from adapter.tools.definition import Tool, ToolSet
from adapter.tools.schema import types_of
from adapter.values.events import Json

SATURATION, LENGTH = 1.2, 0.4
"""BM25's k1 and b: how much a word counts that comes again, and how much less it does in a long definition."""
NAME, DESCRIPTION, PARAMETER, EXAMPLE = 3, 2, 1, 1
"""How often a word counts that stands there."""

LACKING = 0.5
"""What a tool counts that needs more paths or numbers than the request has, or has no room for its quoted texts."""

_LITTLE = """
a an the and or of to in on at by for from with without into is are was were be been am do does did has have had it its
this that these those i me my we our us you your he she they them what which who whom whose where when why how can could
would should will shall may might must please let need want like get got give make there here if than then so not no any
some all every one also just now tell about as s t re ll d m up out
"""
STOP = frozenset(_LITTLE.split())
"""Words that tell nothing of what is asked for."""

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)\.?"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
KINDS = {
    "_mail_": re.compile(r"\b[\w.+-]+@[\w-]+\.\w+\b"),
    "_url_": re.compile(r"\bhttps?://\S+"),
    "_date_": re.compile(
        r"\b\d{4}-\d{2}-\d{2}\b|\b\d{4}/\d{2}/\d{2}\b|\b\d{1,2}/\d{1,2}/\d{4}\b|\b\d{1,2}-\d{1,2}-\d{4}\b"
        rf"|\b{_MONTH} {_DAY},? \d{{4}}\b|\b{_DAY} {_MONTH},? \d{{4}}\b"
    ),
    "_time_": re.compile(r"\b\d{1,2}:\d{2}\b"),
    "_code_": re.compile(
        r"\b[A-Z]+-\d+\b|\b[a-z]+_[a-z_]+\b|\b(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z\d]{4,}\b|\b[A-Z]{2,}[A-Z_]*\b"
    ),
    "_number_": re.compile(r"\b\d+(?:,\d{3})*(?:\.\d+)?\b"),
}
"""What a value looks like, the narrower first."""
TYPED = ("_mail_", "_url_", "_date_", "_time_")
"""Kinds of values that are known by their looks."""
_SAID = {
    "_mail_": r"^\S*mail|mail address|mail of|recipient",
    "_url_": r"ur[il]|link|website",
    "_date_": r"date|day|YYYY",
    "_time_": r"\btime|hour|HH",
    "_path_": r"path|(?<!pro)file(?!d\b)|folder|director",
    "_folder_": r"folder|director",
    "_text_": r"text|message|content|subject|quer|pattern|title|command|search|body|note|comment",
    "_code_": r"\bid\b|_id|number of|sku|symbol|code",
    "_currency_": r"currenc",
    "_name_": r"\bname\b|[a-z]Name\b|_name\b",
    "_place_": r"location|city|cities|country|region|state\b|town|\bplace",
}
"""What a definition says of a parameter that takes such a value."""


def words(text: str) -> list[str]:
    """The words of a request or of a description that tell something, without their endings; values as their kinds."""
    kinds, rest = _without_values(text)
    return kinds + [stem(word) for word in spelled(rest) if word not in STOP]


@lru_cache(maxsize=2)
def asked(request: str) -> tuple[str, ...]:
    """The words of a request, and of one in another language what they mean in English."""
    if is_english(request):
        return tuple(words(request))
    kinds, rest = _without_values(request)
    meant = (english for word in re.findall(r"[^\W\d_]+", rest) for english in in_english(word))
    found = kinds + [stem(word) for word in (*spelled(rest), *meant) if word not in STOP | OTHERS]
    return tuple(found)


def _without_values(text: str) -> tuple[list[str], str]:
    """The kinds of the values that a text has, and what is left of it without them."""
    found = []
    for piece in quoted(text):
        text = text.replace(piece, " ", 1)
        found.append("_text_")
    for path in spelled_paths(text):
        if not KINDS["_mail_"].search(path) and not re.fullmatch(r"[\d.]+", path):
            text = text.replace(path, " ", 1)
            found.append("_folder_" if path.endswith(("/", "\\")) else "_path_")
    for kind, pattern in KINDS.items():
        text, times = pattern.subn(" ", text)
        found += [kind] * times
    return found, text


def spelled(text: str) -> list[str]:
    """Its words in small letters, those of names in camelCase apart; Chinese and Japanese by pairs of letters."""
    found = re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower())
    if text.isascii() or not SIGN.search(text):
        return found
    return [piece for word in found for piece in (_pairs(word) if SIGN.search(word) else [word])]


def _pairs(word: str) -> list[str]:
    return [word[at : at + 2] for at in range(max(len(word) - 1, 1))]


_ENDINGS = (
    "ations",
    "ation",
    "ungen",
    "ciones",
    "ings",
    "ing",
    "ung",
    "cion",
    "ers",
    "er",
    "ies",
    "es",
    "ed",
    "s",
    "e",
    "y",
)


def stem(word: str) -> str:
    """A word without accents and what English adds to it, and what others make nouns with; these lose nothing else that
    tells words apart."""
    word = without_accents(word)
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


class Ranking:
    """Of ``tools``; ``examples``: requests that a tool answers, by its name."""

    def __init__(self, tools: ToolSet, examples: Mapping[str, Sequence[str]] | None = None) -> None:
        self._room = {tool.name: _room(tool) for tool in tools.values()}
        self._needs = {tool.name: Counter(_needed(tool)) for tool in tools.values()}
        said = examples or {}
        self._documents = {tool.name: Counter(_document(tool, said.get(tool.name, ()))) for tool in tools.values()}
        spread = Counter(word for document in self._documents.values() for word in document)
        count = len(self._documents)
        self._weights = {word: math.log(1 + (count - times + 0.5) / (times + 0.5)) for word, times in spread.items()}
        self._mean = sum(document.total() for document in self._documents.values()) / max(count, 1) or 1.0

    def scores(self, request: str) -> dict[str, float]:
        """Of each tool, the best first; 0 where nothing is shared."""
        held = Counter(asked(request))
        scores = {
            name: self._score(held.keys(), document) * (1.0 if self._has_room(name, held) else LACKING)
            for name, document in self._documents.items()
        }
        return dict(sorted(scores.items(), key=lambda pair: -pair[1]))

    def _has_room(self, name: str, held: Counter[str]) -> bool:
        texts = min(held["_text_"], max(self._room.values()))
        return self._needs[name] <= held and texts <= self._room[name]

    def shared_with(self, name: str, request: str) -> set[str]:
        """The words that the request has in common with this tool."""
        return {word for word in asked(request) if word in self._documents[name] and not word.startswith("_")}

    def shared(self, request: str) -> set[str]:
        """The words, not the kinds of values, that the request has in common with any tool."""
        return {word for word in asked(request) if word in self._weights and not word.startswith("_")}

    def _score(self, asked: Set[str], document: Counter[str]) -> float:
        long = 1 - LENGTH + LENGTH * document.total() / self._mean
        return sum(
            self._weights[word] * document[word] * (SATURATION + 1) / (document[word] + SATURATION * long)
            for word in asked & document.keys()
        )


def _document(tool: Tool, examples: Sequence[str]) -> Iterator[str]:
    yield from _plain(tool.name.replace("_", " ")) * NAME
    yield from _plain(tool.description) * DESCRIPTION
    for name, schema in tool.properties.items():
        description = str(schema.get("description") or "") if isinstance(schema, dict) else ""
        yield from _plain(f"{name.replace('_', ' ')} {description}") * PARAMETER
        yield from _kinds(name, schema)
    for example in examples:
        yield from words(example) * EXAMPLE


def _room(tool: Tool) -> int:
    """How many texts a call can hold beside its paths."""
    strings = (name for name, schema in tool.properties.items() if "string" in types_of(schema))
    return sum("_path_" not in kinds_of(name, tool.properties[name]) for name in strings)


def _needed(tool: Tool) -> Iterator[str]:
    for name in tool.required:
        schema = tool.properties.get(name, {})
        kinds = set(_kinds(name, schema))
        yield from kinds & {"_number_"} if isinstance(schema, dict) and "array" not in types_of(schema) else ()
        if "_path_" in kinds and "_folder_" not in kinds:
            yield "_path_"


def _plain(text: str) -> list[str]:
    return [stem(word) for word in spelled(text) if word not in STOP]


def kinds_of(name: str, schema: Json) -> set[str]:
    """The kinds of values that a parameter takes, and the words of its choices."""
    return set(_kinds(name, schema))


def kinds_in(tool: Tool) -> set[str]:
    """Those of all its parameters."""
    return {kind for name, schema in tool.properties.items() for kind in kinds_of(name, schema)}


def _kinds(name: str, schema: Json) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    description = str(schema.get("description") or "")
    types = types_of(schema)
    if types & {"integer", "number"} or types_of(schema.get("items") or {}) & {"integer", "number"}:
        yield "_number_"
    for value in schema.get("enum") or ():
        yield from _plain(str(value))
    if "string" in types:
        said = f"{name} {description}"
        yield from (kind for kind, pattern in _SAID.items() if re.search(f"(?i){pattern}", said))
