"""Maki's tool that runs commands."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from adapter.dialects import result_formatting
from adapter.dialects.tool_class import Aliases, Rendered, ToolClass, ToolMetadata, Unsigned, require_outcome
from adapter.tools.argument_synonyms import COMMAND, WORKING_DIRECTORY
from adapter.tools.operations import CommandOutput, Operation, Outcome, RunCommand


class MakiBash(ToolClass):
    """Run a shell command: git, builds, tests. Not for reading or writing files."""

    naming = ToolMetadata(
        "bash",
        aliases=("shell", "sh", "terminal", "execute", "execute_command", "run_command", "run_shell_command", "run"),
        effect="execute",
        example={"command": "cargo test", "description": "Run the tests", "timeout": 300},
    )
    command: Annotated[str, Field(description="The bash command to execute"), Aliases(*COMMAND)]
    description: Annotated[str | None, Field(description="Short description (3-5 words)"), Aliases("label")] = None
    timeout: Annotated[
        Unsigned, Field(description="Timeout in seconds"), Aliases("timeout_s", "timeout_secs", "timeout_seconds")
    ] = 120
    workdir: Annotated[
        str,
        Field(description="Working directory (default: the project root)"),
        Aliases(*WORKING_DIRECTORY),
    ] = "."

    def to_operation(self) -> Operation:
        return RunCommand(self.command, self.workdir, float(self.timeout), shell="bash")

    def render(self, outcome: Outcome) -> Rendered:
        run = require_outcome(outcome, CommandOutput)
        return result_formatting.format_command(run), {"exit_code": run.exit_code, "timed_out": run.timed_out}
