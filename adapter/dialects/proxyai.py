"""The tools of ProxyAI, from its "Tools" reference.

Names, arguments, defaults and result fields follow the document. Each result is text for the model, with the documented
fields as ``data``. A failed call has the document's error fields. Results contain paths as the model wrote them.
Aliases are ProxyAI's own names for other agents' tools, and other common names.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from adapter.core.errors import DeniedError, ToolError
from adapter.core.events import Json, JsonObject
from adapter.core.text.lines import split_lines, strip_line_end
from adapter.core.text.truncate import shorten
from adapter.dialects import result_formatting
from adapter.dialects.dialect import Dialect
from adapter.dialects.tool_class import (
    CommandText,
    Parameter,
    PathText,
    Rendered,
    ToolClass,
    ToolMetadata,
    render_as,
)
from adapter.tools import operations as ops
from adapter.tools.argument_synonyms import (
    COMMAND,
    CONTENT,
    DIRECTORY,
    NEW_TEXT,
    OLD_TEXT,
    PATH,
    PATTERN,
    WORKING_DIRECTORY,
)
from adapter.tools.operations import TodoStatus, parse_todo_status
from adapter.tools.tool import FailureRenderer

FilePath = Annotated[PathText, Parameter("Absolute path of the file", *PATH)]


def _report_as(key: str, **fields: str | Literal[False] | None) -> FailureRenderer:
    """Return a function that renders an error as JSON: the message under ``key``, and ``fields``, whose values are
    constants or the names of arguments to copy from the call."""
    return lambda given, error: {**{name: each and given.get(each) for name, each in fields.items()}, key: str(error)}


_FILE_ERROR = _report_as("error", filePath="file_path")

READ_LINES = 2_000
"""Default number of lines to read."""

LINE_CHARACTERS = 2_000
"""Maximum length of a line, in characters. The rest of the line is omitted."""

_FILE_TYPES = {
    "bat": "Batch", "c": "C", "cc": "C++", "cpp": "C++", "cs": "C#", "css": "CSS", "csv": "CSV", "go": "Go",
    "gradle": "Groovy", "groovy": "Groovy", "h": "C", "hpp": "C++", "htm": "HTML", "html": "HTML", "java": "JAVA",
    "js": "JavaScript", "json": "JSON", "jsx": "JSX Harmony", "kt": "Kotlin", "kts": "Kotlin", "lua": "Lua",
    "markdown": "Markdown", "md": "Markdown", "php": "PHP", "properties": "Properties", "py": "Python",
    "pyi": "Python", "rb": "Ruby", "rs": "Rust", "scala": "Scala", "sh": "Shell Script", "sql": "SQL",
    "swift": "Swift", "toml": "TOML", "ts": "TypeScript", "tsx": "TypeScript JSX", "txt": "PLAIN_TEXT",
    "xml": "XML", "yaml": "YAML", "yml": "YAML",
}  # fmt: skip
"""IntelliJ's names of file types, by file name extension."""


class ProxyAIReadFile(ToolClass):
    """Read a file. Returns its lines with line numbers."""

    naming = ToolMetadata(
        "Read",
        aliases=("ReadFile", "view", "cat", "open_file"),
        max_lines=READ_LINES + 1,
        failure=_FILE_ERROR,
    )
    example = {"file_path": "/project/src/main.py", "offset": 10, "limit": 50}
    file_path: FilePath
    offset: Annotated[int | None, Parameter("First line to read (1-indexed)", "line")] = None
    limit: Annotated[int | None, Parameter("Number of lines to read", "maxLinesCount")] = None

    @field_validator("offset", "limit")
    @classmethod
    def _check_positive(cls, value: int | None) -> int | None:
        if value is not None and value < 1:
            raise ValueError(f"{value} is out of range; expected 1 or more")
        return value

    def to_operation(self) -> ops.Operation:
        return ops.ReadText(
            self.file_path, self.offset, max_lines=self.limit or READ_LINES, max_line_characters=LINE_CHARACTERS
        )

    def render(self, file: ops.FileText) -> Rendered:
        lines = [strip_line_end(line) for line in split_lines(file.text)]
        numbered = "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, file.start_line))
        fields = {
            "filePath": self.file_path,
            "content": numbered,
            "lineCount": len(lines),
            "truncated": file.truncated,
            "fileType": _FILE_TYPES.get(file.path.rpartition(".")[2].lower()),
            "startLine": file.start_line if self.offset is not None else None,
            "endLine": file.end_line if file.truncated else None,
        }
        if not lines:
            return f"({file.path} is empty)", fields
        more = f"\n(there are more lines; continue with offset {file.end_line + 1})" if file.truncated else ""
        return numbered + more, fields


