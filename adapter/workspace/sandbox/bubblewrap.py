"""Build bubblewrap command lines that give a program a separate file system with only the granted paths.

The rest of the home directory, other processes, other users' sockets and the network do not exist for the program. Two
options are not needed: ``--new-session``, because the supervisor already starts a session without a terminal, and
``--die-with-parent``, because the supervisor ends and counts remaining processes.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from adapter.workspace.paths.open_flags import OPEN_DIRECTORY
from adapter.workspace.sandbox.readable_paths import is_below, sort_outermost

SYSTEM_BINARY = "/usr/bin/bwrap"
"""The preferred binary: where AppArmor restricts user namespaces, only a program at this path may create them."""
STAT = "/usr/bin/stat"
CHANGED = "the workspace changed while the command was being started; nothing was run. Try again"
MAX_HIDDEN = 1_000
"""Maximum number of paths hidden from a command by rules. Each needs a mount."""


@dataclass(frozen=True, slots=True)
class MountView:
    """The file system that a program sees. All paths are absolute, and may be missing."""

    workspace: str
    read: tuple[str, ...]
    private: tuple[tuple[str, str], ...]
    """Pairs (source, path): the session's directory ``source`` appears at ``path``."""
    write: tuple[str, ...] = ()
    frozen: tuple[tuple[str, str], ...] = ()
    """Read-only paths in the workspace, each with its identity (``device:inode``)."""
    pinned: tuple[tuple[str, str], ...] = ()
    """Directories in the workspace that may be changed but not moved or removed, outermost first, with their
    identities."""
    hidden: tuple[str, ...] = ()
    """Paths that the program sees as empty."""
    network: bool = False


def find_bwrap(environment: Mapping[str, str], writable: Sequence[str] = ()) -> tuple[str | None, tuple[str, ...]]:
    """Return the path of bwrap, and the candidates on PATH that were rejected because a model could have written them.

    ``writable``: directories that a model can write to. Relative directories of PATH are skipped.
    """
    if os.access(SYSTEM_BINARY, os.X_OK):
        return SYSTEM_BINARY, ()
    rejected: list[str] = []
    for directory in filter(os.path.isabs, environment.get("PATH", os.defpath).split(os.pathsep)):
        path = f"{directory.rstrip('/')}/bwrap"
        if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113
            if _is_trusted(path, [os.path.realpath(directory) for directory in writable]):
                return os.path.realpath(path), ()
            rejected.append(path)
    return None, tuple(rejected)


def _is_trusted(path: str, writable: Sequence[str]) -> bool:
    """Return whether only root and the user can change ``path``, its parent directories, and every link in it."""
    owners = {0, os.geteuid()}
    real = os.path.realpath(path)
    unshared = {real, os.path.dirname(real), os.path.realpath(os.path.dirname(path))}  # noqa: PTH120
    for each in _lookup_steps(path):
        status = os.lstat(each)
        is_shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not stat.S_ISLNK(status.st_mode)
        # Parent directories may be sticky, such as /tmp: there, only the owner of an entry can replace it.
        is_safe = not is_shared or (status.st_mode & stat.S_ISVTX and each not in unshared)
        if status.st_uid not in owners or not is_safe or any(is_below(each, directory) for directory in writable):
            return False
    return True


def _lookup_steps(path: str) -> Iterator[str]:
    """Yield each directory, link and file that the kernel looks up to open ``path``."""
    pending, at = list(PurePosixPath(path).parts), "/"
    while pending:
        name = pending.pop(0)
        entry = os.path.normpath(os.path.join(at, name))  # noqa: PTH118
        yield entry
        if os.path.islink(entry):  # noqa: PTH114
            pending = [*PurePosixPath(os.readlink(entry)).parts, *pending]  # noqa: PTH115
        else:
            at = entry


def build_bwrap_argv(binary: str, view: MountView, argv: Sequence[str], directory: str) -> list[str]:
    """Return a command line of the bwrap ``binary`` that runs ``argv`` in ``directory`` with the mounts ``view``."""
    read = [path for path in view.read if not _is_covered_by_read(path, view)]
    sources = {path: ["--ro-bind-try", path, path] for path in read}
    sources |= {path: ["--symlink", os.readlink(path), path] for path in read if os.path.islink(path)}  # noqa: PTH114, PTH115
    sources |= {path: ["--bind", source, path] for source, path in view.private}
    shown = {path for path in sources if not _is_in(path, view.workspace) or view.workspace == "/"}
    sources[view.workspace] = ["--bind", view.workspace, view.workspace]
    words = [binary, "--unshare-all", *(["--share-net"] if view.network else [])]
    order = list(sort_outermost(shown | {view.workspace}))
    below_devices = [path for path in order if _is_in(path, "/dev")]  # a workspace in /dev/shm
    for path in order:
        words += sources[path] if path not in below_devices else []
    words += ["--proc", "/proc", "--dev", "/dev", "--dir", "/run", "--dir", "/var/tmp"]
    for path in below_devices:
        words += sources[path]
    for path, _ in view.pinned:
        words += ["--bind-try", path, path]
    for path, _ in view.frozen:
        words += ["--ro-bind-try", path, path]
    for path in filter(os.path.lexists, view.hidden):
        is_directory = os.path.isdir(path)  # noqa: PTH112
        words += ["--tmpfs", path, "--remount-ro", path] if is_directory else ["--ro-bind", "/dev/null", path]
    for path in view.write:
        words += ["--bind", path, path]
    return [*words, "--chdir", directory, "--", *_guard_mounts((*view.pinned, *view.frozen)), *argv]


def _guard_mounts(mounted: Sequence[tuple[str, str]]) -> list[str]:
    """Return a command prefix that refuses to run if another command replaced a mounted path, perhaps with a link."""
    if not mounted:
        return []
    paths = shlex.join(path for path, _ in mounted)
    expected = shlex.quote("\n".join(identity for _, identity in mounted))
    refusal = shlex.quote(CHANGED)
    script = f'[ "$({STAT} -c %d:%i -- {paths} 2>&1)" = {expected} ] || {{ echo {refusal} >&2; exit 126; }}; exec "$@"'
    return ["/bin/sh", "-c", script, "sh"]


def find_identity(directory: str, path: str) -> str | None:
    """Return ``device:inode`` of ``path`` below ``directory``, or None if it is missing or a component is a link."""
    descriptor = os.open(directory, OPEN_DIRECTORY)
    try:
        for name in PurePosixPath(path).relative_to(directory).parts:
            inner = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        status = os.fstat(descriptor)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None if stat.S_ISLNK(status.st_mode) else f"{status.st_dev}:{status.st_ino}"


def _is_covered_by_read(path: str, view: MountView) -> bool:
    """Return whether the nearest mounted directory that contains ``path`` is a readable one, not a private one."""
    covers = {*view.read, *(private for _, private in view.private)} - {path}
    nearest = max((cover for cover in covers if is_below(path, cover)), key=len, default=None)
    return nearest in view.read


def _is_in(path: str, directory: str) -> bool:
    return is_below(path, directory) and PurePosixPath(path) != PurePosixPath(directory)
