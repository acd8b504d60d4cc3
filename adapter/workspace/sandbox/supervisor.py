"""Runs one program and sees to it that nothing of it is left: a process that `processes.command` starts.

::

    COMMAND CONTROL STDOUT STDERR        descriptors

    host -> supervisor   {"argv": [...], "environment": {...}, "processes": 1000, "wrapped": False, "filter": b"",
                          "landlock": {"handled": [...], "rules": [[path, rights], ...]} or None} as a line; then
                         "t": ask the program to end; "k", or the end of the stream: end everything now
    supervisor -> host   {"exit": 0, "left": 1, "reason": ""} as a line, once everything has ended, or
                         {"failed": errno, "step": "landlock"}: nothing was run

``filter`` is a system call filter; ``wrapped`` says that argv is bubblewrap's, around the program. Both ends are the
same Python: what the host says is in its `marshal`, in hexadecimal; what it hears, which a program that took the
supervisor over could write, is a literal.

    COMMAND --accompany PROGRAM ARGUMENT ...

runs a program that speaks with the host on its standard input and output, until it has ended or the host has closed
its end.

On Linux it is the reaper of its descendants (PR_SET_CHILD_SUBREAPER): a process
that made itself a session, forked twice or became a daemon is given to it when
its parent ends, so that a walk from the supervisor down finds all of them.
Elsewhere only the program's process group is found.

Against fork bombs there is RLIMIT_NPROC, which counts all of the user's threads
and is not applied to root. So processes are counted, too; and as root the
supervisor gets real-time priority, or a thousand busy processes would leave it
no time to end them. Uses the standard library alone, and little of it: it
starts once for every command, and what `json`, `signal`, `contextlib` and
`typing` import would take longer than all the rest.
"""

from __future__ import annotations

import marshal
import os
import select
import sys

if sys.platform != "win32":  # where nothing of this is started, but looked at
    import resource

TYPE_CHECKING = False  # as type checkers know it
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator, Mapping
    from typing import Any
else:
    import _signal as signal  # the same without names for its numbers

MAX_FILE_BYTES = 16 * 1024**3
"""Of a file that a command writes (RLIMIT_FSIZE)."""
POLL_MS = 50
"""Until processes are counted again."""
LEAVE_S, END_S = 1.5, 1.0
"""How long an accompanied program may go on once nobody speaks with it any more, and then after SIGTERM."""
GIVE_UP_S = 5.0
"""A process in uninterruptible sleep cannot be killed; it is not waited for longer."""
HAS_PROC = os.path.isdir("/proc/self/task")  # noqa: PTH112 - pathlib takes as long to import as the rest
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 22, 24, 36, 38
_SECCOMP_MODE_FILTER = 2
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_KEPT_CAPABILITIES = (0, 1, 3, 4)
"""CHOWN, DAC_OVERRIDE, FOWNER and FSETID."""
_library: Any = None
_FOLDER, _MODULE = os.path.split(os.path.splitext(__file__)[0])  # noqa: PTH122
COMMAND = (
    *(sys.executable, "-I", "-S", "-X", "utf8", "-c"),
    f"import sys; sys.path.append({_FOLDER!r}); import {_MODULE}; {_MODULE}.main()",
)
"""What starts this, without the modules around it. Imported and not run as a file, which Python would compile anew
each time."""


class suppress:
    """`contextlib.suppress`."""

    def __init__(self, *errors: type[BaseException]) -> None:
        self._errors = errors

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, self._errors)


def line_of(job: Mapping[str, Any]) -> bytes:
    return marshal.dumps(dict(job)).hex().encode() + b"\n"


def main() -> None:
    """What `COMMAND` does with its arguments."""
    if sys.argv[1] == "--accompany":
        sys.exit(supervise_stdio(sys.argv[2:]))
    control, *outputs = map(int, sys.argv[1:])
    report = supervise(control, (outputs[0], outputs[1]))
    with suppress(OSError):
        os.write(control, f"{report}\n".encode())


def supervise(control: int, outputs: tuple[int, int]) -> dict[str, object]:
    """Run the program that ``control`` names; what is to be reported once nothing of it is left."""
    line, _, more = _read_job(control).partition(b"\n")
    if more:  # it is to end before it began
        return {"exit": None, "left": 0, "reason": "stopped"}
    job = marshal.loads(bytes.fromhex(line.decode()))
    for descriptor in (control, *outputs):
        os.set_inheritable(descriptor, False)
    _become_subreaper()
    most = job["processes"]
    _limit(most)
    woken = _wake_on_child()
    program, failed, step = _start(job, outputs)
    if failed:
        return {"failed": failed, "step": step}
    for descriptor in set(outputs):
        os.close(descriptor)
    left = 0
    try:
        status, reason = _watch(program, control, woken, most, job["wrapped"])
    finally:
        left = _end_all(program, job["wrapped"])
    if job["wrapped"] and status is None:
        left = max(left - 1, 0)  # the program itself
    return {"exit": status, "left": left, "reason": reason}


