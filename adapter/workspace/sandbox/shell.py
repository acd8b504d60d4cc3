"""Runs a command line, or a program without a shell, and waits for it."""

from __future__ import annotations

import math
import os
import time

from adapter.tools.operations import CommandOutput, RunCommand
from adapter.workspace.paths.os_errors import os_errors_explained
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.sandbox.child_process import GRACE_S, MAX_PROCESSES, ChildProcess, ProcessExit
from adapter.workspace.sandbox.output import HeadAndTail
from adapter.workspace.sandbox.sandbox import UNCONFINED, ActiveSandbox

MAX_TIMEOUT_S = 600.0
"""Of a command; a call may ask for less."""
SHELL = "/bin/sh"
BASH = "/bin/bash"
_REASONS = {
    "multiplied": f"it was stopped because it had more than {MAX_PROCESSES} processes at a time",
    "lost": "it was stopped because it had killed or halted the process that watches it",
}


def run_command(root: WorkspaceRoot, operation: RunCommand, confinement: ActiveSandbox = UNCONFINED) -> CommandOutput:
    """Run the command line by its shell and give what it printed, stdout and stderr as they came."""
    timeout_s = min(operation.timeout_s, MAX_TIMEOUT_S)
    notes = [] if timeout_s == operation.timeout_s else [f"the timeout was cut to {MAX_TIMEOUT_S:g} s"]
    shell = SHELL
    if operation.shell == "bash" and os.access(BASH, os.X_OK):
        shell = BASH
    elif operation.shell == "bash":
        notes.append(f"there is no {BASH} here: {SHELL} ran it")
    output = HeadAndTail()
    with root.open_directory(operation.cwd) as (directory, place), os_errors_explained("the command was not run"):
        command = ChildProcess(confinement.job([shell, "-c", operation.command], place.parts), directory, output.add)
    with command:
        finished = wait_for_exit(command, timeout_s, operation.idle_timeout_s)
    ending = command.ending or ProcessExit(None)
    text = output.text()
    return CommandOutput(
        command=operation.command,
        output=text,
        exit_code=ending.exit_code if finished else None,
        timed_out=not finished,
        notes=(*notes, *ending_notes(ending, finished), *confinement.notes(ending.exit_code, text)),
    )


def wait_for_exit(command: ChildProcess, timeout_s: float, idle_timeout_s: float | None) -> bool:
    """Wait for the command; after its time is up it is asked to end, and given a moment for it."""
    idle_s = math.inf if idle_timeout_s is None else idle_timeout_s
    if command.wait(time.monotonic() + timeout_s, idle_s):
        return True
    command.ask_to_end()
    command.wait(time.monotonic() + GRACE_S)
    return False


def ending_notes(ending: ProcessExit, finished: bool = True) -> tuple[str, ...]:
    """What a model should know about the end of a command, beside its exit code.

    ``finished``: by itself. What one that was told to end had running then was told so, too: it was not left.
    """
    if ending.reason in _REASONS:
        return (_REASONS[ending.reason],)
    if not ending.left or not finished:
        return ()
    processes = "1 process that it" if ending.left == 1 else f"{ending.left} processes that it"
    return (f"{processes} had left in the background ended with the command",)
