"""Choose and apply the sandbox for programs that are run for a model.

::

    bwrap      bubblewrap: only the workspace is writable; of other files, only those that tools need are visible
    landlock   the same without bubblewrap, enforced by the kernel; it cannot protect parts of the workspace
    none       no sandbox: a program has the rights of the user

A level counts as available only after a trial program has run under it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias, get_args

from adapter.core.errors import ToolError, UsageError
from adapter.core.text.display_escaping import escape_for_display
from adapter.tools.operations.permissions import NO_SANDBOX
from adapter.workspace.paths.descriptor_syscalls import calls
from adapter.workspace.sandbox import landlock, readable_paths
from adapter.workspace.sandbox.bubblewrap import (
    SYSTEM_BINARY,
    MountView,
    build_bwrap_argv,
    find_bwrap,
)
from adapter.workspace.sandbox.child_process import ProcessSpec
from adapter.workspace.sandbox.platform_processes import COMMANDS, ChildProcess
from adapter.workspace.sandbox.protected_paths import IsDenied, find_protected_paths
from adapter.workspace.sandbox.seccomp import INTERNET, LOCAL, build_socket_filter

Level: TypeAlias = Literal["bwrap", "landlock", "none"]
Choice: TypeAlias = Literal["auto", "bwrap", "landlock", "none", "require"]

DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))
PROBE_TIMEOUT_S = 10.0
"""Maximum duration of a sandbox trial, in seconds."""
NOT_FOUND = 127
"""Exit status of a shell for a command that was not found."""
_REFUSED = re.compile(
    "Permission denied|Read-only file system|Operation not permitted|No such file or directory|name resolution"
    "|resolve host|[Nn]etwork is unreachable|EAI_AGAIN|ENOTFOUND|EACCES|EROFS|EPERM"
)
"""Pattern of typical error messages of programs blocked by the sandbox. They also occur without a sandbox."""
_NAMES = {"bwrap": "bubblewrap", "landlock": "Landlock"}


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """Settings for the sandbox of programs that are run for a model."""

    level: Choice = "auto"
    """The sandbox. ``auto`` uses the best available one, possibly none, and reports it; ``require`` and a named level
    raise an error if unavailable.
    """
    network: bool = False
    """True to allow network access."""
    read: tuple[str, ...] = ()
    """Additional paths that programs may read, outside the workspace."""
    write: tuple[str, ...] = ()
    """Additional paths that programs may write: outside the workspace, or in it and protected by default (``.git``)."""

    def __post_init__(self) -> None:
        if self.level not in get_args(Choice):
            raise UsageError(f"unknown sandbox {self.level!r}; expected one of: {', '.join(get_args(Choice))}")


@dataclass(frozen=True, slots=True)
class UnavailableReason:
    """The reason why a sandbox level is unavailable on this machine, and how to make it available."""

    why: str
    advice: str


def choose_sandbox(choice: Choice, writable: Sequence[str] = ()) -> Level:
    """Return the best available level that ``choice`` permits. A bwrap in one of the directories ``writable`` is
    ignored, because a model could have written it.

    Raises UsageError if a required level is not available.
    """
    if choice == "none":
        return "none"
    levels: tuple[Level, ...] = ("bwrap", "landlock") if choice in ("auto", "require") else (choice,)  # type: ignore[assignment]
    for level in levels:
        if find_unavailable_reason(level, writable) is None:
            return level
    if choice == "auto":
        return "none"
    raise UsageError(f"sandbox {choice!r} is required but not available: {describe_reasons(levels, writable)}")


def describe_reasons(levels: Sequence[Level] = ("bwrap", "landlock"), writable: Sequence[str] = ()) -> str:
    """Describe why ``levels`` are not available, and how to make them available."""
    gaps = [(level, find_unavailable_reason(level, writable)) for level in levels]
    return "; ".join(f"{_NAMES[level]}: {gap.why} ({gap.advice})" for level, gap in gaps if gap is not None)


def find_unavailable_reason(level: Level, writable: Sequence[str] = ()) -> UnavailableReason | None:
    """Return the reason why ``level`` is unavailable, or None if a trial program ran under it. ``writable``: as in
    `choose_sandbox`."""
    if level == "none":
        return None
    if not sys.platform.startswith("linux"):
        return UnavailableReason("it requires Linux", "on Windows, run adapter in WSL")
    binary, rejected = find_bwrap(os.environ, writable) if level == "bwrap" else (None, ())
    if level == "bwrap" and rejected:
        why = f"{escape_for_display(rejected[0])} is not used: a model or another user could have planted it"
        return UnavailableReason(why, "install it for the system: apt install bubblewrap")
    if level == "bwrap" and binary is None:
        return UnavailableReason("bwrap is not installed", "install it: apt install bubblewrap")
    if level == "landlock" and not landlock.get_abi():
        return UnavailableReason(
            "the kernel lacks it, or it is disabled", "use Linux 5.13 or newer with `landlock` among the lsm= modules"
        )
    failure = _try_level(level, binary)
    if failure is None:
        return None
    if level == "bwrap":
        return UnavailableReason(
            failure,
            "it needs unprivileged user namespaces, which sysctl kernel.unprivileged_userns_clone or AppArmor may deny",
        )
    return UnavailableReason(failure, "run outside of a container, or allow the system calls landlock_*")


@cache
def _try_level(level: Level, bwrap: str | None) -> str | None:
    """Run a trial program under ``level``. Return None on success, otherwise the error."""
    import time

    output: list[bytes] = []
    with tempfile.TemporaryDirectory(prefix="adapter-") as directory:
        sandbox = ActiveSandbox(SandboxSettings(), os.path.realpath(directory), level=level, bwrap=bwrap)
        descriptor = calls.open_root(directory)
        try:
            job = sandbox.build_job(["/bin/sh", "-c", "exit 0"], ())
            with ChildProcess(job, descriptor, output.append) as command:
                command.wait(time.monotonic() + PROBE_TIMEOUT_S)
        except (OSError, ToolError) as error:
            return str(error)
        finally:
            calls.close(descriptor)
            sandbox.close()
    if command.ending is not None and command.ending.exit_code == 0:
        return None
    message = b"".join(output).decode("utf-8", "replace").strip()
    return message[-300:] or "a trial run failed"


class ActiveSandbox:
    """The sandbox for the programs of one workspace. Closing it removes its private directories."""

    def __init__(
        self,
        settings: SandboxSettings,
        workspace: str,
        *,
        level: Level | None = None,
        hidden: IsDenied | None = None,
        frozen: IsDenied | None = None,
        data_directory: str | None = None,
        session: str | None = None,
        bwrap: str | None = None,
    ) -> None:
        """Choose the sandbox and resolve its paths. Raises UsageError if the level that ``settings`` requires is not
        available.

        Args:
            hidden: Paths that commands must not see, as far as the level can enforce this.
            frozen: Paths that commands must not change, as far as the level can enforce this.
            data_directory: Directory in the workspace for this package's data.
            session: The parent workspace of a subsession.
            bwrap: The bwrap program to use instead of the installed one.
        """
        self.settings = settings
        self._workspace = workspace
        self._hidden, self._frozen, self._data_directory = hidden, frozen, data_directory
        self.search_path, self._left_out = readable_paths.build_search_path(os.environ, session or workspace)
        self._private: str | None = None
        self._granted = {"read": self._resolve_links(settings.read), "write": self._resolve_links(settings.write)}
        self._writable = tuple(filter(None, (workspace, session, *self._granted["write"])))
        self._level = level or (None if settings.level == "auto" else choose_sandbox(settings.level, self._writable))
        self._bwrap = bwrap

    @cached_property
    def level(self) -> Level:
        """The sandbox level in use. The first access may run trial programs."""
        return self._level or choose_sandbox(self.settings.level, self._writable)

    @property
    def text(self) -> str:
        """One line that describes the sandbox to the user."""
        if self.level == "none":
            is_requested = self.settings.level == "none"
            why = "as requested" if is_requested else describe_reasons(writable=self._writable) or "not available"
            return f"{NO_SANDBOX}, {COMMANDS} have all your rights ({why})"
        network = "network allowed" if self.settings.network else "no network"
        also = "".join(f", {escape_for_display(path)}" for path in self._list_outside("write"))
        parts = [f"sandbox: {_NAMES[self.level]}", f"changes only in the workspace{also}", network]
        if self.level == "landlock":
            parts.append("`.git`, and modes of files elsewhere, can be changed")
            parts += ["path rules do not apply to commands"] if self._has_rules else []
            parts += ["signals can reach other programs"] if landlock.get_abi() < 6 else []
        if build_socket_filter(LOCAL) is None:
            parts.append("sockets are not filtered on this architecture")
            if self.level == "landlock" and not landlock.restricts_truncation():
                parts.append("files elsewhere can be emptied")
        if readable_paths.is_below(self._home, self._workspace):
            parts.append("the workspace contains your home directory")
        return "; ".join(parts)

    def _resolve_links(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Resolve links in ``paths``. Raises UsageError if a path is missing, or leaves the workspace by a link."""
        real_paths = []
        for path in (str(Path(each).expanduser().absolute()) for each in paths):
            real = os.path.realpath(path)
            if not os.path.exists(real):  # noqa: PTH110
                raise UsageError(f"the path {path!r} for the sandbox does not exist; pass a file or directory")
            is_inside = readable_paths.is_below(real, self._workspace)
            if readable_paths.passes_through(path, self._workspace) and not is_inside:
                raise UsageError(f"{path!r} leaves the workspace through a link; pass its target {real!r} instead")
            real_paths.append(real)
        return tuple(real_paths)

    def _list_outside(self, access: Literal["read", "write"]) -> tuple[str, ...]:
        """Return the paths outside the workspace that the settings make accessible for ``access``. Each path needs a
        mount."""
        return tuple(path for path in self._granted[access] if not readable_paths.is_below(path, self._workspace))

    def build_job(self, argv: Sequence[str], cwd: Sequence[str]) -> ProcessSpec:
        """Return the specification of a process that runs ``argv`` in the workspace directory ``cwd``.

        Raises ToolError if the path rules deny too many files to enforce them.
        """
        if self.level == "none":
            return ProcessSpec(argv, {"PATH": self.search_path})
        if self.level == "bwrap":
            return self._build_bubblewrap_job(argv, cwd)
        return self._build_landlock_job(argv)

    def list_notes(self, exit_code: int | None, output: str) -> tuple[str, ...]:
        """Return notes for the model if a command failed and the sandbox is the likely cause."""
        if exit_code == NOT_FOUND and self._left_out:
            shown = ", ".join(escape_for_display(directory or ".") for directory in self._left_out)
            return (f"programs are not searched in {shown} of PATH, because it is in the workspace: give their path",)
        if self.level == "none" or not exit_code or not _REFUSED.search(output):
            return ()
        network = "" if self.settings.network else " and has no network"
        is_git_frozen = self.level == "bwrap" and not self._may_write(f"{self._workspace}/.git")
        git = " (not `.git`)" if is_git_frozen else ""
        also = "".join(f" and {escape_for_display(path)}" for path in self._list_outside("write"))
        return (
            f"it ran in a sandbox that shows little but the workspace, allows changes only there{also}{git}{network}",
        )

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
        return readable_paths.list_tool_directories(os.environ, self._home, self._workspace)

    def _read(self, program: str) -> tuple[str, ...]:
        repository = readable_paths.find_git_directory_elsewhere(self._workspace)
        more = [*self._list_outside("read"), *([repository] if repository else [])]
        if program.startswith("/") and not any(
            readable_paths.is_below(program, directory) for directory in (*readable_paths.SYSTEM, self._workspace)
        ):
            more += [program, os.path.realpath(program)]  # a tool of the user, at any path
        if self.settings.network:  # often a link to a file outside /etc
            more.append(os.path.realpath("/etc/resolv.conf"))
        return (*self._tools, *more)

    def _build_bubblewrap_job(self, argv: Sequence[str], cwd: Sequence[str]) -> ProcessSpec:
        private = self._create_directories()
        protected = find_protected_paths(
            self._workspace, self._may_write, self._data_directory, hidden=self._hidden, frozen=self._frozen
        )
        view = MountView(
            self._workspace,
            (*readable_paths.list_system_directories(), *self._read(argv[0])),
            ((f"{private}/tmp", "/tmp"), (f"{private}/home", self._home)),
            write=self._list_outside("write"),
            pinned=protected.pinned,
            frozen=protected.frozen,
            hidden=(*readable_paths.list_secret_paths(), *protected.hidden),
            network=self.settings.network,
        )
        if self._bwrap is None:
            self._bwrap = find_bwrap(os.environ, self._writable)[0] or SYSTEM_BINARY
        command = build_bwrap_argv(self._bwrap, view, argv, "/".join((self._workspace, *cwd)))
        families = build_socket_filter(INTERNET if self.settings.network else LOCAL)
        return ProcessSpec(command, self._build_variables(self._home, "/tmp"), is_wrapped=True, filter=families)

    def _build_landlock_job(self, argv: Sequence[str]) -> ProcessSpec:
        private, network = self._create_directories(), self.settings.network
        read = (*readable_paths.list_public_directories(), *self._read(argv[0]), "/proc")
        write = (self._workspace, private, *self._list_outside("write"))
        ruleset = landlock.build_ruleset(read, write, DEVICES, network=network)
        families = build_socket_filter(INTERNET if network else (), truncation=landlock.restricts_truncation())
        variables = self._build_variables(f"{private}/home", f"{private}/tmp")
        return ProcessSpec(argv, variables, landlock=ruleset, filter=families)

    def _build_variables(self, home: str, temporary: str) -> dict[str, str | None]:
        private: dict[str, str | None] = {"HOME": home, "TMPDIR": temporary, "PATH": self.search_path}
        return private | {"XDG_RUNTIME_DIR": None, "XDG_CACHE_HOME": None}

    def _create_directories(self) -> str:
        """Return the directory of the session's private temporary and home directories, created on first use."""
        if self._private is None:
            self._private = os.path.realpath(tempfile.mkdtemp(prefix="adapter-"))
            for name in ("tmp", "home"):
                Path(self._private, name).mkdir()
            identity = readable_paths.read_git_identity(self._home)
            if identity:
                Path(self._private, "home", ".gitconfig").write_text(identity)
            if self.level == "landlock":
                self._link_tools(Path(self._private, "home"))
        return self._private

    def _link_tools(self, home: Path) -> None:
        """Link the user's tools into the private home directory, before any command runs in it."""
        for path in self._tools:
            if readable_paths.is_below(path, self._home):
                link = home / PurePosixPath(path).relative_to(self._home)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(path)

    def _may_write(self, path: str) -> bool:
        return any(readable_paths.is_below(path, directory) for directory in self._granted["write"])

    @property
    def _has_rules(self) -> bool:
        return self._hidden is not None or self._frozen is not None


UNSANDBOXED = ActiveSandbox(SandboxSettings("none"), "")
"""A sandbox without restrictions: programs have all rights of the user."""
