"""What commands read and print: text of models and files, with nothing in it that could act on a terminal."""

from __future__ import annotations

import sys
from pathlib import Path

from adapter.errors import UsageError
from adapter.text.visible import visible


def print_visible(text: str, *, end: str = "\n", to_stderr: bool = False) -> None:
    """Text of models and files may hold what moves a terminal's cursor or hides other text."""
    print(visible(text, keep="\n\t"), end=end, file=sys.stderr if to_stderr else sys.stdout)


def read_text(file: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file!r}: {error.strerror}. Give a file, or - for standard input.") from error
    return raw.decode("utf-8", "replace")
