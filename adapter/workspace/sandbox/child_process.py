"""A program and all that it starts: its own session, nothing on stdin, no secrets, an end in time.

What this promises: when `ChildProcess.close` returns, the program and everything
that descends from it is gone, on Linux also what made itself a session, forked
twice or ignores signals; the same happens when this process ends in any way.
Memory is bounded by what takes the output, and no credential of the environment
is passed on. What it does not promise: without a sandbox
(`adapter.workspace.sandbox.sandbox`) a program can read and write wherever the user can,
and can have work done by daemons that run already. Elsewhere than on Linux, what leaves the program's
process group outlives it.
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
"""Of one command at a time; more is a fork bomb."""
GRACE_S = 2.0
"""From the request to end to the end by force."""
_READ_BYTES = 131_072
_PIPE_BYTES = 262_144
"""A larger pipe than the usual 64 KB takes fewer turns to empty; a much larger one falls out of the cache."""
_LAST_READS = 64
"""What is left in a pipe is read; should somebody we could not end go on printing, it is not listened to."""
_F_SETPIPE_SZ = 1031
_WAIT_S = 1.0
_TOKEN = "ADAPTER_COMMAND"
"""The variable by which processes are found whose supervisor was killed."""

_PASSED_ON = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE"),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME"),
        *("JAVA_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"),
    }
)
"""Also LC_*; everything else stays here."""
_QUIET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "PYTHONUNBUFFERED": "1",
}
"""Nothing may ask, page or colour: nobody is there to answer."""

Sink = Callable[[bytes], object]


def scrub_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment a program gets: an allow-list, and of that nothing that looks like a secret."""
    passed = {
        name: value
        for name, value in environment.items()
        if (name in _PASSED_ON or name.startswith("LC_")) and not SECRET_NAME.search(name)
    }
    return passed | _QUIET


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """How a command came to its end."""

    exit_code: int | None
    """As a shell gives it, 128 + signal for one that was killed; None when it was stopped by us."""
    left: int = 0
    """Processes that it had left behind, which were killed."""
    reason: Literal["", "stopped", "multiplied", "lost"] = ""
    """Why it ended when not by itself: we stopped it, it had too many processes, or it killed its supervisor."""


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """What is to be run, and what it gives up first; see `adapter.workspace.sandbox.supervisor`.

    ``environment``: changes to the scrubbed one, None for what is left out.
    """

    argv: Sequence[str]
    environment: Mapping[str, str | None] = field(default_factory=dict)
    is_wrapped: bool = False
    filter: bytes | None = None
    landlock: Mapping[str, object] | None = None