_CONTEXTS: dict[str, ops.SymbolContext] = {
    "all": "any", "any": "any", "file": "files", "files": "files", "class": "classes", "classes": "classes",
    "type": "classes", "types": "classes", "symbol": "any", "symbols": "any", "function": "functions",
    "functions": "functions", "method": "functions", "methods": "functions", "variable": "variables",
    "variables": "variables", "field": "variables", "fields": "variables",
}  # fmt: skip


class IntelliJSearch(ToolClass):
    """Find files, classes and symbols by name; the scopes directory and file need a path, custom needs globs.

    Use it when you do not know the path. It does not search file contents.
    """

    naming = ToolMetadata("IntelliJSearch", aliases=("search", "search_files", "find_symbol"))
    example = {"pattern": "UserService", "scope": "project"}
    pattern: Annotated[str, Parameter("Name, or part of a name, to search for", "searchText", "query", "nameKeyword")]
    scope: Annotated[ops.SymbolScope, Parameter("Where to search")] = "project"
    path: Annotated[
        str | None,
        Parameter("Directory or file to search, or globs for the scope custom", "directoryToSearch", *DIRECTORY),
    ] = None
    fileType: Annotated[str | None, Parameter("Language or file extension to search", "file_type", "language")] = None
    context: Annotated[
        str | None,
        Parameter("Kind of names: any, files, classes, functions or variables"),
        Field(json_schema_extra={"enum": ["any", "files", "classes", "functions", "variables"]}),
    ] = None
    caseSensitive: Annotated[bool, Parameter("Case-sensitive matching")] = False
    regex: Annotated[bool, Parameter("Treat the pattern as a regular expression")] = False
    wholeWords: Annotated[bool, Parameter("Match whole words only")] = False
    outputMode: Annotated[Literal["content", "files_with_matches", "count"], Parameter("Output format")] = "content"
    limit: Annotated[int, Parameter("Maximum number of matches", "maxUsageCount", "fileCountLimit", "max_results")] = 10

    @field_validator("context")
    @classmethod
    def _check_context(cls, given: str | None) -> str | None:
        if given is not None and given.strip().lower() not in _CONTEXTS:
            raise ValueError(f"unknown context {given!r}; expected any, files, classes, functions or variables")
        return given

    @field_validator("limit")
    @classmethod
    def _check_limit(cls, given: int) -> int:
        if given < 1:
            raise ValueError(f"limit must be at least 1, got {given}")
        return given

    def to_operation(self) -> ops.Operation:
        return ops.FindSymbols(
            self.pattern,
            self.scope,
            self.path or ".",
            self.fileType,
            _CONTEXTS[(self.context or "any").strip().lower()],
            self.caseSensitive,
            self.regex,
            self.wholeWords,
            self.limit,
        )

    def render(self, found: ops.SymbolMatches) -> Rendered:
        matches = found.matches if self.outputMode == "content" else ()
        text = self._describe_matches(found)
        fields = {
            "pattern": self.pattern,
            "scope": self.scope,
            "totalMatches": len(matches) if self.outputMode == "content" else found.total,
            "matches": [
                {"file": one.path, "line": one.line, "column": one.column, "text": one.text, "context": one.context}
                for one in matches
            ],
            "output": text,
        }
        return text, fields

    def _describe_matches(self, found: ops.SymbolMatches) -> str:
        if not found.total:
            return f"No names match {self.pattern!r}."
        files = found.files[: self.limit]
        more = [f"({len(found.files) - len(files)} more files)"] if len(files) < len(found.files) else []
        match self.outputMode:
            case "files_with_matches":
                return "\n".join([*(path for path, _ in files), *more])
            case "count":
                counts = [f"{path}: {count}" for path, count in files]
                return "\n".join([f"{found.total} in all", *counts, *more])
        omitted = found.total - len(found.matches)
        rest = [f"({omitted} more; be more specific, or raise limit)"] if omitted else []
        return "\n".join(
            [*(f"{one.path}:{one.line}:{one.column}: {one.text} ({one.context})" for one in found.matches), *rest]
        )


PREVIEW_CHARACTERS = 200
"""Maximum length of the previews of an edit's old and new text, in characters."""


