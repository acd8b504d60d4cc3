"""Which encodings the bytes of a file may be in, and whether a new character is the same bytes in all of them.

A guess is good enough to show a text and to leave it alone. It may not decide
what bytes a character becomes that the file did not have: in koi8-r and cp1251
the same letter is another byte.
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
"""Encodings that files are found in where they are not UTF-8; in all of them ASCII is ASCII, but for a sign or two."""
MIN_PLAIN = 0.5
"""Share of ASCII in what is taken for UTF-16 without a mark; bytes of something else give signs from everywhere."""
MIN_WIDE_BYTES = 8
"""Below it two NULs prove nothing."""


def encoding_named(name: str | None) -> str | None:
    """The encoding that a user names, as Python spells it. Raises UsageError for one that is not known here."""
    if name is None:
        return None
    try:
        found = codecs.lookup(name).name
        is_usable = _ASCII.decode(found) == _ASCII.decode("ascii")
    except (LookupError, ValueError):  # a NUL character in the name
        is_usable = False
    if not is_usable:
        raise UsageError(f"unknown encoding {name!r}; expected one like cp1252, koi8-r or gb18030")
    return found


def unmarked_utf16(data: bytes) -> str | None:
    """``utf-16-le`` or ``utf-16-be`` when ``data`` is text in it, though no mark says so.

    Then every NUL is the same half of its character, and the characters are mostly ASCII.
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


def plausible(data: bytes) -> list[str]:
    """The usual encodings that every byte of ``data`` has a meaning in."""
    return [encoding for encoding in _USUAL if _has_meaning(data, encoding)]


def _has_meaning(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def check_new_characters(data: bytes, guess: str, before: str, after: str, path: str) -> None:
    """Raises ToolError when ``after`` has a character that ``before``, the text of ``data`` by a guess, has not, unless
    it is the same bytes in every encoding that the file may be in."""
    known = set(before)
    new = sorted(character for character in set(after) - known if not character.isascii())
    if not new:
        return
    possible = plausible(data)
    for character in new:
        spelled = {_bytes(character, encoding) for encoding in (guess, *possible)}
        if len(spelled) > 1 or None in spelled:
            raise ToolError(
                f"U+{ord(character):04X} ({character}) is not in {path} yet, and what bytes it is there is not known: "
                f"the encoding is {_listed([guess, *possible])}. Nothing was changed. Leave the character out, or ask "
                'the user to name the encoding (encoding="...", --encoding)'
            )


def _bytes(character: str, encoding: str) -> bytes | None:
    try:
        return character.encode(encoding)
    except UnicodeEncodeError:
        return None


def _listed(encodings: Collection[str]) -> str:
    names = list(dict.fromkeys(codecs.lookup(name).name for name in encodings))
    shown = ", ".join(names[:4])
    return f"a guess among {shown}{f' and {len(names) - 4} more' if len(names) > 4 else ''}"
