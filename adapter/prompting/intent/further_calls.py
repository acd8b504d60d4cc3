"""Find the arguments of further calls, if a request needs the same tool several times.

The first call's values are located in the request. A further value belongs to a parameter if it is listed with the
parameter's value ("Rome, Oslo and Bern"), if the words next to both are the same ("a base of 3 ... a base of 5"), or if
several parameters get further values in the same order ("45 and 60, then 81 and 27").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise, product
from typing import NamedTuple

from adapter.core.events import Json, JsonObject
from adapter.grammars.gbnf import MAX_CALLS
from adapter.prompting.intent import text_values as spelled
from adapter.prompting.intent.argument_proximity import MAX_REQUEST_CHARS, find_spans, is_distinctive
from adapter.prompting.intent.bm25 import STOP_WORDS, stem_word, stem_words
from adapter.prompting.intent.candidate_values import find_candidates, find_names
from adapter.tools.tool import Tool

_AND = re.compile(r"(?i)[^\w.?!]*\b(?:and|und|et|y|e)\b\W*(?:(?:the|an?|another) )?")
_COMMA = re.compile(r"[^\w.?!]*[,;/、，][^\w.?!]*")
_CLAUSE_END = re.compile(r"[.,;:!?\n](?=\s)|\b(?:and|or|but|then)\b")
_NEXT_WORD = re.compile(r"[^\w.?!,;:]{0,3}([^\W\d_]+)")
_IN_ORDER = re.compile(r"(?i)\brespective")
"""Matches a request that combines its lists item by item, instead of each value with each."""


class ValueMention(NamedTuple):
    """A value in the request from index ``start`` to ``end``."""

    start: int
    end: int
    value: Json

    def overlaps(self, others: Iterable[ValueMention]) -> bool:
        return any(other.start < self.end and self.start < other.end for other in others)


@dataclass(slots=True)
class _ValuePool:
    """Parameters that can have the same ``values``, ordered by where the request mentions the first call's values.
    ``fresh``: the mentions of values that no call uses yet."""

    values: list[Json] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    fresh: list[ValueMention] = field(default_factory=list)


def find_further_arguments(request: str, tool: Tool, arguments: JsonObject) -> list[JsonObject]:
    """Return the arguments of the further calls of ``tool`` that the request needs, after a call with ``arguments``.

    There are at most `MAX_CALLS` - 1. If the request has no further value for a parameter, the value of the first call
    is repeated.
    """
    if len(request) > MAX_REQUEST_CHARS:
        return []
    found = _FurtherValues(request, tool, arguments)
    found.search()
    rows = [arguments | row for row in islice(found.list_rows(), MAX_CALLS - 1)]
    return [row for index, row in enumerate(rows) if row not in (arguments, *rows[:index])]


class _FurtherValues:
    """The values of a request that belong to further calls, by parameter."""

    def __init__(self, request: str, tool: Tool, arguments: JsonObject) -> None:
        self._request = request
        self._tool = tool
        self._arguments = arguments
        self._spelled = {*spelled.find_quoted(request), *spelled.find_paths(request)}
        self._anchors: dict[str, ValueMention] = {}
        """The first mention of each value of the first call, by parameter."""
        self._further: dict[str, list[ValueMention]] = {}
        self._used = self._locate()
        self._pools = self._build_pools()
        fresh = (mention for pool in self._pools for mention in pool.fresh)
        self._ends = sorted(mention.end for mention in (*self._used, *fresh))

    def search(self) -> None:
        for pool in self._pools:
            if pool.fresh:
                self._assign(pool)
        for name in [each for each in self._anchors if each not in self._further]:
            if listed := self._find_listed_words(name):
                self._further[name] = listed

    def list_rows(self) -> Iterator[JsonObject]:
        """Yield the arguments that differ in each further call.

        The n-th further call takes the n-th value of every list, or the calls take each combination of the values.
        """
        if not self._further:
            return
        values = {name: [self._build_value(name, each) for each in found] for name, found in self._further.items()}
        is_product = all(self._is_list(name, found) for name, found in self._further.items())
        if len(values) > 1 and is_product and not _IN_ORDER.search(self._request):
            axes = ([self._arguments[name], *found] for name, found in values.items())
            yield from (dict(zip(values, row, strict=True)) for row in islice(product(*axes), 1, None))
            return
        count = max(map(len, values.values()))
        values |= self._complete(count)
        for at in range(count):
            yield {name: found[min(at, len(found) - 1)] for name, found in values.items()}

    # --- where values are

    def _locate(self) -> list[ValueMention]:
        """Find the anchors, and return all mentions of the first call's values."""
        places = {name: self._find_mentions(value) for name, value in self._arguments.items()}
        used: list[ValueMention] = []
        for name in sorted(places, key=lambda name: [each.start for each in places[name][:1]]):
            if places[name] and name in self._tool.properties:
                free = (each for each in places[name] if not each.overlaps(self._anchors.values()))
                self._anchors[name] = next(free, places[name][0])
            elif isinstance(value := self._arguments[name], list):
                used += [mention for each in value for mention in self._find_mentions(each)]
        return [*used, *self._anchors.values()]

    def _find_mentions(self, value: Json) -> list[ValueMention]:
        if isinstance(value, list):
            return [ValueMention(*span, value) for found, span in spelled.find_lists(self._request) if found == value]
        if isinstance(value, str) or type(value) in (int, float):
            return [ValueMention(*span, value) for span in find_spans(self._request, value)]
        return []

    def _build_pools(self) -> list[_ValuePool]:
        pools: dict[str, _ValuePool] = {}
        for name in sorted(self._anchors, key=lambda name: self._anchors[name].start):
            values = [value for value in self._find_candidates(name) if self._is_certain(name, value)]
            is_numeric = bool(values) and all(type(value) in (int, float) for value in values)
            pool = pools.setdefault("numbers" if is_numeric else repr(values), _ValuePool())
            pool.names.append(name)
            pool.values += (value for value in values if value not in pool.values)
        for pool in pools.values():
            for value in sorted(pool.values, key=lambda value: -len(str(value))):
                free = (each for each in self._find_mentions(value) if not each.overlaps([*self._used, *pool.fresh]))
                pool.fresh += free
            pool.fresh.sort(key=lambda mention: mention.start)
        return list(pools.values())

    def _find_candidates(self, name: str) -> Sequence[Json]:
        found = find_candidates(self._request, self._tool, name)
        return found or (find_names(self._request) if isinstance(self._arguments[name], str) else [])

    def _is_certain(self, name: str, value: Json) -> bool:
        if not isinstance(value, str) or "enum" in self._tool.properties[name]:
            return True
        if value in self._spelled:
            return True
        words = [word for word in value.split() if word not in STOP_WORDS]
        return bool(words) and all(map(is_distinctive, words))

    def _build_value(self, name: str, mention: ValueMention) -> Json:
        """Return the value of a mention. A percentage becomes a fraction if the first call has a fraction for one."""
        if isinstance(mention.value, str | list):
            return mention.value
        numbers = spelled.find_numbers(self._request)
        is_share = any(each.share == self._arguments[name] != each.value for each in numbers)
        number = next((each for each in numbers if each.start == mention.start), None)
        return number.share if number and is_share else mention.value

    # --- which parameter a value belongs to

    def _assign(self, pool: _ValuePool) -> None:
        self._further |= self._assign_in_order(pool) or self._assign_lists(pool) or self._assign_by_context(pool)

    def _assign_in_order(self, pool: _ValuePool) -> dict[str, list[ValueMention]]:
        """Assign the values to the parameters in turn, if they follow the first call's values and are written like
        them.
        """
        names, fresh = pool.names, pool.fresh
        anchors = [self._anchors[name] for name in names]
        if fresh[0].start < anchors[-1].start or len(fresh) % len(names):
            return {}
        found = {name: fresh[index :: len(names)] for index, name in enumerate(names)}
        is_similar = any(self._is_similar(name, mentions) for name, mentions in found.items())
        return found if is_similar or self._has_equal_gaps([*anchors, *fresh], len(names)) else {}

    def _has_equal_gaps(self, mentions: Sequence[ValueMention], size: int) -> bool:
        """Return whether the text between the values of a call is always the same: "3 by 4 ... 5 by 6"."""
        gaps = [self._request[one.end : other.start] for one, other in pairwise(mentions)]
        inner = [gap for index, gap in enumerate(gaps, 1) if index % size]
        return size > 1 and inner == inner[: size - 1] * (len(mentions) // size)

    def _assign_lists(self, pool: _ValuePool) -> dict[str, list[ValueMention]]:
        """Assign values from the same list as a value of the first call. In "3, 4 and 5 apples for $6, $7 and $8", 4
        and 5 belong to the parameter with the value 3.
        """
        lists = {name: self._find_list(self._anchors[name], pool.fresh) for name in pool.names}
        return {name: found for name, found in lists.items() if found}

    def _assign_by_context(self, pool: _ValuePool) -> dict[str, list[ValueMention]]:
        """Assign each value to the parameter whose value has the most similar words next to it."""
        found: dict[str, list[ValueMention]] = {}
        for mention in pool.fresh:
            ranked = sorted(((self._count_shared_words(name, mention), name) for name in pool.names), reverse=True)
            if ranked[0][0] and (len(ranked) == 1 or ranked[0][0] > ranked[1][0]):
                found.setdefault(ranked[0][1], []).append(mention)
        return found

    def _is_similar(self, name: str, mentions: Sequence[ValueMention]) -> bool:
        return self._is_list(name, mentions) or all(self._count_shared_words(name, mention) for mention in mentions)

    def _is_list(self, name: str, mentions: Sequence[ValueMention]) -> bool:
        return len(self._find_list(self._anchors[name], mentions)) == len(mentions)

    def _count_shared_words(self, name: str, mention: ValueMention) -> int:
        """Return how many words next to a value are also next to the parameter's value. A word after it, such as a
        unit, counts twice."""
        anchor = self._anchors[name]
        if isinstance(anchor.value, list):
            return 1
        before = self._find_word_before(anchor) & self._find_word_before(mention)
        return len(before) + 2 * len(self._find_word_after(anchor) & self._find_word_after(mention))

    def _find_word_before(self, mention: ValueMention) -> set[str]:
        start = max((end for end in self._ends if end <= mention.start), default=0)
        clause = _CLAUSE_END.split(self._request[start : mention.start])[-1]
        return set(stem_words(clause)[-1:])

    def _find_word_after(self, mention: ValueMention) -> set[str]:
        match = _NEXT_WORD.match(self._request, mention.end)
        return {stem_word(match[1].lower())} - STOP_WORDS if match else set()

    def _find_list(self, anchor: ValueMention, mentions: Iterable[ValueMention]) -> list[ValueMention]:
        """Return the other items of the list that contains ``anchor``. Only commas and an "and" separate the items."""
        items = [anchor]
        ordered = sorted(mentions, key=lambda each: (each.start, -each.end))
        for mention in ordered:
            if self._find_separator(items[-1], mention):
                items.append(mention)
        for mention in reversed(ordered):
            if self._find_separator(mention, items[0]):
                items.insert(0, mention)
        has_and = any(self._find_separator(*pair) == "and" for pair in pairwise(items))
        return [each for each in items if each is not anchor] if has_and else []

    def _find_separator(self, one: ValueMention, other: ValueMention) -> str:
        gap = (one.end, other.start)
        if one.end >= other.start:
            return ""
        return "and" if _AND.fullmatch(self._request, *gap) else "," if _COMMA.fullmatch(self._request, *gap) else ""

    def _find_listed_words(self, name: str) -> list[ValueMention]:
        """Return the other words of a list of at least three words that contains the parameter's value."""
        size = len(str(self._arguments[name]).split())
        words = [
            value for value in self._find_candidates(name) if isinstance(value, str) and len(value.split()) <= size
        ]
        mentions = (each for word in words for each in self._find_mentions(word) if not each.overlaps(self._used))
        found = self._find_list(self._anchors[name], mentions)
        return found if len(found) > 1 else []

    def _complete(self, count: int) -> dict[str, list[Json]]:
        """Return the values of the other parameters, if there is one for each further call."""
        return {
            name: [self._build_value(name, each) for each in pool.fresh]
            for pool in self._pools
            for name in pool.names
            if name not in self._further and len(pool.names) == 1 and len(pool.fresh) == count
        }