class ProxyAIEdit(ToolClass):
    """Replace an exact text in a file, which must occur once unless replace_all is true. The user is asked first."""

    naming = ToolMetadata(
        "Edit",
        aliases=("Replace", "ReplaceText", "str_replace", "search_replace", "edit_file"),
        effect="write",
        label="short_description",
        failure=_FILE_ERROR,
    )
    example = {
        "file_path": "/project/src/main.py",
        "old_string": "retries = 3",
        "new_string": "retries = 5",
        "short_description": "Raise the number of retries",
    }
    file_path: FilePath
    old_string: Annotated[str, Parameter("Text to replace, exactly as in the file", *OLD_TEXT)]
    new_string: Annotated[str, Parameter("Replacement text; may be empty", *NEW_TEXT)]
    short_description: Annotated[
        str, Parameter("Purpose of the edit, shown to the user", "description", is_required=True)
    ] = ""
    replace_all: Annotated[bool, Parameter("Replace every occurrence", "replaceAll", "all")] = False

    def to_operation(self) -> ops.Operation:
        patch = ops.Patch(self.old_string, self.new_string, replace_all=self.replace_all, exact=True)
        names = ops.ParameterNames("old_string", "new_string", None, "replace_all")
        return ops.PatchText(self.file_path, (patch,), names=names)

    def render(self, patched: ops.FilePatched) -> Rendered:
        count = len(patched.places)
        message = f"Replaced {count} occurrence{'' if count == 1 else 's'} in {patched.path}."
        fields = {
            "filePath": self.file_path,
            "replacementsMade": count,
            "message": message,
            "oldStringPreview": shorten(self.old_string, PREVIEW_CHARACTERS),
            "newStringPreview": shorten(self.new_string, PREVIEW_CHARACTERS),
            "editLocations": [asdict(place) for place in patched.places],
        }
        return message, fields


class ProxyAIWrite(ToolClass):
    """Create a file, or overwrite it with new contents. The user is asked first."""

    naming = ToolMetadata(
        "Write",
        ops.WriteText,
        aliases=("WriteFile", "create_file", "save_file"),
        failure=_FILE_ERROR,
    )
    example = {"file_path": "/project/notes.txt", "content": "first line\n"}
    file_path: FilePath
    content: Annotated[str, Parameter("The whole contents of the file", *CONTENT)]

    def render(self, written: ops.FileWritten) -> Rendered:
        message = result_formatting.format_written(written)
        fields = {
            "filePath": self.file_path,
            "bytesWritten": written.size,
            "isNewFile": written.created,
            "message": message,
        }
        return message, fields


DEFAULT_TIMEOUT_MS = 60_000
"""Default timeout of a command, in milliseconds, from the program. Its document does not state one."""

MAX_TIMEOUT_MS = 600_000
"""Maximum timeout of a command, in milliseconds, from the program. Its document does not state one."""


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
        failure=_report_as("output", command="command", exitCode=None, bash_id=None),
    )
    example = {"command": "python -m pytest -q", "timeout": 60000, "description": "Run the tests"}
    command: Annotated[CommandText, Parameter("Shell command to execute", *COMMAND)]
    timeout: Annotated[float, Parameter("Timeout in milliseconds", "timeout_ms")] = DEFAULT_TIMEOUT_MS
    description: Annotated[str | None, Parameter("Purpose of the command, shown to the user")] = None
    run_in_background: Annotated[
        bool | None, Parameter("Run in the background; read the output with BashOutput", "background")
    ] = None
    workingDirectory: SkipJsonSchema[str] = "."
    """A parameter of the program that its document does not mention."""

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
        failure=_report_as("message", bash_id="bash_id", success=False),
    )
    example = {"bash_id": "shell_1"}
    bash_id: BashId

    def render(self, killed: ops.CommandKilled) -> Rendered:
        return killed.message, {"bash_id": killed.id, "success": killed.success, "message": killed.message}


DOCS_CHARACTERS = 10_000
"""Maximum length of a page of documentation, in characters."""


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

    def render(self, found: ops.SearchHits) -> Rendered:
        sources = [f"[{hit.title}]({hit.url})" for hit in found.hits]
        fields = {
            "query": self.query,
            "results": [asdict(hit) for hit in found.hits],
            "sources": sources,
        }
        if not found.hits:
            return f"No results for {self.query!r}.", fields
        return "\n\n".join(f"{link}\n{hit.content}" for link, hit in zip(sources, found.hits, strict=True)), fields


