"""Which value of a request is meant for which parameter: that which stands beside what the parameter is called.

"a base of 10 and a height of 5", "parcel number 77 in Santa Clara county": people say a value behind its name, or right
before it. Pure; by the words of names and descriptions, and by what those of other languages mean in English.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from adapter.constraints.mentions import quoted
from adapter.prompting import numbers
from adapter.prompting.languages import AND
from adapter.prompting.ranking import STOP, spelled, stem
from adapter.prompting.vocabulary import in_english, is_english
from adapter.values.events import Json
from adapter.values.fields import frozen
from adapter.values.lazy_pattern import lazy_pattern

FARTHEST = 4.0
"""Words, about, between a name and a value that is meant for it."""
COMMON = 1.5
"""Farther than it is stands a value of common words."""
MOST_WORDS = 400
"""Of a request that is looked at; a longer one is a text, and has every word somewhere."""

Value: TypeAlias = str | int | float
_WORD = lazy_pattern(r"[^\W_]+(?:[.,]\d+)*")
_CLAUSE_ENDS = lazy_pattern(r"[.,;!?\n]")
_SENTENCE_BEGINS = lazy_pattern(r"(?:^|[.!?\n])[\s\"'“]*$")
_JOINS = frozenset({*AND, "or", "but", "then"})
_BETWEEN = {"between", "during", "instead", "over", "per", "since", "till", "under", "until", "using", "via", "while"}
_LITTLE = STOP | _BETWEEN
_CALLED = frozenset(map(stem, ("called", "named", "titled")))
_NAMES = frozenset(map(stem, ("name", "label", "title")))
CALLED = lazy_pattern(r"\b(?:called|named|titled)\s")


@frozen
class _Mention:
    """Words ``first`` to ``last`` name a parameter; ``doubt``: the less certainly, the more."""

    first: int
    last: int
    doubt: float


@frozen
class _Occurrence:
    value: Value
    first: int
    last: int
    is_sharp: bool
    """A number, a name or a code: what is no common word."""


class _Request:
    def __init__(self, text: str) -> None:
        self.text = text
        self._spans = [match.span() for match in _WORD.finditer(text)]
        self._quoted = [(at := text.find(piece), at + len(piece)) for piece in quoted(text)]
        self.stems = [stem(text[start:end].lower()) for start, end in self._spans]
        self.meanings = [{each} for each in self.stems]
        if not is_english(text):
            for (start, end), meaning in zip(self._spans, self.meanings, strict=True):
                meaning.update(map(stem, in_english(text[start:end])))

    def word(self, at: int) -> str:
        start, end = self._spans[at]
        return self.text[start:end]

    def is_little(self, at: int) -> bool:
        """In lower case: "The Who" is a name."""
        return self.word(at).islower() and self.word(at) in _LITTLE

    def is_name(self, at: int) -> bool:
        """Whether a word begins with a capital or a digit, and no sentence."""
        start = self._spans[at][0]
        return not self.text[start].islower() and not _SENTENCE_BEGINS.search(self.text[:start])

    def is_in_name(self, at: int) -> bool:
        """Whether a word is one of several with capitals, or quoted: "Sheraton Hotel" names no parameter."""
        start, end = self._spans[at]
        if any(first <= start and end <= last for first, last in self._quoted):
            return True
        beside = re.search(r"(\w+) $", self.text[:start]), re.match(r" (\w+)", self.text[end:])
        return self.is_name(at) and any(found and found[1][0].isupper() for found in beside)

    def occurrences(self, value: Value) -> Iterator[_Occurrence]:
        for first, last in self._places(value):
            inside = [at for at, (start, end) in enumerate(self._spans) if start < last and first < end]
            if inside and not (self.is_little(inside[0]) or self.is_little(inside[-1])):
                is_quoted = (first, last) in self._quoted
                is_sharp = is_quoted or not isinstance(value, str) or any(map(self.is_name, inside))
                yield _Occurrence(value, inside[0], inside[-1], is_sharp)

    def _places(self, value: Value) -> list[tuple[int, int]]:
        """Where it begins and ends."""
        if isinstance(value, str):
            return [match.span() for match in re.finditer(rf"(?<![\w.^]){re.escape(value)}(?!\w)", self.text)]
        return [(each.start, each.end) for each in numbers.said(self.text) if value in (each.value, each.share)]

    def gap(self, left: int, right: int) -> float:
        """How far the word ``right`` is from ``left`` before it; little words count less, and no clause is left."""
        if right - left > 2 * FARTHEST + 1:
            return FARTHEST + 1
        pairs = zip(self._spans[left:right], self._spans[left + 1 : right + 1], strict=True)
        between = range(left + 1, right)
        if any(_CLAUSE_ENDS.search(self.text[one[1] : next_[0]]) for one, next_ in pairs):
            return FARTHEST + 1
        if any(self.word(at).lower() in _JOINS for at in between):
            return FARTHEST + 1
        return sum(0.5 if self.is_little(at) else 1.5 for at in between)


@frozen
class Placed:
    """``values``: what begins, or ends, at one place beside the parameter, as far as it may go. ``at``: the place."""

    values: list[Value]
    at: int
    is_sharp: bool
    """A number, a name or a code."""


def beside(
    request: str, properties: Mapping[str, Json], offered: Mapping[str, Sequence[Value]]
) -> dict[str, list[Placed]]:
    """Of ``offered``, the values that the request has for each parameter of ``properties``, those that stand beside it,
    the surest first. A place is one parameter's. Nothing of a request of more than `MOST_WORDS`."""
    said = _Request(request)
    if len(said.stems) > MOST_WORDS:
        return {}
    mentions = _mentions(said, properties, offered)
    naming = {at for found in mentions.values() for each in found for at in range(each.first, each.last + 1)}
    nearest: dict[_Place, float] = {}
    there: dict[_Place, list[_Occurrence]] = {}
    for name in mentions:
        for occurrence in (each for value in offered[name] for each in said.occurrences(value)):
            if not naming.isdisjoint(range(occurrence.first, occurrence.last + 1)):
                continue
            for far, is_behind in _distances(said, mentions[name], occurrence):
                place = (name, is_behind, occurrence.first if is_behind else occurrence.last, occurrence.is_sharp)
                far += 0 if occurrence.is_sharp else COMMON
                there.setdefault(place, []).append(occurrence)
                nearest[place] = min(far, nearest.get(place, far))
    placed: dict[str, list[Placed]] = {}
    taken: set[int] = set()
    for place in sorted(nearest, key=lambda place: (nearest[place], place[2])):
        free = [each for each in there[place] if taken.isdisjoint(range(each.first, each.last + 1))]
        if free:
            values = list(dict.fromkeys(each.value for each in free))
            placed.setdefault(place[0], []).append(Placed(values, free[0].first, free[0].is_sharp))
            taken.update(at for each in free for at in range(each.first, each.last + 1))
    return placed


