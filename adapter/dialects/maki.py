"""The tools of Maki, from its "Tools" documentation page.

The document requires absolute paths. Relative paths are also accepted and start at the workspace root, and results
contain relative paths. Times are in seconds, lines are 1-based.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from functools import partial
from operator import attrgetter
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator
from pydantic.json_schema import SkipJsonSchema

from adapter.core.errors import FormatError
from adapter.core.events import Json, JsonObject
from adapter.core.text.truncate import MAX_BYTES
from adapter.dialects import result_formatting
from adapter.dialects.dialect import Dialect
from adapter.dialects.tool_class import (
    CommandText,
    NestedModel,
    Parameter,
    PathText,
    Rendered,
    ToolClass,
    ToolMetadata,
    Unsigned,
    render_as,
)
from adapter.outline.formatter import format_outline
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
from adapter.tools.json_call_extraction import parse_arguments
from adapter.tools.operations import TodoPriority, TodoStatus, parse_todo_status

FilePath = Annotated[PathText, Parameter("Absolute path (or relative to the project root)", *PATH)]


def lower_text(value: Json) -> Json:
    return value.strip().lower() if isinstance(value, str) else value


MAX_PAGE_BYTES = MAX_BYTES - 2_000
"""Maximum size of a page from `Read`, in bytes, which leaves room for the hint below the page. The number of lines is
limited only by ``limit``."""

MAX_LINE_CHARACTERS = 2_000
"""Maximum length of a line, in characters. The rest of the line is omitted."""


class Read(ToolClass):
    """Read a file, with 1-indexed line numbers, or list a directory."""

    naming = ToolMetadata(
        "read",
        aliases=("read_file", "cat", "view", "view_file", "open", "list_directory", "list_dir", "ls"),
        max_lines=MAX_PAGE_BYTES,
    )
    example = {"path": "src/main.rs", "offset": 40, "limit": 60}
    path: Annotated[
        PathText,
        Parameter("Absolute path to file or directory (or relative to the project root)", *PATH, *DIRECTORY),
    ]
    offset: Annotated[Unsigned | None, Parameter("Start line (1-indexed)", "start_line", "start", "line")] = None
    limit: Annotated[Unsigned, Parameter("Max lines to read", "max_lines", "num_lines")] = 2000

    def to_operation(self) -> ops.Operation:
        return ops.ReadText(
            self.path, self._first, max_lines=self.limit, max_line_characters=MAX_LINE_CHARACTERS, or_list=True
        )

    @property
    def _first(self) -> int | None:
        """The number of the first line. An offset of 0 means line 1."""
        return None if self.offset is None else max(self.offset, 1)

    def render(self, read: ops.FileText | ops.Listing) -> Rendered:
        def read_on(line: int) -> str:
            return f"continue with offset={line}"

        if isinstance(read, ops.Listing):
            return result_formatting.format_listing(read, self._first or 1, self.limit, read_on), None
        return result_formatting.format_numbered_page(read, MAX_PAGE_BYTES, read_on), None

    def list_notes(self) -> tuple[str, ...]:
        return () if self.offset == self._first else (f"offset {self.offset} was treated as 1: lines are 1-based",)


class Index(ToolClass):
    """Show the skeleton of a source file: imports, types and signatures, with line numbers. Cheaper than read."""

    naming = ToolMetadata("index", ops.Outline, aliases=("outline", "skeleton", "file_outline"))
    example = {"path": "src/lib.rs"}
    path: FilePath

    render = render_as(format_outline)


MAX_PATHS = 100
"""Maximum number of paths in the result of `MakiGlobTool`."""

MAX_MATCHES = 100
"""Maximum number of matches in the result of `GrepTool`."""


class MakiGlobTool(ToolClass):
    """Find files matching a glob pattern, newest first. Respects .gitignore."""

    naming = ToolMetadata(
        "glob",
        partial(ops.Glob, case_sensitive=True, limit=MAX_PATHS, gitignore=True, order="newest"),
        aliases=("find_files_glob", "glob_search"),
    )
    example = {"pattern": "**/*.rs", "path": "src"}
    pattern: Annotated[str, Parameter("Glob pattern (e.g. **/*.rs)", "glob", "query", "glob_pattern")]
    path: Annotated[PathText, Parameter("Directory to search (default: the project root)", *DIRECTORY)] = "."


class GrepTool(ToolClass):
    """Search file contents with a regex, grouped by file, newest files first. Respects .gitignore."""

    naming = ToolMetadata(
        "grep", aliases=("grep_search", "rg", "ripgrep", "search", "search_file_content", "search_code")
    )
    example = {"pattern": "fn\\s+main", "path": "src", "include": "*.rs"}
    pattern: Annotated[str, Parameter("Regex pattern", *PATTERN)]
    path: Annotated[PathText, Parameter("Directory to search (default: the project root)", *DIRECTORY, *PATH)] = "."
    include: Annotated[str | None, Parameter("File glob filter (e.g. *.rs)", "glob", "file_pattern", "filter")] = None

    def to_operation(self) -> ops.Operation:
        included = (self.include,) if self.include else ()
        return ops.Grep(self.pattern, self.path, included, max_results=MAX_MATCHES, order="newest")

    render = render_as(result_formatting.format_grouped_matches, "pattern")


OldString = Annotated[str, Parameter("Exact string to find", *OLD_TEXT)]

NewString = Annotated[str, Parameter("Replacement string", *NEW_TEXT)]

ReplaceAll = Annotated[bool, Parameter("Replace all occurrences", "all")]

_NAMES = ops.ParameterNames("old_string", "new_string", None, "replace_all")


class MakiWrite(ToolClass):
    """Overwrite a file with its complete new content. Creates parent directories if needed."""

    naming = ToolMetadata(
        "write",
        ops.WriteText,
        aliases=("write_file", "create_file", "create", "save_file", "write_to_file", "new_file"),
    )
    example = {"path": "src/version.rs", "content": 'pub const VERSION: &str = "2";\n'}
    path: FilePath
    content: Annotated[str, Parameter("Complete file content", *CONTENT)]


class MakiEdit(ToolClass):
    """Replace an exact string in a file, which must be unique unless replace_all is set."""

    naming = ToolMetadata(
        "edit",
        aliases=(
            "edit_file",
            "apply_edit",
            "str_replace",
            "replace",
            "search_replace",
            "search_and_replace",
            "replace_in_file",
        ),
        effect="write",
    )
    example = {"path": "src/main.rs", "old_string": "let port = 8000;", "new_string": "let port = 9000;"}
    path: FilePath
    old_string: OldString
    new_string: NewString
    replace_all: ReplaceAll = False

    def to_operation(self) -> ops.Operation:
        patch = ops.Patch(self.old_string, self.new_string, replace_all=self.replace_all, exact=True)
        return ops.PatchText(self.path, (patch,), names=_NAMES)


class EditItem(NestedModel):
    """One replacement in a list."""

    old_string: OldString
    new_string: NewString
    replace_all: ReplaceAll = False


class MultiEdit(ToolClass):
    """Apply several replacements to one file in order, all or none. Each sees the result of those before it."""

    naming = ToolMetadata("multiedit", aliases=("edit_many", "multi_edit_file", "multi_replace"), effect="write")
    example = {
        "path": "src/main.rs",
        "edits": [
            {"old_string": "let port = 8000;", "new_string": "let port = 9000;"},
            {"old_string": "old_name", "new_string": "new_name", "replace_all": True},
        ],
    }
    path: FilePath
    edits: Annotated[list[EditItem], Parameter("Replacements, in order", "patches", "replacements", "changes")]

    def to_operation(self) -> ops.Operation:
        patches = tuple(
            ops.Patch(one.old_string, one.new_string, replace_all=one.replace_all, exact=True) for one in self.edits
        )
        return ops.PatchText(self.path, patches, basis="sequence", names=_NAMES)


_SECONDS = ("timeout_s", "timeout_secs", "timeout_seconds")


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
    timeout: Annotated[Unsigned, Parameter("Timeout in seconds", *_SECONDS)] = 120
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
    timeout: Annotated[Unsigned, Parameter("Timeout in seconds (max 300)", *_SECONDS)] = 30


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

    def render(self, report: ops.AgentReport) -> Rendered:
        fields = {"output": report.output, "seconds": round(report.seconds, 3), "tokens": report.tokens}
        return report.output or "(no response)", fields


class WebFetch(ToolClass):
    """Fetch the contents of a URL (at most 5 MB). HTTP is upgraded to HTTPS."""

    naming = ToolMetadata(
        "webfetch",
        ops.FetchPage,
        aliases=("fetch", "fetch_url", "fetch_webpage", "read_url", "get_url"),
        needs="web",
    )
    example = {"url": "https://docs.rs/serde", "format": "text"}
    url: Annotated[str, Parameter("URL to fetch", "uri", "link", "href", "address")]
    format: Annotated[ops.PageFormat, Parameter("Output format"), BeforeValidator(lower_text)] = "markdown"
    timeout: Annotated[Unsigned, Parameter("Timeout in seconds", *_SECONDS)] = 30


class MakiWebSearch(ToolClass):
    """Search the web for information that is not in the codebase."""

    naming = ToolMetadata(
        "websearch", ops.SearchWeb, aliases=("google_web_search", "search_web", "internet_search"), needs="search"
    )
    example = {"query": "tokio select cancellation", "num_results": 5}
    query: Annotated[str, Parameter("Search query", *PATTERN)]
    num_results: Annotated[Unsigned, Parameter("Number of results", "limit", "max_results", "count", "n")] = 8

    def render(self, found: ops.SearchHits) -> Rendered:
        return result_formatting.format_search(found), [asdict(hit) for hit in found.hits]


MAX_QUESTIONS = 20
"""Maximum number of questions per call. Maki's document states no limit."""