class ResolveLibraryId(ToolClass):
    """Find the id of a library by its name, for GetLibraryDocs."""

    naming = ToolMetadata(
        "ResolveLibraryId", ops.FindLibrary, aliases=("resolve-library-id",), needs="docs", failure=_report_as("error")
    )
    example = {"library_name": "mongodb"}
    library_name: Annotated[str, Parameter("Name of the library", "libraryName", "name", "query")]

    def render(self, found: ops.Libraries) -> Rendered:
        lines = [
            f"{library.id} {library.title} {library.version}".rstrip()
            + (f": {library.description}" if library.description else "")
            for library in found.libraries
        ]
        libraries = [asdict(library) for library in found.libraries]
        return "\n".join(lines), {"libraryName": self.library_name, "libraries": libraries}


class GetLibraryDocs(ToolClass):
    """Read a page (1 to 10) of a library's documentation, by the id from ResolveLibraryId."""

    naming = ToolMetadata(
        "GetLibraryDocs", ops.ReadLibraryDocs, aliases=("get-library-docs",), needs="docs", failure=_report_as("error")
    )
    example = {"context7CompatibleLibraryID": "/mongodb/docs", "topic": "indexes"}
    context7CompatibleLibraryID: Annotated[
        str, Parameter("Library id: /org/project or /org/project/version", "library_id", "libraryId")
    ]
    mode: Annotated[Literal["code", "info"], Parameter("code: its interface; info: about it")] = "code"
    topic: Annotated[str | None, Parameter("Topic to read about")] = None
    page: Annotated[int, Parameter("Page, 1 to 10")] = 1

    def render(self, docs: ops.LibraryDocs) -> Rendered:
        text = docs.text
        if len(text) > DOCS_CHARACTERS:
            text = text[:DOCS_CHARACTERS] + "\n(truncated; pass a topic, or request the next page)"
        return text, {"libraryId": docs.library_id, "documentation": text, "docMode": docs.mode, "page": docs.page}


TITLE_WORDS = 4


class OptionArguments(BaseModel):
    label: Annotated[str, Parameter("The answer")]
    description: Annotated[str, Parameter("Its meaning")] = ""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Json) -> Json:
        return {"label": value} if isinstance(value, str) else value


class QuestionArguments(BaseModel):
    header: Annotated[str, Parameter("Short name of the question, at most 12 characters")] = ""
    question: Annotated[str, Parameter("The question")]
    options: Annotated[list[OptionArguments], Parameter("Answers to choose from")] = Field(default_factory=list)
    multiSelect: Annotated[bool, Parameter("Whether several may be chosen")] = False


class AskUserQuestion(ToolClass):
    """Ask the user one to four questions, with answers to choose from."""

    naming = ToolMetadata(
        "AskUserQuestion",
        aliases=("ask_user", "question", "ask"),
        effect="state",
        needs="questions",
        failure=_report_as("message"),
    )
    example = {
        "questions": [
            {
                "header": "Database",
                "question": "Which database?",
                "options": [{"label": "SQLite"}, {"label": "Postgres"}],
                "multiSelect": False,
            }
        ]
    }
    questions: Annotated[list[QuestionArguments], Parameter("One to four questions")]
    answers: Annotated[dict[str, str | list[str]] | None, Parameter("Known answers, by header")] = None

    def to_operation(self) -> ops.Operation:
        questions = tuple(
            ops.Question(
                one.question, one.header, tuple(ops.Option(**dict(each)) for each in one.options), one.multiSelect
            )
            for one in self.questions
        )
        known = {
            key: (answer,) if isinstance(answer, str) else tuple(answer) for key, answer in (self.answers or {}).items()
        }
        return ops.AskUser(questions, known)

    def render(self, answered: ops.UserAnswers) -> Rendered:
        pairs = list(zip(answered.questions, answered.chosen, strict=True))
        fields = {one.key: list(chosen) if one.multiple else ", ".join(chosen) for one, chosen in pairs}
        return "\n".join(f"{one.key}: {', '.join(chosen)}" for one, chosen in pairs), {"answers": fields}


class TodoArguments(BaseModel):
    content: Annotated[str, Parameter("The task")]
    status: Annotated[
        TodoStatus,
        Parameter("pending, in_progress or completed"),
        BeforeValidator(lambda value: parse_todo_status(value) if isinstance(value, str) else value),
        Field(json_schema_extra={"enum": ["pending", "in_progress", "completed"]}),
    ] = "pending"
    activeForm: Annotated[str, Parameter("Label while it is in progress")] = ""


