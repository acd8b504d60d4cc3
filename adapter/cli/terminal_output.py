"""What commands read and print: text of models and files, with nothing in it that could act on a terminal."""

from __future__ import annotations

import codecs
import sys
from pathlib import Path

from adapter.core.arguments import reason
from adapter.core.errors import UsageError
from adapter.core.text.display_escaping import escape_for_display


def print_escaped(text: str, *, end: str = "\n", to_stderr: bool = False) -> None:
    """Text of models and files may hold what moves a terminal's cursor or hides other text."""
    print(escape_for_display(text, keep="\n\t"), end=end, file=sys.stderr if to_stderr else sys.stdout)


def print_prompt(prompt: str, without_tools: str) -> None:
    """A prompt; on a terminal what the tools have added stands out."""
    if not sys.stdout.isatty():
        print_escaped(prompt)
        return
    from rich.console import Console
    from rich.text import Text

    start = _shared(prompt, without_tools)
    end = len(prompt) - _shared(prompt[start:][::-1], without_tools[start:][::-1])
    pieces = (prompt[:start], prompt[start:end], prompt[end:])
    text = Text()
    for piece, style in zip(pieces, ("", "cyan", ""), strict=True):
        text.append(escape_for_display(piece, keep="\n\t"), style)
    Console(soft_wrap=True).print(text)


def _shared(first: str, second: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(first), len(second)))


def read_text(file: str) -> str:
    """What a file says, ``-`` for standard input, without its byte order mark. Raises UsageError."""
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {file!r}: {reason(error)}. Give a file, or - for standard input.") from error
    encoding = next((encoding for mark, encoding in _MARKS.items() if raw.startswith(mark)), "utf-8")
    return raw.decode(encoding, "replace")


_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # begins as UTF-16 does
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""With a mark at its beginning a file says what it is in, as the shells of Windows write them."""