class OptionItem(NestedModel):
    """An answer to choose from: its text, alone or with a description."""

    label: Annotated[str, Parameter("", "text", "value", "name", "option")]
    description: str = ""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Json) -> Json:
        return value if isinstance(value, dict) else {"label": value if isinstance(value, str) else str(value)}


Options = Annotated[list[OptionItem], WithJsonSchema({"type": "array", "items": {"type": "string"}})]


class QuestionItem(NestedModel):
    """One question, as an object or only its text."""

    question: Annotated[str, Parameter("The question", "text", "prompt", "query")]
    options: Annotated[Options, Parameter("Answers to choose from", "choices")] = Field(default_factory=list)
    multiple: Annotated[bool, Parameter("Several may be chosen", "multi_select", "multi", "allow_multiple")] = False
    header: SkipJsonSchema[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Json) -> Json:
        return {"question": value} if isinstance(value, str) else value


class QuestionTool(ToolClass):
    """Ask the user questions, with one or several options to choose from."""

    naming = ToolMetadata(
        "question",
        aliases=("ask_user_question", "ask_user", "ask", "ask_question", "ask_followup_question"),
        effect="state",
        needs="questions",
    )
    example = {"questions": [{"question": "Which port?", "options": ["8000", "9000"], "multiple": False}]}
    questions: Annotated[list[QuestionItem], Parameter("The questions", "question")]

    def to_operation(self) -> ops.Operation:
        questions = [
            ops.Question(
                one.question, one.header, tuple(ops.Option(**dict(each)) for each in one.options), one.multiple
            )
            for one in self.questions
        ]
        # The document has no headers, so questions that begin alike are identified by their whole text.
        keys = Counter(question.key for question in questions)
        distinct = tuple(
            ops.Question(one.text, one.text, one.options, one.multiple) if keys[one.key] > 1 else one
            for one in questions
        )
        return ops.AskUser(distinct, max_questions=MAX_QUESTIONS)

    def render(self, answers: ops.UserAnswers) -> Rendered:
        pairs = zip(answers.questions, answers.chosen, strict=True)
        fields = [{"question": question.text, "answers": list(chosen)} for question, chosen in pairs]
        return result_formatting.format_answers(answers), fields


