"""Operations that run programs, and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Shell: TypeAlias = Literal["sh", "bash"]


@dataclass(frozen=True, slots=True)
class RunCommand:
    """Run a shell command line in ``cwd``, for at most ``timeout_s`` seconds, and ``idle_timeout_s`` without output.

    ``shell``: the shell that the line is written for; sh replaces a missing bash.
    """

    command: str
    cwd: str = "."
    timeout_s: float = 120.0
    idle_timeout_s: float | None = None
    shell: Shell = "sh"


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """``exit_code``: 128 + signal for a killed command, None for a stopped one, such as by its timeout."""

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
    """Read the output of a background command since the last read.

    ``filter``: return only lines that match this regular expression; the others count as read.
    """

    id: str
    filter: str | None = None


CommandStatus: TypeAlias = Literal["running", "completed", "terminated", "not_found", "denied"]
"""completed: it exited; terminated: it was killed; denied: for dialects in which the user can refuse the read."""


@dataclass(frozen=True, slots=True)
class CommandOutputDelta:
    id: str
    stdout: str
    stderr: str
    status: CommandStatus
    exit_code: int | None = None
    """Exit code of a completed command."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KillCommand:
    """End a background command and all processes that it has started."""

    id: str


@dataclass(frozen=True, slots=True)
class CommandKilled:
    """``success``: it was running and has ended."""

    id: str
    success: bool
    message: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PathValue:
    """A path as the model wrote it, to be resolved and checked."""

    path: str


ProgramArgument: TypeAlias = tuple[str | PathValue, ...]
"""One argument of a program, as the pieces that form it."""


@dataclass(frozen=True, slots=True)
class RunProgram:
    """Run a program in the workspace root, without a shell.

    ``echo``: show the output to the user as it arrives. ``slice_output``: keep only the head, the tail and the lines
    with
    errors of a long output.
    """

    program: str
    arguments: tuple[ProgramArgument, ...]
    echo: bool = False
    slice_output: bool = False
    timeout_s: float = 600.0
    idle_timeout_s: float | None = 120.0


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """``exit_code`` as in `CommandOutput`; ``skipped_lines`` and ``patterns`` describe the slicing of a long output."""

    output: str
    exit_code: int | None
    timed_out: bool = False
    skipped_lines: int = 0
    patterns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
