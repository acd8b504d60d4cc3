"""Read text from a file or standard input, in the encoding of its byte order mark."""

from __future__ import annotations

import codecs
import sys

from adapter.core.argument_checks import explain_read_error
from adapter.core.errors import UsageError

_ENCODING_BY_MARK = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, because its mark starts with the UTF-16 mark
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Maps byte order marks, which Windows shells write, to encodings."""


def read_text(file: str) -> str:
    """Read a file, or stdin for ``-``. A byte order mark is removed. Raises UsageError if the file cannot be read."""
    try:
        if file == "-":
            raw = sys.stdin.buffer.read()
        else:
            with open(file, "rb") as opened:  # noqa: PTH123  # `adapter parse` loads without pathlib
                raw = opened.read()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot read {file!r}: {explain_read_error(error)}. Pass a file, or - for standard input."
        ) from error
    encoding = next((encoding for mark, encoding in _ENCODING_BY_MARK.items() if raw.startswith(mark)), "utf-8")
    return raw.decode(encoding, "replace")
