"""Supervise one program and end all its descendants. `child_process` starts this module as a process.

::

    COMMAND CONTROL STDOUT STDERR        descriptors

    host -> supervisor   {"argv": [...], "environment": {...}, "processes": 1000, "wrapped": False, "filter": b"",
                          "landlock": {"handled": [...], "rules": [[path, rights], ...]} or None} as a line; later
                         "t": send SIGTERM; "k", or the end of the stream: end everything now
    supervisor -> host   {"exit": 0, "left": 1, "reason": ""} as a line, once everything has ended, or
                         {"failed": errno, "step": "landlock"}: nothing was run

``filter``: a system call filter. ``wrapped``: whether argv runs the program under bubblewrap. Both processes run the
same Python, so the host writes `marshal` data in hexadecimal. The host reads only a Python literal, since a program
could take over the supervisor.

    COMMAND --accompany PROGRAM ARGUMENT ...

runs a program that talks to the host on standard input and output, until it ends or the host closes its end.

On Linux the supervisor is the reaper of its descendants (PR_SET_CHILD_SUBREAPER): a process that created a session,
forked twice or became a daemon gets the supervisor as its parent when its own parent ends. So a walk of the process
tree from the supervisor finds all descendants. On other systems, only the program's process group is found.

RLIMIT_NPROC is not sufficient against fork bombs: it counts all threads of the user and does not apply to root. So the
supervisor also counts the processes. As root it gets real-time priority, because a thousand busy processes would leave
it no time to end them.

The module uses few modules of the standard library, since it is started for every command: importing `json`, `signal`,
`contextlib` and `typing` would take longer than all other work.
"""

from __future__ import annotations

import marshal
import os
import select
import sys

if sys.platform != "win32":  # the supervisor does not run there, but the module is imported
    import resource

TYPE_CHECKING = False  # recognized by type checkers
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator, Mapping
    from typing import Any
else:
    import _signal as signal  # like `signal`, but without enums

MAX_FILE_BYTES = 16 * 1024**3
"""Maximum size of a file written by a command, in bytes (RLIMIT_FSIZE)."""
POLL_MS = 50
"""Interval between counts of the processes, in milliseconds."""
LEAVE_S, END_S = 1.5, 1.0
"""Seconds that an accompanied program has to end after the host closes its input, and then after SIGTERM."""
GIVE_UP_S = 5.0
"""Maximum wait for killed processes, in seconds: a process in uninterruptible sleep cannot be killed."""
HAS_PROC = os.path.isdir("/proc/self/task")  # noqa: PTH112 - pathlib takes as long to import as the rest
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 22, 24, 36, 38
_SECCOMP_MODE_FILTER = 2
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_KEPT_CAPABILITIES = (0, 1, 3, 4)
"""Numbers of the capabilities that root keeps: CHOWN, DAC_OVERRIDE, FOWNER and FSETID."""
_library: Any = None
_FOLDER, _MODULE = os.path.split(os.path.splitext(__file__)[0])  # noqa: PTH122
COMMAND = (
    *(sys.executable, "-I", "-S", "-X", "utf8", "-c"),
    f"import sys; sys.path.append({_FOLDER!r}); import {_MODULE}; {_MODULE}.main()",
)
"""Command line of the supervisor. It imports this module (and no other of the package), because Python would compile a
script again at each start."""


class suppress:
    """Same as `contextlib.suppress`, which takes longer to import."""

    def __init__(self, *errors: type[BaseException]) -> None:
        self._errors = errors

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, self._errors)


def encode_job(job: Mapping[str, Any]) -> bytes:
    return marshal.dumps(dict(job)).hex().encode() + b"\n"


def main() -> None:
    """Run the supervisor; `COMMAND` calls this function."""
    if sys.argv[1] == "--accompany":
        sys.exit(supervise_stdio(sys.argv[2:]))
    control, *outputs = map(int, sys.argv[1:])
    report = supervise(control, (outputs[0], outputs[1]))
    with suppress(OSError):
        os.write(control, f"{report}\n".encode())


