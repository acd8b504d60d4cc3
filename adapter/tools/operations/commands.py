"""Operations that run programs, and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from adapter.tools.operations.outcome import Outcome

Shell: TypeAlias = Literal["sh", "bash"]


@dataclass(frozen=True, slots=True)
class RunCommand:
    """Run a shell command line in ``cwd``. It is stopped after ``timeout_s`` seconds, or ``idle_timeout_s`` seconds
    without output.

    ``shell``: the shell that the line was written for. If bash is missing, sh is used.
    """

    command: str
    cwd: str = "."
    timeout_s: float = 120.0
    idle_timeout_s: float | None = None
    shell: Shell = "sh"


@dataclass(frozen=True, slots=True)
class CommandOutput(Outcome):
    """A command's result. ``exit_code`` is 128 + the signal's number if a signal killed it, and None if this program
    stopped it, for example after a timeout."""

    command: str
    output: str
    exit_code: int | None
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class StartCommand:
    """Run a shell command line in the background until it exits, is killed, or the workspace is closed."""

    command: str
    cwd: str = "."


@dataclass(frozen=True, slots=True)
class CommandStarted(Outcome):
    id: str
    command: str


@dataclass(frozen=True, slots=True)
class ReadCommandOutput:
    """Read a background command's output since the last read.

    ``filter``: return only lines that match this regular expression. The other lines also count as read.
    """

    id: str
    filter: str | None = None


CommandStatus: TypeAlias = Literal["running", "completed", "terminated", "not_found", "denied"]
"""A command's status.

- ``completed``: it exited.
- ``terminated``: it was killed.
- ``denied``: the user did not let the model read the output, in dialects that support this.
"""


@dataclass(frozen=True, slots=True)
class CommandOutputDelta(Outcome):
    id: str
    stdout: str
    stderr: str
    status: CommandStatus
    exit_code: int | None = None
    """Exit code, if the command has completed."""


@dataclass(frozen=True, slots=True)
class KillCommand:
    """End a background command and all processes that it started."""

    id: str


@dataclass(frozen=True, slots=True)
class CommandKilled(Outcome):
    """The result of `KillCommand`. ``success``: whether the command was running and has ended."""

    id: str
    success: bool
    message: str


@dataclass(frozen=True, slots=True)
class PathValue:
    """A path as written by the model. The workspace resolves and checks it."""

    path: str


ProgramArgument: TypeAlias = tuple[str | PathValue, ...]
"""One argument of a program: strings and paths that are concatenated."""


@dataclass(frozen=True, slots=True)
class RunProgram:
    """Run a program in the workspace root, without a shell.

    ``echo``: whether to show the output to the user as it arrives. ``slice_output``: whether to keep only a long
    output's head, tail and lines with errors.
    """

    program: str
    arguments: tuple[ProgramArgument, ...]
    echo: bool = False
    slice_output: bool = False
    timeout_s: float = 600.0
    idle_timeout_s: float | None = 120.0


@dataclass(frozen=True, slots=True)
class ProgramOutput(Outcome):
    """A program's result. ``exit_code``: as in `CommandOutput`. ``skipped_lines`` and ``patterns`` describe how a long
    output was sliced."""

    output: str
    exit_code: int | None
    timed_out: bool = False
    skipped_lines: int = 0
    patterns: tuple[str, ...] = ()
