"""Maki's tools that run commands, batches, code and sub-agents, or use the web."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from adapter.core.errors import FormatError
from adapter.core.events import Json, JsonObject
from adapter.dialects import result_formatting
from adapter.dialects.maki.file_tools import lower_text
from adapter.dialects.tool_class import (
    CommandText,
    NestedModel,
    Parameter,
    PathText,
    Rendered,
    ToolClass,
    ToolMetadata,
    Unsigned,
    require_outcome,
)
from adapter.tools import operations as ops
from adapter.tools.argument_synonyms import COMMAND, PATTERN, WORKING_DIRECTORY
from adapter.tools.call_extraction import parse_arguments


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
    timeout: Annotated[Unsigned, Parameter("Timeout in seconds", "timeout_s", "timeout_secs", "timeout_seconds")] = 120
    workdir: Annotated[PathText, Parameter("Working directory (default: the project root)", *WORKING_DIRECTORY)] = "."

    def to_operation(self) -> ops.Operation:
        return ops.RunCommand(self.command, self.workdir, float(self.timeout), shell="bash")

    def render(self, outcome: ops.Outcome) -> Rendered:
        run = require_outcome(outcome, ops.CommandOutput)
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

    def render(self, outcome: ops.Outcome) -> Rendered:
        batch = require_outcome(outcome, ops.BatchResults)
        fields = [{"tool": each.name, "ok": each.ok, "output": each.content} for each in batch.results]
        return result_formatting.format_batch(batch), fields


class CodeExecution(ToolClass):
    """Run Python in a sandbox for at most 300 seconds. All tools are available as async functions; await each call."""

    naming = ToolMetadata(
        "code_execution",
        aliases=("python", "execute_python", "run_python", "execute_code", "run_code", "code_interpreter"),
        effect="state",
        needs="code",
    )
    example = {"code": "text = await read(path='src/main.rs')\nprint(text.count('fn '))", "timeout": 30}
    code: Annotated[str, Parameter("Python code (must await tool calls)", "source", "script", "program")]
    timeout: Annotated[
        Unsigned, Parameter("Timeout in seconds (max 300)", "timeout_s", "timeout_secs", "timeout_seconds")
    ] = 30

    def to_operation(self) -> ops.Operation:
        return ops.RunCode(self.code, float(self.timeout))


class MakiTask(ToolClass):
    """Run a sub-agent on an independent task: research only reads, general may use all tools."""

    naming = ToolMetadata(
        "task", aliases=("agent", "sub_agent", "run_agent", "delegate", "spawn_agent"), effect="state", needs="agents"
    )
    example = {
        "description": "Find the parser",
        "prompt": "Find where the configuration file is parsed, and name the functions with their lines.",
        "subagent_type": "research",
        "model_tier": "weak",
    }
    description: Annotated[
        str, Parameter("Short task description (3-5 words)", "title", "label", "name", is_required=True)
    ] = ""
    prompt: Annotated[str, Parameter("Detailed prompt", "task", "instructions", "message", "query")]
    subagent_type: Annotated[
        str, Parameter("research (read-only) or general", "agent_type", "type", "kind", "agent")
    ] = "research"
    model_tier: Annotated[
        Literal["current", "strong", "medium", "weak"],
        Parameter("strong, medium or weak (default: the current model)", "tier", "model"),
        BeforeValidator(lower_text),
    ] = "current"

    def to_operation(self) -> ops.Operation:
        description = self.description or " ".join(self.prompt.split()[:5])
        tier = None if self.model_tier == "current" else self.model_tier
        return ops.RunSubagent(self.prompt, self.subagent_type, description, tier)

    def render(self, outcome: ops.Outcome) -> Rendered:
        report = require_outcome(outcome, ops.AgentReport)
        fields = {"output": report.output, "seconds": round(report.seconds, 3), "tokens": report.tokens}
        return report.output or "(no response)", fields


class WebFetch(ToolClass):
    """Fetch the contents of a URL (at most 5 MB). HTTP is upgraded to HTTPS."""

    naming = ToolMetadata(
        "webfetch",
        aliases=("fetch", "fetch_url", "fetch_webpage", "read_url", "get_url"),
        effect="network",
        needs="web",
    )
    example = {"url": "https://docs.rs/serde", "format": "text"}
    url: Annotated[str, Parameter("URL to fetch", "uri", "link", "href", "address")]
    format: Annotated[ops.PageFormat, Parameter("Output format"), BeforeValidator(lower_text)] = "markdown"
    timeout: Annotated[Unsigned, Parameter("Timeout in seconds", "timeout_s", "timeout_secs", "timeout_seconds")] = 30

    def to_operation(self) -> ops.Operation:
        return ops.FetchPage(self.url, self.format, float(self.timeout))


class MakiWebSearch(ToolClass):
    """Search the web for information that is not in the codebase."""

    naming = ToolMetadata("websearch", aliases=("google_web_search", "search_web", "internet_search"), needs="search")
    example = {"query": "tokio select cancellation", "num_results": 5}
    query: Annotated[str, Parameter("Search query", *PATTERN)]
    num_results: Annotated[Unsigned, Parameter("Number of results", "limit", "max_results", "count", "n")] = 8

    def to_operation(self) -> ops.Operation:
        return ops.SearchWeb(self.query, self.num_results)

    def render(self, outcome: ops.Outcome) -> Rendered:
        found = require_outcome(outcome, ops.SearchHits)
        return result_formatting.format_search(found), [asdict(hit) for hit in found.hits]
