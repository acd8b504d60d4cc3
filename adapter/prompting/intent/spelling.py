"""Requests to correct the spelling of one word in a file."""

from __future__ import annotations

import re

from rapidfuzz.distance import DamerauLevenshtein

from adapter.core.text.word_stems import STOP_WORDS
from adapter.prompting.intent.text_values import find_paths, find_quoted
from adapter.prompting.intent.verbs import asks_for

LETTERS_PER_ERROR = 3
"""Minimum number of letters for each wrong, missing, additional or swapped letter of a misspelled word."""
_SPELLING = re.compile(
    r"""\b(?:(?:mis)?spell(?:ed|ing|t)?|misspelling|typo|tippfehler|schreibfehler|rechtschreibfehler|falsch\s+geschrieben
    |coquille|faute\s+de\s+frappe|orthographe|ortograf[ií]a|errata|refuso|gralha|typfout|spelfout|literówk\w)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_WORD = re.compile(r"[^\W\d_]+")


def find_misspelled_word(request: str, text: str) -> str:
    """If ``request`` only asks to correct the spelling of one word of ``text``, return this word. Otherwise, return
    ""."""
    if not _SPELLING.search(request) or asks_for(request, "add", "create", "delete", "move", "run"):
        return ""
    present, words = {*_WORD.findall(text)}, request
    for path in find_paths(request):
        words = words.replace(path, " ")
    for choices in (find_quoted(request), _WORD.findall(words)):
        found = {word for word in choices if word in present and word.lower() not in STOP_WORDS}
        if found:
            return found.pop() if len(found) == 1 else ""
    return ""


def is_similar(word: str, other: str) -> bool:
    """Return whether ``word`` may be a misspelling of ``other``. Capital letters do not matter."""
    errors = DamerauLevenshtein.distance(word.lower(), other.lower())
    return 0 < errors <= max(len(word) // LETTERS_PER_ERROR, 1)


def replace_word(text: str, word: str, new: str) -> str:
    """Return ``text`` with ``new`` for each ``word``. The replacement begins with a capital letter if ``word`` does."""
    new = new[:1].upper() + new[1:] if word[:1].isupper() else new
    return re.sub(rf"\b{word}\b", lambda _: new, text)


def is_correction(word: str, old: str, new: str) -> bool:
    """Return whether the texts ``old`` and ``new`` differ only in the spelling of ``word``."""
    pieces = re.split(rf"\b{word}\b", old)
    match = re.fullmatch(r"(\w[\w'’ -]{,40}?)".join(map(re.escape, pieces)), new)
    words = match.groups() if match else ()
    return bool(words) and all(is_similar(word, each) for each in words)
