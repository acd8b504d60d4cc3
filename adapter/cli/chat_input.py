"""Read chat messages, with prompt_toolkit if it is installed, otherwise line by line.

Enter sends the message. A backslash at the end of a line continues the message on the next line. With prompt_toolkit,
Esc and then Enter also starts a new line, pasted text is not split, and the arrow keys recall earlier lines.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from adapter.cli.agent_console import Console

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.key_binding.key_processor import KeyPressEvent

PROMPT, CONTINUATION = "> ", ". "
MAX_HISTORY_BYTES = 256 * 1024
"""Maximum size of the history file, in bytes. A larger file is cut to its newest half."""


def make_line_reader(console: Console, history: Path, commands: Sequence[str]) -> Callable[[], str]:
    """Return a function that reads a message. It raises EOFError for Ctrl-D and KeyboardInterrupt for Ctrl-C.

    ``history`` is the file that stores the entered lines, readable only by its owner. Tab completes ``commands``.
    """
    if find_spec("prompt_toolkit") is None or os.environ.get("TERM") in ("dumb", "unknown"):
        return lambda: _read_plain(console)
    return _create_prompt_toolkit_reader(history, commands)


def _read_plain(console: Console) -> str:
    text = console.read_line(PROMPT)
    while text.endswith("\\"):
        text = f"{text[:-1]}\n{console.read_line(CONTINUATION)}"
    return text


def _create_prompt_toolkit_reader(history: Path, commands: Sequence[str]) -> Callable[[], str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.output import create_output

    _trim(history)
    session: PromptSession[str] = PromptSession(
        PROMPT,
        multiline=True,
        prompt_continuation=CONTINUATION,
        key_bindings=_create_key_bindings(),
        completer=WordCompleter(list(commands), sentence=True),
        complete_while_typing=False,
        history=FileHistory(str(history)),
        output=create_output(sys.stderr),
    )
    return session.prompt


def _trim(history: Path) -> None:
    """Limit the size of the history file. If the file is missing, create it, readable only by its owner."""
    os.close(os.open(history, os.O_CREAT | os.O_RDWR, 0o600))
    content = history.read_bytes()
    if len(content) > MAX_HISTORY_BYTES:
        half = content[-MAX_HISTORY_BYTES // 2 :]
        history.write_bytes(half[half.find(b"\n\n# ") + 1 :])


def _create_key_bindings() -> KeyBindings:
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
    def _begin_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    return keys
