"""Decode files to text and encode them again without losing bytes.

The first of these encodings that fits is used: the encoding of the byte order mark, strict UTF-8, the user's choice,
two guesses (`encoding_guess`, charset-normalizer), and Latin-1, in which every byte is a character. A guess is good
enough to read a file. To edit a file, its text must encode to exactly the original bytes; if it does not, the bytes are
edited directly (`decode_bytes`). New text must have the same bytes in every encoding that the file may have
(`encoding_detection`).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

from adapter.core.errors import ToolError
from adapter.editing.document import BYTE_ORDER_MARK
from adapter.workspace.changes.encoding_detection import check_new_characters, detect_unmarked_utf16
from adapter.workspace.changes.encoding_guess import guess_encoding

MAX_TEXT_BYTES = 16 * 1024 * 1024
"""Maximum size of a file decoded as text, in bytes."""
PROBE_BYTES = 8_192
"""Number of bytes searched for a NUL, which marks a binary file, as in git."""
_GUESS_BYTES, _LIBRARY_BYTES = 8_192, 65_536
"""Maximum number of bytes passed to `guess_encoding` (only lines with non-ASCII bytes) and to charset-normalizer (the
start of the file). Each guess is then checked on the whole file."""
_WORD_BYTES = 40
"""Maximum number of bytes kept before the first non-ASCII byte, to include the beginning of its word."""

_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_ASCII = bytes(range(128))
"""Bytes that a guessed encoding must decode as ASCII. With EBCDIC, edits would match at wrong positions."""

# UTF-32 first, whose mark begins like UTF-16's. These codecs keep the mark in the text, as U+FEFF.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class DecodedText:
    """The text and encoding of a file. The text includes a byte order mark as U+FEFF."""

    text: str
    encoding: str
    guessed: bool = False


def decode(data: bytes, path: str, fallback: str | None = None) -> DecodedText:
    """Decode ``data``. ``fallback``: encoding of files that are not UTF-8; None guesses it.

    Raises ToolError for binary files, and for text that does not match its byte order mark.
    """
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    if encoding is None and b"\0" in data[:PROBE_BYTES]:
        encoding = detect_unmarked_utf16(data)
    if encoding is None and is_binary(data):
        raise ToolError(f"{path} is a binary file ({len(data)} bytes), not text; use a command that reads binary files")
    try:
        return DecodedText(data.decode(encoding or "utf-8"), encoding or "utf-8")
    except UnicodeDecodeError:
        if encoding is None:
            return _decode_exactly(data, fallback) or _decode_by_guess(data)
    raise ToolError(
        f"{path} ({len(data)} bytes) has the byte order mark of {encoding}, but is not valid {encoding}; "
        "convert it to UTF-8"
    )


def is_binary(data: bytes) -> bool:
    """Return whether ``data``, which has no byte order mark, has a NUL near the start and is not UTF-16."""
    return b"\0" in data[:PROBE_BYTES] and detect_unmarked_utf16(data[:PROBE_BYTES]) is None


def decode_for_editing(data: bytes, path: str, fallback: str | None = None) -> DecodedText:
    """Decode ``data``. Raises ToolError unless ``encode`` returns exactly ``data``."""
    decoded = decode(data, path, fallback)
    if decoded.text.encode(decoded.encoding, "replace") != data:
        raise ToolError(
            f"{path} is not UTF-8 and its encoding ({decoded.encoding}?) cannot be written back exactly; "
            "it was not changed. Convert it to UTF-8 first"
        )
    return decoded


def encode(text: str, encoding: str, path: str) -> bytes:
    """Encode ``text``. Raises ToolError, which names the character, if the encoding lacks a character of the text."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        character = f"U+{ord(text[error.start]):04X} (character {error.start + 1})"
        raise ToolError(
            f"{character} cannot be written as {encoding}: {path} was not changed. Leave that character out"
        ) from None


def encode_like(present: bytes, text: str, path: str, fallback: str | None = None) -> tuple[bytes, str]:
    """Encode ``text``, which replaces ``present``, the content of a file. Return the bytes and a note.

    The file keeps its encoding, its byte order mark and its CRLF line endings, unless ``text`` has carriage returns. If
    ``present`` is binary, or if its encoding is an uncertain guess or lacks a character of ``text``, the text is
    encoded as UTF-8. The note reports a change from another encoding to UTF-8, and is otherwise empty.
    """
    try:
        old = decode(present, path, fallback)
    except ToolError:
        return encode(text, "utf-8", path), ""
    if "\r" not in text and 0 < old.text.count("\r\n") == old.text.count("\n"):
        text = text.replace("\n", "\r\n")
    if old.text.startswith(BYTE_ORDER_MARK) and not text.startswith(BYTE_ORDER_MARK):
        text = BYTE_ORDER_MARK + text
    try:
        if old.guessed:
            check_new_characters(present, old.encoding, old.text, text, path)
        return encode(text, old.encoding, path), ""
    except ToolError:
        return encode(text, "utf-8", path), f"{path} was not UTF-8 ({old.encoding}?); it is UTF-8 now"


def decode_for_diff(data: bytes | None, path: str) -> str:
    """Decode a file for a diff. A binary file becomes a line that states its size."""
    try:
        return "" if data is None else decode(data, path).text
    except ToolError:
        return f"({len(data or b'')} bytes that are not text)\n"


def decode_bytes(data: bytes) -> str:
    """Decode ASCII bytes as characters and all other bytes as lone surrogates. `encode_text` is the inverse."""
    return data.decode("ascii", "surrogateescape")


def encode_text(text: str) -> bytes:
    return text.encode("ascii", "surrogateescape")


def _decode_exactly(data: bytes, encoding: str | None) -> DecodedText | None:
    """Decode with the user's encoding; None if that fails or the text does not encode to the same bytes."""
    if encoding is None:
        return None
    try:
        text = data.decode(encoding)
        return DecodedText(text, encoding) if text.encode(encoding) == data else None
    except UnicodeError:
        return None


def _decode_by_guess(data: bytes) -> DecodedText:
    for encoding in _iter_guesses(data):
        try:
            if _ASCII.decode(encoding) == _ASCII.decode("ascii"):
                return DecodedText(data.decode(encoding), encoding, guessed=True)
        except UnicodeDecodeError:
            continue
    return DecodedText(data.decode("latin-1"), "latin-1", guessed=True)


def _iter_guesses(data: bytes) -> Iterator[str]:
    lines = b"\n".join(line for line in data.split(b"\n") if not line.isascii())
    first = _NOT_ASCII.search(lines)
    start = max(0, first.start() - _WORD_BYTES) if first else 0
    if guess := guess_encoding(lines[start : start + _GUESS_BYTES]):
        yield guess
    from charset_normalizer import from_bytes

    yield from (match.encoding for match in from_bytes(data[:_LIBRARY_BYTES]))
