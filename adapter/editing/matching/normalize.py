"""Normalize characters and lines for comparison.

Models replace curly quotes with straight ones, dashes with hyphens and special spaces with plain ones, and vice versa.
Folding converts such characters to the same plain character.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_SAME = {
    "'": "\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc\uff07",
    '"': "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\uff02",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d",
    " ": "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
}
_FOLD = str.maketrans({other: plain for plain, others in _SAME.items() for other in others})
_INVISIBLE = str.maketrans(dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff"))
_LOOSE = str.maketrans({"'": '"', "`": '"', " ": None})
CLOSERS = ",;"


def fold_typography(text: str) -> str:
    """Replace typographic quotes, dashes and spaces with plain characters, without changing the length."""
    return text if text.isascii() else text.translate(_FOLD)


def build_strict_line_key(line: str) -> str:
    """Return ``line`` without surrounding whitespace, and with each run of whitespace collapsed to a space."""
    return " ".join(line.split())


def normalize_line(line: str) -> str:
    """Return the key of a line. Lines that differ only in whitespace and typography have equal keys."""
    if line.isascii():
        return " ".join(line.split())
    composed = unicodedata.normalize("NFC", line).translate(_INVISIBLE).replace("\u2026", "...")
    return " ".join(composed.translate(_FOLD).split())


def list_keys(lines: Iterable[str]) -> list[str]:
    """Return the keys of the lines that are not blank."""
    return list(filter(None, map(normalize_line, lines)))


def is_word_character(character: str) -> bool:
    return character.isalnum() or character == "_"


def loosen_line(key: str) -> str:
    """Convert a line's key to a looser one, which ignores spaces, quote style and a trailing comma or semicolon."""
    return key.rstrip(CLOSERS).translate(_LOOSE)


_COMMENT = re.compile(r"(?:#(?!include|define|if|endif|else)|//|/\*|\*|--|;|<!--|\"\"\"|''')")


def is_comment(key: str) -> bool:
    """Return whether the key of a line starts like a comment."""
    return _COMMENT.match(key) is not None


_PIECE = re.compile(r"\s+|\w+|\.{3}|[^\w\s]")


def tokenize_line(text: str) -> list[str]:
    """Split ``text`` into words, runs of whitespace, ``...`` and single punctuation characters."""
    return _PIECE.findall(text)


DISTINCTIVE_LETTERS = 8


def count_letters(key: str) -> int:
    """Return the number of letters and digits."""
    return sum(map(str.isalnum, key))


def is_distinctive(key: str, letters: int = DISTINCTIVE_LETTERS) -> bool:
    """Return whether a line has enough letters and digits to identify a location, unlike ``}`` or ``end``."""
    return count_letters(key) >= letters
