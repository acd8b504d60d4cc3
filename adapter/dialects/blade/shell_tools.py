"""Blade's tool that runs commands."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from adapter.dialects import result_formatting
from adapter.dialects.tool_class import Aliases, Rendered, ToolClass, ToolMetadata, require_outcome
from adapter.tools.argument_synonyms import COMMAND, WORKING_DIRECTORY
from adapter.tools.operations import CommandOutput, Operation, Outcome, RunCommand
from adapter.tools.schema_simplify import REQUIRED_KEY


class RunCommandLine(ToolClass):
    """Execute a shell command. The user is asked first."""

    naming = ToolMetadata(
        "run_command",
        aliases=("bash", "shell", "sh", "terminal", "execute", "execute_command", "run_shell_command", "run"),
        effect="execute",
        example={"command": "cargo build --release", "cwd": "."},
    )
    command: Annotated[str, Field(description="Shell command to execute"), Aliases(*COMMAND)]
    cwd: Annotated[
        str,
        Field(description="Working directory", json_schema_extra={REQUIRED_KEY: True}),
        Aliases(*WORKING_DIRECTORY),
    ] = "."

    def to_operation(self) -> Operation:
        return RunCommand(self.command, self.cwd)

    def render(self, outcome: Outcome) -> Rendered:
        run = require_outcome(outcome, CommandOutput)
        return result_formatting.format_command(run), {"exit_code": run.exit_code, "timed_out": run.timed_out}

    def list_notes(self) -> tuple[str, ...]:
        return () if "cwd" in self.model_fields_set else ("cwd was missing; '.' (the workspace root) was used",)
