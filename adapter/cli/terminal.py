"""Standard output and standard error as what a person sees of them: one terminal.

Whoever writes next must know where the last one stopped. A *flow* is text that comes in pieces and may stop in the
middle of a line; a note is a line of its own; the status is a line that is wiped when anything else is written, drawn
only at the beginning of a line and never longer than one. Text of models and files is made visible before it is shown.
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
    import termios

DRAW_S = 0.1
"""Between two drawings of a status that changes with every piece of an answer."""
TICK_S = 0.5
"""Between two drawings of one that does not: its seconds pass."""


@dataclass(frozen=True, slots=True)
class TextFlowStyle:
    """How one kind of text in pieces looks. ``first`` stands before it, ``indent`` before each further line."""

    to_stdout: bool = False
    style: str = ""
    first: str = ""
    indent: str = ""


ANSWER = TextFlowStyle(to_stdout=True)
REASONING = TextFlowStyle(style="dim", first=".. ", indent="   ")
OUTPUT = TextFlowStyle()
_TYPING = TextFlowStyle()
"""A question, and what is typed behind it."""


class Terminal:
    """All that a command shows of a conversation. May be used from any thread."""

    def __init__(self) -> None:
        self._people = Rich(stderr=True, highlight=False, soft_wrap=True)
        self._writing = threading.RLock()
        self._flow: TextFlowStyle | None = None
        self._blank = ""  # line ends of the flow that are written when something follows them
        self._status = ""
        self._since_s = self._drawn_s = 0.0
        self._is_drawn = False
        self._ticker: threading.Thread | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether a person sees the notes at once."""
        return self._people.is_terminal

    @property
    def can_ask(self) -> bool:
        """Whether a question can be seen and answered."""
        return self.is_terminal and sys.stdin.isatty()

    def flow(self, kind: TextFlowStyle, text: str) -> None:
        """A piece of text. Empty lines before and after the whole of it are left out."""
        with self._writing:
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
                sys.stdout.write(shown)
                sys.stdout.flush()
            else:
                self._people.print(Text(shown, style=kind.style), end="")

    def note(self, text: str, style: str = "dim", aside: str = "") -> None:
        """Lines of their own, on standard error."""
        with self._writing:
            self.end_line()
            self._wipe()
            self._people.print(
                Text(escape_for_display(text, keep="\n\t"), style=style) + Text(escape_for_display(aside), style="dim")
            )

    def show(self, text: Text) -> None:
        """Lines in several styles; whoever made them has made what hides visible."""
        with self._writing:
            self.end_line()
            self._wipe()
            self._people.print(text, end="" if text.plain.endswith("\n") else "\n")

    def status(self, text: str) -> None:
        """What is being waited for, with the seconds since; until something else is written. For terminals only."""
        with self._writing:
            if not self._people.is_terminal or self._people.is_dumb_terminal:
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
                self._ticker = threading.Thread(target=self._tick, daemon=True)
                self._ticker.start()

    @contextmanager
    def busy(self, text: str) -> Iterator[None]:
        """A status while something is done."""
        self.status(text)
        try:
            yield
        finally:
            with self._writing:
                self._wipe()

    def forget_typed(self) -> None:
        """What was typed before a question was seen is no answer to it."""
        if sys.platform != "win32":
            with suppress(termios.error, ValueError, OSError):
                termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    def ask(self, prompt: str) -> str:
        """What the person types. Raises EOFError for Ctrl-D."""
        with self._writing:
            self.end_line()
            self._wipe()
            self._people.print(Text(escape_for_display(prompt)), end="")
            self._flow = _TYPING
        try:
            answer = input()
        except UnicodeDecodeError:
            answer = ""
        with self._writing:
            self._flow = None  # by Enter; after Ctrl-D and Ctrl-C the line is not ended
        return answer

    def end_line(self) -> None:
        """Whatever comes next begins a line."""
        with self._writing:
            flow, self._flow, self._blank = self._flow, None, ""
            if flow is not None:
                stream = sys.stdout if flow.to_stdout else self._people.file
                stream.write("\n")
                stream.flush()

    def fresh_line(self) -> None:
        """The same where the terminal may have written by itself: it shows Ctrl-C as ``^C``."""
        with self._writing:
            self.end_line()
            self._is_drawn = self._is_drawn or (self._people.is_terminal and not self._people.is_dumb_terminal)
            self._wipe()

    def _wipe(self) -> None:
        self._status = ""
        if self._is_drawn:
            self._is_drawn = False
            self._people.file.write("\r\x1b[K")
            self._people.file.flush()

    def _draw(self) -> None:
        self._drawn_s = time.monotonic()
        seconds = int(self._drawn_s - self._since_s)
        line, clock = Text(f"   {escape_for_display(self._status)}", style="dim"), f", {seconds} s" * bool(seconds)
        line.truncate(max(self._people.width - len("^C") - 1 - len(clock), 1))  # two lines could not be wiped
        line.append(clock)
        self._people.file.write("\r")
        self._people.print(line, end="")
        self._people.file.write("\x1b[K")
        self._people.file.flush()
        self._is_drawn = True

    def _tick(self) -> None:
        while True:
            time.sleep(TICK_S)
            with self._writing:
                if not self._status:
                    self._ticker = None
                    return
                with suppress(OSError):  # the terminal is gone; whoever writes next hears of it
                    self._draw()
