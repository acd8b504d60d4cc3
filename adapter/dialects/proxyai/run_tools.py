"""ProxyAI's tools that run commands or use the web."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from adapter.core.errors import DeniedError, ToolError
from adapter.core.events import Json, JsonObject
from adapter.dialects import result_formatting
from adapter.dialects.tool_class import CommandText, Parameter, Rendered, ToolClass, ToolMetadata, require_outcome
from adapter.tools import operations as ops
from adapter.tools.argument_synonyms import COMMAND, PATTERN

DEFAULT_TIMEOUT_MS = 60_000
"""Default timeout of a command, in milliseconds, from the program. Its document does not state one."""

MAX_TIMEOUT_MS = 600_000
"""Maximum timeout of a command, in milliseconds, from the program. Its document does not state one."""


def _render_run_error(given: JsonObject, error: ToolError) -> Json:
    return {"command": given.get("command"), "exitCode": None, "output": str(error), "bash_id": None}


def _render_read_error(given: JsonObject, error: ToolError) -> Json:
    if isinstance(error, DeniedError):
        return _build_output_fields(given.get("bash_id"), "", "", "denied", None)
    return {"bash_id": given.get("bash_id"), "error": str(error)}


def _render_kill_error(given: JsonObject, error: ToolError) -> Json:
    return {"bash_id": given.get("bash_id"), "success": False, "message": str(error)}


class ProxyAIBash(ToolClass):
    """Run a shell command. The user is asked first."""

    naming = ToolMetadata(
        "Bash",
        aliases=("Execute", "Terminal", "RunShellCommand", "shell"),
        effect="execute",
        label="description",
        failure=_render_run_error,
    )
    example = {"command": "python -m pytest -q", "timeout": 60000, "description": "Run the tests"}
    command: Annotated[CommandText, Parameter("Shell command to execute", *COMMAND)]
    timeout: Annotated[float, Parameter("Timeout in milliseconds", "timeout_ms")] = DEFAULT_TIMEOUT_MS
    description: Annotated[str | None, Parameter("Purpose of the command, shown to the user")] = None
    run_in_background: Annotated[
        bool | None, Parameter("Run in the background; read the output with BashOutput", "background")
    ] = None
    workingDirectory: SkipJsonSchema[str] = "."
    """A parameter that the program has, but its document does not mention."""

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

    def render(self, outcome: ops.Outcome) -> Rendered:
        if isinstance(outcome, ops.CommandStarted):
            text = f"Started in the background with bash_id {outcome.id}; read its output with BashOutput."
            return text, {"command": self.command, "exitCode": None, "output": text, "bash_id": outcome.id}
        run = require_outcome(outcome, ops.CommandOutput)
        text = result_formatting.format_command(run)
        exit_code = None if run.timed_out else run.exit_code
        return text, {"command": self.command, "exitCode": exit_code, "output": text, "bash_id": None}

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
        "BashOutput", aliases=("get_output", "shell_output"), is_polling=True, failure=_render_read_error
    )
    example = {"bash_id": "shell_1"}
    bash_id: BashId
    filter: Annotated[str | None, Parameter("Regular expression that selects lines", "regex")] = None

    def to_operation(self) -> ops.Operation:
        return ops.ReadCommandOutput(self.bash_id, self.filter)

    def render(self, outcome: ops.Outcome) -> Rendered:
        new = require_outcome(outcome, ops.CommandOutputDelta)
        code = "" if new.exit_code is None else f", exit code {new.exit_code}"
        parts = [f"{new.id}: {new.status}{code}"]
        parts += [
            f"{name}:\n{text.rstrip()}" for name, text in (("stdout", new.stdout), ("stderr", new.stderr)) if text
        ]
        if len(parts) == 1 and new.status != "not_found":
            parts.append("(nothing new)")
        return "\n".join([*parts, *new.notes]), _build_output_fields(
            new.id, new.stdout, new.stderr, new.status, new.exit_code
        )


def _build_output_fields(bash_id: Json, stdout: str, stderr: str, status: str, exit_code: int | None) -> JsonObject:
    return {"bash_id": bash_id, "stdout": stdout, "stderr": stderr, "status": status, "exit_code": exit_code}


class KillShell(ToolClass):
    """Stop a background command."""

    naming = ToolMetadata("KillShell", aliases=("kill_bash", "stop_command"), failure=_render_kill_error)
    example = {"bash_id": "shell_1"}
    bash_id: BashId

    def to_operation(self) -> ops.Operation:
        return ops.KillCommand(self.bash_id)

    def render(self, outcome: ops.Outcome) -> Rendered:
        killed = require_outcome(outcome, ops.CommandKilled)
        return killed.message, {"bash_id": killed.id, "success": killed.success, "message": killed.message}


DOCS_CHARACTERS = 10_000
"""Maximum length of a page of documentation, in characters."""


def _render_error(_arguments: JsonObject, error: ToolError) -> Json:
    return {"error": str(error)}


class ProxyAIWebSearch(ToolClass):
    """Search the web. For libraries use ResolveLibraryId and GetLibraryDocs."""

    naming = ToolMetadata("WebSearch", aliases=("GoogleWebSearch", "search_web"), needs="search")
    example = {"query": "python 3.14 release date"}
    query: Annotated[str, Parameter("Search query", *PATTERN)]
    allowed_domains: Annotated[list[str] | None, Parameter("Only results from these domains")] = None
    blocked_domains: Annotated[list[str] | None, Parameter("No results from these domains")] = None

    def to_operation(self) -> ops.Operation:
        return ops.SearchWeb(
            self.query,
            allowed_domains=tuple(self.allowed_domains or ()),
            blocked_domains=tuple(self.blocked_domains or ()),
        )

    def render(self, outcome: ops.Outcome) -> Rendered:
        found = require_outcome(outcome, ops.SearchHits)
        sources = [f"[{hit.title}]({hit.url})" for hit in found.hits]
        fields = {
            "query": self.query,
            "results": [{"title": hit.title, "url": hit.url, "content": hit.content} for hit in found.hits],
            "sources": sources,
        }
        if not found.hits:
            return f"No results for {self.query!r}.", fields
        return "\n\n".join(f"{link}\n{hit.content}" for link, hit in zip(sources, found.hits, strict=True)), fields


class ResolveLibraryId(ToolClass):
    """Find the id of a library by its name, for GetLibraryDocs."""

    naming = ToolMetadata("ResolveLibraryId", aliases=("resolve-library-id",), needs="docs", failure=_render_error)
    example = {"library_name": "mongodb"}
    library_name: Annotated[str, Parameter("Name of the library", "libraryName", "name", "query")]

    def to_operation(self) -> ops.Operation:
        return ops.FindLibrary(self.library_name)

    def render(self, outcome: ops.Outcome) -> Rendered:
        found = require_outcome(outcome, ops.Libraries)
        lines = [
            f"{library.id} {library.title} {library.version}".rstrip()
            + (f": {library.description}" if library.description else "")
            for library in found.libraries
        ]
        libraries = [
            {"id": library.id, "title": library.title, "description": library.description, "version": library.version}
            for library in found.libraries
        ]
        return "\n".join(lines), {"libraryName": self.library_name, "libraries": libraries}


class GetLibraryDocs(ToolClass):
    """Read a page (1 to 10) of a library's documentation, by the id from ResolveLibraryId."""

    naming = ToolMetadata("GetLibraryDocs", aliases=("get-library-docs",), needs="docs", failure=_render_error)
    example = {"context7CompatibleLibraryID": "/mongodb/docs", "topic": "indexes"}
    context7CompatibleLibraryID: Annotated[
        str, Parameter("Library id: /org/project or /org/project/version", "library_id", "libraryId")
    ]
    mode: Annotated[Literal["code", "info"], Parameter("code: its interface; info: about it")] = "code"
    topic: Annotated[str | None, Parameter("Topic to read about")] = None
    page: Annotated[int, Parameter("Page, 1 to 10")] = 1

    def to_operation(self) -> ops.Operation:
        return ops.ReadLibraryDocs(self.context7CompatibleLibraryID, self.mode, self.topic, self.page)

    def render(self, outcome: ops.Outcome) -> Rendered:
        docs = require_outcome(outcome, ops.LibraryDocs)
        text = docs.text
        if len(text) > DOCS_CHARACTERS:
            text = text[:DOCS_CHARACTERS] + "\n(truncated; pass a topic, or request the next page)"
        return text, {"libraryId": docs.library_id, "documentation": text, "docMode": docs.mode, "page": docs.page}
