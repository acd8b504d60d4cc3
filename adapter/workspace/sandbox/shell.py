"""Run shell commands and wait until they end."""

from __future__ import annotations

import math
import os
import sys
import time

from adapter.tools.operations import CommandOutput, RunCommand
from adapter.workspace.paths.os_errors import convert_os_errors
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.sandbox.child_process import GRACE_S, MAX_PROCESSES, ProcessExit
from adapter.workspace.sandbox.output_capture import HeadAndTail
from adapter.workspace.sandbox.platform_processes import SHELL, ChildProcess, build_shell_argv
from adapter.workspace.sandbox.sandbox import UNSANDBOXED, ActiveSandbox

MAX_TIMEOUT_S = 600.0
"""Maximum timeout of a command, in seconds."""
BASH = "/bin/bash"
_REASONS = {
    "multiplied": f"it was stopped because it had more than {MAX_PROCESSES} processes at a time",
    "lost": "it was stopped because it had killed or stopped its supervisor",
}


def run_command(root: WorkspaceRoot, operation: RunCommand, sandbox: ActiveSandbox = UNSANDBOXED) -> CommandOutput:
    """Run the command line in a shell and return its output, stdout and stderr interleaved."""
    timeout_s = min(operation.timeout_s, MAX_TIMEOUT_S)
    notes = [] if timeout_s == operation.timeout_s else [f"the timeout was reduced to {MAX_TIMEOUT_S:g} s"]
    shell = SHELL
    if operation.shell == "bash" and sys.platform != "win32" and os.access(BASH, os.X_OK):
        shell = BASH
    elif operation.shell == "bash":
        notes.append(f"{BASH} is not installed: {SHELL} ran it")
    output = HeadAndTail()
    with root.open_directory(operation.cwd) as (directory, resolved), convert_os_errors("the command was not run"):
        argv = build_shell_argv(operation.command, shell)
        command = ChildProcess(sandbox.build_job(argv, resolved.parts), directory, output.add)
    finished, ending = wait_for_exit(command, timeout_s, operation.idle_timeout_s)
    text = output.render_text()
    if sys.platform == "win32" and ending.exit_code and operation.shell != "bash":
        notes.append(f"{SHELL} ran it: write commands for {SHELL}, not for a Unix shell")
    return CommandOutput(
        command=operation.command,
        output=text,
        exit_code=ending.exit_code if finished else None,
        timed_out=not finished,
        notes=(*notes, *list_ending_notes(ending, finished), *sandbox.list_notes(ending.exit_code, text)),
    )


def wait_for_exit(command: ChildProcess, timeout_s: float, idle_timeout_s: float | None) -> tuple[bool, ProcessExit]:
    """Wait for the command and close it. After a timeout, first send SIGTERM.

    Return whether the command ended in time, and how it ended.
    """
    idle_s = math.inf if idle_timeout_s is None else idle_timeout_s
    with command:
        finished = command.wait(time.monotonic() + timeout_s, idle_s)
        if not finished:
            command.ask_to_end()
            command.wait(time.monotonic() + GRACE_S)
    return finished, command.ending or ProcessExit(None)


def list_ending_notes(ending: ProcessExit, finished: bool = True) -> tuple[str, ...]:
    """Return notes for the model on the end of a command.

    ``finished``: whether the command ended before its timeout. After a timeout, remaining processes are not reported.
    """
    if ending.reason in _REASONS:
        return (_REASONS[ending.reason],)
    if not ending.left or not finished:
        return ()
    processes = "1 process that it" if ending.left == 1 else f"{ending.left} processes that it"
    return (f"{processes} had left in the background ended with the command",)
