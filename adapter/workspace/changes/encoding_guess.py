"""Guess the encoding of source code. Its few characters outside ASCII are in comments and messages.

Statistical libraries need paragraphs of text. In source code, they read a French accent as Arabic, and a comment in
Chinese as Korean. Here, the text that results from each encoding is rated by its words. The letters of a word should
belong to one language and script, be regularly capitalized, and have no symbols between them.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from itertools import pairwise

_ALPHABETS = tuple(
    map(
        frozenset,
        (
            # German, French, Spanish, Portuguese, Italian, Swedish, Danish, Dutch, Icelandic, Catalan
            *("äöüß", "àâæçéèêëîïôœùûüÿ", "áéíñóúü", "àáâãçéêíóôõúü", "àèéìíîòóù", "åäöé", "æøåéè", "ëïéèöüó"),
            *("áðéíóúýþæö", "àçèéíïòóúü"),
            # Polish, Czech, Slovak, Hungarian, Romanian, Croatian, Turkish, Lithuanian, Latvian, Estonian
            *("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "ăâîşţșț", "čćđšž", "çğıöşüâîû"),
            *("ąčęėįšųūž", "āčēģīķļņšūž", "äõöüšž"),
            # Russian, Ukrainian, Bulgarian, Serbian, Belarusian, Greek, Hebrew
            *("абвгдежзийклмнопрстуфхцчшщъыьэюяё", "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя"),
            *("абвгдежзийклмнопрстуфхцчшщъьюяѝ", "абвгдђежзијклљмнњопрстћуфхцчџш"),
            *("абвгдеёжзійклмнопрстуўфхцчшыьэюя", "αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋΐΰ"),
            "אבגדהוזחטיךכלםמןנסעףפץצקרשת",
        ),
    )
)
"""Letters outside ASCII by language."""
_LAST_LATIN = "\u024f"
_AROUND_WORDS = "«»‹›“”„‘’‚¿¡©®°§–—…•²³ªº\xa0\xad"
_BETWEEN_WORDS = "€£¢¥±×÷½¼¾·¬¶µ№"
_WITHIN_WORDS = "’·µ\xad"
_WORD = re.compile(r"(?:[^\W\d_]|[^\x00-\x7f])+")

_SINGLE_BYTE = (
    *("cp1252", "cp1250", "iso8859-2", "cp1251", "cp1255", "cp1253", "cp1254", "cp1257", "koi8-u", "cp866"),
    *("iso8859-5", "iso8859-7", "iso8859-15", "mac-roman", "cp850", "cp852"),
)
"""Encodings with one byte per character. If several fit equally well, the first is used."""
_JAPANESE = ("cp932", "euc_jp")
_COMMON_CHARACTERS = {
    "gb18030": ("gb2312", 0xB0, 0xD7),
    "big5": ("big5", 0xA4, 0xC6),
    "cp949": ("euc_kr", 0xB0, 0xC8),
}
"""For each encoding: the standard that lists its common characters, and the range of their first bytes."""
_PUNCTUATION = (0xA1, 0xA3)
"""The range of the first bytes of punctuation in these standards."""

MAX_ODDNESS = 0.15
"""Maximum share of characters that do not fit their word, in text that counts as correctly decoded."""
MIN_COMMON = 0.8
"""Minimum share of common characters in Chinese and Korean text."""
MIN_KANA = 0.2
"""Minimum share of kana in Japanese text."""
MIN_KOREAN = 5
"""Minimum number of characters to detect Korean: two in three Chinese characters also decode as Korean ones."""


_FINAL_WITHIN = re.compile("[ךםןףץ](?=[א-ת])|ς(?=[α-ω])")
"""Matches letters within a word that Hebrew and Greek use only at the end of a word."""
_RARE_CYRILLIC = "шщъ"
"""Cyrillic letters that are rare in every language, but in cp1255 the common Hebrew letters resh, shin and tav."""


def guess_encoding(data: bytes) -> str | None:
    """Return the most probable ASCII-compatible encoding of ``data``, or None if no known encoding fits."""
    decoded = [(name, text) for name in _SINGLE_BYTE if (text := _decode(data, name)) is not None]
    ratings = [(_measure_oddness(text), name) for name, text in decoded]
    oddness, best = min(ratings, key=lambda rating: rating[0], default=(1.0, None))
    return best if oddness <= MAX_ODDNESS else _guess_east_asian(data)


def _decode(data: bytes, encoding: str) -> str | None:
    try:
        return codecs.getincrementaldecoder(encoding)().decode(data)  # the last character may be cut
    except UnicodeDecodeError:
        return None


def _measure_oddness(text: str) -> float:
    """Return how unlikely ``text`` is: the share of non-ASCII characters that do not fit their word, 0 in real text."""
    odd = 0.0
    letters: Counter[str] = Counter()
    for token in _WORD.findall(text):
        if token.isascii() or not token.strip(_BETWEEN_WORDS + _AROUND_WORDS):
            continue
        word = token.strip(_AROUND_WORDS)
        special = [char for char in word if not char.isascii() and char not in _WITHIN_WORDS]
        foreign = [char for char in special if char > _LAST_LATIN]
        odd += sum(not char.isalpha() for char in special)
        odd += len(special) / 2 * any(a.islower() and b.isupper() and not b.isascii() for a, b in pairwise(word))
        if foreign and (len(foreign) < len(special) or any(map(str.isascii, word))):
            odd += len(foreign)  # two scripts
        elif foreign and len(word) > 1 and word.isupper():
            odd += len(word) / 3  # many wrong encodings turn small letters into capitals
        odd += len(_FINAL_WITHIN.findall(word))
        letters.update(char.lower() for char in special if char.isalpha())
    total = letters.total()
    odd += max(0, sum(letters[char] for char in _RARE_CYRILLIC) - 2 - total / 12)
    if 0 < total <= 2 and max(letters) > _LAST_LATIN:
        odd += 1  # too few letters to decide
    known = max(sum(letters[char] for char in alphabet & letters.keys()) for alphabet in _ALPHABETS)
    return (odd + total - known) / max(1, total + odd)


def _guess_east_asian(data: bytes) -> str | None:
    for name in _JAPANESE:
        chars = _list_special(_decode(data, name))
        kana = sum("\u3041" <= char <= "\u30fe" for char in chars)
        if chars and kana >= MIN_KANA * len(chars) and not any("\uff61" <= char <= "\uff9f" for char in chars):
            return name
    shares = {name: _share_common(_list_special(_decode(data, name)), name) for name in _COMMON_CHARACTERS}
    if shares["cp949"] == 1 and len(_list_special(_decode(data, "cp949"))) >= MIN_KOREAN:
        return "cp949"
    best = max(shares, key=shares.__getitem__)
    return best if shares[best] >= MIN_COMMON else None


def _list_special(text: str | None) -> list[str]:
    return [char for char in text or "" if not char.isascii()]


def _share_common(chars: list[str], name: str) -> float:
    """Return the share of ``chars`` that are common characters or punctuation in the encoding ``name``."""
    standard, first, last = _COMMON_CHARACTERS[name]
    encoded = [char.encode(standard, "ignore")[:1] for char in chars]
    is_common = [first <= each[0] <= last or _PUNCTUATION[0] <= each[0] <= _PUNCTUATION[1] for each in encoded if each]
    return sum(is_common) / max(1, len(chars))
