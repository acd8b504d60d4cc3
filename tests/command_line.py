"""Run the command line in a forked process, which does not import it again.

A server that has imported it is forked for each run, so each run has its own folder, environment, streams and exit
code, and takes milliseconds. Start-up itself is tested with new interpreters.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING

from adapter import dialects
from adapter.cli.app import COMMANDS
from adapter.parsing.formats import FORMATS

PRELOADED = [
    "__main__",
    "adapter.agent",
    *sorted(
        f"adapter.cli.{module}"
        for module in {"app", "main", "run_task", *(place.split(".")[0] for place in COMMANDS.values())}
    ),
    *dialects._MODULES.values(),
    *(f"adapter.parsing.formats.{name}" for name in FORMATS),
    "adapter.integrations.mcp.server",
    "adapter.server.app",
    "adapter.recording.replay",
    "adapter.workspace.workspace",
    "openai.resources.chat.completions",
    "rich.console",
    "tests.command_line",
    "tests.warmed",
    *("adapter.server.http_limits", "encodings.idna"),
    *("uvicorn.lifespan.on", "uvicorn.loops.asyncio", "uvicorn.loops.auto"),
    *("adapter.evaluation.eval_view_data", "adapter.outline.syntax", "openai.resources.models", "regex"),
    *("typer.rich_utils", "rich._emoji_codes", "rich.columns", "rich.panel", "rich.scope", "rich.traceback"),
    # what these import when a model is asked, its answer shown or a call checked
    *("adapter.cli.chat_loop", "httpcore2", "jsonschema", "prompt_toolkit", "rich.markdown", "tenacity"),
]
"""The fork server skips a module that it cannot find, so `test_preloaded_modules_exist` checks them."""
if TYPE_CHECKING or sys.platform != "win32":
    FORKED = multiprocessing.get_context("forkserver")
    FORKED.set_forkserver_preload(PRELOADED)
else:
    FORKED = multiprocessing.get_context("spawn")
"""Forks processes from one that has imported only these modules; on Windows, starts fresh ones."""


@dataclass(frozen=True)
class Running:
    """A running command. Its streams are files."""

    process: BaseProcess
    stdout: Path
    stderr: Path

    def first_lines(self, count: int = 1, seconds: float = 60) -> str:
        """Return the first lines on standard error, or everything if the command ends before they are complete."""
        until = time.monotonic() + seconds
        while (ends := self.process.exitcode is not None) or time.monotonic() < until:
            text = self.stderr.read_text(encoding="utf-8") if self.stderr.exists() else ""
            if text.count("\n") >= count or ends:
                return text if ends else "".join(text.splitlines(keepends=True)[:count])
            time.sleep(0.005)
        raise TimeoutError(self.stderr.read_text(encoding="utf-8"))


@contextmanager
def started(
    *words: object,
    cwd: str | os.PathLike[str] | None = None,
    text: str = "",
    env: Mapping[str, str] | None = None,
    terminal: str | None = None,
) -> Iterator[Running]:
    """Start ``adapter WORDS...``, and end it after the block if it is still running.

    ``text``, or the device of a terminal, is its standard input; ``env`` is added to this process's environment. It has
    its own process group, because Ctrl-C at the terminal is for the tests.
    """
    environment = {**os.environ, "NO_COLOR": "1", **(env or {})}
    with tempfile.TemporaryDirectory() as folder:
        stdin, stdout, stderr = (Path(folder) / name for name in ("stdin", "stdout", "stderr"))
        stdin.write_text(text, encoding="utf-8", newline="")
        streams = (terminal or str(stdin), str(stdout), str(stderr))
        process = forked(words, cwd or Path.cwd(), environment, streams)
        try:
            yield Running(process, stdout, stderr)
        finally:
            process.terminate()
            process.join()


def adapter(*words: object, timeout: float = 100, **where: object) -> subprocess.CompletedProcess[str]:
    """Run ``adapter WORDS...`` for at most ``timeout`` seconds. ``where``: see `started`."""
    with started(*words, **where) as run:  # type: ignore[arg-type]
        run.process.join(timeout)
        code = run.process.exitcode
        texts = [file.read_text(encoding="utf-8") if file.exists() else "" for file in (run.stdout, run.stderr)]
    if code is None:
        raise subprocess.TimeoutExpired([str(word) for word in words], timeout, *texts)
    return subprocess.CompletedProcess([str(word) for word in words], code, *texts)


def forked(
    words: Iterable[object],
    cwd: str | os.PathLike[str],
    environment: Mapping[str, str],
    streams: Sequence[str],
    *,
    at_terminal: bool = False,
) -> BaseProcess:
    """Fork the command, or the Python file that ``words`` begin with, with files or devices as its three streams.

    ``at_terminal``: the last of ``streams`` is a terminal, which sends signals to the process.
    """
    arguments = ([str(word) for word in words], str(cwd), dict(environment), list(streams), at_terminal)
    if sys.platform == "win32":
        return _Interpreter(*arguments[:4])  # type: ignore[unreachable,return-value]
    process = FORKED.Process(target=_run, args=arguments)
    process.start()
    return process


class _Interpreter:
    """A fresh interpreter, for systems that cannot fork. It has the members of `BaseProcess` that tests use."""

    def __init__(self, words: list[str], cwd: str, environment: dict[str, str], streams: list[str]) -> None:
        command = [sys.executable, *([] if words[0].endswith(".py") else ["-m", "adapter"]), *words]
        stdin, stdout, stderr = (open(stream, "wb" if number else "rb") for number, stream in enumerate(streams))  # noqa: SIM115, PTH123
        with stdin, stdout, stderr:
            self._process = subprocess.Popen(
                command, cwd=cwd, env=environment, stdin=stdin, stdout=stdout, stderr=stderr
            )
        self.pid, self.terminate = self._process.pid, self._process.terminate

    @property
    def exitcode(self) -> int | None:
        return self._process.poll()

    def join(self, timeout: float | None = None) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)


def _run(words: list[str], cwd: str, environment: dict[str, str], streams: list[str], at_terminal: bool) -> None:
    import fcntl
    import termios

    os.setsid()
    for number, stream in enumerate(streams):
        opened = os.open(stream, (os.O_RDWR | os.O_CREAT if number else os.O_RDONLY) | os.O_NOCTTY, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    if at_terminal:
        fcntl.ioctl(2, termios.TIOCSCTTY, 0)
    # For as long as the process runs; what the server had knows other files, and whether one can seek in them.
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    os.fsync = os.fstat  # type: ignore[assignment]  # as in `tests/conftest.py`
    if words[0].endswith(".py"):
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")
        return
    sys.argv = ["adapter", *words]
    from adapter.cli.main import main

    main()
