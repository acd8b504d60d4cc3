"""Operations that run programs, and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Shell: TypeAlias = Literal["sh", "bash"]


@dataclass(frozen=True, slots=True)
class RunCommand:
    """Run a shell command line in ``cwd``, for ``timeout_s`` seconds in all and ``idle_timeout_s`` without output.

    ``shell``: what the line is written for; where there is no bash, sh takes it.
    """

    command: str
    cwd: str = "."
    timeout_s: float = 120.0
    idle_timeout_s: float | None = None
    shell: Shell = "sh"


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """``exit_code`` is 128 + signal for a command that was killed, None for one that was stopped, as by its timeout."""

    command: str
    output: str
    exit_code: int | None
    timed_out: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StartCommand:
    """Run a shell command line in the background until it ends, is killed, or the workspace is closed."""

    command: str
    cwd: str = "."


@dataclass(frozen=True, slots=True)
class CommandStarted:
    id: str
    command: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadCommandOutput:
    """What a background command has printed since it was last read.

    ``filter``: give only lines in which this regular expression matches; the
    others count as read.
    """

    id: str
    filter: str | None = None


CommandStatus: TypeAlias = Literal["running", "completed", "terminated", "not_found", "denied"]
"""completed: it ended by itself; terminated: it was killed; denied: for dialects that let a user refuse the look."""


@dataclass(frozen=True, slots=True)
class CommandOutputDelta:
    id: str
    stdout: str
    stderr: str
    status: CommandStatus
    exit_code: int | None = None
    """Of a completed command."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KillCommand:
    """End a background command and all that it has started."""

    id: str


@dataclass(frozen=True, slots=True)
class CommandKilled:
    """``success``: it was running and is gone."""

    id: str
    success: bool
    message: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PathValue:
    """A path as the model wrote it, for the path gate to resolve."""

    path: str


ProgramArgument: TypeAlias = tuple[str | PathValue, ...]
"""One argument of a program, in the pieces that it is put together from."""


@dataclass(frozen=True, slots=True)
class RunProgram:
    """Run a program in the workspace root, with these arguments and no shell in between.

    ``echo``: show the user the output as it comes. ``slice_output``: of a long
    output keep the head, the tail and the lines between that tell of trouble.
    """

    program: str
    arguments: tuple[ProgramArgument, ...]
    echo: bool = False
    slice_output: bool = False
    timeout_s: float = 600.0
    idle_timeout_s: float | None = 120.0


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """``exit_code`` as in `CommandOutput`; ``skipped_lines`` and ``patterns`` tell how a long output was sliced."""

    output: str
    exit_code: int | None
    timed_out: bool = False
    skipped_lines: int = 0
    patterns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