_Place: TypeAlias = tuple[str, bool, int, bool]
"""A parameter, whether the value stands behind its name, the word that begins or else ends it, whether it is sharp."""


def _distances(said: _Request, mentions: Sequence[_Mention], value: _Occurrence) -> Iterator[tuple[float, bool]]:
    """How far the value is from what names it, and whether it stands behind. A common word is a value only right
    behind a parameter's own name."""
    for mention in mentions:
        is_behind = mention.last < value.first
        far = said.gap(mention.last, value.first) if is_behind else said.gap(value.last, mention.first)
        if not value.is_sharp and (far > (1 if is_behind else 0) or mention.doubt > 1):
            continue
        if is_behind and far + mention.doubt <= FARTHEST:
            yield far + mention.doubt, True
        elif not is_behind and far < 1:
            yield far + mention.doubt + 1, False


def _mentions(said: _Request, properties: Mapping[str, Json], names: Iterable[str]) -> dict[str, list[_Mention]]:
    """By parameter, where the request has all words of its name, or one that no other's name has; else one of its
    description that no other has, but for names: those it has as examples."""
    called = {name: _stems(name) for name in properties}
    about = {name: _stems(_description(schema)) for name, schema in properties.items()}
    in_names = Counter(word for words in called.values() for word in set(words))
    in_descriptions = Counter(word for words in about.values() for word in set(words))
    found: dict[str, list[_Mention]] = {}
    for name in names:
        own = called.get(name, [])
        telling = {word for word in own if in_names[word] == 1}
        described = {word for word in about.get(name, []) if in_descriptions[word] == 1 and word not in own}
        mentions = [
            _Mention(at, at + len(own) - 1, 0.0 if len(own) > 1 else 0.5)
            for at in range(len(said.stems) - len(own) + 1)
            if own and said.stems[at : at + len(own)] == own
        ]
        for at, meanings in enumerate(said.meanings):
            is_own = bool(telling & meanings) or (bool(_CALLED & meanings) and is_a_name(name))
            if not (is_own or (described & meanings and not said.is_little(at))) or said.is_in_name(at):
                continue
            if is_own:
                mentions.append(_Mention(at, at, 0.5 if len(own) == 1 else 1.0))
            elif not said.is_name(at):
                mentions.append(_Mention(at, at, 1.5))
        if mentions:
            found[name] = mentions
    return found


def is_a_name(parameter: str) -> bool:
    return not _NAMES.isdisjoint(_stems(parameter))


def _stems(text: str) -> list[str]:
    return [stem(word) for word in spelled(text.replace("_", " "))]


def _description(schema: Json) -> str:
    return str(schema.get("description") or "") if isinstance(schema, dict) else ""