def supervise_stdio(argv: list[str]) -> int:
    """Run a program with our own standard input and output; its exit status, once nothing of it is left."""
    import time

    _become_subreaper()
    woken = _wake_on_child()
    signal.signal(signal.SIGTERM, lambda *_: None)
    program = _start_beside(argv)
    poller = select.poll()
    poller.register(0, 0)  # POLLHUP comes all the same
    poller.register(woken, select.POLLIN)
    due, is_asked = float("inf"), False
    while True:
        now = time.monotonic()
        for descriptor, _ in poller.poll(None if due == float("inf") else max(0.0, due - now) * 1_000):
            if descriptor == 0:
                poller.unregister(0)
                due = min(due, time.monotonic() + LEAVE_S)
            elif signal.SIGTERM in _heard(woken) and not is_asked:
                due = 0.0
        for pid, status in _reaped():
            if pid == program:
                _end_all(program, is_wrapped=False)
                return status
        if time.monotonic() >= due:
            if is_asked:
                _end_all(program, is_wrapped=False)
                return 128 + signal.SIGKILL
            _ask_to_end(program, is_wrapped=False)
            due, is_asked = time.monotonic() + END_S, True


def _start_beside(argv: list[str]) -> int:
    """Start a program in a session of its own; its id. It does not outlive us, whatever happens."""
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
    """Start the program in a session of its own; its id, or an error number and the step that failed."""
    reader, writer = os.pipe()  # closed by the program's start
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
                _restrict(**job["landlock"])
            if job["filter"]:
                step = "seccomp"
                _filter(job["filter"])
            step = ""
            os.execve(job["argv"][0], job["argv"], job["environment"])
        except OSError as error:
            os.write(writer, f"{error.errno} {step}".encode())
        finally:
            os._exit(127)
    os.close(writer)
    said = os.read(reader, 64).decode()
    os.close(reader)
    if said:
        os.waitpid(program, 0)
    failed, _, step = said.partition(" ")
    return program, int(failed or 0), step


def _restrict(handled: list[int], rules: list[tuple[str, int]]) -> None:
    """Give up what is ``handled`` but for the ``rules`` (landlock(7)). Raises OSError."""
    import struct

    attributes = struct.pack(f"={len(handled)}Q", *handled)
    ruleset = _system_call(_LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    for path, rights in rules:
        try:
            beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # less is granted, not more
            continue
        _system_call(_LANDLOCK_ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, beneath), 0)
        os.close(beneath)
    _system_call(_LANDLOCK_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _drop_capabilities() -> None:
    """As root keep no power but over files, which Landlock governs: not that to load modules or mount disks."""
    if not os.getuid():
        for capability in range(64):
            if capability not in _KEPT_CAPABILITIES:
                with suppress(OSError):  # beyond the last one
                    _prctl(_PR_CAPBSET_DROP, capability)


def _filter(program: bytes) -> None:
    """Install a filter of system calls (seccomp(2)). Raises OSError."""
    import ctypes

    code = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

    filter = Program(len(program) // 8, ctypes.addressof(code))
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(filter))


def _prctl(option: int, *values: int) -> None:
    given = (*values, 0, 0, 0, 0)[:4]
    _called("prctl", option, *given)


def _system_call(number: int, *arguments: int | bytes) -> int:
    return _called("syscall", number, *arguments)


def _called(function: str, *arguments: int | bytes) -> int:
    """What a function of the C library gives. Raises OSError."""
    import ctypes

    global _library
    if _library is None:
        _library = ctypes.CDLL(None, use_errno=True)
    given = (ctypes.c_long(value) if isinstance(value, int) else ctypes.c_char_p(value) for value in arguments)
    result = int(_library[function](*given))
    if result < 0:
        raise OSError(ctypes.get_errno(), function)
    return result


def _watch(program: int, control: int, woken: int, most: int, is_wrapped: bool) -> tuple[int | None, str]:
    """Wait until the program ends, is to be ended, or multiplies; its exit status and what else ended it."""
    host = os.getppid()
    processes = _count()
    poller = select.poll()
    poller.register(control, select.POLLIN)
    poller.register(woken, select.POLLIN)
    while True:
        for descriptor, _ in poller.poll(POLL_MS):
            heard = _heard(descriptor)
            if descriptor == control and (not heard or b"k" in heard):
                return None, "stopped"
            if descriptor == control and b"t" in heard:
                _ask_to_end(program, is_wrapped)
        for pid, status in _reaped():
            if pid == program:
                return status, ""
        if os.getppid() != host:
            return None, "stopped"
        if _count() - processes > most and sum(1 for _ in descendants(os.getpid())) > most:
            return None, "multiplied"


def _ask_to_end(program: int, is_wrapped: bool) -> None:
    """SIGTERM for the program's group; not for bubblewrap, which would end the others by force."""
    for number in (signal.SIGTERM, signal.SIGCONT):  # a stopped one hears it, too
        if not is_wrapped:
            signal_group(program, number)
            continue
        for pid, group in descendants(os.getpid()):
            if group == program and pid != program:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)


