"""Run a program on Windows, as `child_process` does on other systems, and end it together with its descendants.

The program has no stdin, no secrets of the environment and no window. It has its own console, so Ctrl-C in the user's
terminal does not reach it. It is created suspended, and runs only once it belongs to the job: no descendant can be left
behind when the job or this process ends. Windows has no SIGTERM for a program without a window, so a program that must
end is ended at once. Processes started by a service for the program (WMI, scheduled tasks, WSL) are not in the job.
"""

from __future__ import annotations

import math
import os
import queue
import re
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import IO, Literal

from adapter.core.errors import ToolError
from adapter.workspace.paths.descriptor_syscalls import calls
from adapter.workspace.sandbox.child_process import (
    MAX_PROCESSES,
    ProcessExit,
    ProcessSpec,
    Sink,
    check_words,
    scrub_environment,
)
from adapter.workspace.sandbox.windows_job import JobObject

GIVE_UP_S = 5.0
"""Maximum wait for ended processes and for the end of their output, in seconds."""
_POLL_S = 0.05
_SETTLE_S = 0.2
"""Time that the remaining processes of an ended command, such as its console, have to end, in seconds."""
_READ_BYTES = 131_072
_MAX_WAITING = 16
"""Maximum number of reads buffered for `WindowsProcess.wait`. The program then waits."""
_SYSTEM = f"{os.environ.get('SYSTEMROOT', '')}\\System32"
CMD = f"{_SYSTEM}\\cmd.exe"
MAX_CMD = 8_000
"""Maximum length of a line for cmd.exe. Its own limit is 8,191 characters."""
_CMD_OPTIONS = ["/d", "/v:off", "/s", "/c"]
"""Options of cmd.exe: run no commands from the registry, do not expand ``!``, and remove only the outer quotes."""
_CREATE_SUSPENDED, _CREATE_NO_WINDOW = 0x4, 0x0800_0000
_BATCH = re.compile(r".*\.(?:bat|cmd)[. ]*", re.IGNORECASE | re.DOTALL)
_SAFE_IN_BATCH = re.compile(r"[\w ./\\:@+-]*")


class WindowsProcess:
    """A program running in the open directory ``directory``, like `child_process.ChildProcess`.

    Raises OSError if it cannot be started, ToolError if an argument contains a NUL or, for a batch file, a character
    that cmd.exe would interpret.
    """

    def __init__(self, job: ProcessSpec, directory: int, *sinks: Sink) -> None:
        check_words(job.argv)
        cwd = calls.find_path(directory)
        assert cwd is not None
        changed = {**scrub_environment(os.environ), **job.environment}
        self.ending: ProcessExit | None = None
        self._sinks = sinks
        self._output: queue.Queue[tuple[int, bytes]] = queue.Queue(_MAX_WAITING)
        self._open = set(range(len(sinks)))
        self._is_stopped = False
        with ExitStack() as stack:
            self._job = JobObject(2 * MAX_PROCESSES)
            stack.callback(self._job.close)
            self._process = subprocess.Popen(
                build_command_line(job.argv, cwd),
                cwd=cwd,
                env={name: value for name, value in changed.items() if value is not None},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if len(sinks) == 1 else subprocess.PIPE,
                bufsize=0,
                creationflags=_CREATE_SUSPENDED | _CREATE_NO_WINDOW,
            )
            stack.callback(self._process.kill)
            self._job.adopt(self._process)
            stack.pop_all()
        for number, stream in enumerate((self._process.stdout, self._process.stderr)[: len(sinks)]):
            assert stream is not None
            threading.Thread(target=self._read, args=(number, stream), daemon=True).start()

    def wait(self, deadline: float = math.inf, idle_s: float = math.inf) -> bool:
        """Collect output until the command and its descendants have ended, and return True.

        Return False at ``deadline``, a value of `time.monotonic`, or after ``idle_s`` seconds without output.
        """
        last = time.monotonic()
        while self.ending is None:
            remaining = min(deadline, last + idle_s) - time.monotonic()
            if remaining <= 0:
                return False
            if self._take(min(remaining, _POLL_S)):
                last = time.monotonic()
            if self._is_stopped:
                self._end(None, "stopped")
            elif self._job.count() > MAX_PROCESSES:
                self._end(None, "multiplied")
            elif self._process.poll() is not None:
                self._end(self._process.returncode)
        return True

    def ask_to_end(self) -> None:
        self.stop()

    def stop(self) -> None:
        """End all processes now, so that waiting callers return. Thread-safe."""
        self._is_stopped = True
        self._job.terminate()

    def close(self) -> None:
        """End all remaining processes, and wait until they have ended."""
        try:
            if self.ending is None:
                self.stop()
                self.wait()
        finally:
            self._job.close()

    def __enter__(self) -> WindowsProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end(self, code: int | None, reason: Literal["", "stopped", "multiplied"] = "") -> None:
        """End the processes that still run, collect the last output, and set `ending`."""
        left = 0 if reason else self._count_until(time.monotonic() + _SETTLE_S)
        self._job.terminate()
        give_up = time.monotonic() + GIVE_UP_S
        self._count_until(give_up)
        while self._open and self._take(give_up - time.monotonic()):
            pass
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GIVE_UP_S)
        self.ending = ProcessExit(code, left, reason)

    def _count_until(self, deadline: float) -> int:
        """Wait until all processes have ended, but at most until ``deadline``, and return the number that still run."""
        while (running := self._job.count()) and time.monotonic() < deadline:
            self._take(0.01)
        return running

    def _take(self, timeout_s: float) -> bool:
        """Handle the next output or end of a stream, and return whether there was one within ``timeout_s``."""
        try:
            number, data = self._output.get(timeout=max(timeout_s, 0))
        except queue.Empty:
            return False
        if data:
            self._sinks[number](data)
        else:
            self._open.discard(number)
        return True

    def _read(self, number: int, stream: IO[bytes]) -> None:
        with stream:
            data = b"-"
            while data:
                data = os.read(stream.fileno(), _READ_BYTES)
                self._output.put((number, data))


def build_cmd_argv(line: str) -> list[str]:
    """Return the arguments for `WindowsProcess` to run ``line`` in cmd.exe, with UTF-8 as the code page. Raises
    ToolError if cmd.exe would run only a part of the line."""
    line = line.strip()
    if "\n" in line or "\r" in line or len(line) > MAX_CMD:
        raise ToolError(
            f"cmd.exe runs one line of at most {MAX_CMD:,} characters; nothing was run. "
            "Join commands with &&, or write them to a .bat file"
        )
    return [CMD, *_CMD_OPTIONS, f"{_SYSTEM}\\chcp.com 65001 >nul 2>&1 & {line}"]


def build_command_line(argv: Sequence[str], directory: str) -> str:
    """Return ``argv`` as the command line of a program that runs in ``directory``.

    Raises ToolError if the program is a batch file, and an argument has a character that cmd.exe would interpret.
    """
    program, *arguments = argv
    if program == CMD and arguments[:-1] == _CMD_OPTIONS:
        return f'"{program}" {" ".join(_CMD_OPTIONS)} "{arguments[-1]}"'
    if _BATCH.fullmatch(program) and not all(map(_SAFE_IN_BATCH.fullmatch, arguments)):
        raise ToolError(
            "cmd.exe reads the arguments of a batch file as a command line, so they may contain only letters, digits "
            "and ._/\\:@+-; nothing was run"
        )
    return subprocess.list2cmdline([os.path.join(directory, program), *arguments])  # noqa: PTH118
