"""Match values to parameters by proximity: "a base of 10 and a height of 5", "parcel number 77 in Ulster county"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from adapter.core.events import Json
from adapter.prompting.intent.bm25 import STOP_WORDS, get_description, split_words, stem_word
from adapter.prompting.intent.text_values import Value, find_numbers, find_quoted

MAX_DISTANCE = 4.0
"""Maximum distance between a value and a parameter's name. A word between them counts 1.5, a stop word 0.5."""
MAX_REQUEST_CHARS = 2_500
"""Maximum length of a request, in characters. Longer requests are documents that may contain any word."""

_WORD = re.compile(r"[^\W_]+")
_CLAUSE_END = re.compile(r"[.,;!?\n]|\b(?:and|or|but|then)\b")
_Span: TypeAlias = tuple[int, int]


def match_by_proximity(
    request: str, properties: Mapping[str, Json], candidates: Mapping[str, Sequence[Value]]
) -> dict[str, list[Value]]:
    """Return, for each parameter whose name occurs in the request, the ``candidates`` that are nearest to the name.

    No part of the request is used for two parameters. Only distinctive values count: numbers, quoted strings, and
    strings with a digit or a capital.
    """
    if len(request) > MAX_REQUEST_CHARS:
        return {}
    quoted = find_quoted(request)
    matches: dict[tuple[str, int], list[tuple[float, Value, _Span]]] = {}
    for name, values in candidates.items():
        mentions = list(_find_mentions(request, name, properties))
        distinctive = (each for each in values if each in quoted or is_distinctive(each))
        for value, span in ((each, span) for each in distinctive for span in find_spans(request, each)):
            for distance, at in _measure_distances(request, mentions, span, is_number=not isinstance(value, str)):
                matches.setdefault((name, at), []).append((distance, value, span))
    matched: dict[str, list[Value]] = {}
    used: list[_Span] = []
    for (name, _), found in sorted(matches.items(), key=lambda each: (min(near for near, *_ in each[1]), each[0][1])):
        free = [each for each in found if not any(start < each[2][1] and each[2][0] < end for start, end in used)]
        if free and name not in matched:
            matched[name] = list(dict.fromkeys(value for _, value, _ in free))
            used += [span for *_, span in free]
    return matched


def _measure_distances(
    request: str, mentions: Sequence[tuple[int, int, float]], span: _Span, *, is_number: bool
) -> Iterator[tuple[float, int]]:
    """For each mention of a parameter near a value, yield their distance, and the index of the value's end that is
    closer to the mention."""
    start, end = span
    for first, last, doubt in mentions:
        is_behind = last <= start
        gap = request[last:start] if is_behind else request[end:first]
        distance = doubt + sum(0.5 if word in STOP_WORDS else 1.5 for word in split_words(gap))
        is_adjacent = is_behind or (end <= first and not gap.strip())
        if is_adjacent and distance <= MAX_DISTANCE and not _CLAUSE_END.search(gap):
            distance += 0 if is_behind or is_number else 1  # in "5 meters", the unit is as good as a name
            yield distance, start if is_behind else end


def is_distinctive(value: Value) -> bool:
    words = str(value).split()
    has_sign = any(not each.islower() and each.isalnum() for each in str(value))
    return has_sign and STOP_WORDS.isdisjoint((words[0], words[-1]))


def find_spans(request: str, value: Value) -> list[_Span]:
    if isinstance(value, str):
        return [match.span() for match in re.finditer(rf"(?<![\w.^]){re.escape(value)}(?!\w)", request)]
    return [(each.start, each.end) for each in find_numbers(request) if value in (each.value, each.share)]


def _find_mentions(request: str, name: str, properties: Mapping[str, Json]) -> Iterator[tuple[int, int, float]]:
    """Yield the start and end of each mention of a parameter, and a distance to add for the mention's uncertainty.

    The request mentions a parameter by its full name, by a word that is in no other parameter's name, or by a word that
    is in no other parameter's description.
    """
    names = {each: [stem_word(word) for word in split_words(each)] for each in properties}
    texts = {each: {stem_word(word) for word in split_words(get_description(properties[each]))} for each in properties}
    own, others = names[name], {word for each in properties if each != name for word in names[each]}
    described = texts[name].difference(*(texts[each] for each in properties if each != name))
    words = [(match.span(), match[0]) for match in _WORD.finditer(request)]
    found = [stem_word(word.lower()) for _, word in words]
    for at, ((start, end), word) in enumerate(words):
        if own and found[at : at + len(own)] == own:
            yield start, words[at + len(own) - 1][0][1], 0.0 if len(own) > 1 else 0.5
        elif word.islower() and word not in STOP_WORDS:
            if found[at] in own and found[at] not in others:
                yield start, end, 1.0
            elif found[at] in described and (found[at] in own or found[at] not in others):
                yield start, end, 1.5