class TodoItem(NestedModel):
    """One item in the todo list."""

    content: Annotated[str, Parameter("What to do", "task", "text", "title", "description")]
    status: Annotated[
        TodoStatus,
        Parameter("pending, in_progress, completed or cancelled", "state", is_required=True),
        BeforeValidator(lambda value: parse_todo_status(value) if isinstance(value, str) else value),
    ] = "pending"
    priority: Annotated[
        TodoPriority, Parameter("high, medium or low", is_required=True), BeforeValidator(lower_text)
    ] = "medium"


class MakiTodoWrite(ToolClass):
    """Create or update the todo list for work of several steps; pass the whole list."""

    naming = ToolMetadata("todowrite", aliases=("todo", "todos", "update_todos", "write_todos"), effect="state")
    example = {"todos": [{"content": "Run the tests", "status": "in_progress", "priority": "high"}]}
    todos: Annotated[list[TodoItem], Parameter("All items", "items", "tasks", "todo_list")]

    def to_operation(self) -> ops.Operation:
        return ops.SetTodos(tuple(ops.Todo(one.content, one.status, one.priority) for one in self.todos))

    def render(self, todos: ops.TodoList) -> Rendered:
        fields = [{"content": each.content, "status": each.status, "priority": each.priority} for each in todos.todos]
        return result_formatting.format_todos(todos), fields


