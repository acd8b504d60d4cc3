"""Detect the possible encodings of a file, and check that new characters have the same bytes in all of them.

A guessed encoding is good enough to show text and to write unchanged text back. It must not determine the bytes of a
character that is new in the file: koi8-r and cp1251 encode the same letter as different bytes.
"""

from __future__ import annotations

import codecs
import unicodedata
from collections.abc import Collection

from adapter.core.errors import ToolError, UsageError

_ASCII = bytes(range(128))
_USUAL = (
    *("cp1252", "latin-1", "iso8859-15", "cp1250", "iso8859-2", "cp1251", "koi8-r", "koi8-u", "iso8859-5", "cp866"),
    *("cp1253", "iso8859-7", "cp1254", "iso8859-9", "cp1255", "iso8859-8", "cp1256", "iso8859-6", "cp1257", "cp1258"),
    *("cp437", "cp850", "cp852", "mac-roman", "cp874", "gb18030", "big5", "cp932", "euc_jp", "cp949"),
)
"""Common encodings of files that are not UTF-8. All encode ASCII as ASCII, except for one or two characters."""
MIN_PLAIN = 0.5
"""Minimum share of ASCII characters for data to count as UTF-16 without a byte order mark. Binary data that is decoded
as UTF-16 has a smaller share."""
MIN_WIDE_BYTES = 8
"""Minimum size in bytes to detect UTF-16: in less data, NULs are not sufficient evidence."""


def parse_encoding(name: str | None) -> str | None:
    """Return Python's name of the encoding chosen by the user, or None if the user chose none.

    Raises UsageError if the encoding is unknown, or does not encode ASCII as ASCII.
    """
    if name is None:
        return None
    try:
        codec = codecs.lookup(name).name
        is_usable = _ASCII.decode(codec) == _ASCII.decode("ascii")
    except (LookupError, ValueError):  # a NUL character in the name
        is_usable = False
    if not is_usable:
        raise UsageError(
            f"unknown encoding {name!r}; expected one that contains ASCII, such as cp1252, koi8-r or gb18030"
        )
    return codec


def detect_unmarked_utf16(data: bytes) -> str | None:
    """Return ``utf-16-le`` or ``utf-16-be`` if ``data`` is UTF-16 text without a byte order mark.

    In such text, every NUL is in the same half of its character, and most characters are ASCII.
    """
    data = data[: len(data) - len(data) % 2]
    low, high = data[::2].count(0), data[1::2].count(0)
    if bool(low) == bool(high) or len(data) < MIN_WIDE_BYTES:
        return None
    encoding = "utf-16-be" if low else "utf-16-le"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    plain = sum(map(str.isascii, text))
    is_text = all(_is_text(character) for character in set(text))
    return encoding if is_text and plain >= MIN_PLAIN * len(text) else None


def _is_text(character: str) -> bool:
    if character.isascii():
        return character.isprintable() or character in "\t\r\n\f"
    return unicodedata.category(character)[0] in "LMNPSZ"


def list_plausible_encodings(data: bytes) -> list[str]:
    """Return the common encodings in which ``data`` can be decoded."""
    return [encoding for encoding in _USUAL if _can_decode(data, encoding)]


def _can_decode(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def check_new_characters(data: bytes, guess: str, before: str, after: str, path: str) -> None:
    """Raise ToolError if a new character has different bytes in the encodings that the file may have.

    A character is new if ``after`` contains it and ``before`` does not. ``before`` is ``data``, decoded with the
    encoding ``guess``.
    """
    known = set(before)
    new = sorted(character for character in set(after) - known if not character.isascii())
    if not new:
        return
    possible = list_plausible_encodings(data)
    for character in new:
        spellings = {_encode(character, encoding) for encoding in (guess, *possible)}
        if len(spellings) > 1 or None in spellings:
            raise ToolError(
                f"U+{ord(character):04X} ({character}) is new in {path}, and its bytes there are ambiguous: "
                f"the encoding is {_list_guesses([guess, *possible])}. Nothing was changed. Leave the character out, "
                'or ask the user to name the encoding (encoding="...", --encoding)'
            )


def _encode(character: str, encoding: str) -> bytes | None:
    try:
        return character.encode(encoding)
    except UnicodeEncodeError:
        return None


def _list_guesses(encodings: Collection[str]) -> str:
    names = list(dict.fromkeys(codecs.lookup(name).name for name in encodings))
    shown = ", ".join(names[:4])
    return f"a guess among {shown}{f' and {len(names) - 4} more' if len(names) > 4 else ''}"
