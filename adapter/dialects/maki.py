"""The tools of Maki, as its page "Tools" documents them.

Paths are documented as absolute; relative ones mean the workspace root, which
is what results name them by. All times are seconds, lines count from 1.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator
from pydantic.json_schema import SkipJsonSchema

from adapter.customary import COMMAND, CONTENT, DIRECTORY, NEW_TEXT, OLD_TEXT, PATH, PATTERN, WORKING_DIRECTORY
from adapter.dialects import wording
from adapter.dialects.base import Aliases, Dialect, Naming, NestedArguments, Rendered, ToolArguments, expect
from adapter.dialects.schema import REQUIRED_KEY
from adapter.errors import FormatError
from adapter.events import Json, JsonObject
from adapter.formats.reading.shapes import as_object
from adapter.operations import (
    AgentReport,
    Answers,
    AskUser,
    BatchCall,
    BatchResults,
    CodeOutput,
    CommandOutput,
    DeleteMemory,
    FetchPage,
    FileOutline,
    FileText,
    Glob,
    Grep,
    GrepHits,
    Listing,
    LoadSkill,
    MemoryChanged,
    MemoryList,
    MemoryNote,
    Operation,
    Option,
    Outcome,
    Outline,
    Page,
    PageFormat,
    Patch,
    Patched,
    PatchNames,
    PatchText,
    Paths,
    Question,
    ReadText,
    RunAgent,
    RunBatch,
    RunCode,
    RunCommand,
    SearchHits,
    SearchWeb,
    SetTodos,
    SkillLoaded,
    Todo,
    TodoList,
    ViewMemory,
    WriteMemory,
    WriteText,
    Written,
)
from adapter.operations.notes import TodoPriority, TodoStatus, todo_status
from adapter.outline.text import outline_text
from adapter.text.truncate import MAX_BYTES

MAX_PAGE_BYTES = MAX_BYTES - 2_000
"""Of a page of `Read`: room is left for what is said below it. It is cut by ``limit`` and by bytes, never by lines."""
MAX_LINE_CHARACTERS = 2_000
"""Of a line; the rest of it is left out."""
MAX_PATHS = 100
"""Of a glob."""
MAX_MATCHES = 100
"""Of a search."""
MAX_QUESTIONS = 20
"""Of one call. For these four the document names no number."""


FilePath = Annotated[str, Field(description="Absolute path (or relative to the project root)"), Aliases(*PATH)]
SearchedDirectory = Annotated[
    str, Field(description="Directory to search (default: the project root)"), Aliases(*DIRECTORY)
]
OldString = Annotated[str, Field(description="Exact string to find"), Aliases(*OLD_TEXT)]
NewString = Annotated[str, Field(description="Replacement string"), Aliases(*NEW_TEXT)]
ReplaceAll = Annotated[bool, Field(description="Replace all occurrences"), Aliases("all")]

_NAMES = PatchNames("old_string", "new_string", None, "replace_all")


def _unsigned(number: int) -> int:
    """What the document calls u64 and usize."""
    if number < 0:
        raise ValueError(f"{number} is negative")
    return number


Unsigned = Annotated[int, AfterValidator(_unsigned)]


def _lower(given: Json) -> Json:
    return given.strip().lower() if isinstance(given, str) else given


# -------------------------------------------------------------- file operations


class Bash(ToolArguments):
    """Run a shell command: git, builds, tests. Not for reading or writing files."""

    naming = Naming(
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

    def operation(self) -> Operation:
        return RunCommand(self.command, self.workdir, float(self.timeout), shell="bash")

    def render(self, outcome: Outcome) -> Rendered:
        run = expect(outcome, CommandOutput)
        return wording.command_text(run), {"exit_code": run.exit_code, "timed_out": run.timed_out}


class Read(ToolArguments):
    """Read a file, with 1-indexed line numbers, or list a directory."""

    naming = Naming(
        "read",
        aliases=("read_file", "cat", "view", "view_file", "open", "list_directory", "list_dir", "ls"),
        example={"path": "src/main.rs", "offset": 40, "limit": 60},
        max_lines=MAX_PAGE_BYTES,
    )
    path: Annotated[
        str,
        Field(description="Absolute path to file or directory (or relative to the project root)"),
        Aliases(*PATH, *DIRECTORY),
    ]
    offset: Annotated[
        Unsigned | None, Field(description="Start line (1-indexed)"), Aliases("start_line", "start", "line")
    ] = None
    limit: Annotated[Unsigned, Field(description="Max lines to read"), Aliases("max_lines", "num_lines")] = 2000

    def operation(self) -> Operation:
        return ReadText(
            self.path, self._first, max_lines=self.limit, max_line_characters=MAX_LINE_CHARACTERS, or_list=True
        )

    @property
    def _first(self) -> int | None:
        """Models that count from 0 mean the first line."""
        return None if self.offset is None else max(self.offset, 1)

    def render(self, outcome: Outcome) -> Rendered:
        def read_on(line: int) -> str:
            return f"read on with offset={line}"

        if isinstance(outcome, Listing):
            return wording.listing_text(outcome, self._first or 1, self.limit, read_on), None
        return wording.numbered_page(expect(outcome, FileText), MAX_PAGE_BYTES, read_on), None


class Write(ToolArguments):
    """Overwrite a file with its complete new content. Creates parent directories if needed."""

    naming = Naming(
        "write",
        aliases=("write_file", "create_file", "create", "save_file", "write_to_file", "new_file"),
        effect="write",
        example={"path": "src/version.rs", "content": 'pub const VERSION: &str = "2";\n'},
    )
    path: FilePath
    content: Annotated[
        str,
        Field(description="Complete file content"),
        Aliases(*CONTENT),
    ]

    def operation(self) -> Operation:
        return WriteText(self.path, self.content)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.written_text(expect(outcome, Written)), None


class Edit(ToolArguments):
    """Replace an exact string in a file, which must be unique unless replace_all is set."""

    naming = Naming(
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
        example={"path": "src/main.rs", "old_string": "let port = 8000;", "new_string": "let port = 9000;"},
    )
    path: FilePath
    old_string: OldString
    new_string: NewString
    replace_all: ReplaceAll = False

    def operation(self) -> Operation:
        return PatchText(
            self.path, (Patch(self.old_string, self.new_string, replace_all=self.replace_all),), names=_NAMES
        )

    def render(self, outcome: Outcome) -> Rendered:
        return wording.patched_text(expect(outcome, Patched)), None


class EditItem(NestedArguments):
    """One replacement of several."""

    old_string: OldString
    new_string: NewString
    replace_all: ReplaceAll = False


class MultiEdit(ToolArguments):
    """Apply several replacements to one file, all or none. Each sees the result of those before it."""

    naming = Naming(
        "multiedit",
        aliases=("edit_many", "multi_edit_file", "multi_replace"),
        effect="write",
        example={
            "path": "src/main.rs",
            "edits": [
                {"old_string": "let port = 8000;", "new_string": "let port = 9000;"},
                {"old_string": "old_name", "new_string": "new_name", "replace_all": True},
            ],
        },
    )
    path: FilePath
    edits: Annotated[
        list[EditItem],
        Field(description="Replacements, in order"),
        Aliases("patches", "replacements", "changes"),
    ]

    def operation(self) -> Operation:
        patches = tuple(Patch(one.old_string, one.new_string, replace_all=one.replace_all) for one in self.edits)
        return PatchText(self.path, patches, basis="sequence", names=_NAMES)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.patched_text(expect(outcome, Patched)), None


class GlobTool(ToolArguments):
    """Find files matching a glob pattern, newest first. Respects .gitignore."""

    naming = Naming("glob", aliases=("find_files_glob", "glob_search"), example={"pattern": "**/*.rs", "path": "src"})
    pattern: Annotated[str, Field(description="Glob pattern (e.g. **/*.rs)"), Aliases("glob", "query", "glob_pattern")]
    path: SearchedDirectory = "."

    def operation(self) -> Operation:
        return Glob(self.pattern, self.path, case_sensitive=True, limit=MAX_PATHS, gitignore=True, order="newest")

    def render(self, outcome: Outcome) -> Rendered:
        return wording.paths_text(expect(outcome, Paths), self.pattern), None


class GrepTool(ToolArguments):
    """Search file contents with a regex, grouped by file, newest files first. Respects .gitignore."""

    naming = Naming(
        "grep",
        aliases=("grep_search", "rg", "ripgrep", "search", "search_file_content", "search_code"),
        example={"pattern": "fn\\s+main", "path": "src", "include": "*.rs"},
    )
    pattern: Annotated[str, Field(description="Regex pattern"), Aliases(*PATTERN)]
    path: Annotated[
        str,
        Field(description="Directory to search (default: the project root)"),
        Aliases(*DIRECTORY, *PATH),
    ] = "."
    include: Annotated[
        str | None, Field(description="File glob filter (e.g. *.rs)"), Aliases("glob", "file_pattern", "filter")
    ] = None

    def operation(self) -> Operation:
        included = (self.include,) if self.include else ()
        return Grep(self.pattern, self.path, included, max_results=MAX_MATCHES, order="newest")

    def render(self, outcome: Outcome) -> Rendered:
        return wording.grouped_text(expect(outcome, GrepHits), self.pattern), None


class Index(ToolArguments):
    """Give the skeleton of a source file: imports, types and signatures, with line numbers. Cheaper than read."""

    naming = Naming("index", aliases=("outline", "skeleton", "file_outline"), example={"path": "src/lib.rs"})
    path: FilePath

    def operation(self) -> Operation:
        return Outline(self.path)

    def render(self, outcome: Outcome) -> Rendered:
        return outline_text(expect(outcome, FileOutline)), None


# ---------------------------------------------------------- execution and control


class BatchItem(NestedArguments):
    """One call: ``parameters`` under any customary name, as an object, as its JSON text, or beside the name."""

    tool: Annotated[
        str, Field(description="Name of the tool"), Aliases("name", "tool_name", "function", "function_name")
    ]
    parameters: Annotated[
        JsonObject,
        Field(description="Its parameters"),
        Aliases("arguments", "params", "args", "input", "kwargs", "tool_input"),
    ] = Field(json_schema_extra={REQUIRED_KEY: True}, default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _parameters(cls, written: Json) -> Json:
        given = cls.renamed(written)
        if isinstance(given, dict) and isinstance(given.get("tool"), dict):
            given = cls.renamed(given["tool"])  # {"function": {"name": ..., "arguments": ...}} as in OpenAI's calls
        if not isinstance(given, dict):
            return given
        called = given.get("tool")
        if "parameters" not in given:
            return {"tool": called, "parameters": {key: value for key, value in given.items() if key != "tool"}}
        try:
            return given | {"parameters": as_object(given["parameters"])[0]}
        except FormatError as error:
            raise ValueError(str(error)) from error


class Batch(ToolArguments):
    """Run 1 to 25 independent tool calls in parallel. A failure does not stop the others."""

    naming = Naming(
        "batch",
        aliases=("parallel", "batch_tool_calls", "run_batch"),
        effect="state",
        example={
            "tool_calls": [
                {"tool": "read", "parameters": {"path": "src/main.rs"}},
                {"tool": "grep", "parameters": {"pattern": "TODO"}},
            ]
        },
    )
    tool_calls: Annotated[
        list[BatchItem], Field(description="The calls, 1 to 25"), Aliases("calls", "tools", "tool_uses", "invocations")
    ]

    def operation(self) -> Operation:
        return RunBatch(tuple(BatchCall(one.tool, one.parameters) for one in self.tool_calls))

    def render(self, outcome: Outcome) -> Rendered:
        batch = expect(outcome, BatchResults)
        fields = [{"tool": each.name, "ok": each.ok, "output": each.content} for each in batch.results]
        return wording.batch_text(batch), fields


class CodeExecution(ToolArguments):
    """Run Python in a sandbox, in which all tools are async functions to await."""

    naming = Naming(
        "code_execution",
        aliases=("python", "execute_python", "run_python", "execute_code", "run_code", "code_interpreter"),
        effect="state",
        example={"code": "text = await read(path='src/main.rs')\nprint(text.count('fn '))", "timeout": 30},
        needs="code",
    )
    code: Annotated[
        str, Field(description="Python code (must await tool calls)"), Aliases("source", "script", "program")
    ]
    timeout: Annotated[
        Unsigned,
        Field(description="Timeout in seconds (max 300)"),
        Aliases("timeout_s", "timeout_secs", "timeout_seconds"),
    ] = 30

    def operation(self) -> Operation:
        return RunCode(self.code, float(self.timeout))

    def render(self, outcome: Outcome) -> Rendered:
        return wording.code_text(expect(outcome, CodeOutput)), None


class OptionItem(NestedArguments):
    """An answer to choose: its text alone, or with a description."""

    label: Annotated[str, Aliases("text", "value", "name", "option")]
    description: str = ""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, given: Json) -> Json:
        return given if isinstance(given, dict) else {"label": given if isinstance(given, str) else str(given)}


Options = Annotated[list[OptionItem], WithJsonSchema({"type": "array", "items": {"type": "string"}})]


class QuestionItem(NestedArguments):
    """One question; a text alone is one."""

    question: Annotated[str, Field(description="The question"), Aliases("text", "prompt", "query")]
    options: Annotated[Options, Field(description="Answers to choose from"), Aliases("choices")] = Field(
        default_factory=list
    )
    multiple: Annotated[
        bool, Field(description="Several may be chosen"), Aliases("multi_select", "multi", "allow_multiple")
    ] = False
    header: SkipJsonSchema[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, given: Json) -> Json:
        return {"question": given} if isinstance(given, str) else given


class QuestionTool(ToolArguments):
    """Ask the user questions, with options to choose one or several from."""

    naming = Naming(
        "question",
        aliases=("ask_user_question", "ask_user", "ask", "ask_question", "ask_followup_question"),
        effect="state",
        example={"questions": [{"question": "Which port?", "options": ["8000", "9000"], "multiple": False}]},
        needs="questions",
    )
    questions: Annotated[list[QuestionItem], Field(description="The questions"), Aliases("question")]

    def operation(self) -> Operation:
        asked = [
            Question(
                one.question,
                one.header,
                tuple(Option(option.label, option.description) for option in one.options),
                one.multiple,
            )
            for one in self.questions
        ]
        # The document has no headers; answers are told apart by the whole question where its beginning is not enough.
        keys = Counter(question.key for question in asked)
        distinct = tuple(
            Question(one.text, one.text, one.options, one.multiple) if keys[one.key] > 1 else one for one in asked
        )
        return AskUser(distinct, max_questions=MAX_QUESTIONS)

    def render(self, outcome: Outcome) -> Rendered:
        answers = expect(outcome, Answers)
        pairs = zip(answers.questions, answers.chosen, strict=True)
        fields = [{"question": question.text, "answers": list(chosen)} for question, chosen in pairs]
        return wording.answers_text(answers), fields


# ------------------------------------------------------------------------ external


class WebFetch(ToolArguments):
    """Fetch the contents of a URL (at most 5 MB). HTTP is upgraded to HTTPS."""

    naming = Naming(
        "webfetch",
        aliases=("fetch", "fetch_url", "fetch_webpage", "read_url", "get_url"),
        effect="network",
        example={"url": "https://docs.rs/serde", "format": "text"},
        needs="web",
    )
    url: Annotated[str, Field(description="URL to fetch"), Aliases("uri", "link", "href", "address")]
    format: Annotated[PageFormat, Field(description="Output format"), BeforeValidator(_lower)] = "markdown"
    timeout: Annotated[
        Unsigned, Field(description="Timeout in seconds"), Aliases("timeout_s", "timeout_secs", "timeout_seconds")
    ] = 30

    def operation(self) -> Operation:
        return FetchPage(self.url, self.format, float(self.timeout))

    def render(self, outcome: Outcome) -> Rendered:
        return wording.page_text(expect(outcome, Page)), None


class WebSearch(ToolArguments):
    """Search the web, for what is not in the codebase."""

    naming = Naming(
        "websearch",
        aliases=("google_web_search", "search_web", "internet_search"),
        example={"query": "tokio select cancellation", "num_results": 5},
        needs="search",
    )
    query: Annotated[str, Field(description="Search query"), Aliases(*PATTERN)]
    num_results: Annotated[
        Unsigned, Field(description="Number of results"), Aliases("limit", "max_results", "count", "n")
    ] = 8

    def operation(self) -> Operation:
        return SearchWeb(self.query, self.num_results)

    def render(self, outcome: Outcome) -> Rendered:
        found = expect(outcome, SearchHits)
        return wording.search_text(found), [asdict(hit) for hit in found.hits]


# ------------------------------------------------------------- agent and knowledge


class Task(ToolArguments):
    """Run a sub-agent on an independent task: research only reads, general may use all tools."""

    naming = Naming(
        "task",
        aliases=("agent", "sub_agent", "run_agent", "delegate", "spawn_agent"),
        effect="state",
        example={
            "description": "Find the parser",
            "prompt": "Find where the configuration file is parsed, and name the functions with their lines.",
            "subagent_type": "research",
            "model_tier": "weak",
        },
        needs="agents",
    )
    description: Annotated[
        str,
        Field(description="Short task description (3-5 words)", json_schema_extra={REQUIRED_KEY: True}),
        Aliases("title", "label", "name"),
    ] = ""
    prompt: Annotated[str, Field(description="Detailed prompt"), Aliases("task", "instructions", "message", "query")]
    subagent_type: Annotated[
        str,
        Field(description="research (read-only) or general"),
        Aliases("agent_type", "type", "kind", "agent"),
    ] = "research"
    model_tier: Annotated[
        Literal["current", "strong", "medium", "weak"],
        Field(description="strong, medium or weak (default: the current model)"),
        Aliases("tier", "model"),
        BeforeValidator(_lower),
    ] = "current"

    def operation(self) -> Operation:
        description = self.description or " ".join(self.prompt.split()[:5])
        tier = None if self.model_tier == "current" else self.model_tier
        return RunAgent(self.prompt, self.subagent_type, description, tier)

    def render(self, outcome: Outcome) -> Rendered:
        report = expect(outcome, AgentReport)
        fields = {"output": report.output, "seconds": round(report.seconds, 3), "tokens": report.tokens}
        return report.output or "(no response)", fields


class TodoItem(NestedArguments):
    """One item of the list."""

    content: Annotated[str, Field(description="What to do"), Aliases("task", "text", "title", "description")]
    status: Annotated[
        TodoStatus,
        Field(description="pending, in_progress, completed or cancelled", json_schema_extra={REQUIRED_KEY: True}),
        BeforeValidator(lambda given: todo_status(given) if isinstance(given, str) else given),
        Aliases("state"),
    ] = "pending"
    priority: Annotated[
        TodoPriority,
        Field(description="high, medium or low", json_schema_extra={REQUIRED_KEY: True}),
        BeforeValidator(_lower),
    ] = "medium"


class TodoWrite(ToolArguments):
    """Create or update the todo list for work of several steps: give the whole list."""

    naming = Naming(
        "todowrite",
        aliases=("todo", "todos", "update_todos", "write_todos"),
        effect="state",
        example={"todos": [{"content": "Run the tests", "status": "in_progress", "priority": "high"}]},
    )
    todos: Annotated[list[TodoItem], Field(description="All items"), Aliases("items", "tasks", "todo_list")]

    def operation(self) -> Operation:
        return SetTodos(tuple(Todo(one.content, one.status, one.priority) for one in self.todos))

    def render(self, outcome: Outcome) -> Rendered:
        todos = expect(outcome, TodoList)
        fields = [{"content": each.content, "status": each.status, "priority": each.priority} for each in todos.todos]
        return wording.todos_text(todos), fields


_COMMANDS = {"read": "view", "list": "view", "create": "write", "save": "write", "update": "write", "remove": "delete"}


def _command(given: Json) -> Json:
    command = _lower(given)
    return _COMMANDS.get(command, command) if isinstance(command, str) else command


class Memory(ToolArguments):
    """Keep notes about this project across sessions: view, write or delete one."""

    naming = Naming(
        "memory",
        aliases=("memory_bank", "notes"),
        effect="state",
        example={"command": "write", "path": "testing.md", "content": "Run `make check` before each commit.\n"},
        needs="memory",
    )
    command: Annotated[
        Literal["view", "write", "delete"],
        Field(description="view, write or delete"),
        BeforeValidator(_command),
        Aliases("action", "operation", "cmd"),
    ]
    path: Annotated[str | None, Field(description="Relative path (omit to list all)"), Aliases(*PATH, "name")] = None
    content: Annotated[str | None, Field(description="Content for write"), Aliases(*CONTENT)] = None

    @model_validator(mode="after")
    def _whole(self) -> Memory:
        if self.command != "view" and not self.path:
            raise ValueError(f"{self.command} needs the path of the note")
        if self.command == "write" and self.content is None:
            raise ValueError("write needs content")
        return self

    def operation(self) -> Operation:
        match self.command:
            case "view":
                return ViewMemory(self.path or None)
            case "write":
                return WriteMemory(self.path or "", self.content or "")
            case "delete":
                return DeleteMemory(self.path or "")

    def render(self, outcome: Outcome) -> Rendered:
        match outcome:
            case MemoryList() | MemoryNote() | MemoryChanged():
                return wording.memory_text(outcome), None
            case _:
                raise TypeError(f"expected an outcome of memory, got {type(outcome).__name__}")


class SkillTool(ToolArguments):
    """Load a skill: detailed instructions for a specific kind of task."""

    naming = Naming(
        "skill", aliases=("load_skill", "use_skill"), effect="skill", example={"name": "release"}, needs="skills"
    )
    name: Annotated[str, Field(description="Skill name"), Aliases("skill_name", "skill", "title")]

    def operation(self) -> Operation:
        return LoadSkill(self.name, "result")

    def render(self, outcome: Outcome) -> Rendered:
        return expect(outcome, SkillLoaded).text, None


DIALECT = Dialect(
    name="maki",
    title="Maki",
    classes=(
        Bash,
        Read,
        Write,
        Edit,
        MultiEdit,
        GlobTool,
        GrepTool,
        Index,
        Batch,
        CodeExecution,
        QuestionTool,
        WebFetch,
        WebSearch,
        Task,
        TodoWrite,
        Memory,
        SkillTool,
    ),
    unasked=frozenset({"network", "skill"}),
)
