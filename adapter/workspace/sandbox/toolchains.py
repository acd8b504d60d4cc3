"""What a command needs to read besides the workspace: the system's programs, and the tools that a user installed.

An allow-list: of the home folder only where tools are known to live, nothing
with a user's own files or with credentials, such as ``~/.ssh``, ``~/.config`` or
``~/.cargo/credentials.toml``.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath

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
"""Below the home folder: version managers, package stores and virtual environments."""
_VARIABLES = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "GOROOT", "JAVA_HOME", "RUSTUP_HOME")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_BESIDE_PROGRAMS = ("lib", "lib64", "libexec", "include", "share")
"""Beside the ``bin`` of a program that was unpacked somewhere."""
_GIT_SECTIONS = ("user", "safe", "init")
"""Of the user's git configuration; other sections can hold passwords."""


def system_folders() -> tuple[str, ...]:
    """The folders of the system that programs read."""
    return tuple(path for path in SYSTEM if os.path.lexists(path))


@cache
def public_folders() -> tuple[str, ...]:
    """`system_folders` without `secret_paths`: in their place the entries around them."""
    return tuple(part for path in system_folders() for part in _around(path, secret_paths()))


@cache
def secret_paths() -> tuple[str, ...]:
    """What in /etc only root may read, when we are root: passwords and keys."""
    return () if os.getuid() else tuple(_secrets("/etc"))


def _secrets(folder: str) -> Iterator[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink():
                continue
            is_directory, mode = entry.is_dir(), entry.stat().st_mode
            if not mode & (stat.S_IXOTH if is_directory else stat.S_IROTH):
                yield entry.path
            elif is_directory:
                yield from _secrets(entry.path)


def _around(path: str, left_out: tuple[str, ...]) -> Iterator[str]:
    """``path``, when nothing in it is left out; else what is in it and is not."""
    if path in left_out:
        return
    if not any(is_below(secret, path) for secret in left_out):
        yield path
        return
    with os.scandir(path) as entries:
        for entry in entries:
            yield from _around(entry.path, left_out)


def tool_folders(environment: Mapping[str, str], home: str, workspace: str) -> tuple[str, ...]:
    """Where the tools on the user's PATH, the running Python and its packages are, outside of the system's folders."""
    wanted = [sys.prefix, sys.base_prefix, *(environment.get(name, "") for name in _VARIABLES + _CERTIFICATES)]
    wanted += [f"{home}/{name}" for name in IN_HOME]
    for folder in environment.get("PATH", "").split(os.pathsep):
        if any(is_below(folder, known) for known in SYSTEM):
            continue
        above = os.path.dirname(folder)  # noqa: PTH120 - as it is spelled
        wanted.append(folder)
        if PurePosixPath(folder).name in ("bin", "sbin") and above not in (home, f"{home}/.local"):
            wanted += [f"{above}/{name}" for name in _BESIDE_PROGRAMS]
            wanted += [above] if os.path.exists(f"{above}/pyvenv.cfg") else []  # noqa: PTH110
    found: dict[str, None] = {}
    for path in wanted:
        # A link in the workspace may have been made by a command, and lead anywhere.
        if path.startswith("/") and os.path.exists(path) and not passes_through(path, workspace):  # noqa: PTH110
            found |= dict.fromkeys((os.path.normpath(path), os.path.realpath(path)))
    inside = [
        path
        for path in found
        if not any(is_below(path, folder) for folder in (*SYSTEM, workspace)) and not is_below(home, path)
    ]
    return tuple(path for path in inside if not any(is_below(path, other) for other in inside if other != path))


def search_path(environment: Mapping[str, str], workspace: str) -> tuple[str, tuple[str, ...]]:
    """PATH for what is run there, and the folders that it has lost: a name must not mean a file in the workspace, which
    a model may have written. Absolute folders elsewhere stay, and those of the system whatever the workspace is."""
    kept: dict[str, None] = {}
    left_out: dict[str, None] = {}
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        is_system = any(is_below(folder, known) and is_below(known, workspace) for known in SYSTEM)
        is_inside = not folder.startswith("/") or (passes_through(folder, workspace) and not is_system)
        (left_out if is_inside else kept)[folder] = None
    return os.pathsep.join(kept) or os.defpath, tuple(left_out)


def git_folder_elsewhere(workspace: str) -> str | None:
    """The repository that the workspace is a linked worktree of: only if that repository says so, too."""
    with suppress(OSError, ValueError):
        link = Path(workspace, ".git")
        if link.is_symlink() or not link.is_file():
            return None
        folder = Path(workspace, link.read_text()[:4_096].removeprefix("gitdir:").strip()).resolve()
        repository = folder.parent.parent
        # By where the folder is, not by its `commondir`: what a command can write must open nothing else.
        is_worktree = folder.parent.name == "worktrees" and (repository / "HEAD").is_file()
        if is_worktree and Path((folder / "gitdir").read_text()[:4_096].strip()).resolve() == link.resolve():
            return str(repository)
    return None


def git_identity(home: str) -> str:
    """The user's git configuration without what could be a secret: who they are, and which folders they trust."""
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


def passes_through(path: str, folder: str) -> bool:
    """Whether ``path`` is in ``folder``, or a link in there is on its way."""
    return any(is_below(os.path.realpath(part), folder) for part in (path, *map(str, PurePosixPath(path).parents)))


def is_below(path: str, folder: str) -> bool:
    """Whether ``path`` is ``folder`` or in it, by components."""
    return PurePosixPath(path).is_relative_to(folder)


def outermost(paths: Iterable[str]) -> Iterator[str]:
    """``paths`` with those that hold others before them."""
    return iter(sorted(paths, key=lambda path: len(PurePosixPath(path).parts)))
