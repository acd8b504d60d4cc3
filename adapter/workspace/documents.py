"""Bytes on disk as text and back, without losing any.

A byte order mark decides, then strict UTF-8, then a guess by charset-normalizer.
A guess is good enough to read. To edit, the text must give back exactly the
bytes it came from; and new text must exist in that encoding.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from charset_normalizer import from_bytes

from adapter.errors import ToolError

MAX_TEXT_BYTES = 16 * 1024 * 1024
"""Larger files are not taken as text: the result is cut to 50 KB anyway."""
PROBE_BYTES = 8_192
"""Where a NUL means a binary file; git looks at as much."""
_GUESS_BYTES = 65_536
"""Enough for a guess; the guess is checked on the whole file."""

_EBCDIC = ["cp037", "cp273", "cp424", "cp500", "cp875", "cp1026", "cp1140"]
"""Never guessed: in them the letters of ASCII stand elsewhere, so that an edit would find them in the wrong place."""

# UTF-32 first: its mark begins with that of UTF-16. With the mark named in the
# codec it would be dropped, so the marks stay in the text as U+FEFF.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A file's text, a byte order mark included as U+FEFF, and how it was encoded."""

    text: str
    encoding: str
    guessed: bool = False


def decode(data: bytes, path: str) -> Decoded:
    """The text of ``data``. Raises ToolError for binary files and undecodable text."""
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    if encoding is None and is_binary(data):
        raise ToolError(f"{path} is a binary file ({len(data)} bytes), not text; use get_file_info or a command on it")
    for candidate in (encoding,) if encoding else ("utf-8",):
        try:
            return Decoded(data.decode(candidate), candidate)
        except UnicodeDecodeError:
            continue
    return _guessed(data, path)


def is_binary(data: bytes) -> bool:
    """Whether a NUL says so, near the start. Text in UTF-16 has them too: look for its mark first."""
    return b"\0" in data[:PROBE_BYTES]


def decode_for_editing(data: bytes, path: str) -> Decoded:
    """The text of ``data`` if ``encode`` gives exactly ``data`` back, else ToolError."""
    decoded = decode(data, path)
    if decoded.text.encode(decoded.encoding, "replace") != data:
        raise ToolError(
            f"{path} is not UTF-8 and its encoding ({decoded.encoding}?) cannot be written back exactly; "
            "it was not changed. Convert it to UTF-8 first"
        )
    return decoded


def encode(text: str, encoding: str, path: str) -> bytes:
    """``text`` as bytes. Raises ToolError that names the first character that does not exist there."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        character = f"U+{ord(text[error.start]):04X} (character {error.start + 1})"
        raise ToolError(
            f"{character} cannot be written as {encoding}: {path} was not changed. Leave that character out"
        ) from None


def _guessed(data: bytes, path: str) -> Decoded:
    best = from_bytes(data[:_GUESS_BYTES], cp_exclusion=_EBCDIC).best()
    if best is not None:
        try:
            return Decoded(data.decode(best.encoding), best.encoding, guessed=True)
        except UnicodeDecodeError:
            pass
    raise ToolError(f"{path} ({len(data)} bytes) is text in no encoding that could be recognised; convert it to UTF-8")
