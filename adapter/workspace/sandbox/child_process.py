"""Run a program and its descendants in a session of their own, without stdin and secrets, and end them in time.

Guarantees: when `ChildProcess.close` returns, the program and its descendants are gone, on Linux including those that
created a session, forked twice or ignore signals; the same happens when this process ends in any way. Memory is
bounded by the sinks, and no credential of the environment is passed on. Not guaranteed: without a sandbox
(`adapter.workspace.sandbox.sandbox`), a program can read and write wherever the user can, and use running daemons. On
systems other than Linux, processes that leave the program's process group outlive it.
"""

from __future__ import annotations

import ast
import math
import os
import secrets
import select
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from adapter.core.errors import ToolError
from adapter.core.text.redaction import SECRET_NAME
from adapter.workspace.paths.os_errors import explain_os_error
from adapter.workspace.sandbox import supervisor

MAX_PROCESSES = 1_000
"""Maximum number of processes of a command at a time; more is a fork bomb."""
GRACE_S = 2.0
"""Time between SIGTERM and SIGKILL, in seconds."""
_READ_BYTES = 131_072
_PIPE_BYTES = 262_144
"""Larger than the default 64 KB, to need fewer reads; a much larger pipe falls out of the cache."""
_LAST_READS = 64
"""Maximum number of reads after the end, in case a process that could not be ended keeps printing."""
_F_SETPIPE_SZ = 1031
_WAIT_S = 1.0
_TOKEN = "ADAPTER_COMMAND"
"""Environment variable that identifies the processes of a killed supervisor."""

_PASSED_ON = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE"),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME"),
        *("JAVA_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"),
    }
)
"""Environment variables passed on, in addition to LC_*; all others are dropped."""
_QUIET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "PYTHONUNBUFFERED": "1",
}
"""Disables prompts, pagers and colors: no user is there to answer."""

Sink = Callable[[bytes], object]


