"""A pseudo terminal of any size with a person at it, and the screen that they see in the end, drawn by pyte."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyte

LINES = 200
"""Enough for nothing to scroll away."""
PATIENCE_S = 60.0


class Terminal:
    """`adapter` (or, with ``program``, a Python file) at a terminal.

    ``columns`` wide; ``environ`` besides the tests'. ``stdout`` and ``stdin`` may be files in its place.
    """

    def __init__(
        self,
        words: Sequence[object],
        folder: Path,
        *,
        columns: int = 80,
        environ: dict[str, str] | None = None,
        stdin: str | None = None,
        stdout: str | None = None,
        program: Sequence[object] = ("-m", "adapter"),
    ) -> None:
        self.shown = b""
        self._screen = pyte.Screen(columns, LINES)
        self._stream = pyte.ByteStream(self._screen)
        given = {"TERM": "xterm", "LINES": "", "COLUMNS": "", "NO_COLOR": "", "FORCE_COLOR": ""} | (environ or {})
        settings = {name: value for name, value in {**os.environ, **given}.items() if value or name not in given}
        argv = [sys.executable, *map(str, (*program, *words))]
        self._process, self._terminal = pty.fork()
        if self._process == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
            os.chdir(folder)
            if stdin is not None:
                os.dup2(os.open(stdin, os.O_RDONLY), 0)
            if stdout is not None:
                os.dup2(os.open(stdout, os.O_WRONLY | os.O_CREAT), 1)
            os.execve(sys.executable, argv, settings)

    def wait_for(self, text: str, times: int = 1) -> None:
        """Until ``text`` is on the screen."""
        self._read(lambda: self.text.count(text) >= times, f"{text!r} was not shown")

    def type(self, text: str, after: str | None = None, times: int = 1) -> None:
        """As typed, ``after`` that is on the screen. ``\\x03`` is Ctrl-C, ``\\x04`` Ctrl-D."""
        if after is not None:
            self.wait_for(after, times)
        os.write(self._terminal, text.encode())

    def end(self) -> int:
        """The exit code, once everything was shown."""
        self._read(lambda: False, "it does not end", until_end=True)
        _, status = os.waitpid(self._process, 0)
        os.close(self._terminal)
        return os.waitstatus_to_exitcode(status)

    @property
    def text(self) -> str:
        """The screen, without what is blank behind and below."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip("\n")

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    def _read(self, is_enough: Callable[[], bool], failure: str, *, until_end: bool = False) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_enough():
            if time.monotonic() > deadline:
                os.kill(self._process, signal.SIGKILL)
                raise AssertionError(f"{failure}; the screen is:\n{self.text}")
            if not select.select([self._terminal], [], [], 0.2)[0]:
                continue
            try:
                piece = os.read(self._terminal, 4096)
            except OSError:  # the other end is closed
                if until_end:
                    return
                raise AssertionError(f"{failure}; it ended with the screen:\n{self.text}") from None
            self.shown += piece
            self._stream.feed(piece)
