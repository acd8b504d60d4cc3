"""Maki's tools that run commands, code and batches of calls."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from adapter.core.errors import FormatError
from adapter.core.events import Json, JsonObject
from adapter.dialects import result_formatting
from adapter.dialects.tool_class import (
    CommandText,
    NestedModel,
    Parameter,
    PathText,
    Rendered,
    ToolClass,
    ToolMetadata,
    Unsigned,
)
from adapter.tools import operations as ops
from adapter.tools.argument_synonyms import COMMAND, WORKING_DIRECTORY
from adapter.tools.decoded_json_calls import parse_arguments

SECONDS = ("timeout_s", "timeout_secs", "timeout_seconds")


class MakiBash(ToolClass):
    """Run a shell command: git, builds, tests. Not for reading or writing files."""

    naming = ToolMetadata(
        "bash",
        aliases=("shell", "sh", "terminal", "execute", "execute_command", "run_command", "run_shell_command", "run"),
        effect="execute",
    )
    example = {"command": "cargo test", "description": "Run the tests", "timeout": 300}
    command: Annotated[CommandText, Parameter("The bash command to execute", *COMMAND)]
    description: Annotated[str | None, Parameter("Short description (3-5 words)", "label")] = None
    timeout: Annotated[Unsigned, Parameter("Timeout in seconds", *SECONDS)] = 120
    workdir: Annotated[PathText, Parameter("Working directory (default: the project root)", *WORKING_DIRECTORY)] = "."

    def to_operation(self) -> ops.Operation:
        return ops.RunCommand(self.command, self.workdir, self.timeout, shell="bash")

    def render(self, run: ops.CommandOutput) -> Rendered:
        return result_formatting.format_command(run), {"exit_code": run.exit_code, "timed_out": run.timed_out}


class BatchItem(NestedModel):
    """One call. Models write its parameters under any common name, as an object, as JSON text, or as separate values
    next to the tool's name."""

    tool: Annotated[str, Parameter("Name of the tool", "name", "tool_name", "function", "function_name")]
    parameters: Annotated[
        JsonObject,
        Parameter(
            "Its parameters", *("arguments", "params", "args", "input", "kwargs", "tool_input"), is_required=True
        ),
    ] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _convert_parameters(cls, value: Json) -> Json:
        call = cls.rename_keys(value)
        if isinstance(call, dict) and isinstance(call.get("tool"), dict):
            call = cls.rename_keys(call["tool"])  # {"function": {"name": ..., "arguments": ...}}, as in OpenAI's calls
        if not isinstance(call, dict):
            return call
        name = call.get("tool")
        if "parameters" not in call:
            return {"tool": name, "parameters": {key: value for key, value in call.items() if key != "tool"}}
        try:
            return call | {"parameters": parse_arguments(call["parameters"])[0]}
        except FormatError as error:
            raise ValueError(str(error)) from error


class Batch(ToolClass):
    """Run 1 to 25 independent tool calls in parallel. A failure does not stop the others."""

    naming = ToolMetadata("batch", aliases=("parallel", "batch_tool_calls", "run_batch"), effect="state")
    example = {
        "tool_calls": [
            {"tool": "read", "parameters": {"path": "src/main.rs"}},
            {"tool": "grep", "parameters": {"pattern": "TODO"}},
        ]
    }
    tool_calls: Annotated[
        list[BatchItem], Parameter("The calls, 1 to 25", "calls", "tools", "tool_uses", "invocations")
    ]

    def to_operation(self) -> ops.Operation:
        return ops.RunBatch(tuple(ops.BatchCall(one.tool, one.parameters) for one in self.tool_calls))

    def render(self, batch: ops.BatchResults) -> Rendered:
        fields = [{"tool": each.name, "ok": each.ok, "output": each.content} for each in batch.results]
        return result_formatting.format_batch(batch), fields


class CodeExecution(ToolClass):
    """Run Python in a sandbox for at most 300 seconds. All tools are available as async functions; await each call."""

    naming = ToolMetadata(
        "code_execution",
        ops.RunCode,
        aliases=("python", "execute_python", "run_python", "execute_code", "run_code", "code_interpreter"),
        needs="code",
    )
    example = {"code": "text = await read(path='src/main.rs')\nprint(text.count('fn '))", "timeout": 30}
    code: Annotated[str, Parameter("Python code (must await tool calls)", "source", "script", "program")]
    timeout: Annotated[Unsigned, Parameter("Timeout in seconds (max 300)", *SECONDS)] = 30
