"""Run a program in a new session, without stdin or secrets, and end it together with its descendants.

When `ChildProcess.close` returns or this process ends in any way, the program and its descendants have ended. On Linux,
this includes descendants that created a session, forked twice or ignore signals; on other systems, processes that leave
the program's process group survive. Output goes to functions (sinks), which limit the memory that it takes. No
credential of the environment is passed on. Without a sandbox (`adapter.workspace.sandbox.sandbox`), a program can read
and write every file that the user can, and use running daemons.
"""

from __future__ import annotations

import ast
import math
import os
import secrets
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from adapter.core.errors import ToolError
from adapter.core.text.redaction import SECRET_NAME
from adapter.workspace.paths.descriptor_syscalls import calls
from adapter.workspace.paths.os_errors import explain_os_error
from adapter.workspace.sandbox import supervisor

MAX_PROCESSES = 1_000
"""Maximum number of processes of a command at a time. A command with more is ended as a fork bomb."""
GRACE_S = 2.0
"""Time between SIGTERM and SIGKILL, in seconds."""
_READ_BYTES = 131_072
_PIPE_BYTES = 262_144
"""Size of the output pipe. It needs fewer reads than the default of 64 KB, and still fits in the processor's cache."""
_LAST_READS = 64
"""Maximum number of reads after the command has ended: a process that could not be killed may keep printing."""
_F_SETPIPE_SZ = 1031
_WAIT_S = 1.0
_TOKEN = "ADAPTER_COMMAND"
"""Environment variable that identifies the processes of a supervisor that was killed."""

_PASSED_ON = {
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE"),
    *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME"),
    *("JAVA_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"),
}
"""Environment variables that a program gets, in addition to ``LC_*``. All others are removed."""
_PASSED_ON_WINDOWS = _PASSED_ON | {
    *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "OS", "TEMP", "TMP", "PSMODULEPATH"),
    *("USERPROFILE", "HOMEDRIVE", "HOMEPATH", "USERNAME", "USERDOMAIN", "COMPUTERNAME", "PUBLIC"),
    *("APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "ALLUSERSPROFILE", "PROGRAMFILES", "PROGRAMFILES(X86)"),
    *("PROGRAMW6432", "COMMONPROGRAMFILES", "COMMONPROGRAMFILES(X86)", "COMMONPROGRAMW6432"),
    *("NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "PROCESSOR_IDENTIFIER"),
}
_QUIET = {
    "TERM": "dumb", "NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0",
    "PYTHONUNBUFFERED": "1",
}  # fmt: skip
"""Environment variables that disable prompts, pagers and colors, because no user can answer."""

_QUIET_WINDOWS = _QUIET | {"PYTHONIOENCODING": "utf-8", "NoDefaultCurrentDirectoryInExePath": "1"}
"""`_QUIET`, with variables that make Python write UTF-8 and keep cmd.exe from running programs in the workspace."""

Sink = Callable[[bytes], object]


def scrub_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a program: the allowed variables whose names do not suggest a secret, and variables
    that disable prompts and colors."""
    names, quiet = (_PASSED_ON_WINDOWS, _QUIET_WINDOWS) if sys.platform == "win32" else (_PASSED_ON, _QUIET)
    allowed = [name for name in environment if name in names or name.startswith("LC_")]
    return {name: environment[name] for name in allowed if not SECRET_NAME.search(name)} | quiet


def check_words(argv: Sequence[str]) -> None:
    """Raise ToolError if an argument contains a NUL."""
    if any("\0" in word for word in argv):
        problem = "the command contains a NUL character, which programs cannot receive"
        raise ToolError(f"{problem}; nothing was run. Remove it")


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """The result of a command that has ended."""

    exit_code: int | None
    """Exit status as in a shell: 128 + signal if a signal killed the program; None if this package ended it. On
    Windows, the exit code."""
    left: int = 0
    """Number of processes that were still running after the program, and were killed."""
    reason: Literal["", "stopped", "multiplied", "lost"] = ""
    """Why this package ended the command: ``stopped`` on request, ``multiplied`` because it was a fork bomb, or
    ``lost`` because its supervisor was killed. Empty if the command ended on its own.
    """


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """A program to run and its restrictions, which `adapter.workspace.sandbox.supervisor` describes.

    ``environment``: variables to set in the scrubbed environment, or to remove if the value is None.
    """

    argv: Sequence[str]
    environment: Mapping[str, str | None] = field(default_factory=dict)
    is_wrapped: bool = False
    filter: bytes | None = None
    landlock: Mapping[str, object] | None = None


class ChildProcess:
    """A program running in the open directory ``directory``. Close it, or use it in a ``with`` statement.

    ``sinks``: functions called by `wait` with output, one for stdout and stderr interleaved or one for each. Raises
    OSError if no process can be started, ToolError if an argument contains a NUL. `wait` raises ToolError if the
    program cannot be started.
    """

    def __init__(self, job: ProcessSpec, directory: int, *sinks: Sink) -> None:
        check_words(job.argv)
        self.ending: ProcessExit | None = None
        self._failed: tuple[int, str] | None = None
        self._token = secrets.token_hex(16)
        self._received = b""
        environment = scrub_environment(os.environ)
        with ExitStack() as ours, ExitStack() as theirs:
            # After any failure or interrupt, closing our ends of the pipes ends the supervisor.
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
        """Collect output until the command and its descendants have ended, and return True.

        Return False at ``deadline``, a value of `time.monotonic`, or after ``idle_s`` seconds without output.
        """
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
        """End all processes now, so that waiting callers return. Thread-safe."""
        self._send(b"k")

    def close(self) -> None:
        """End all remaining processes, and wait until they have ended."""
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
        """Read output once, and return whether there was any."""
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
        """End all processes without the supervisor, which the program has killed or stopped."""
        give_up = time.monotonic() + supervisor.GIVE_UP_S
        while time.monotonic() < give_up:
            processes = [
                *(pid for pid, *_ in supervisor.iter_descendants(self._supervisor.pid)),
                *_iter_processes_with_token(self._token),
            ]
            for pid in processes:
                supervisor.kill(pid)
            if not processes:
                break
            time.sleep(0.01)
        supervisor.kill(self._supervisor.pid)
        self.ending = ProcessExit(None, reason="lost")


def _start(descriptors: Sequence[int], directory: int, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    with suppress(ImportError, OSError):
        import fcntl

        for descriptor in descriptors[1:]:
            fcntl.fcntl(descriptor, _F_SETPIPE_SZ, _PIPE_BYTES)
    path = calls.find_path(directory)
    return subprocess.Popen(
        [*supervisor.COMMAND, *map(str, descriptors)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(environment),  # scrubbed too, because a program may read its parent's environment
        start_new_session=True,  # Ctrl-C at the terminal must reach only us
        pass_fds=descriptors,
        # Change to the descriptor, since the path may lead to another directory by now. Python 3.12 warns of
        # preexec_fn in a process with threads, so it is used only without /proc.
        cwd=path or (f"/proc/self/fd/{directory}" if supervisor.HAS_PROC else None),
        preexec_fn=None if path or supervisor.HAS_PROC else lambda: os.fchdir(directory),
    )


def _iter_processes_with_token(token: str) -> Iterator[int]:
    """Yield the ids of the processes that have ``token`` in their environment."""
    needle = f"{_TOKEN}={token}".encode()
    for directory in Path("/proc").glob("[0-9]*") if supervisor.HAS_PROC else ():
        with suppress(OSError):
            if needle in (directory / "environ").read_bytes():
                yield int(directory.name)
