"""The sandbox of the programs that are run for a model: which one this machine has, and what it keeps them from.

::

    bwrap      bubblewrap: only the workspace can be changed, and of the rest only what tools need is there
    landlock   the same by the kernel alone; it cannot keep back parts of the workspace
    none       no sandbox: a program can do what the user can

Each is taken for available when it has run a program, not when it is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias, get_args

from adapter.core.errors import ToolError, UsageError
from adapter.core.text.display_escaping import escape_for_display
from adapter.tools.operations.permissions import NO_SANDBOX
from adapter.workspace.paths.git_detection import repositories_in
from adapter.workspace.paths.resolved_path import OPEN_DIRECTORY
from adapter.workspace.sandbox import landlock
from adapter.workspace.sandbox.bubblewrap import (
    MAX_HIDDEN,
    SYSTEM_BINARY,
    MountView,
    bwrap_argv,
    find_bwrap,
    identity_below,
)
from adapter.workspace.sandbox.child_process import ChildProcess, ProcessSpec
from adapter.workspace.sandbox.seccomp import INTERNET, LOCAL, build_socket_filter
from adapter.workspace.sandbox.toolchains import (
    SYSTEM,
    git_folder_elsewhere,
    git_identity,
    is_below,
    passes_through,
    public_folders,
    search_path,
    secret_paths,
    system_folders,
    tool_folders,
)

Level: TypeAlias = Literal["bwrap", "landlock", "none"]
Choice: TypeAlias = Literal["auto", "bwrap", "landlock", "none", "require"]

DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))
MAX_SEARCHED = 200_000
"""Entries of a workspace in which the paths are sought that rules keep from commands."""
PROBE_TIMEOUT_S = 10.0
"""For the trial of a sandbox."""
NOT_FOUND = 127
"""With what a shell ends for a command that it did not find."""
_REFUSED = re.compile(
    "Permission denied|Read-only file system|Operation not permitted|No such file or directory|name resolution"
    "|resolve host|[Nn]etwork is unreachable|EAI_AGAIN|ENOTFOUND|EACCES|EROFS|EPERM"
)
"""What programs say that met the sandbox; also what they say without one."""
_NAMES = {"bwrap": "bubblewrap", "landlock": "Landlock"}


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """How programs that are run for a model are confined.

    ``level``: ``auto`` takes the best that works here, even none, and says which; ``require`` and
    a level by name refuse to start without. ``network``: programs may use it. ``read`` and
    ``write``: folders besides the workspace, or parts of it that are otherwise kept.
    """

    level: Choice = "auto"
    network: bool = False
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.level not in get_args(Choice):
            raise UsageError(f"unknown sandbox {self.level!r}; expected one of: {', '.join(get_args(Choice))}")


IsDenied: TypeAlias = Callable[[str], bool]
"""Whether rules deny a path, given from the workspace root."""


@dataclass(frozen=True, slots=True)
class UnavailableReason:
    """Why a level is not available here, and what can be done about it."""

    why: str
    advice: str


def choose_sandbox(choice: Choice, writable: Sequence[str] = ()) -> Level:
    """The level that is in force, with no bwrap in the folders ``writable``.

    Raises UsageError when it is not available and must be.
    """
    if choice == "none":
        return "none"
    wanted: tuple[Level, ...] = ("bwrap", "landlock") if choice in ("auto", "require") else (choice,)  # type: ignore[assignment]
    for level in wanted:
        if why_unavailable(level, writable) is None:
            return level
    if choice == "auto":
        return "none"
    raise UsageError(f"the sandbox {choice!r} was asked for, and there is none: {reasons(wanted, writable)}")


def reasons(levels: Sequence[Level] = ("bwrap", "landlock"), writable: Sequence[str] = ()) -> str:
    """Why ``levels`` are not available, and what to do."""
    found = [(level, why_unavailable(level, writable)) for level in levels]
    return "; ".join(f"{_NAMES[level]}: {gap.why} ({gap.advice})" for level, gap in found if gap is not None)


def why_unavailable(level: Level, writable: Sequence[str] = ()) -> UnavailableReason | None:
    """None when ``level`` works here: it ran a program. No bwrap in the folders ``writable`` is used."""
    if level == "none":
        return None
    if not sys.platform.startswith("linux"):
        return UnavailableReason("only Linux has it", "on Windows, run it inside WSL")
    binary, rejected = find_bwrap(os.environ, writable) if level == "bwrap" else (None, ())
    if level == "bwrap" and rejected:
        why = f"{escape_for_display(rejected[0])} is not used: a model or another user could have put it there"
        return UnavailableReason(why, "install it for the system: apt install bubblewrap")
    if level == "bwrap" and binary is None:
        return UnavailableReason("bwrap is not installed", "install it: apt install bubblewrap")
    if level == "landlock" and not landlock.abi():
        return UnavailableReason(
            "the kernel has it not, or not enabled", "Linux 5.13 or newer, `landlock` among the lsm= modules"
        )
    said = _trial(level, binary)
    if said is None:
        return None
    if level == "bwrap":
        return UnavailableReason(
            said,
            "it needs unprivileged user namespaces, which sysctl kernel.unprivileged_userns_clone or AppArmor may deny",
        )
    return UnavailableReason(said, "run it outside of a container, or allow the system calls landlock_*")


@cache
def _trial(level: Level, bwrap: str | None) -> str | None:
    """None when ``true`` ran under ``level``; else what was said instead."""
    import time

    output: list[bytes] = []
    with tempfile.TemporaryDirectory(prefix="adapter-") as folder:
        confinement = ActiveSandbox(SandboxSettings(), os.path.realpath(folder), level=level, bwrap=bwrap)
        descriptor = os.open(folder, OPEN_DIRECTORY)
        try:
            job = confinement.job(["/bin/sh", "-c", "exit 0"], ())
            with ChildProcess(job, descriptor, output.append) as command:
                command.wait(time.monotonic() + PROBE_TIMEOUT_S)
        except (OSError, ToolError) as error:
            return str(error)
        finally:
            os.close(descriptor)
            confinement.close()
    if command.ending is not None and command.ending.exit_code == 0:
        return None
    said = b"".join(output).decode("utf-8", "replace").strip()
    return said[-300:] or "a trial run failed"


_Known: TypeAlias = tuple[tuple[str, str], ...]
"""Paths, each with its identity."""


class ActiveSandbox:
    """What confines the programs of one workspace. Close it; its private folders go with it."""

    def __init__(
        self,
        settings: SandboxSettings,
        workspace: str,
        *,
        level: Level | None = None,
        hidden: IsDenied | None = None,
        frozen: IsDenied | None = None,
        own: str | None = None,
        session: str | None = None,
        bwrap: str | None = None,
    ) -> None:
        """``hidden``, ``frozen``: what commands are not to see, or not to change, as far as the level can keep it.
        ``own``: a folder of ours in the workspace. ``session``: the session's workspace, where this is a part of it.
        ``bwrap``: the program to use, in the place of the one that is found.

        Raises UsageError when the level that ``settings`` ask for is not available.
        """
        self.settings = settings
        self._workspace = workspace
        self._hidden, self._frozen, self._own = hidden, frozen, own
        self.search_path, self._left_out = search_path(os.environ, session or workspace)
        self._private: str | None = None
        self._given = {"read": self._real(settings.read), "write": self._real(settings.write)}
        self._writable = tuple(filter(None, (workspace, session, *self._given["write"])))
        self._level = level or (None if settings.level == "auto" else choose_sandbox(settings.level, self._writable))
        self._bwrap = bwrap

    @cached_property
    def level(self) -> Level:
        """The level in force; the first use may try what there is."""
        return self._level or choose_sandbox(self.settings.level, self._writable)

    @property
    def text(self) -> str:
        """What is in force, in one line for people."""
        if self.level == "none":
            why = "as asked" if self.settings.level == "none" else reasons(writable=self._writable) or "not available"
            return f"{NO_SANDBOX}, commands can do what you can ({why})"
        network = "network allowed" if self.settings.network else "no network"
        also = "".join(f", {escape_for_display(path)}" for path in self._outside("write"))
        parts = [f"sandbox: {_NAMES[self.level]}", f"changes only in the workspace{also}", network]
        if self.level == "landlock":
            parts += [
                "`.git`, and modes of files elsewhere, can be changed",
                *(["rules about paths do not bind commands"] if self._has_rules else []),
            ]
            parts += ["signals reach other programs"] if landlock.abi() < 6 else []
        if build_socket_filter(LOCAL) is None:
            parts.append("sockets are not filtered on this processor")
        if is_below(self._home, self._workspace):
            parts.append("the workspace holds your home folder")
        return "; ".join(parts)

    def _real(self, paths: Sequence[str]) -> tuple[str, ...]:
        """``paths`` with links resolved. Raises UsageError for what is missing, or is not where it seems to be."""
        found = []
        for path in (str(Path(each).expanduser().absolute()) for each in paths):
            real = os.path.realpath(path)
            if not os.path.exists(real):  # noqa: PTH110
                raise UsageError(f"the sandbox was given {path!r}, which does not exist; give a file or folder")
            if passes_through(path, self._workspace) and not is_below(real, self._workspace):
                raise UsageError(f"{path!r} leads out of the workspace by a link in it, to {real!r}; give that instead")
            found.append(real)
        return tuple(found)

    def _outside(self, what: Literal["read", "write"]) -> tuple[str, ...]:
        """What was given besides the workspace. What is in it is just not frozen: names there can be changed."""
        return tuple(path for path in self._given[what] if not is_below(path, self._workspace))

    def job(self, argv: Sequence[str], cwd: Sequence[str]) -> ProcessSpec:
        """``argv`` as it will be run in the directory ``cwd`` of the workspace. Raises ToolError."""
        if self.level == "none":
            return ProcessSpec(argv, {"PATH": self.search_path})
        if self.level == "bwrap":
            return self._in_bubblewrap(argv, cwd)
        return self._under_landlock(argv)

    def notes(self, exit_code: int | None, output: str) -> tuple[str, ...]:
        """What a model should know about the sandbox: only when a command failed, as it seems because of it."""
        if exit_code == NOT_FOUND and self._left_out:
            shown = ", ".join(escape_for_display(folder or ".") for folder in self._left_out)
            return (f"programs are not sought in {shown} of PATH, which is in the workspace: give their path",)
        if self.level == "none" or not exit_code or not _REFUSED.search(output):
            return ()
        network = "" if self.settings.network else " and has no network"
        is_git_kept = self.level == "bwrap" and not self._may_write(f"{self._workspace}/.git")
        git = ", `.git` not" if is_git_kept else ""
        also = "".join(f" and {escape_for_display(path)}" for path in self._outside("write"))
        return (f"it ran in a sandbox: it sees little but the workspace, changes only that{also}{git}{network}",)

    def close(self) -> None:
        if self._private is not None:
            shutil.rmtree(self._private, ignore_errors=True)
            self._private = None

    @property
    def _home(self) -> str:
        home = os.environ.get("HOME", "")
        return os.path.normpath(home) if home.startswith("/") and home.strip("/") else "/home/user"

    @cached_property
    def _tools(self) -> tuple[str, ...]:
        return tool_folders(os.environ, self._home, self._workspace)

    def _read(self, program: str) -> tuple[str, ...]:
        repository = git_folder_elsewhere(self._workspace)
        more = [*self._outside("read"), *([repository] if repository else [])]
        if program.startswith("/") and not any(is_below(program, folder) for folder in (*SYSTEM, self._workspace)):
            more += [program, os.path.realpath(program)]  # a tool of the user's, wherever it is
        if self.settings.network:  # often a link out of /etc
            more.append(os.path.realpath("/etc/resolv.conf"))
        return (*self._tools, *more)

    def _in_bubblewrap(self, argv: Sequence[str], cwd: Sequence[str]) -> ProcessSpec:
        private = self._folders()
        held, frozen, hidden = self._kept()
        view = MountView(
            self._workspace,
            (*system_folders(), *self._read(argv[0])),
            ((f"{private}/tmp", "/tmp"), (f"{private}/home", self._home)),
            write=self._outside("write"),
            held=held,
            frozen=frozen,
            hidden=(*secret_paths(), *hidden),
            network=self.settings.network,
        )
        families = INTERNET if self.settings.network else LOCAL
        if self._bwrap is None:
            self._bwrap = find_bwrap(os.environ, self._writable)[0] or SYSTEM_BINARY
        return ProcessSpec(
            bwrap_argv(self._bwrap, view, argv, "/".join((self._workspace, *cwd))),
            self._variables(self._home, "/tmp"),
            is_wrapped=True,
            filter=build_socket_filter(families),
        )

    def _under_landlock(self, argv: Sequence[str]) -> ProcessSpec:
        private = self._folders()
        home = f"{private}/home"
        return ProcessSpec(
            argv,
            self._variables(home, f"{private}/tmp"),
            landlock=landlock.ruleset(
                (*public_folders(), *self._read(argv[0]), "/proc"),
                (self._workspace, private, *self._outside("write")),
                DEVICES,
                network=self.settings.network,
            ),
            filter=build_socket_filter(INTERNET if self.settings.network else ()),
        )

    def _variables(self, home: str, temporary: str) -> dict[str, str | None]:
        private: dict[str, str | None] = {"HOME": home, "TMPDIR": temporary, "PATH": self.search_path}
        return private | {"XDG_RUNTIME_DIR": None, "XDG_CACHE_HOME": None}

    def _folders(self) -> str:
        """A temporary and a home folder for the programs of this session."""
        if self._private is None:
            self._private = os.path.realpath(tempfile.mkdtemp(prefix="adapter-"))
            for name in ("tmp", "home"):
                Path(self._private, name).mkdir()
            identity = git_identity(self._home)
            if identity:
                Path(self._private, "home", ".gitconfig").write_text(identity)
            if self.level == "landlock":
                self._link_tools(Path(self._private, "home"))
        return self._private

    def _link_tools(self, home: Path) -> None:
        """Have tools where they expect themselves, as in bubblewrap; before a command can put links in the way."""
        for path in self._tools:
            if is_below(path, self._home):
                link = home / PurePosixPath(path).relative_to(self._home)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(path)

    def _kept(self) -> tuple[_Known, _Known, tuple[str, ...]]:
        """The folders that commands may not move, the paths that they may not change, and those that they may not see.

        What holds git's own data stays where it is: else a command could put another folder in its place. Raises
        ToolError.
        """
        frozen = [path for path in repositories_in(self._workspace) if not self._may_write(path)]
        holding = {str(folder) for path in frozen for folder in PurePosixPath(path).parents}
        held = sorted(folder for folder in holding if folder.startswith(f"{self._workspace}/"))
        hidden = [] if self._own is None else [f"{self._workspace}/{self._own}"]
        if self._has_rules:
            self._seek(frozen, hidden)
        if len(frozen) + len(hidden) > MAX_HIDDEN:
            raise ToolError(
                f"{len(frozen) + len(hidden)} paths are denied by rules; at most {MAX_HIDDEN} can be kept from a "
                "command. Nothing was run; the user can deny their folder instead: 'secrets/'"
            )
        return self._identified(held), self._identified(frozen), tuple(hidden)

    def _identified(self, paths: Sequence[str]) -> _Known:
        known = ((path, identity_below(self._workspace, path)) for path in paths if not self._may_write(path))
        return tuple((path, identity) for path, identity in known if identity)

    def _may_write(self, path: str) -> bool:
        return any(is_below(path, given) for given in self._given["write"])

    @property
    def _has_rules(self) -> bool:
        return self._hidden is not None or self._frozen is not None

    def _seek(self, frozen: list[str], hidden: list[str]) -> None:
        """Add the paths in the workspace that rules are about. Raises ToolError."""
        pending, seen = [""], 0
        while pending:
            above = pending.pop()
            with suppress(OSError), os.scandir(f"{self._workspace}/{above}") as entries:
                for entry in entries:
                    seen += 1
                    path = f"{above}/{entry.name}" if above else entry.name
                    if entry.is_symlink():
                        continue
                    if self._hidden and self._hidden(path):
                        hidden.append(entry.path)
                        continue
                    if self._frozen and self._frozen(path):
                        frozen.append(entry.path)  # what is in it may yet be hidden
                    if entry.is_dir():
                        pending.append(path)
            if seen > MAX_SEARCHED:
                raise ToolError(
                    f"the workspace has more than {MAX_SEARCHED:,} entries, too many to keep denied paths from "
                    "commands; nothing was run. The user can start in a smaller folder, or without such rules"
                )


UNCONFINED = ActiveSandbox(SandboxSettings("none"), "")
"""For programs that nobody confines."""
