"""Imitate Windows on this machine: modules and functions that Windows lacks cannot be imported or called.

python -m tests.as_windows WORDS...     the command line
python -m tests.as_windows              imports every module, and prints the modules that fail

Paths are still this system's. Consoles and locked files are not imitated.
"""

from __future__ import annotations

import asyncio
import os
import pathlib
import platform
import signal
import socket
import sys
from functools import partial
from importlib import import_module
from types import ModuleType

from tests.command_line import PRELOADED

MODULES = "fcntl termios pwd grp resource pty tty posix syslog readline curses"
OF_OS = """
O_NOFOLLOW O_DIRECTORY O_CLOEXEC O_NONBLOCK O_NOCTTY O_PATH chown chroot confstr ctermid eventfd fchdir fchmod fchown
fork forkpty fdatasync getegid geteuid getgid getgroups getloadavg getpgid getpgrp getsid getuid getxattr initgroups
killpg lchown listxattr lockf memfd_create mkfifo mknod nice openpty pidfd_open pipe2 posix_spawn posix_spawnp pread
pwrite sched_getaffinity sendfile setgid setpgid setsid setuid setxattr splice statvfs fstatvfs sysconf tcgetpgrp
ttyname uname wait4 waitid
"""
OF_SIGNAL = """
SIGALRM SIGCHLD SIGCONT SIGHUP SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGUSR1 SIGUSR2 SIGWINCH alarm pthread_kill
pthread_sigmask setitimer sigwait
"""
"""Names under "Availability: Unix" on docs.python.org, except the names that `subprocess` needs here."""


def dress_up(*more: str) -> None:
    """Import third-party modules first, because they behave as on this system, and import ours again. ``more``: modules
    of ours that import others.
    """
    for name in [*PRELOADED, "adapter.integrations.openai_client.wrap", *more]:
        import_module(name)
    for name in [name for name in sys.modules if name.partition(".")[0] == "adapter"]:
        del sys.modules[name]
    sys.modules["msvcrt"] = _msvcrt()
    sys.modules.update(dict.fromkeys(MODULES.split()))  # type: ignore[arg-type] # None: importing it fails
    socket.socketpair = partial(socket.socketpair, socket.AF_UNIX)  # event loops need it
    for module, names in ((os, OF_OS), (signal, OF_SIGNAL), (socket, "AF_UNIX")):
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks = set(), set(), set()
    for name in {"pathlib", "pathlib._local"} & sys.modules.keys():
        vars(sys.modules[name])["WindowsPath"] = pathlib.PosixPath
    asyncio.ProactorEventLoop = asyncio.SelectorEventLoop  # type: ignore[attr-defined]
    os.name, sys.platform, platform.system = "nt", "win32", lambda: "Windows"


def _msvcrt() -> ModuleType:
    """Return the used part of `msvcrt`: it locks a byte, with ``fcntl``."""
    import fcntl

    def locking(descriptor: int, mode: int, size: int) -> None:
        assert mode == 2
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, size, 0, os.SEEK_CUR)
        except BlockingIOError as error:
            raise PermissionError(error.errno, "Permission denied") from None

    module = ModuleType("msvcrt")
    vars(module).update(locking=locking, LK_NBLCK=2)
    return module


IN_ENGINES = {"adapter.integrations.ray_serve", "adapter.integrations.engines.adapter_vllm_plugin"}
"""Modules that are imported only with Ray or vLLM."""


def _failures() -> list[str]:
    root = pathlib.Path(__file__).parent.parent
    failures = []
    for path in sorted((root / "adapter").rglob("*.py")):
        if path.name == "__main__.py":
            continue
        name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        if name in IN_ENGINES:
            continue
        try:
            import_module(name)
        except (ImportError, AttributeError) as error:
            failures.append(f"{name}: {error}")
    return failures


if __name__ == "__main__":
    dress_up(*([] if sys.argv[1:] else ["adapter.integrations.mcp.http_transport"]))
    if sys.argv[1:]:
        sys.argv[0] = "adapter"
        from adapter.cli.main import main

        main()
    print(*_failures(), sep="\n", end="")