def scrub_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a program: an allow-list, without names that look like secrets."""
    passed = {
        name: value
        for name, value in environment.items()
        if (name in _PASSED_ON or name.startswith("LC_")) and not SECRET_NAME.search(name)
    }
    return passed | _QUIET


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """The end of a command."""

    exit_code: int | None
    """As in a shell: 128 + signal if killed; None if we stopped it."""
    left: int = 0
    """Number of processes that it left behind, which were killed."""
    reason: Literal["", "stopped", "multiplied", "lost"] = ""
    """Why it was ended, if it was: stopped by us, a fork bomb, or its supervisor was killed."""


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """A program to run and the rights it gives up first; see `adapter.workspace.sandbox.supervisor`.

    ``environment``: changes to the scrubbed environment, None removes a variable.
    """

    argv: Sequence[str]
    environment: Mapping[str, str | None] = field(default_factory=dict)
    is_wrapped: bool = False
    filter: bytes | None = None
    landlock: Mapping[str, object] | None = None


class ChildProcess:
    """A running program, started in the open directory ``directory``. Close it, or use it in a ``with``.

    ``sinks`` receive the output, in the waiting thread: one for stdout and stderr interleaved, or one for each. Raises
    OSError if no process can be started, ToolError for a NUL; `wait` raises ToolError if the program cannot be started.
    """

    def __init__(self, job: ProcessSpec, directory: int, *sinks: Sink) -> None:
        if any("\0" in word for word in job.argv):
            raise ToolError("the command contains a NUL character, which programs cannot receive; nothing was run")
        self.ending: ProcessExit | None = None
        self._failed: tuple[int, str] | None = None
        self._token = secrets.token_hex(16)
        self._received = b""
        environment = scrub_environment(os.environ)
        with ExitStack() as ours, ExitStack() as theirs:
            # Any failure or interrupt here closes our ends, which ends the supervisor.
            self._control, control = map(ours.enter_context, socket.socketpair())
            theirs.enter_context(control)
            pipes = [os.pipe() for _ in sinks]
            readers = [ours.enter_context(os.fdopen(reader, "rb", 0)) for reader, _ in pipes]
            writers = [theirs.enter_context(os.fdopen(writer, "wb", 0)) for _, writer in pipes]
            descriptors = (control.fileno(), writers[0].fileno(), writers[-1].fileno())
            self._supervisor = _start(descriptors, directory, environment)
            changed = {**environment, **job.environment, _TOKEN: self._token}
            request = {
                "argv": list(job.argv),
                "environment": {name: value for name, value in changed.items() if value is not None},
                "processes": MAX_PROCESSES,
                "wrapped": job.is_wrapped,
                "filter": job.filter or b"",
                "landlock": job.landlock,
            }
            with suppress(BrokenPipeError):  # the supervisor has ended: `wait` will notice
                self._control.sendall(supervisor.encode_job(request))
            self._ours = ours.pop_all()
        self._open = {reader.fileno(): sink for reader, sink in zip(readers, sinks, strict=True)}
        self._poller = select.poll()
        self._poller.register(self._control, select.POLLIN)
        for descriptor in self._open:
            os.set_blocking(descriptor, False)
            self._poller.register(descriptor, select.POLLIN)

    def wait(self, deadline: float = math.inf, idle_s: float = math.inf) -> bool:
        """Collect output until the command and its descendants have ended (True), or until ``deadline`` (of
        `time.monotonic`) or ``idle_s`` seconds without output (False)."""
        last = time.monotonic()
        while self.ending is None:
            remaining = min(deadline, last + idle_s) - time.monotonic()
            if remaining <= 0:
                return False
            for descriptor, _ in self._poller.poll(math.ceil(min(remaining, _WAIT_S) * 1_000)):
                if descriptor == self._control.fileno():
                    self._read_report()
                elif self._read_output(descriptor):
                    last = time.monotonic()
        for descriptor in list(self._open):
            for _ in range(_LAST_READS):
                if not self._read_output(descriptor):
                    break
        if self._failed is not None:
            number, step = self._failed
            if step:
                raise ToolError(
                    f"the sandbox could not be set up ({step}: {os.strerror(number)}); nothing was run. "
                    "Do not try it again; the user can find the cause with `adapter doctor`"
                )
            raise explain_os_error(OSError(number, os.strerror(number)), "the program was not started")
        return True

    def ask_to_end(self) -> None:
        self._send(b"t")

    def stop(self) -> None:
        """End everything now; waiting callers return. Thread-safe."""
        self._send(b"k")

    def close(self) -> None:
        """End all remaining processes, and return when they are gone."""
        if self.ending is None:
            self.stop()
            with suppress(ToolError):
                self.wait(time.monotonic() + supervisor.GIVE_UP_S)
            if self.ending is None:
                self._end_by_force()
        self._supervisor.wait()
        self._ours.close()

    def __enter__(self) -> ChildProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, word: bytes) -> None:
        with suppress(OSError):  # it has ended
            self._control.send(word)

    def _read_report(self) -> None:
        try:
            data = self._control.recv(4_096)
        except ConnectionResetError:
            data = b""
        self._received += data
        if not data:
            self._end_by_force()
        elif self._received.endswith(b"\n"):
            report = ast.literal_eval(self._received.decode())
            self._failed = (report["failed"], report["step"]) if "failed" in report else None
            self.ending = ProcessExit(report.get("exit"), report.get("left", 0), report.get("reason", ""))

    def _read_output(self, descriptor: int) -> bool:
        """Read once; return whether there was output."""
        if descriptor not in self._open:
            return False
        try:
            data = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._poller.unregister(descriptor)
            del self._open[descriptor]
            return False
        self._open[descriptor](data)
        return True

    def _end_by_force(self) -> None:
        """End everything without the supervisor, which the program has killed or stopped."""
        give_up = time.monotonic() + supervisor.GIVE_UP_S
        while time.monotonic() < give_up:
            found = [
                *(pid for pid, *_ in supervisor.descendants(self._supervisor.pid)),
                *_processes_with_token(self._token),
            ]
            for pid in found:
                supervisor.kill(pid)
            if not found:
                break
            time.sleep(0.01)
        supervisor.kill(self._supervisor.pid)
        self.ending = ProcessExit(None, reason="lost")


def _start(descriptors: Sequence[int], directory: int, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    with suppress(ImportError, OSError):
        import fcntl

        for descriptor in descriptors[1:]:
            fcntl.fcntl(descriptor, _F_SETPIPE_SZ, _PIPE_BYTES)
    return subprocess.Popen(
        [*supervisor.COMMAND, *map(str, descriptors)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(environment),  # scrubbed: a program may read its parent's
        start_new_session=True,  # Ctrl-C at the terminal must reach only us
        pass_fds=descriptors,
        # By descriptor: a path would be resolved again, and might be another directory by then. Python 3.12 warns of
        # preexec_fn in a process with threads, so it is used only without /proc.
        cwd=f"/proc/self/fd/{directory}" if supervisor.HAS_PROC else None,
        preexec_fn=None if supervisor.HAS_PROC else lambda: os.fchdir(directory),
    )


def _processes_with_token(token: str) -> Iterator[int]:
    """Yield the processes that have ``token`` in their environment."""
    needle = f"{_TOKEN}={token}".encode()
    for folder in Path("/proc").glob("[0-9]*") if supervisor.HAS_PROC else ():
        with suppress(OSError):
            if needle in (folder / "environ").read_bytes():
                yield int(folder.name)
