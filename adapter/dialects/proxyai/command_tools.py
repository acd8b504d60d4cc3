"""ProxyAI's tools that run commands, also in the background."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from pydantic import field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from adapter.core.errors import DeniedError, ToolError
from adapter.core.events import Json, JsonObject
from adapter.dialects import result_formatting
from adapter.dialects.proxyai.error_fields import make_error_renderer
from adapter.dialects.tool_class import CommandText, Parameter, Rendered, ToolClass, ToolMetadata
from adapter.tools import operations as ops
from adapter.tools.argument_synonyms import COMMAND

DEFAULT_TIMEOUT_MS = 60_000
"""ProxyAI's default timeout for a command, in milliseconds, which its document does not state."""
MAX_TIMEOUT_MS = 600_000
"""ProxyAI's maximum timeout for a command, in milliseconds, which its document does not state."""


def _render_read_error(given: JsonObject, error: ToolError) -> Json:
    if isinstance(error, DeniedError):
        return _build_output_fields(ops.CommandOutputDelta(str(given.get("bash_id")), "", "", "denied"))
    return {"bash_id": given.get("bash_id"), "error": str(error)}


def _build_output_fields(new: ops.CommandOutputDelta) -> JsonObject:
    return {"bash_id": new.id, **{key: value for key, value in asdict(new).items() if key not in ("id", "notes")}}


class ProxyAIBash(ToolClass):
    """Run a shell command. The user is asked first."""

    naming = ToolMetadata(
        "Bash",
        aliases=("Execute", "Terminal", "RunShellCommand", "shell"),
        effect="execute",
        label="description",
        failure=make_error_renderer("output", command="command", exitCode=None, bash_id=None),
    )
    example = {"command": "python -m pytest -q", "timeout": 60000, "description": "Run the tests"}
    command: Annotated[CommandText, Parameter("Shell command to execute", *COMMAND)]
    timeout: Annotated[float, Parameter("Timeout in milliseconds", "timeout_ms")] = DEFAULT_TIMEOUT_MS
    description: Annotated[str | None, Parameter("Purpose of the command, shown to the user")] = None
    run_in_background: Annotated[
        bool | None, Parameter("Run in the background; read the output with BashOutput", "background")
    ] = None
    workingDirectory: SkipJsonSchema[str] = "."
    """A parameter that ProxyAI accepts but does not document."""

    @model_validator(mode="before")
    @classmethod
    def _join_command(cls, given: Json) -> Json:
        """Join a list of words into one command line, as ProxyAI does."""
        command = given.get("command") if isinstance(given, dict) else None
        return given | {"command": " ".join(map(str, command))} if isinstance(command, list) else given

    @field_validator("timeout")
    @classmethod
    def _check_timeout(cls, given: float) -> float:
        if given <= 0:
            raise ValueError(f"timeout must be positive, got {given:g} ms; omit it to use {DEFAULT_TIMEOUT_MS} ms")
        return given

    def to_operation(self) -> ops.Operation:
        if self.run_in_background:
            return ops.StartCommand(self.command, self.workingDirectory)
        return ops.RunCommand(self.command, self.workingDirectory, min(self.timeout, MAX_TIMEOUT_MS) / 1000)

    def render(self, run: ops.CommandOutput | ops.CommandStarted) -> Rendered:
        exit_code = bash_id = None
        if isinstance(run, ops.CommandStarted):
            bash_id = run.id
            text = f"Started in the background with bash_id {run.id}; read its output with BashOutput."
        else:
            exit_code = None if run.timed_out else run.exit_code
            text = result_formatting.format_command(run)
        return text, {"command": self.command, "exitCode": exit_code, "output": text, "bash_id": bash_id}

    def list_notes(self) -> tuple[str, ...]:
        if self.timeout <= MAX_TIMEOUT_MS or self.run_in_background:
            return ()
        return (f"the timeout was reduced to {MAX_TIMEOUT_MS} ms, the maximum",)


BashId = Annotated[
    str, Parameter("The bash_id that Bash returned", "bashId", "shell_id", "id", "task_id", "process_id")
]


class BashOutput(ToolClass):
    """Read the new output of a background command; filter is a regex that selects lines."""

    naming = ToolMetadata(
        "BashOutput",
        ops.ReadCommandOutput,
        aliases=("get_output", "shell_output"),
        is_polling=True,
        failure=_render_read_error,
    )
    example = {"bash_id": "shell_1"}
    bash_id: BashId
    filter: Annotated[str | None, Parameter("Regular expression that selects lines", "regex")] = None

    def render(self, new: ops.CommandOutputDelta) -> Rendered:
        code = "" if new.exit_code is None else f", exit code {new.exit_code}"
        parts = [f"{new.id}: {new.status}{code}"]
        parts += [
            f"{name}:\n{text.rstrip()}" for name, text in (("stdout", new.stdout), ("stderr", new.stderr)) if text
        ]
        if len(parts) == 1 and new.status != "not_found":
            parts.append("(nothing new)")
        return "\n".join([*parts, *new.notes]), _build_output_fields(new)


class KillShell(ToolClass):
    """Stop a background command."""

    naming = ToolMetadata(
        "KillShell",
        ops.KillCommand,
        aliases=("kill_bash", "stop_command"),
        failure=make_error_renderer("message", bash_id="bash_id", success=False),
    )
    example = {"bash_id": "shell_1"}
    bash_id: BashId

    def render(self, killed: ops.CommandKilled) -> Rendered:
        return killed.message, {"bash_id": killed.id, "success": killed.success, "message": killed.message}
