"""Choose how this system starts programs, and the shell that runs command lines."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from adapter.workspace.sandbox.windows_process import WindowsProcess as ChildProcess
    from adapter.workspace.sandbox.windows_process import build_cmd_argv
else:
    from adapter.workspace.sandbox.child_process import ChildProcess

__all__ = ["COMMANDS", "SHELL", "ChildProcess", "build_shell_argv"]

SHELL = "cmd.exe" if sys.platform == "win32" else "/bin/sh"
COMMANDS = f"commands of {SHELL}" if sys.platform == "win32" else "commands"
"""Name for the session's commands in messages. On Windows, it includes the shell."""


def build_shell_argv(line: str, shell: str = SHELL) -> list[str]:
    """Return the arguments for `ChildProcess` to run ``line`` in ``shell`` or, on Windows, in cmd.exe.

    Raises ToolError if cmd.exe would run only a part of the line.
    """
    if sys.platform == "win32":
        return build_cmd_argv(line)
    return [shell, "-c", line]
