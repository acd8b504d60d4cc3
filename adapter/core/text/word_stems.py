"""Split text into words, and reduce words to their stems."""

from __future__ import annotations

import re
import unicodedata

_STOP_WORDS = """
a an the and or of to in on at by for from with without into is are was were be been am do does did has have had it its
this that these those i me my we our us you your he she they them what which who whom whose where when why how can could
would should will shall may might must please let need want like get got give make there here if than then so not no any
some all every one also just now tell about as s t re ll d m up out
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
_ENDING = re.compile(r"(?<=...)(?:ations?|ings?|ers?|ies|es|ed|s|e|y)$")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def split_words(text: str) -> list[str]:
    """Return the words of ``text`` in lower case. snake_case and camelCase names are split, and CJK text becomes pairs
    of characters."""
    plain = "".join(each for each in unicodedata.normalize("NFD", text) if not unicodedata.combining(each))
    words = re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", plain).lower())
    pairs = (
        [word[at : at + 2] for at in range(max(len(word) - 1, 1))] if _CJK.search(word) else [word] for word in words
    )
    return [piece for word in pairs for piece in word]


def find_words(text: str) -> set[str]:
    """Return the numbers in ``text`` and its words that are not stop words."""
    return {*split_words(text), *re.findall(r"\d+", text)} - STOP_WORDS


def stem_word(word: str) -> str:
    """Return ``word`` without its English ending."""
    return _ENDING.sub("", word)


def stem_words(text: str) -> list[str]:
    return [stem_word(word) for word in split_words(text) if word not in STOP_WORDS]
