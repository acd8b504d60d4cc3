"""Find the paths outside the workspace that a command needs to read: system programs and the user's tools.

In the home directory, only known locations of tools are included, never the user's files or credentials, such as
``~/.ssh``, ``~/.config`` or ``~/.cargo/credentials.toml``.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePath, PurePosixPath

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/etc"),
    *("/nix/store", "/gnu/store", "/run/current-system", "/home/linuxbrew/.linuxbrew", "/snap"),
    "/sys/devices/system/cpu",
)
IN_HOME = (
    *(".pyenv", ".rbenv", ".nvm", ".volta", ".fnm", ".asdf", ".sdkman", ".rustup", ".deno", ".bun"),
    *(".cargo/bin", ".cargo/env", ".cargo/registry", ".cargo/git", "go/bin", "go/pkg", ".m2/repository"),
    *(".gradle/wrapper", "miniconda3", "anaconda3", "miniforge3", "mambaforge", ".local/bin", ".local/lib"),
    *(".local/pipx", ".local/share/pipx", ".local/share/uv", ".local/share/mise", ".local/share/fnm"),
    *(".local/share/virtualenvs", ".cache/pypoetry/virtualenvs"),
)
"""Locations below the home directory: version managers, package stores and virtual environments."""
_VARIABLES = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "GOROOT", "JAVA_HOME", "RUSTUP_HOME")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_SIBLINGS_OF_BIN = ("lib", "lib64", "libexec", "include", "share")
"""Directories next to a ``bin`` directory on PATH that belong to the same program."""
_GIT_SECTIONS = ("user", "safe", "init")
"""Sections of the user's git configuration that programs may see. Other sections can contain passwords."""


def list_system_directories() -> tuple[str, ...]:
    """Return the system directories, such as ``/usr``, that exist on this machine."""
    return tuple(path for path in SYSTEM if os.path.lexists(path))


@cache
def list_public_directories() -> tuple[str, ...]:
    """Return the system directories. A directory that contains a secret path is replaced by its other entries."""
    return tuple(part for path in list_system_directories() for part in _exclude_paths(path, list_secret_paths()))


@cache
def list_secret_paths() -> tuple[str, ...]:
    """If this process runs as root, return the paths in /etc that not all users may read, such as passwords."""
    return () if os.getuid() else tuple(_find_secrets("/etc"))


def _find_secrets(directory: str) -> Iterator[str]:
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_symlink():
                continue
            is_directory, mode = entry.is_dir(), entry.stat().st_mode
            if not mode & (stat.S_IXOTH if is_directory else stat.S_IROTH):
                yield entry.path
            elif is_directory:
                yield from _find_secrets(entry.path)


def _exclude_paths(path: str, left_out: tuple[str, ...]) -> Iterator[str]:
    """Yield ``path`` if it contains none of ``left_out``; otherwise yield the entries below it that contain none."""
    if path in left_out:
        return
    if not any(is_below(secret, path) for secret in left_out):
        yield path
        return
    with os.scandir(path) as entries:
        for entry in entries:
            yield from _exclude_paths(entry.path, left_out)


def list_tool_directories(environment: Mapping[str, str], home: str, workspace: str) -> tuple[str, ...]:
    """Return the directories, except system directories, of the tools on PATH, the running Python and its packages."""
    candidates = [sys.prefix, sys.base_prefix, *(environment.get(name, "") for name in _VARIABLES + _CERTIFICATES)]
    candidates += [f"{home}/{name}" for name in IN_HOME]
    for directory in environment.get("PATH", "").split(os.pathsep):
        if any(is_below(directory, known) for known in SYSTEM):
            continue
        parent = os.path.dirname(directory)  # noqa: PTH120 - as it is spelled
        candidates.append(directory)
        if PurePosixPath(directory).name in ("bin", "sbin") and parent not in (home, f"{home}/.local"):
            candidates += [f"{parent}/{name}" for name in _SIBLINGS_OF_BIN]
            candidates += [parent] if os.path.exists(f"{parent}/pyvenv.cfg") else []  # noqa: PTH110
    directories: dict[str, None] = {}
    for path in candidates:
        # A command may have created a link in the workspace that leads to any path.
        if path.startswith("/") and os.path.exists(path) and not passes_through(path, workspace):  # noqa: PTH110
            directories |= dict.fromkeys((os.path.normpath(path), os.path.realpath(path)))
    inside = [
        path
        for path in directories
        if not any(is_below(path, directory) for directory in (*SYSTEM, workspace)) and not is_below(home, path)
    ]
    return tuple(path for path in inside if not any(is_below(path, other) for other in inside if other != path))


def build_search_path(environment: Mapping[str, str], workspace: str) -> tuple[str, tuple[str, ...]]:
    """Return PATH for programs that run in the workspace, and the directories removed from it.

    Relative directories are removed, and directories in the workspace, where a model may have written programs. System
    directories always stay.
    """
    kept: dict[str, None] = {}
    left_out: dict[str, None] = {}
    system = [known for known in SYSTEM if is_below(known, workspace)]
    for directory in environment.get("PATH", os.defpath).split(os.pathsep):
        is_system = any(is_below(directory, known) for known in system)
        is_absolute = os.path.isabs(directory)  # noqa: PTH117
        is_inside = not is_absolute or (passes_through(directory, workspace) and not is_system)
        (left_out if is_inside else kept)[directory] = None
    default = f"{environment.get('SYSTEMROOT')}\\System32" if sys.platform == "win32" else os.defpath
    return os.pathsep.join(kept) or default, tuple(left_out)


def find_git_directory_elsewhere(workspace: str) -> str | None:
    """Return the repository of a linked worktree, or None if the repository does not list this worktree."""
    with suppress(OSError, ValueError):
        link = Path(workspace, ".git")
        if link.is_symlink() or not link.is_file():
            return None
        directory = Path(workspace, link.read_text()[:4_096].removeprefix("gitdir:").strip()).resolve()
        repository = directory.parent.parent
        # Use the location of the directory, not its `commondir`: a command could write that to open other directories.
        is_worktree = directory.parent.name == "worktrees" and (repository / "HEAD").is_file()
        if is_worktree and Path((directory / "gitdir").read_text()[:4_096].strip()).resolve() == link.resolve():
            return str(repository)
    return None


def read_git_identity(home: str) -> str:
    """Return the sections of the user's git configuration that contain no secrets: identity and trusted directories."""
    kept: list[str] = []
    with suppress(OSError, ValueError):
        section = ""
        for line in Path(home, ".gitconfig").read_text()[:100_000].splitlines():
            if opened := re.match(r"\s*\[([\w.-]+)\]", line):
                section = opened[1].lower()
            elif line.lstrip().startswith("["):
                section = ""
            if section in _GIT_SECTIONS:
                kept.append(line)
    return "".join(f"{line}\n" for line in kept)


def passes_through(path: str, directory: str) -> bool:
    """Return whether ``path`` or one of its parents, with links resolved, is ``directory`` or below it."""
    return any(is_below(os.path.realpath(part), directory) for part in (path, *map(str, PurePath(path).parents)))


def is_below(path: str, directory: str) -> bool:
    """Return whether ``path`` is ``directory`` or below it, comparing whole components."""
    return PurePath(path).is_relative_to(directory)


def sort_outermost(paths: Iterable[str]) -> Iterator[str]:
    """Sort ``paths`` so that directories come before their contents."""
    return iter(sorted(paths, key=lambda path: len(PurePosixPath(path).parts)))