def _heard(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4_096)
    except ConnectionResetError:
        return b""


def descendants(ancestor: int) -> Iterator[tuple[int, int]]:
    """The living processes below ``ancestor``, each with its group. Lazily: a caller that kills while
    it iterates catches up with processes that fork meanwhile, since they mostly get higher ids."""
    for pid, group, _ in _family(ancestor):
        yield pid, group


def _family(ancestor: int) -> Iterator[tuple[int, int, int]]:
    """`descendants`, each with its parent, too."""
    family, others = {ancestor}, list[tuple[int, int, bytes]]()
    for pid, status in _processes():
        parent = int(_field(status, b"PPid"))
        if parent in family:
            family.add(pid)
            yield from _living(pid, parent, status)
        else:
            others.append((pid, parent, status))
    # Ids start again from below when the highest was given: then a child may come before its parent.
    while found := [other for other in others if other[1] in family and other[0] not in family]:
        for pid, parent, status in found:
            family.add(pid)
            yield from _living(pid, parent, status)


def _living(pid: int, parent: int, status: bytes) -> Iterator[tuple[int, int, int]]:
    if not _field(status, b"State").startswith(b"Z"):
        with suppress(ProcessLookupError):
            yield pid, os.getpgid(pid), parent


def _processes() -> Iterator[tuple[int, bytes]]:
    """Every process id, in ascending order, with its /proc/PID/status (proc_pid_status(5)).

    Not /proc/PID/stat: reading that waits for a program that is just being started (exec_update_lock), and among
    a thousand busy processes such a one may get no time for seconds.
    """
    if not HAS_PROC:
        return
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdigit():
                with suppress(OSError), open(f"/proc/{entry.name}/status", "rb", 0) as file:  # noqa: PTH123
                    yield int(entry.name), file.read()


def _field(status: bytes, name: bytes) -> bytes:
    return status.partition(b"\n%s:\t" % name)[2].partition(b"\n")[0]


def signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def kill(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _end_all(program: int, is_wrapped: bool) -> int:
    """Kill every descendant and wait until it is gone; how many there were beside the program."""
    import time

    for _ in _reaped():
        pass
    if sys.platform == "linux" and not _has_children():
        return 0  # what had lost its parent would be our child
    # Bubblewrap's own two are a child of ours and the child of that, which is ours once its parent has ended.
    own = {os.getpid(), program} if is_wrapped else set()
    left = {pid for pid, _, parent in _family(os.getpid()) if parent not in own} - {program}
    give_up = time.monotonic() + GIVE_UP_S
    if not HAS_PROC:
        signal_group(program, signal.SIGKILL)
    while time.monotonic() < give_up:
        groups = {os.getpgrp()}
        for pid, group in descendants(os.getpid()):
            if group not in groups:  # of a session of their own: no stranger is in such a group
                groups.add(group)
                signal_group(group, signal.SIGKILL)
            kill(pid)
        if not any(True for _ in _reaped()) and not _has_children():
            break
        time.sleep(0.002)
    return len(left)


def _reaped() -> Iterator[tuple[int, int]]:
    """The children that have ended since, each with its exit status as a shell gives it: 128 + signal."""
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


def _limit(processes: int) -> None:
    """No core dumps, no file that fills the disk, no more threads of the user than now and twice ``processes``:
    at ``processes`` themselves, forks would fail and the supervisor, which ends a bomb above that, never notice one.
    Address space is not limited: runtimes reserve far more than they use."""
    limits = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, MAX_FILE_BYTES)]
    if os.getuid():
        limits.append((resource.RLIMIT_NPROC, _threads_of_user() + 2 * processes))
    elif sys.platform == "linux":
        with suppress(OSError):  # needs CAP_SYS_NICE, which containers may not have
            os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    for limit, most in limits:
        hard = resource.getrlimit(limit)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (most, most))


def _threads_of_user() -> int:
    """What RLIMIT_NPROC counts; where it cannot be seen, enough for a desktop."""
    threads = 0
    for pid, status in _processes():
        with suppress(OSError):
            threads += int(_field(status, b"Threads")) if os.stat(f"/proc/{pid}").st_uid == os.getuid() else 0
    return threads or 4_096


def _wake_on_child() -> int:
    """A descriptor that is readable when a child has ended."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def _read_job(descriptor: int) -> bytes:
    """The first line, and what is there behind it."""
    data = b""
    while b"\n" not in data:
        piece = os.read(descriptor, 65_536)
        if not piece:
            raise SystemExit(0)  # the host went away before it had said what to run
        data += piece
    return data
