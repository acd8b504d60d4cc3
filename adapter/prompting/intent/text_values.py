"""Find values in text by their shape, in any language: quoted strings, paths, numbers, URLs, dates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from pathlib import PurePosixPath
from typing import NamedTuple, TypeAlias

from adapter.core.events import Json

MAX_RUN_WORDS = 6
"""Maximum number of words in an unquoted value. Longer runs of words are usually sentences."""

_CLOSING_QUOTES = dict(zip("'\"`“‘«„「『", "'\"`”’»“」』", strict=True))
# A quote opens after whitespace or a bracket and closes before whitespace or punctuation, unlike in don't or a="b".
_OPENING_QUOTE = re.compile(rf"(?:^|(?<=[\s(\[{{:,]))[{''.join(_CLOSING_QUOTES)}](?=[^\n])")
_QUOTE_ENDS = {
    opening: re.compile(rf"\n|{closing}(?=$|[\s)\]}},.;:!?])|\Z") for opening, closing in _CLOSING_QUOTES.items()
}
_PATH_TOKEN = re.compile(  # neither </h1> nor *.py, src/*.py or src/**
    r"(?<![<\w./\\])(?!(?<=\*)[./\\])[\w.\-+@~/\\:]++(?!>|(?<=[/\\])\*)"
)
_PATH = re.compile(r"(?=.*\w)(?!(?:e\.g|i\.e)$)(?:.*[/\\]|.*[^/\\]\.[A-Za-z]\w{0,9}$|\.[A-Za-z]\w+$)")
_AROUND = "\"'`,;:!?()[]“”‘’«»„「」『』"
_NUMBER = re.compile(
    r"(?<![\w.^])(-?(?:\d{1,3}(?:,\d{3})+(?!,?\d)|\d{1,20})(?:\.\d+)?(?:e-?\d\d?)?)(\s?%)?(?=[^\W\d_]{0,3}(?![\w^]|\.\d))"
)
"""Matches numbers of up to 20 digits, with a unit of up to three letters or a percent sign: "5cm", "40 %"."""

Value: TypeAlias = str | int | float
KINDS = {
    "_mail_": re.compile(r"\b[\w.+-]{1,64}+@[\w-]+(?:\.\w+)+\b"),
    "_url_": re.compile(r"\bhttps?://[^\s'\"<>)]+"),
    "_date_": re.compile(r"\b\d{4}([-/.])\d{2}\1\d{2}\b|\b\d{1,2}([-/.])\d{1,2}\2\d{4}\b"),
    "_time_": re.compile(r"\b\d{1,2}:\d{2}(?::\d{2})?\b"),
    "_code_": re.compile(
        r"\b[A-Z]+-\d+\b|\b[a-z]+_[a-z_]+\b|\b(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z\d]{4,}\b|\b[A-Z]{2,}[A-Z_]*\b"
    ),
    "_number_": re.compile(r"\b\d+(?:,\d{3})*(?:\.\d+)?\b"),
}
"""Patterns for values by kind. Narrow patterns come before general ones."""


class Number(NamedTuple):
    """A number in text, from index ``start`` to ``end``. ``share`` equals ``value``, except in "5 %": 5 and 0.05."""

    value: int | float
    share: int | float
    start: int
    end: int


def find_values_of_kind(kind: str, text: str) -> list[str]:
    """Return the distinct values of ``kind``, one of `KINDS`."""
    return list(dict.fromkeys(match[0] for match in KINDS[kind].finditer(text)))


def unquote(text: str) -> str:
    """Remove the quotes around ``text``. Text that is not quoted as a whole is returned unchanged."""
    stripped = text.strip()
    inner, found = stripped[1:-1], [piece.strip() for piece in find_quoted(stripped)]
    return inner if inner.strip() and found == [inner.strip()] else text


def find_quoted(text: str) -> list[str]:
    """Return the quoted strings in ``text``, without their quotes and the spaces that French puts inside them."""
    found: list[str] = []
    ends: dict[str, int] = {}  # the next closing quote, or the end of the line
    last = 0
    for quote in _OPENING_QUOTE.finditer(text):
        start = quote.end()
        if quote.start() < last:
            continue
        if ends.get(quote[0], 0) <= start:
            ends[quote[0]] = _QUOTE_ENDS[quote[0]].search(text, start + 1).start()  # type: ignore[union-attr]
        end = ends[quote[0]]
        if text[end : end + 1] not in ("", "\n"):
            piece = text[start:end]
            found.append((piece.strip() or piece) if quote[0] == "«" else piece)
            last = end + 1
    return found


def find_paths(text: str) -> list[str]:
    """Return the file paths in ``text``: words with a slash, a backslash or a file suffix."""
    tokens = (token.rstrip(".:") for token in _PATH_TOKEN.findall(text) if "://" not in token)
    return [path for path in dict.fromkeys(tokens) if _PATH.match(path)]


def find_numbers(text: str) -> list[Number]:
    """Return the numbers in ``text`` that are written in digits, with or without thousands separators."""
    found = ((Decimal(match[1].replace(",", "")), match) for match in _NUMBER.finditer(text))
    return [
        Number(_simplify_number(each), _simplify_number(each / 100 if match[2] else each), *match.span())
        for each, match in found
    ]


def find_lists(text: str) -> list[tuple[list[Json], tuple[int, int]]]:
    """Return the lists in ``text`` (in JSON, or with single quotes), each with its start and end."""
    lists = []
    for match in re.finditer(r"\[[^\[\]]*\]", text):
        with suppress(ValueError):
            lists.append((json.loads(match[0] if '"' in match[0] else match[0].replace("'", '"')), match.span()))
    return lists


def _simplify_number(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)


def find_runs(text: str, max_words: int = MAX_RUN_WORDS) -> list[str]:
    """Return every run of one to ``max_words`` successive words, with and without the punctuation around the run."""
    words = list(re.finditer(r"\S+", text))
    spans = ((first, last) for first in range(len(words)) for last in range(first, min(first + max_words, len(words))))
    runs = (text[words[first].start() : words[last].end()] for first, last in spans)
    return list(dict.fromkeys(each for run in runs if _strip(run) for each in (run, _strip(run))))


def find_known_paths(paths: Iterable[str], text: str) -> list[str]:
    """Return the ``paths`` that ``text`` names in full or by their last parts, or else by names without suffixes."""
    paths = list(paths)
    # grep and compilers write a location as "src/app.py:12:"
    words = {re.sub(r":\d.*$", "", _strip(word).replace("\\", "/")) for word in text.split()}
    words = {word.rstrip("/").removeprefix("./") for word in words}
    named = [path for path in paths if any(word and f"/{path}".endswith(f"/{word}") for word in words)]
    lowered = {word.lower() for word in words}
    return named or [path for path in paths if len(stem := PurePosixPath(path).stem.lower()) > 2 and stem in lowered]


def _strip(word: str) -> str:
    return word.lstrip(_AROUND).rstrip(_AROUND + ".")
