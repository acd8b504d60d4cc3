"""A pseudo terminal of any size, and its screen as a person sees it, rendered by pyte."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyte
from pyte.screens import Char

from tests.command_line import forked

LINES = 200
"""Enough that nothing scrolls out of sight."""
PATIENCE_S = 60.0


class Terminal:
    """`adapter`, or a Python file, at a terminal.

    ``columns``: its width. ``environ``: additional variables. ``stdout`` and ``stdin`` may be files instead.
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
    ) -> None:
        self.shown = b""
        self._screen = pyte.Screen(columns, LINES)
        self._stream = pyte.ByteStream(self._screen)
        given = {"TERM": "xterm", "LINES": "", "COLUMNS": "", "NO_COLOR": "", "FORCE_COLOR": ""} | (environ or {})
        settings = {name: value for name, value in {**os.environ, **given}.items() if value or name not in given}
        self._terminal, self._other_end = pty.openpty()
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
        device = os.ttyname(self._other_end)
        streams = (stdin or device, stdout or device, device)
        self._process = forked(words, folder, settings, streams, at_terminal=True)

    def wait_for(self, text: str, times: int = 1) -> None:
        """Wait until ``text`` is on the screen."""
        self._read(lambda: self.text.count(text) >= times, f"{text!r} was not shown")

    def type(self, text: str, after: str | None = None, times: int = 1) -> None:
        r"""Type ``keys`` once ``after`` is on the screen. ``\x03`` is Ctrl-C, ``\x04`` Ctrl-D."""
        if after is not None:
            self.wait_for(after, times)
        os.write(self._terminal, text.encode())

    def end(self) -> int:
        """Return the exit code, once all output was read."""
        self._read(lambda: False, "it does not end", until_end=True)
        os.close(self._terminal)
        os.close(self._other_end)
        assert self._process.exitcode is not None
        return self._process.exitcode

    @property
    def text(self) -> str:
        """Return the screen without trailing spaces and lines. A wide character is followed by an empty cell.

        The echo of Ctrl-C is missing: the kernel sends the signal first, so other output may come before the echo.
        """
        buffer, columns = self._screen.buffer, range(self._screen.columns)
        rows = ("".join(buffer[line][column].data for column in columns) for line in range(max(buffer, default=-1) + 1))
        return "\n".join(row.replace("^C", "").rstrip() for row in rows).rstrip()

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @property
    def cells(self) -> list[list[Char]]:
        """Return the screen with its colors, line by line."""
        return [[self._screen.buffer[line][column] for column in range(self._screen.columns)] for line in range(LINES)]

    def _read(self, is_enough: Callable[[], bool], failure: str, *, until_end: bool = False) -> None:
        deadline, is_new = time.monotonic() + PATIENCE_S, True
        while not (is_new and is_enough()):  # to draw the screen takes longer than all else
            if time.monotonic() > deadline:
                self._process.kill()
                raise AssertionError(f"{failure}; the screen is:\n{self.text}")
            has_ended = self._process.exitcode is not None
            is_new = bool(select.select([self._terminal], [], [], 0 if has_ended else 0.02)[0])
            if is_new:
                piece = os.read(self._terminal, 4096)
                self.shown += piece
                self._stream.feed(piece)
            elif has_ended and until_end:
                return
            elif has_ended:
                raise AssertionError(f"{failure}; it ended with the screen:\n{self.text}")