class ProxyAITodoWrite(ToolClass):
    """Replace the todo list; its title has at most 4 words."""

    naming = ToolMetadata("TodoWrite", aliases=("TodoWriteTool", "todo_write", "update_todos"), effect="state")
    example = {
        "title": "Fix the parser",
        "todos": [
            {"content": "Write a test", "status": "completed", "activeForm": "Writing a test"},
            {"content": "Fix it", "status": "in_progress", "activeForm": "Fixing it"},
        ],
    }
    title: Annotated[str, Parameter("Title, at most 4 words", "name", is_required=True)] = "Todo"
    todos: Annotated[list[TodoArguments], Parameter("The whole list", "items", "tasks")]

    def to_operation(self) -> ops.Operation:
        todos = tuple(ops.Todo(one.content, one.status, active_form=one.activeForm) for one in self.todos)
        return ops.SetTodos(todos, " ".join(self.title.split()[:TITLE_WORDS]))

    def render(self, todos: ops.TodoList) -> Rendered:
        head = f"{todos.title}: {todos.count('completed')} of {len(todos.todos)} done"
        lines = [
            f"[{result_formatting.TODO_MARKS[todo.status]}] "
            + (todo.active_form if todo.status == "in_progress" and todo.active_form else todo.content)
            for todo in todos.todos
        ]
        return "\n".join([head, *lines]), None

    def list_notes(self) -> tuple[str, ...]:
        if len(self.title.split()) <= TITLE_WORDS:
            return ()
        return (f"the title was truncated to {TITLE_WORDS} words",)


class LoadSkillTool(ToolClass):
    """Load a skill. Its instructions follow as a user message. The user is asked first."""

    naming = ToolMetadata(
        "LoadSkill",
        partial(ops.LoadSkill, delivery="message"),
        aliases=("skill", "use_skill"),
        needs="skills",
        failure=_report_as("message"),
    )
    example = {"skill_name": "Release"}
    skill_name: Annotated[str, Parameter("Title of the skill, from the list", "name", "title")]

    def render(self, loaded: ops.SkillLoaded) -> Rendered:
        skill = loaded.skill
        fields = {"title": skill.title, "description": skill.description, "queued": True}
        return f"The skill {skill.title} was loaded; its instructions follow.", fields


class ProxyAITask(ToolClass):
    """Let a sub-agent do a task; it sees only the prompt, and returns only its report."""

    naming = ToolMetadata("Task", aliases=("Agent", "delegate", "run_agent"), effect="state", needs="agents")
    example = {
        "description": "Find the parser",
        "prompt": "Find where dates are parsed and name the file and function.",
        "subagent_type": "research",
    }
    description: Annotated[str, Parameter("Short label, shown to the user", is_required=True)] = ""
    prompt: Annotated[str, Parameter("Everything that the sub-agent needs to know", "task", "instructions")]
    subagent_type: Annotated[str, Parameter("Kind of sub-agent", "agent_type", "agentType")]
    model: Annotated[str | None, Parameter("A different model")] = None
    project_path: Annotated[PathText | None, Parameter("Folder to work in", "projectPath", *WORKING_DIRECTORY)] = None

    def to_operation(self) -> ops.Operation:
        label = self.description or " ".join(self.prompt.split()[:5])
        return ops.RunSubagent(self.prompt, self.subagent_type, label, self.model, self.project_path)

    def render(self, report: ops.AgentReport) -> Rendered:
        fields = {
            "agentType": report.kind,
            "description": report.description,
            "prompt": report.prompt,
            "output": report.output,
            "executionTime": round(report.seconds * 1000),
            "totalTokens": report.tokens,
        }
        return report.output, fields


class Exit(ToolClass):
    """End the run, when the task is done or cannot be done."""

    naming = ToolMetadata("Exit", ops.Finish, aliases=("finish", "done", "end"))

    render = render_as(lambda _: "")


DIALECT = Dialect(
    name="proxyai",
    title="ProxyAI",
    classes=(
        *(ProxyAIReadFile, IntelliJSearch, ProxyAIEdit, ProxyAIWrite, ProxyAIBash, BashOutput, KillShell),
        *(ProxyAIWebSearch, ResolveLibraryId, GetLibraryDocs),
        *(LoadSkillTool, AskUserQuestion, ProxyAITodoWrite, ProxyAITask, Exit),
    ),
)
