"""Bytes on disk as text and back, without losing any.

A byte order mark decides, then strict UTF-8, then the encoding that the user names,
then a guess by charset-normalizer, then Latin-1, in which every byte is a character.
A guess is good enough to read. To edit, the text must give back exactly the bytes it
came from, or the bytes themselves are edited (`bytes_as_text`); and new text must exist
in that encoding, and be the same in all that the file may be in (`encodings`).
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from adapter.core.errors import ToolError
from adapter.workspace.changes.encoding_detection import unmarked_utf16

MAX_TEXT_BYTES = 16 * 1024 * 1024
"""Larger files are not taken as text: the result is cut to 50 KB anyway."""
PROBE_BYTES = 8_192
"""Where a NUL means a binary file; git looks at as much."""
_GUESS_BYTES = 65_536
"""Enough for a guess; the guess is checked on the whole file."""

_ASCII = bytes(range(128))
"""What a guessed encoding must take for itself: else an edit would find its letters in the wrong places (EBCDIC)."""

# UTF-32 first: its mark begins with that of UTF-16. With the mark named in the
# codec it would be dropped, so the marks stay in the text as U+FEFF.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class DecodedText:
    """A file's text, a byte order mark included as U+FEFF, and how it was encoded."""

    text: str
    encoding: str
    guessed: bool = False


def decode(data: bytes, path: str, named: str | None = None) -> DecodedText:
    """The text of ``data``; ``named`` is the encoding of files that are not UTF-8.

    Raises ToolError for binary files, and for text that its byte order mark does not fit.
    """
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    if encoding is None and b"\0" in data[:PROBE_BYTES]:
        encoding = unmarked_utf16(data)
    if encoding is None and is_binary(data):
        raise ToolError(f"{path} is a binary file ({len(data)} bytes), not text; use get_file_info or a command on it")
    try:
        return DecodedText(data.decode(encoding or "utf-8"), encoding or "utf-8")
    except UnicodeDecodeError:
        if encoding is None:
            return _named(data, named) or _guessed(data)
    raise ToolError(f"{path} ({len(data)} bytes) begins as {encoding} does and is not; convert it to UTF-8")


def is_binary(data: bytes) -> bool:
    """Whether a NUL says so, near the start, where text in UTF-16 has none. Its mark, which tells more, comes first."""
    return b"\0" in data[:PROBE_BYTES] and unmarked_utf16(data[:PROBE_BYTES]) is None


def decode_for_editing(data: bytes, path: str, named: str | None = None) -> DecodedText:
    """The text of ``data`` if ``encode`` gives exactly ``data`` back, else ToolError."""
    decoded = decode(data, path, named)
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


def bytes_as_text(data: bytes) -> str:
    """``data`` with every ASCII byte as its character and every other as one that no text has; `text_as_bytes` gives
    the bytes back, whatever was done to the text."""
    return data.decode("ascii", "surrogateescape")


def text_as_bytes(text: str) -> bytes:
    return text.encode("ascii", "surrogateescape")


def _named(data: bytes, encoding: str | None) -> DecodedText | None:
    """The text in the encoding that the user names, if all of it is and comes back as it was."""
    if encoding is None:
        return None
    try:
        text = data.decode(encoding)
        return DecodedText(text, encoding) if text.encode(encoding) == data else None
    except UnicodeError:
        return None


def _guessed(data: bytes) -> DecodedText:
    from charset_normalizer import from_bytes

    for match in from_bytes(data[:_GUESS_BYTES]):
        try:
            if _ASCII.decode(match.encoding) == _ASCII.decode("ascii"):
                return DecodedText(data.decode(match.encoding), match.encoding, guessed=True)
        except UnicodeDecodeError:
            continue
    return DecodedText(data.decode("latin-1"), "latin-1", guessed=True)