def supervise(control: int, outputs: tuple[int, int]) -> dict[str, object]:
    """Run the program received on ``control``, and return the report when all its processes have ended."""
    line, _, more = _read_job(control).partition(b"\n")
    if more:  # must end before the start
        return {"exit": None, "left": 0, "reason": "stopped"}
    job = marshal.loads(bytes.fromhex(line.decode()))
    for descriptor in (control, *outputs):
        os.set_inheritable(descriptor, False)
    _become_subreaper()
    max_processes = job["processes"]
    _limit_resources(max_processes)
    child_events = _wake_on_child()
    program, failed, step = _start(job, outputs)
    if failed:
        return {"failed": failed, "step": step}
    for descriptor in set(outputs):
        os.close(descriptor)
    try:
        status, reason = _watch(program, control, child_events, max_processes, job["wrapped"])
    finally:
        left = _end_all(program, job["wrapped"])
    if job["wrapped"] and status is None:
        left = max(left - 1, 0)  # the program itself
    return {"exit": status, "left": left, "reason": reason}


def supervise_stdio(argv: list[str]) -> int:
    """Run a program with this process's stdin and stdout. Return its exit status when all its processes have ended."""
    import time

    _become_subreaper()
    child_events = _wake_on_child()
    signal.signal(signal.SIGTERM, lambda *_: None)
    program = _start_with_stdio(argv)
    poller = select.poll()
    poller.register(0, 0)  # POLLHUP is always reported
    poller.register(child_events, select.POLLIN)
    due, is_terminated = float("inf"), False
    while True:
        now = time.monotonic()
        for descriptor, _ in poller.poll(None if due == float("inf") else max(0.0, due - now) * 1_000):
            if descriptor == 0:
                poller.unregister(0)
                due = min(due, time.monotonic() + LEAVE_S)
            elif signal.SIGTERM in _read_available(child_events) and not is_terminated:
                due = 0.0
        for pid, status in _reap():
            if pid == program:
                _end_all(program, is_wrapped=False)
                return status
        if time.monotonic() >= due:
            if is_terminated:
                _end_all(program, is_wrapped=False)
                return 128 + signal.SIGKILL
            _terminate(program, is_wrapped=False)
            due, is_terminated = time.monotonic() + END_S, True


def _start_with_stdio(argv: list[str]) -> int:
    """Start a program in a new session and return its process id. The kernel kills it when this process ends."""
    program = os.fork()
    if program:
        return program
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        if sys.platform == "linux":
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _start(job: dict[str, Any], outputs: tuple[int, int]) -> tuple[int, int, str]:
    """Start the program in a new session. Return its process id, or an error number and the step that failed."""
    reader, writer = os.pipe()  # closes when the program starts
    program = os.fork()
    if not program:
        step = "start"
        try:
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(outputs[0], 1)
            os.dup2(outputs[1], 2)
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):  # the first two are ignored by Python
                signal.signal(number, signal.SIG_DFL)
            if job["landlock"] or job["filter"]:
                step = "no_new_privs"
                _prctl(_PR_SET_NO_NEW_PRIVS, 1)
            if job["landlock"]:
                step = "capabilities"
                _drop_capabilities()
                step = "landlock"
                _apply_landlock(**job["landlock"])
            if job["filter"]:
                step = "seccomp"
                _apply_filter(job["filter"])
            step = ""
            os.execve(job["argv"][0], job["argv"], job["environment"])
        except OSError as error:
            os.write(writer, f"{error.errno} {step}".encode())
        finally:
            os._exit(127)
    os.close(writer)
    failure = os.read(reader, 64).decode()
    os.close(reader)
    if failure:
        os.waitpid(program, 0)
    failed, _, step = failure.partition(" ")
    return program, int(failed or 0), step


