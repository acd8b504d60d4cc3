"""Describe to the user how calls are confined: a single call, before its approval and in its result, or a session.

=====================================  ==============================================================
programs and commands                  the active sandbox (`adapter.workspace.sandbox.sandbox`), or none
custom functions, MCP tools            none: they have the rights of the process that runs them
Python of `RunCode`                    its interpreter; the tools that it calls are described separately
a batch                                the notes of its calls
everything else                        nothing: it is code of this program, with its own approval
=====================================  ==============================================================
"""

from __future__ import annotations

from collections.abc import Iterable

from adapter.tools import operations as ops
from adapter.tools.operations.permissions import NO_SANDBOX
from adapter.tools.tool import Tool
from adapter.workspace.sandbox.sandbox import ActiveSandbox

THIS_PROGRAM = "this program"
INTERPRETER = (
    "sandbox: an interpreter without files, processes and network; the tools that it calls keep their own restrictions"
)
MAX_NAMED = 5
"""Maximum number of functions listed in the note of a session."""


def build_sandbox_notice(operation: ops.Operation, sandbox: ActiveSandbox) -> str:
    """Describe the sandbox that an operation will run in. Return "" if the operation runs only code of this package."""
    match operation:
        case ops.RunCommand() | ops.StartCommand() | ops.RunProgram():
            return sandbox.text
        case ops.CallFunction(runner=runner):
            return f"{NO_SANDBOX}, it runs in {runner or THIS_PROGRAM} with all rights of that process"
        case ops.RunCode():
            return INTERPRETER
        case _:
            return ""


def build_sandbox_result_note(operation: ops.Operation, outcome: ops.Outcome, sandbox: ActiveSandbox) -> str:
    """Describe how a finished operation was confined. For a batch, list its calls' distinct notes, one per line."""
    if isinstance(outcome, ops.BatchResults):
        return "\n".join(dict.fromkeys(result.sandbox for result in outcome.results if result.sandbox))
    return build_sandbox_notice(operation, sandbox)


def build_session_sandbox_note(tools: Iterable[Tool], sandbox: ActiveSandbox) -> str:
    """Describe the sandbox of ``tools``: one line about commands and one about functions, if there are any."""
    offered = list(tools)
    functions = [tool for tool in offered if tool.function is not None]
    lines = [sandbox.text] if any(tool.effect == "execute" and tool.function is None for tool in offered) else []
    if functions:
        named = [f"{tool.name} ({tool.runner or THIS_PROGRAM})" for tool in functions[:MAX_NAMED]]
        more = f" and {len(functions) - MAX_NAMED} more" if len(functions) > MAX_NAMED else ""
        lines.append(f"{NO_SANDBOX} for {', '.join(named)}{more}: each has all rights of the process that runs it")
    return "\n".join(lines)