class ChildProcess:
    """``job`` running in the open directory ``directory``. Close it, or use it in a ``with``.

    ``sinks``: what takes the output, called in the thread that waits; one for
    stdout and stderr as they come, or one for each. Raises OSError when no
    process can be started at all, ToolError for a NUL; `wait` raises ToolError when the program cannot be.
    """

    def __init__(self, job: ProcessSpec, directory: int, *sinks: Sink) -> None:
        if any("\0" in word for word in job.argv):
            raise ToolError("the command contains a NUL character, which no program can be given; nothing was run")
        self.ending: ProcessExit | None = None
        self._failed: tuple[int, str] | None = None
        self._token = secrets.token_hex(16)
        self._heard = b""
        environment = scrub_environment(os.environ)
        with ExitStack() as ours, ExitStack() as theirs:
            # Whatever fails or interrupts here closes our ends, and that ends the supervisor.
            self._control, control = map(ours.enter_context, socket.socketpair())
            theirs.enter_context(control)
            pipes = [os.pipe() for _ in sinks]
            readers = [ours.enter_context(os.fdopen(reader, "rb", 0)) for reader, _ in pipes]
            writers = [theirs.enter_context(os.fdopen(writer, "wb", 0)) for _, writer in pipes]
            given = (control.fileno(), writers[0].fileno(), writers[-1].fileno())
            self._supervisor = _start(given, directory, environment)
            changed = {**environment, **job.environment, _TOKEN: self._token}
            said = {
                "argv": list(job.argv),
                "environment": {name: value for name, value in changed.items() if value is not None},
                "processes": MAX_PROCESSES,
                "wrapped": job.is_wrapped,
                "filter": job.filter or b"",
                "landlock": job.landlock,
            }
            with suppress(BrokenPipeError):  # it is gone already: `wait` will notice
                self._control.sendall(supervisor.line_of(said))
            self._ours = ours.pop_all()
        self._open = {reader.fileno(): sink for reader, sink in zip(readers, sinks, strict=True)}
        self._poller = select.poll()
        self._poller.register(self._control, select.POLLIN)
        for descriptor in self._open:
            os.set_blocking(descriptor, False)
            self._poller.register(descriptor, select.POLLIN)

    def wait(self, deadline: float = math.inf, idle_s: float = math.inf) -> bool:
        """Collect output until the command and all it started have ended (True), or until ``deadline`` (of
        `time.monotonic`) or ``idle_s`` seconds without output (False)."""
        last = time.monotonic()
        while self.ending is None:
            remaining = min(deadline, last + idle_s) - time.monotonic()
            if remaining <= 0:
                return False
            for descriptor, _ in self._poller.poll(math.ceil(min(remaining, _WAIT_S) * 1_000)):
                if descriptor == self._control.fileno():
                    self._listen()
                elif self._take(descriptor):
                    last = time.monotonic()
        for descriptor in list(self._open):
            for _ in range(_LAST_READS):
                if not self._take(descriptor):
                    break
        if self._failed is not None:
            number, step = self._failed
            if step:
                raise ToolError(
                    f"the sandbox could not be set up ({step}: {os.strerror(number)}); nothing was run. "
                    "Do not try it again; the user can see what is wrong with `adapter doctor`"
                )
            raise explain_os_error(OSError(number, os.strerror(number)), "the program was not started")
        return True

    def ask_to_end(self) -> None:
        self._say(b"t")

    def stop(self) -> None:
        """Have everything ended now; whoever waits gets to know. For use from any thread."""
        self._say(b"k")

    def close(self) -> None:
        """End what is still there. Returns when nothing is left."""
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

    def _say(self, word: bytes) -> None:
        with suppress(OSError):  # it has ended
            self._control.send(word)

    def _listen(self) -> None:
        try:
            data = self._control.recv(4_096)
        except ConnectionResetError:
            data = b""
        self._heard += data
        if not data:
            self._end_by_force()
        elif self._heard.endswith(b"\n"):
            report = ast.literal_eval(self._heard.decode())
            self._failed = (report["failed"], report["step"]) if "failed" in report else None
            self.ending = ProcessExit(report.get("exit"), report.get("left", 0), report.get("reason", ""))

    def _take(self, descriptor: int) -> bool:
        """Whether there was output."""
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
        """For when the supervisor was killed or stopped by the very program it watches."""
        give_up = time.monotonic() + supervisor.GIVE_UP_S
        while time.monotonic() < give_up:
            found = [*(pid for pid, *_ in supervisor.descendants(self._supervisor.pid)), *_bearers(self._token)]
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
        env=dict(environment),  # not ours: a program may read that of its parent
        start_new_session=True,  # Ctrl-C at the terminal is for us alone
        pass_fds=descriptors,
        # By descriptor: a path would be looked up again, and might be another directory by then.
        # Python 3.12 warns of preexec_fn in a process with threads, so it is only for systems without /proc.
        cwd=f"/proc/self/fd/{directory}" if supervisor.HAS_PROC else None,
        preexec_fn=None if supervisor.HAS_PROC else lambda: os.fchdir(directory),
    )


def _bearers(token: str) -> Iterator[int]:
    """The processes that inherited ``token`` in their environment."""
    needle = f"{_TOKEN}={token}".encode()
    for folder in Path("/proc").glob("[0-9]*") if supervisor.HAS_PROC else ():
        with suppress(OSError):
            if needle in (folder / "environ").read_bytes():
                yield int(folder.name)
