"""What a person types in a chat: with prompt_toolkit where it is installed, else line by line.

Enter sends. A line that ends in a backslash goes on in the next one; with prompt_toolkit so do Esc and Enter, what is
pasted stays whole, and the lines typed before come back with the arrow keys.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from adapter.cli.console import Console

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.key_binding.key_processor import KeyPressEvent

PROMPT, MORE = "> ", ". "
MAX_HISTORY_BYTES = 256 * 1024
"""Of the lines that are kept; the older half goes when there are more."""


def make_line_reader(console: Console, history: Path, commands: Sequence[str]) -> Callable[[], str]:
    """Reads a message. It raises EOFError for Ctrl-D, KeyboardInterrupt for Ctrl-C, after which the line is gone.

    ``history``: where the lines are kept, for their owner alone; ``commands``: what Tab completes.
    """
    if find_spec("prompt_toolkit") is None or os.environ.get("TERM") in ("dumb", "unknown"):
        return lambda: _plain(console)
    return _prompting(history, commands)


def _plain(console: Console) -> str:
    text = console.read_line(PROMPT)
    while text.endswith("\\"):
        text = f"{text[:-1]}\n{console.read_line(MORE)}"
    return text


def _prompting(history: Path, commands: Sequence[str]) -> Callable[[], str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.output import create_output

    _trim(history)
    session: PromptSession[str] = PromptSession(
        PROMPT,
        multiline=True,
        prompt_continuation=MORE,
        key_bindings=_keys(),
        completer=WordCompleter(list(commands), sentence=True),
        complete_while_typing=False,
        history=FileHistory(str(history)),
        output=create_output(sys.stderr),
    )
    return session.prompt


def _trim(history: Path) -> None:
    """Bound the file; where there is none make it, so that nobody else reads what will be written."""
    os.close(os.open(history, os.O_CREAT | os.O_RDWR, 0o600))
    kept = history.read_bytes()
    if len(kept) > MAX_HISTORY_BYTES:
        half = kept[-MAX_HISTORY_BYTES // 2 :]
        history.write_bytes(half[half.find(b"\n\n# ") + 1 :])


def _keys() -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    def _send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _go_on(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    return keys
