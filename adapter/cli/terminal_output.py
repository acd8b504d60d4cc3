"""Write answers, messages and a status line to the same terminal without mixing their lines.

A *flow* is text that arrives in chunks and may end in the middle of a line. A *note* consists of complete lines, and
goes to standard error. The *status* is a line that is erased before anything else is written. It is drawn only at the
start of a line, and is never wider than the terminal. Control characters from models and files are made visible.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rich.console import Console as Rich
from rich.text import Text

from adapter.core.text.display_escaping import escape_for_display

if sys.platform != "win32":
    import select
    import termios

DRAW_S = 0.1
"""Minimum time between two drawings of a status that changes with every chunk, in seconds."""
TICK_S = 0.5
"""Time between two drawings of an unchanged status, in seconds. Each drawing updates the elapsed time."""
INTERRUPT_S = 0.2
"""Maximum time until a Ctrl-C takes effect while the user types a line, in seconds."""


@dataclass(frozen=True, slots=True)
class TextFlowStyle:
    """The style of a flow, a text that arrives in chunks.

    ``style`` is a style of rich. ``first`` is written before the first line, and ``indent`` before all other lines.
    """

    to_stdout: bool = False
    style: str = ""
    first: str = ""
    indent: str = ""


ANSWER = TextFlowStyle(to_stdout=True)
REASONING = TextFlowStyle(style="dim", first=".. ", indent="   ")
OUTPUT = TextFlowStyle()
_TYPING = TextFlowStyle()
"""The flow of a question and the answer that the user types."""


def _wait_for_line() -> None:
    """Wait until the user has typed a line. If `input` waited instead, it could miss an early Ctrl-C."""
    while sys.platform != "win32" and sys.stdin.isatty() and not select.select([sys.stdin], [], [], INTERRUPT_S)[0]:
        pass


class Terminal:
    """Writes flows (texts in chunks), notes and a status to the terminal, from any thread."""

    def __init__(self) -> None:
        self._stderr = Rich(stderr=True, highlight=False, soft_wrap=True)
        self._lock = threading.RLock()
        self._flow: TextFlowStyle | None = None
        self._blank = ""  # the flow's trailing newlines, written once more text follows
        self._status = ""
        self._since_s = self._drawn_s = 0.0
        self._is_drawn = False
        self._ticker: threading.Thread | None = None

    @property
    def is_terminal(self) -> bool:
        """True if notes go to a terminal, so that a user sees them immediately."""
        return self._stderr.is_terminal

    @property
    def can_ask(self) -> bool:
        """True if a user can see and answer a question."""
        return self.is_terminal and sys.stdin.isatty()

    def write_flow(self, kind: TextFlowStyle, text: str) -> None:
        """Write a chunk of the flow ``kind``. Blank lines at the start and the end of the flow are omitted."""
        with self._lock:
            if self._flow is not kind:
                self.end_line()
            text = self._blank + text if self._flow else text.lstrip("\n")
            body = text.rstrip("\n")
            if not body:
                self._blank = text if self._flow else ""
                return
            self._blank = text[len(body) :]
            self._wipe()
            begin = "" if self._flow else kind.first
            self._flow = kind
            shown = begin + escape_for_display(body, keep="\n\t").replace("\n", "\n" + kind.indent)
            if kind.to_stdout:
                self._write(shown, to_stdout=True)
            else:
                self._print(Text(shown, style=kind.style))

    def note(self, text: str, style: str = "dim", aside: str = "") -> None:
        """Write complete lines to stderr: ``text`` in ``style``, then ``aside`` in a dim color."""
        with self._lock:
            self.end_line()
            self._wipe()
            note = Text(escape_for_display(text, keep="\n\t"), style=style)
            self._print(note + Text(escape_for_display(aside), style="dim"), end="\n")

    def show(self, text: Text) -> None:
        """Write styled lines to stderr. The caller must have escaped their control characters."""
        with self._lock:
            self.end_line()
            self._wipe()
            self._print(text, end="" if text.plain.endswith("\n") else "\n")

    def show_status(self, text: str) -> None:
        """Show a status line with the elapsed seconds until other text is written. Does nothing without a terminal."""
        with self._lock:
            if not self._stderr.is_terminal or self._stderr.is_dumb_terminal:
                return
            if self._flow is not None and (not self._flow.to_stdout or sys.stdout.isatty()):
                self.end_line()
            now = time.monotonic()
            if not self._status:
                self._since_s, self._drawn_s = now, 0.0
            self._status = text
            if now - self._drawn_s >= DRAW_S:
                self._draw()
            if self._ticker is None:
                self._ticker = threading.Thread(target=self._update_age, daemon=True)
                self._ticker.start()

    @contextmanager
    def show_busy(self, text: str) -> Iterator[None]:
        """Show the status ``text`` while the ``with`` block runs."""
        self.show_status(text)
        try:
            yield
        finally:
            with self._lock:
                self._wipe()

    def discard_typed(self) -> None:
        """Discard input that was typed before a question was shown."""
        if sys.platform != "win32":
            with suppress(termios.error, ValueError, OSError):
                termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    def read_line(self, prompt: str) -> str:
        """Write ``prompt``, and return the line that the user types. Raises EOFError for Ctrl-D."""
        with self._lock:
            self.end_line()
            self._wipe()
            self._flow = _TYPING  # set first, because the user may press Ctrl-C as soon as the prompt is visible
            self._print(Text(escape_for_display(prompt)))
        _wait_for_line()
        try:
            answer = input()
        except UnicodeDecodeError:
            answer = ""
        with self._lock:
            self._flow = None  # Enter ended the line; Ctrl-D and Ctrl-C raise instead
        return answer

    def end_line(self) -> None:
        """End the current flow with a line break. Does nothing without a flow."""
        with self._lock:
            if self._flow is not None:
                self._write("\n", to_stdout=self._flow.to_stdout)
            self._flow, self._blank = None, ""

    def start_fresh_line(self) -> None:
        """End the current flow, and erase a key that the terminal echoed, such as ``^C`` for Ctrl-C."""
        with self._lock:
            self.end_line()
            self._is_drawn = self._is_drawn or (self._stderr.is_terminal and not self._stderr.is_dumb_terminal)
            self._wipe()

    def _print(self, text: Text, end: str = "") -> None:
        self._write(self._render(text, end))

    def _render(self, text: Text, end: str = "") -> str:
        """Return the text with its escape sequences.

        The text is not printed by Rich: after a Ctrl-C, Rich could print the text in its buffer a second time.
        """
        with self._stderr.capture() as captured:
            self._stderr.print(text, end=end)
        return captured.get()

    def _write(self, text: str, *, to_stdout: bool = False) -> None:
        stream = sys.stdout if to_stdout else self._stderr.file
        stream.write(text)
        stream.flush()

    def _wipe(self) -> None:
        self._status = ""
        if self._is_drawn:
            self._write("\r\x1b[K")
            self._is_drawn = False

    def _draw(self) -> None:
        self._drawn_s = time.monotonic()
        seconds = int(self._drawn_s - self._since_s)
        line, clock = Text(f"   {escape_for_display(self._status)}", style="dim"), f", {seconds} s" * bool(seconds)
        line.truncate(max(self._stderr.width - len("^C") - 1 - len(clock), 1))  # a second line could not be erased
        line.append(clock)
        self._is_drawn = True  # set first, so that even a Ctrl-C during the write erases the status
        self._write(f"\r{self._render(line)}\x1b[K")

    def _update_age(self) -> None:
        while True:
            time.sleep(TICK_S)
            with self._lock:
                if not self._status:
                    self._ticker = None
                    return
                with suppress(OSError):  # the terminal is closed; the next write reports it
                    self._draw()