def _apply_landlock(handled: list[int], rules: list[tuple[str, int]]) -> None:
    """Give up the ``handled`` rights, except for the ``rules`` (landlock(7)). Raises OSError."""
    import struct

    attributes = struct.pack(f"={len(handled)}Q", *handled)
    ruleset = _call_libc("syscall", _LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    for path, rights in rules:
        try:
            beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # a path without a grant is safe
            continue
        _call_libc("syscall", _LANDLOCK_ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, beneath), 0)
        os.close(beneath)
    _call_libc("syscall", _LANDLOCK_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _drop_capabilities() -> None:
    """As root, keep only the capabilities for files, which Landlock restricts."""
    if not os.getuid():
        for capability in range(64):
            if capability not in _KEPT_CAPABILITIES:
                with suppress(OSError):  # beyond the last capability
                    _prctl(_PR_CAPBSET_DROP, capability)


def _apply_filter(program: bytes) -> None:
    """Install a system call filter (seccomp(2)). Raises OSError."""
    import ctypes

    code = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

    filter = Program(len(program) // 8, ctypes.addressof(code))
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(filter))


def _prctl(option: int, *values: int) -> None:
    _call_libc("prctl", option, *(*values, 0, 0, 0, 0)[:4])


def _call_libc(function: str, *arguments: int | bytes) -> int:
    """Call a function of the C library. Raises OSError."""
    import ctypes

    global _library
    if _library is None:
        _library = ctypes.CDLL(None, use_errno=True)
    converted = (ctypes.c_long(value) if isinstance(value, int) else ctypes.c_char_p(value) for value in arguments)
    result = int(_library[function](*converted))
    if result < 0:
        raise OSError(ctypes.get_errno(), function)
    return result


def _watch(
    program: int, control: int, child_events: int, max_processes: int, is_wrapped: bool
) -> tuple[int | None, str]:
    """Wait until the program ends or must be ended. Return its exit status and "", or None and the reason to end it."""
    host = os.getppid()
    processes = _count()
    poller = select.poll()
    poller.register(control, select.POLLIN)
    poller.register(child_events, select.POLLIN)
    while True:
        for descriptor, _ in poller.poll(POLL_MS):
            data = _read_available(descriptor)
            if descriptor == control and (not data or b"k" in data):
                return None, "stopped"
            if descriptor == control and b"t" in data:
                _terminate(program, is_wrapped)
        for pid, status in _reap():
            if pid == program:
                return status, ""
        if os.getppid() != host:
            return None, "stopped"
        if _count() - processes > max_processes and sum(1 for _ in iter_descendants(os.getpid())) > max_processes:
            return None, "multiplied"


def _terminate(program: int, is_wrapped: bool) -> None:
    """Send SIGTERM to the program's group, but not to bubblewrap, which would kill all other processes."""
    for number in (signal.SIGTERM, signal.SIGCONT):  # a stopped process must continue to receive it
        if not is_wrapped:
            signal_group(program, number)
            continue
        for pid, group in iter_descendants(os.getpid()):
            if group == program and pid != program:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)


def _read_available(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4_096)
    except ConnectionResetError:
        return b""


def iter_descendants(ancestor: int) -> Iterator[tuple[int, int]]:
    """Yield the id and the process group of each living descendant of ``ancestor``.

    Processes are read one at a time in the order of their ids. A caller that kills each of them therefore also finds
    most processes that are forked in the meantime, because they get higher ids.
    """
    for pid, group, _ in _iter_family(ancestor):
        yield pid, group


def _iter_family(ancestor: int) -> Iterator[tuple[int, int, int]]:
    """Yield the same descendants as `iter_descendants`, with the id of the parent as a third value."""
    family, others = {ancestor}, list[tuple[int, int, bytes]]()
    for pid, status in _iter_processes():
        parent = int(_find_field(status, b"PPid"))
        if parent in family:
            family.add(pid)
            yield from _iter_living(pid, parent, status)
        else:
            others.append((pid, parent, status))
    # After the highest id, the kernel starts again at low ids, so a child may come before its parent.
    while found := [other for other in others if other[1] in family and other[0] not in family]:
        for pid, parent, status in found:
            family.add(pid)
            yield from _iter_living(pid, parent, status)


