"""Reads text files, and prints text with its control characters made visible."""

from __future__ import annotations

import codecs
import sys

from adapter.core.arguments import reason
from adapter.core.errors import UsageError
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.text.lines import common_prefix_length


def print_escaped(text: str, *, end: str = "\n", to_stderr: bool = False) -> None:
    """Print text with its control characters visible, because they could move the cursor or hide other text."""
    print(escape_for_display(text, keep="\n\t"), end=end, file=sys.stderr if to_stderr else sys.stdout)


def print_prompt(prompt: str, without_tools: str) -> None:
    """Print a prompt. On a terminal, highlight the text that the tools added."""
    if not sys.stdout.isatty():
        print_escaped(prompt)
        return
    from rich.console import Console
    from rich.text import Text

    start = common_prefix_length(prompt, without_tools)
    end = len(prompt) - common_prefix_length(prompt[start:][::-1], without_tools[start:][::-1])
    pieces = (prompt[:start], prompt[start:end], prompt[end:])
    text = Text()
    for piece, style in zip(pieces, ("", "cyan", ""), strict=True):
        text.append(escape_for_display(piece, keep="\n\t"), style)
    Console(soft_wrap=True).print(text)


def read_text(file: str) -> str:
    """Read a file, or stdin for ``-``. A byte order mark is removed. Raises UsageError if the file cannot be read."""
    try:
        if file == "-":
            raw = sys.stdin.buffer.read()
        else:
            with open(file, "rb") as opened:  # noqa: PTH123  # `adapter parse` loads without pathlib
                raw = opened.read()
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {file!r}: {reason(error)}. Give a file, or - for standard input.") from error
    encoding = next((encoding for mark, encoding in _ENCODING_BY_MARK.items() if raw.startswith(mark)), "utf-8")
    return raw.decode(encoding, "replace")


_ENCODING_BY_MARK = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, because its mark starts with the UTF-16 mark
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Encodings by byte order mark. Windows shells write such marks."""
