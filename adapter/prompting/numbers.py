"""The numbers that a request says: in figures (2,000,000), with words behind (1.3 billion), or in words (three)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from itertools import groupby, pairwise
from typing import TypeAlias

from adapter.prompting.languages import AND, AND_SIGNS, NUMBERS, PERCENT, ZEROS
from adapter.tools.schema import types_of
from adapter.values.events import Json
from adapter.values.fields import frozen
from adapter.values.lazy_pattern import lazy_pattern

Number: TypeAlias = int | float

_BY_THOUSANDS = r"(?:\d{1,3}(?:,\d{3})+(?!,?\d)|\d{1,3}(?:\.\d{3}){2,}(?!\.?\d))"
_MAGNITUDE = rf"(?P<magnitude>{'|'.join(sorted(ZEROS, key=len, reverse=True))})(?!\w)"
_UNIT = r"(?=[^\W\d_]{0,3}(?![\w^]|\.\d))"
_BEHIND = rf"(?:\s?(?P<percent>{PERCENT})(?!\w)|\s{_MAGNITUDE}|(?P<sign>[万亿])|{_UNIT})"
_WORDS = rf"\b(?P<word>{'|'.join(NUMBERS)})(?!\w|\.\s?\d)"
_SAID, _LISTED = (
    re.compile(rf"(?i)(?<![\w.^])(?P<figures>-?(?:{grouped}\d+(?:\.\d+)?(?:e-?\d{{1,2}})?)){_BEHIND}|{_WORDS}")
    for grouped in (rf"{_BY_THOUSANDS}(?:\.\d+)?|", "")
)
_IN_BRACKETS = lazy_pattern(r"(\[[^\[\]]*\])")


MOST_FIGURES = 20
"""Of a number; a longer one is something else."""


@frozen
class Said:
    """``value``: as it is written, 5 of "5 %". ``start`` and ``end``: where, without what stands behind it."""

    value: Number
    start: int
    end: int
    is_percent: bool = False

    @property
    def share(self) -> Number:
        """0.05 of "5 %"."""
        return _plain(Decimal(str(self.value)) / 100) if self.is_percent else self.value


@lru_cache(maxsize=2)
def said(request: str) -> tuple[Said, ...]:
    """All of them, as they come. In brackets a comma stands between numbers: [1,200]."""
    found, at = [], 0
    for piece in _IN_BRACKETS.split(request):
        pattern = _LISTED if piece.startswith("[") else _SAID
        matches = (match for match in pattern.finditer(piece) if len(match["figures"] or "") <= MOST_FIGURES)
        found += [_read(match, at) for match in matches]
        at += len(piece)
    return tuple(found)


def _read(match: re.Match[str], at: int) -> Said:
    start, end = at + match.start(), at + match.end()
    if word := match["word"]:
        return Said(NUMBERS[word.lower()], start, end)
    figures = match["figures"]
    if re.fullmatch(rf"-?{_BY_THOUSANDS}(?:\.\d+)?", figures):
        figures = figures.replace(",", "") if "," in figures else figures.replace(".", "")
    number = Decimal(figures)
    if match["magnitude"]:
        number *= 10 ** ZEROS[match["magnitude"].lower()]
    elif match["sign"]:
        number *= 10 ** _SIGNS[match["sign"]]
    elif of_money := _OF_MONEY.match(match.string, max(match.start() - 1, 0)):
        number *= 10 ** _LETTERS[of_money[1]]
    return Said(_plain(number), start, at + match.end("figures"), bool(match["percent"]))


_SIGNS = {"万": 4, "亿": 8}
_LETTERS = {"k": 3, "K": 3, "M": 6, "B": 9}
_OF_MONEY = lazy_pattern(r"[$€£]\d+(?:\.\d+)?([kKMB])(?!\w)")


def _plain(number: Decimal) -> Number:
    return int(number) if number == number.to_integral_value() else float(number)


def in_figures(request: str) -> list[Number]:
    """Those that are not words, each once: "two sides of 5" has one."""
    return list(dict.fromkeys(each.value for each in said(request) if not request[each.start].isalpha()))


def units(request: str) -> list[str]:
    """The words that stand right behind numbers in figures, each once: "cm" of "5cm and 10 cm"."""
    behind = (_UNIT_BEHIND.match(request, each.end) for each in said(request) if not request[each.start].isalpha())
    return list(dict.fromkeys(found[1] for found in behind if found and found[1] not in {*AND}))


_UNIT_BEHIND = lazy_pattern(r"\s?([^\W\d_]+(?:/[^\W\d_]+)?)(?!\w)")


def meant(request: str, name: str, schema: dict[str, Json]) -> list[Number]:
    """Those that a parameter can take, each once. A percentage is for a rate, and other numbers are not, where there
    are both. "5 %" is 0.05, unless the parameter is whole or is said to be percent: then it is 5."""
    is_whole = "number" not in types_of(schema)
    about = f"{name.replace('_', ' ')} {schema.get('description') or ''}"
    is_percent = re.search(rf"(?i){PERCENT}|\bpct\b", about) is not None
    is_rate = is_percent or _RATE.search(about) is not None
    fitting: dict[Number, bool] = {}
    for each in said(request):
        value = each.value if is_percent or is_whole else each.share
        if _fits(value, schema) and not (is_whole and isinstance(value, float)):
            fitting[value] = each.is_percent == is_rate
    return [value for value, is_of_kind in fitting.items() if is_of_kind] or list(fitting)


_RATE = lazy_pattern(r"(?i)\b(?:rate|ratio|yield|fraction|probability|discount|tip|tax|taux|tasa|anteil)\b")


def _fits(number: Number, schema: dict[str, Json]) -> bool:
    lowest, highest = schema.get("minimum"), schema.get("maximum")
    return (lowest is None or number >= lowest) and (highest is None or number <= highest)


_BETWEEN = lazy_pattern(rf"(?i)\s*(?:,\s*|(?:{AND_SIGNS})\s*|(?:,\s*|\s+)(?:{'|'.join(AND)})\s+)")


def series(request: str) -> list[list[Said]]:
    """Two numbers and more with nothing but commas and "and" between them, and the last "and" at the end: "10, 20 and
    30", also with the same word behind each ("20 minutes and 15 minutes")."""
    return [each for each in _runs(request) if len(each) > 1]


def _runs(request: str) -> Iterator[list[Said]]:
    numbers = said(request)
    breaks = [0]
    for one, after in pairwise(numbers):
        breaks.append(breaks[-1] + (not _joins(request, one, after)))
    for _, run in groupby(zip(breaks, numbers, strict=False), key=lambda pair: pair[0]):
        yield [number for _, number in run]


def _joins(request: str, one: Said, after: Said) -> bool:
    between = request[one.end : after.start]
    if _BETWEEN.fullmatch(between):
        return True
    word = re.match(r"\s*([^\W\d_]+|%)", between)
    if word is None or not _BETWEEN.fullmatch(between[word.end() :]):
        return False
    return request[after.end : after.end + len(word[1]) + 1].lstrip().startswith(word[1])
