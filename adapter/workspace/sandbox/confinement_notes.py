"""What confines a call, in words for people: said in the question, in the result and about the whole session.

=====================================  ==============================================================
programs and commands                  the sandbox in force (`adapter.workspace.sandbox.sandbox`), or none
functions of the user, MCP tools       nothing here: who performs them can do what it can
Python of `RunCode`                    its interpreter; the tools that it calls, as they say themselves
a batch                                what its calls say
everything else                        says nothing: it is this program's own, and asks for what it does
=====================================  ==============================================================
"""

from __future__ import annotations

from collections.abc import Iterable

from adapter.tools.operations import (
    BatchResults,
    CallFunction,
    Operation,
    Outcome,
    RunCode,
    RunCommand,
    RunProgram,
    StartCommand,
)
from adapter.tools.operations.permissions import NO_SANDBOX
from adapter.tools.tool import Tool
from adapter.workspace.sandbox.sandbox import ActiveSandbox

THIS_PROGRAM = "this program"
INTERPRETER = (
    "sandbox: an interpreter without files, processes and network; the tools that it calls run as they do by themselves"
)
MAX_NAMED = 5
"""Functions that the line about a session names."""


def confinement_notice(operation: Operation, confinement: ActiveSandbox) -> str:
    """What will confine the operation; empty where nothing runs but this program's own code."""
    match operation:
        case RunCommand() | StartCommand() | RunProgram():
            return confinement.text
        case CallFunction(runner=runner):
            return f"{NO_SANDBOX}, it runs in {runner or THIS_PROGRAM} and can do whatever that can"
        case RunCode():
            return INTERPRETER
        case _:
            return ""


def confinement_result_note(operation: Operation, outcome: Outcome, confinement: ActiveSandbox) -> str:
    """What confined the operation; of a batch each thing that its calls say, once, a line each."""
    if isinstance(outcome, BatchResults):
        return "\n".join(dict.fromkeys(result.sandbox for result in outcome.results if result.sandbox))
    return confinement_notice(operation, confinement)


def session_confinement_note(tools: Iterable[Tool], confinement: ActiveSandbox) -> str:
    """What confines whatever ``tools`` can run: a line about commands, and one about functions; empty without any."""
    offered = list(tools)
    functions = [tool for tool in offered if tool.function is not None]
    lines = [confinement.text] if any(tool.effect == "execute" and tool.function is None for tool in offered) else []
    if functions:
        named = [f"{tool.name} ({tool.runner or THIS_PROGRAM})" for tool in functions[:MAX_NAMED]]
        more = f" and {len(functions) - MAX_NAMED} more" if len(functions) > MAX_NAMED else ""
        lines.append(f"{NO_SANDBOX} for {', '.join(named)}{more}: each can do whatever what it runs in can")
    return "\n".join(lines)
