"""Bubblewrap: a program sees a file system of its own, in which only what it is given exists.

Everything else is not there rather than forbidden: the rest of the home folder,
other processes, other users' sockets, the network. ``--new-session`` is not
used, since the supervisor already gave the program a session without terminal,
nor ``--die-with-parent``, since the supervisor ends and counts what is left.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from adapter.workspace.paths.resolved_path import OPEN_DIRECTORY
from adapter.workspace.sandbox.toolchains import is_below, outermost

SYSTEM_BINARY = "/usr/bin/bwrap"
"""Preferred: where AppArmor restricts user namespaces, this is the path that may create them."""
STAT = "/usr/bin/stat"
CHANGED = "the workspace changed while the command was being started; nothing was run. Try again"
MAX_HIDDEN = 1_000
"""Paths that rules keep from one command; each is a mount."""


@dataclass(frozen=True, slots=True)
class MountView:
    """What is visible at which path. All paths are absolute; a path in a list may be missing."""

    workspace: str
    read: tuple[str, ...]
    private: tuple[tuple[str, str], ...]
    """Folders of this session (source, path), which stand for others there."""
    write: tuple[str, ...] = ()
    frozen: tuple[tuple[str, str], ...] = ()
    """In the workspace: to be read, not changed. Each with its identity (``device:inode``)."""
    held: tuple[tuple[str, str], ...] = ()
    """Folders in the workspace that may be changed, but neither moved nor removed, outer ones first; as ``frozen``."""
    hidden: tuple[str, ...] = ()
    """Empty, in the workspace or elsewhere."""
    network: bool = False


def find_bwrap(environment: Mapping[str, str], writable: Sequence[str] = ()) -> tuple[str | None, tuple[str, ...]]:
    """Return the path of bwrap, and those that were found on PATH and rejected because they could have been planted.

    ``writable``: folders in which a model can write. Relative folders of PATH are skipped.
    """
    if os.access(SYSTEM_BINARY, os.X_OK):
        return SYSTEM_BINARY, ()
    rejected: list[str] = []
    for folder in filter(os.path.isabs, environment.get("PATH", os.defpath).split(os.pathsep)):
        path = f"{folder.rstrip('/')}/bwrap"
        if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113
            if _is_trusted(path, [os.path.realpath(folder) for folder in writable]):
                return os.path.realpath(path), ()
            rejected.append(path)
    return None, tuple(rejected)


def _is_trusted(path: str, writable: Sequence[str]) -> bool:
    """Whether only root and the user can change or replace ``path``: it, its folders, and every link on the way."""
    owners = {0, os.geteuid()}
    real = os.path.realpath(path)
    unshared = {real, os.path.dirname(real), os.path.realpath(os.path.dirname(path))}  # noqa: PTH120
    for each in _looked_up(path):
        status = os.lstat(each)
        is_shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not stat.S_ISLNK(status.st_mode)
        # Folders above may be sticky, such as /tmp: only an entry's owner can replace it there.
        is_safe = not is_shared or (status.st_mode & stat.S_ISVTX and each not in unshared)
        if status.st_uid not in owners or not is_safe or any(is_below(each, folder) for folder in writable):
            return False
    return True


def _looked_up(path: str) -> Iterator[str]:
    """Yield each folder, link and file that the kernel looks up to open ``path``."""
    pending, at = list(PurePosixPath(path).parts), "/"
    while pending:
        name = pending.pop(0)
        found = os.path.normpath(os.path.join(at, name))  # noqa: PTH118
        yield found
        if os.path.islink(found):  # noqa: PTH114
            pending = [*PurePosixPath(os.readlink(found)).parts, *pending]  # noqa: PTH115
        else:
            at = found


def bwrap_argv(binary: str, view: MountView, argv: Sequence[str], directory: str) -> list[str]:
    """The command line that runs ``argv`` in ``directory`` with the bwrap ``binary`` and lets it see ``view``."""
    read = [path for path in view.read if not _is_shown_by_another(path, view)]
    sources = {path: ["--ro-bind-try", path, path] for path in read}
    sources |= {path: ["--symlink", os.readlink(path), path] for path in read if os.path.islink(path)}  # noqa: PTH114, PTH115
    sources |= {path: ["--bind", source, path] for source, path in view.private}
    shown = {path for path in sources if not _is_in(path, view.workspace) or view.workspace == "/"}
    sources[view.workspace] = ["--bind", view.workspace, view.workspace]
    words = [binary, "--unshare-all", *(["--share-net"] if view.network else [])]
    order = list(outermost(shown | {view.workspace}))
    below_devices = [path for path in order if _is_in(path, "/dev")]  # a workspace in /dev/shm
    for path in order:
        words += sources[path] if path not in below_devices else []
    words += ["--proc", "/proc", "--dev", "/dev", "--dir", "/run", "--dir", "/var/tmp"]
    for path in below_devices:
        words += sources[path]
    for path, _ in view.held:
        words += ["--bind-try", path, path]
    for path, _ in view.frozen:
        words += ["--ro-bind-try", path, path]
    for path in filter(os.path.lexists, view.hidden):
        is_directory = os.path.isdir(path)  # noqa: PTH112
        words += ["--tmpfs", path, "--remount-ro", path] if is_directory else ["--ro-bind", "/dev/null", path]
    for path in view.write:
        words += ["--bind", path, path]
    return [*words, "--chdir", directory, "--", *_checked((*view.held, *view.frozen)), *argv]


def _checked(mounted: Sequence[tuple[str, str]]) -> list[str]:
    """What runs the program only when each mount is of what was there: another command may have put a link in
    its place meanwhile, which leads out of the workspace, and bubblewrap follows it."""
    if not mounted:
        return []
    paths = shlex.join(path for path, _ in mounted)
    wanted = shlex.quote("\n".join(identity for _, identity in mounted))
    refusal = shlex.quote(CHANGED)
    script = f'[ "$({STAT} -c %d:%i -- {paths} 2>&1)" = {wanted} ] || {{ echo {refusal} >&2; exit 126; }}; exec "$@"'
    return ["/bin/sh", "-c", script, "sh"]


def identity_below(folder: str, path: str) -> str | None:
    """``device:inode`` of ``path`` below ``folder``; None when it is gone, or a link is on the way."""
    descriptor = os.open(folder, OPEN_DIRECTORY)
    try:
        for name in PurePosixPath(path).relative_to(folder).parts:
            inner = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        status = os.fstat(descriptor)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None if stat.S_ISLNK(status.st_mode) else f"{status.st_dev}:{status.st_ino}"


def _is_shown_by_another(path: str, view: MountView) -> bool:
    """Whether a folder that is read holds ``path``, and no private folder stands in between."""
    covers = {*view.read, *(private for _, private in view.private)} - {path}
    nearest = max((cover for cover in covers if is_below(path, cover)), key=len, default=None)
    return nearest in view.read


def _is_in(path: str, folder: str) -> bool:
    return is_below(path, folder) and PurePosixPath(path) != PurePosixPath(folder)