_COMMANDS = {"read": "view", "list": "view", "create": "write", "save": "write", "update": "write", "remove": "delete"}


def _normalize_command(value: Json) -> Json:
    command = lower_text(value)
    return _COMMANDS.get(command, command) if isinstance(command, str) else command


class MakiMemory(ToolClass):
    """Keep notes about this project across sessions: view, write or delete one."""

    naming = ToolMetadata("memory", aliases=("memory_bank", "notes"), effect="state", needs="memory")
    example = {"command": "write", "path": "testing.md", "content": "Run `make check` before each commit.\n"}
    command: Annotated[
        Literal["view", "write", "delete"],
        Parameter("view, write or delete", "action", "operation", "cmd"),
        BeforeValidator(_normalize_command),
    ]
    path: Annotated[PathText | None, Parameter("Relative path (omit to list all)", *PATH, "name")] = None
    content: Annotated[str | None, Parameter("Content for write", *CONTENT)] = None

    @model_validator(mode="after")
    def _check_arguments(self) -> MakiMemory:
        if self.command != "view" and not self.path:
            raise ValueError(f"the command {self.command!r} needs the argument 'path'")
        if self.command == "write" and self.content is None:
            raise ValueError("the command 'write' needs the argument 'content'")
        return self

    def to_operation(self) -> ops.Operation:
        match self.command:
            case "view":
                return ops.ViewMemory(self.path or None)
            case "write":
                return ops.WriteMemory(self.path or "", self.content or "")
            case "delete":
                return ops.DeleteMemory(self.path or "")

    render = render_as(result_formatting.format_memory)


class SkillTool(ToolClass):
    """Load a skill: detailed instructions for a specific kind of task."""

    naming = ToolMetadata(
        "skill", partial(ops.LoadSkill, delivery="result"), aliases=("load_skill", "use_skill"), needs="skills"
    )
    example = {"name": "release"}
    name: Annotated[str, Parameter("Skill name", "skill_name", "skill", "title")]

    render = render_as(attrgetter("text"))


DIALECT = Dialect(
    name="maki",
    title="Maki",
    classes=(
        *(MakiBash, Read, MakiWrite, MakiEdit, MultiEdit, MakiGlobTool, GrepTool, Index, Batch, CodeExecution),
        *(QuestionTool, WebFetch, MakiWebSearch, MakiTask, MakiTodoWrite, MakiMemory, SkillTool),
    ),
    preapproved=frozenset({"network", "skill"}),
)