def _iter_living(pid: int, parent: int, status: bytes) -> Iterator[tuple[int, int, int]]:
    if not _find_field(status, b"State").startswith(b"Z"):
        with suppress(ProcessLookupError):
            yield pid, os.getpgid(pid), parent


def _iter_processes() -> Iterator[tuple[int, bytes]]:
    """Yield every process id, in ascending order, with its /proc/PID/status (proc_pid_status(5)).

    /proc/PID/stat is not read, because reading it waits for a program that is just starting (exec_update_lock). Among a
    thousand busy processes, that can take seconds.
    """
    if not HAS_PROC:
        return
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdigit():
                with suppress(OSError), open(f"/proc/{entry.name}/status", "rb", 0) as file:  # noqa: PTH123
                    yield int(entry.name), file.read()


def _find_field(status: bytes, name: bytes) -> bytes:
    return status.partition(b"\n%s:\t" % name)[2].partition(b"\n")[0]


def signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def kill(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _end_all(program: int, is_wrapped: bool) -> int:
    """Kill all descendants, wait until they have ended, and return their number without the program."""
    import time

    for _ in _reap():
        pass
    if sys.platform == "linux" and not _has_children():
        return 0  # an orphan would have become our child
    # Bubblewrap's own two processes are our child and its child, which is reparented to us when the first ends.
    wrappers = {os.getpid(), program} if is_wrapped else set()
    left = {pid for pid, _, parent in _iter_family(os.getpid()) if parent not in wrappers} - {program}
    give_up = time.monotonic() + GIVE_UP_S
    if not HAS_PROC:
        signal_group(program, signal.SIGKILL)
    while time.monotonic() < give_up:
        groups = {os.getpgrp()}
        for pid, group in iter_descendants(os.getpid()):
            if group not in groups:  # each session has its own groups, without unrelated processes
                groups.add(group)
                signal_group(group, signal.SIGKILL)
            kill(pid)
        if not any(True for _ in _reap()) and not _has_children():
            break
        time.sleep(0.002)
    return len(left)


def _reap() -> Iterator[tuple[int, int]]:
    """Yield the ids of ended children, with their exit status as in a shell: 128 + signal if killed."""
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            code = os.waitstatus_to_exitcode(status)
            yield pid, code if code >= 0 else 128 - code


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _count() -> int:
    return len(os.listdir("/proc")) if HAS_PROC else 0  # noqa: PTH208


def _become_subreaper() -> None:
    if sys.platform == "linux":
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _limit_resources(processes: int) -> None:
    """Forbid core dumps and very large files, and limit the user's new threads to twice ``processes``.

    With a limit of ``processes``, the forks of a fork bomb would fail before the supervisor notices it. Address space
    is not limited, since runtimes reserve much more than they use.
    """
    limits = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, MAX_FILE_BYTES)]
    if os.getuid():
        limits.append((resource.RLIMIT_NPROC, _count_threads_of_user() + 2 * processes))
    elif sys.platform == "linux":
        with suppress(OSError):  # needs CAP_SYS_NICE, which containers may not have
            os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    for limit, value in limits:
        hard = resource.getrlimit(limit)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (value, value))


def _count_threads_of_user() -> int:
    """Return the number of threads that RLIMIT_NPROC counts or, if that is unknown, 4096, which is typical."""
    threads = 0
    for pid, status in _iter_processes():
        with suppress(OSError):
            threads += int(_find_field(status, b"Threads")) if os.stat(f"/proc/{pid}").st_uid == os.getuid() else 0
    return threads or 4_096


def _wake_on_child() -> int:
    """Return a descriptor that becomes readable when a child ends."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def _read_job(descriptor: int) -> bytes:
    """Read until the first line is complete, and return it with any bytes after it."""
    data = b""
    while b"\n" not in data:
        piece = os.read(descriptor, 65_536)
        if not piece:
            raise SystemExit(0)  # the host ended before sending a job
        data += piece
    return data
