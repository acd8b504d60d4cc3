"""Print text with its control characters made visible."""

from __future__ import annotations

import sys

from adapter.core.text.display_escaping import escape_for_display
from adapter.core.text.lines import count_common_prefix


def print_escaped(text: str, *, end: str = "\n", to_stderr: bool = False) -> None:
    """Print text with visible control characters, because they could otherwise move the cursor or hide other text."""
    print(escape_for_display(text, keep="\n\t"), end=end, file=sys.stderr if to_stderr else sys.stdout)


def print_prompt(prompt: str, without_tools: str) -> None:
    """Print ``prompt``. On a terminal, highlight its differences from ``without_tools``, the prompt without tools."""
    if not sys.stdout.isatty():
        print_escaped(prompt)
        return
    from rich.console import Console
    from rich.text import Text

    start = count_common_prefix(prompt, without_tools)
    end = len(prompt) - count_common_prefix(prompt[start:][::-1], without_tools[start:][::-1])
    pieces = (prompt[:start], prompt[start:end], prompt[end:])
    text = Text()
    for piece, style in zip(pieces, ("", "cyan", ""), strict=True):
        text.append(escape_for_display(piece, keep="\n\t"), style)
    Console(soft_wrap=True).print(text)
