"""What a text speaks of: quoted pieces, paths, runs of words. Pure and without any language's grammar."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from pathlib import PurePosixPath

from adapter.values.lazy_pattern import lazy_pattern

LONGEST_RUN = 6
"""Words. Of an unquoted request, longer runs are sentences rather than values."""

# A quote opens after a blank or bracket and closes before a blank or
# punctuation: "don't" and class="big" hold no quoted piece.
_QUOTES = "'' \"\" `` “” ‘’ «» „“ 「」 『』"
_QUOTED = lazy_pattern(
    "|".join(
        rf"(?:^|(?<=[\s(\[{{:,])){re.escape(pair[0])}(?P<q{number}>[^\n]+?){re.escape(pair[1])}(?=$|[\s)\]}},.;:!?])"
        for number, pair in enumerate(_QUOTES.split())
    )
)
_PATH_TOKEN = lazy_pattern(r"(?<![<\w])[\w.\-+@~/\\:]++(?!>)")  # </h1> is no path
_SUFFIX = lazy_pattern(r"[^/\\]\.[A-Za-z]\w{0,9}$|(^|[/\\])\.[A-Za-z]\w+$")
_ABBREVIATIONS = {"e.g", "i.e"}
_AROUND = "\"'`,;:!?()[]“”‘’«»„「」『』"


def quoted(text: str) -> list[str]:
    """The pieces that stand in quotes of any kind, without those quotes."""
    return [piece for match in _QUOTED.finditer(text) for piece in match.groups() if piece]


def runs(text: str, longest: int = LONGEST_RUN) -> list[str]:
    """Every run of one to ``longest`` words, as it stands in the text."""
    words = list(re.finditer(r"\S+", text))
    found = (
        text[words[first].start() : words[last].end()]
        for first in range(len(words))
        for last in range(first, min(first + longest, len(words)))
    )
    return list(dict.fromkeys(chain.from_iterable((run, _bare(run)) for run in found if _bare(run))))


def mentioned(paths: Iterable[str], text: str) -> list[str]:
    """The paths that a text names in full, by their last parts, or (only if none so) by the bare stem."""
    paths = list(paths)
    # "src/app.py:12:" is how grep and compilers name a place
    words = {re.sub(r":\d.*$", "", _bare(word).replace("\\", "/")) for word in text.split()}
    words = {word.rstrip("/").removeprefix("./") for word in words}
    named = [path for path in paths if not words.isdisjoint(_tails(path))]
    if named:
        return named
    lowered = {word.lower() for word in words}
    return [path for path in paths if len(stem := PurePosixPath(path).stem.lower()) > 2 and stem in lowered]


def directories(paths: Iterable[str]) -> list[str]:
    """The directories in which the paths stand, each once, outer ones first."""
    parents = {str(parent) for path in paths for parent in PurePosixPath(path).parents}
    return sorted(parents - {".", "/"})


def spelled_paths(text: str) -> list[str]:
    """What a text spells as a path: with a slash or backslash, or with a suffix."""
    tokens = (token.rstrip(".:") for token in _PATH_TOKEN.findall(text) if "://" not in token)
    found = (token for token in tokens if re.search(r"[/\\]", token) or _SUFFIX.search(token))
    return [path for path in dict.fromkeys(found) if re.search(r"\w", path) and path not in _ABBREVIATIONS]


def ends_with(path: str, tail: str) -> bool:
    """Whether ``tail`` is the whole path or its last parts."""
    return path == tail or path.endswith("/" + tail)


def _tails(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[start:]) for start in range(len(parts))]


def _bare(word: str) -> str:
    """A word without the quotes, brackets and punctuation around it."""
    return word.lstrip(_AROUND).rstrip(_AROUND + ".")
