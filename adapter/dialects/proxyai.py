"""The tools of ProxyAI, as its "Tools" reference documents them.

Names, arguments, defaults and result fields are the document's. Each result is
a text for the model and, as ``data``, the documented fields; of a failed call
the fields that the document gives for errors. Paths are echoed as they were
given. Aliases are ProxyAI's own for foreign agents, and customary ones.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from adapter.customary import COMMAND, CONTENT, DIRECTORY, NEW_TEXT, OLD_TEXT, PATH, PATTERN, WORKING_DIRECTORY
from adapter.dialects import wording
from adapter.dialects.base import Aliases, Dialect, Naming, Rendered, ToolArguments, expect
from adapter.dialects.schema import REQUIRED_KEY
from adapter.errors import DeniedError, ToolError
from adapter.events import Json, JsonObject
from adapter.operations import (
    AgentReport,
    Answers,
    AskUser,
    CommandKilled,
    CommandOutput,
    CommandStarted,
    FileText,
    FindLibrary,
    FindSymbols,
    Finish,
    Finished,
    KillCommand,
    Libraries,
    LibraryDocs,
    LoadSkill,
    NewOutput,
    Operation,
    Option,
    Outcome,
    Patch,
    Patched,
    PatchNames,
    PatchText,
    Question,
    ReadCommandOutput,
    ReadLibraryDocs,
    ReadText,
    RunAgent,
    RunCommand,
    SearchHits,
    SearchWeb,
    SetTodos,
    SkillLoaded,
    StartCommand,
    SymbolContext,
    SymbolMatch,
    SymbolMatches,
    SymbolScope,
    Todo,
    TodoList,
    WriteText,
    Written,
)
from adapter.operations.notes import todo_status
from adapter.text.lines import split_lines, without_end

READ_LINES = 2_000
"""Of a file that is read without a range."""
LINE_CHARACTERS = 2_000
"""Of a line that is read; the rest of it is left out."""
PREVIEW_CHARACTERS = 200
"""Of a line in a search result."""
DEFAULT_TIMEOUT_MS = 60_000
"""Of a command, unless the model names another."""
MAX_TIMEOUT_MS = 600_000
"""Of a command. These five are not in the document; the program itself tells them to its model."""
DOCS_CHARACTERS = 10_000
"""Likewise."""
TITLE_WORDS = 4

_FILE_TYPES = {
    "bat": "Batch", "c": "C", "cc": "C++", "cpp": "C++", "cs": "C#", "css": "CSS", "csv": "CSV", "go": "Go",
    "gradle": "Groovy", "groovy": "Groovy", "h": "C", "hpp": "C++", "htm": "HTML", "html": "HTML", "java": "JAVA",
    "js": "JavaScript", "json": "JSON", "jsx": "JSX Harmony", "kt": "Kotlin", "kts": "Kotlin", "lua": "Lua",
    "markdown": "Markdown", "md": "Markdown", "php": "PHP", "properties": "Properties", "py": "Python",
    "pyi": "Python", "rb": "Ruby", "rs": "Rust", "scala": "Scala", "sh": "Shell Script", "sql": "SQL",
    "swift": "Swift", "toml": "TOML", "ts": "TypeScript", "tsx": "TypeScript JSX", "txt": "PLAIN_TEXT",
    "xml": "XML", "yaml": "YAML", "yml": "YAML",
}  # fmt: skip
"""IntelliJ's names of file types, by extension."""


FilePath = Annotated[str, Field(description="Absolute path of the file"), Aliases(*PATH)]


def _file_error(given: JsonObject, error: ToolError) -> Json:
    return {"filePath": given.get("file_path"), "error": str(error)}


def _error(_given: JsonObject, error: ToolError) -> Json:
    return {"error": str(error)}


def _message(_given: JsonObject, error: ToolError) -> Json:
    return {"message": str(error)}


def _not_run(given: JsonObject, error: ToolError) -> Json:
    return {"command": given.get("command"), "exitCode": None, "output": str(error), "bash_id": None}


def _unread(given: JsonObject, error: ToolError) -> Json:
    if isinstance(error, DeniedError):
        return _output_fields(given.get("bash_id"), "", "", "denied", None)
    return {"bash_id": given.get("bash_id"), "error": str(error)}


def _not_killed(given: JsonObject, error: ToolError) -> Json:
    return {"bash_id": given.get("bash_id"), "success": False, "message": str(error)}


class ReadFile(ToolArguments):
    """Read a file. Gives its lines with their numbers."""

    naming = Naming(
        "Read",
        aliases=("ReadFile", "view", "cat", "open_file"),
        example={"file_path": "/project/src/main.py", "offset": 10, "limit": 50},
        max_lines=READ_LINES + 1,
        failure=_file_error,
    )
    file_path: FilePath
    offset: Annotated[int | None, Field(description="First line to read (1-indexed)"), Aliases("line")] = None
    limit: Annotated[int | None, Field(description="Number of lines to read"), Aliases("maxLinesCount")] = None

    @field_validator("offset", "limit")
    @classmethod
    def _positive(cls, given: int | None) -> int | None:
        if given is not None and given < 1:
            raise ValueError(f"{given} is not possible; lines count from 1")
        return given

    def operation(self) -> Operation:
        return ReadText(
            self.file_path, self.offset, max_lines=self.limit or READ_LINES, max_line_characters=LINE_CHARACTERS
        )

    def render(self, outcome: Outcome) -> Rendered:
        file = expect(outcome, FileText)
        lines = [without_end(line) for line in split_lines(file.text)]
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
        more = f"\n(there are more lines; go on with offset {file.end_line + 1})" if file.truncated else ""
        return numbered + more, fields


_CONTEXTS: dict[str, SymbolContext] = {
    "all": "any", "any": "any", "file": "files", "files": "files", "class": "classes", "classes": "classes",
    "type": "classes", "types": "classes", "symbol": "any", "symbols": "any", "function": "functions",
    "functions": "functions", "method": "functions", "methods": "functions", "variable": "variables",
    "variables": "variables", "field": "variables", "fields": "variables",
}  # fmt: skip


class IntelliJSearch(ToolArguments):
    """Find files, classes and symbols by name. Use it when the path is not known; it does not look into the text."""

    naming = Naming(
        "IntelliJSearch",
        aliases=("search", "search_files", "find_symbol"),
        example={"pattern": "UserService", "scope": "project"},
    )
    pattern: Annotated[
        str, Field(description="Name, or parts of it, to look for"), Aliases("searchText", "query", "nameKeyword")
    ]
    scope: Annotated[SymbolScope, Field(description="Where to look")] = "project"
    path: Annotated[
        str | None,
        Field(description="The directory or file of that scope; globs for custom"),
        Aliases("directoryToSearch", *DIRECTORY),
    ] = None
    fileType: Annotated[
        str | None, Field(description="Only this language or file extension"), Aliases("file_type", "language")
    ] = None
    context: Annotated[
        str | None, Field(description="Only these names: any, files, classes, functions or variables")
    ] = None
    caseSensitive: Annotated[bool, Field(description="Heed upper and lower case")] = False
    regex: Annotated[bool, Field(description="The pattern is a regular expression")] = False
    wholeWords: Annotated[bool, Field(description="The match must not go on in the name")] = False
    outputMode: Annotated[Literal["content", "files_with_matches", "count"], Field(description="What to give")] = (
        "content"
    )
    limit: Annotated[
        int, Field(description="Most matches to give"), Aliases("maxUsageCount", "fileCountLimit", "max_results")
    ] = 10

    @field_validator("context")
    @classmethod
    def _known(cls, given: str | None) -> str | None:
        if given is not None and given.strip().lower() not in _CONTEXTS:
            raise ValueError(f"{given!r} is no context; expected any, files, classes, functions or variables")
        return given

    def operation(self) -> Operation:
        return FindSymbols(
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

    def render(self, outcome: Outcome) -> Rendered:
        found = expect(outcome, SymbolMatches)
        given = found.matches if self.outputMode == "content" else ()
        text = self._summary(found)
        fields = {
            "pattern": self.pattern,
            "scope": self.scope,
            "totalMatches": len(given) if self.outputMode == "content" else found.total,
            "matches": [_match_fields(match) for match in given],
            "output": text,
        }
        return text, fields

    def _summary(self, found: SymbolMatches) -> str:
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
        left_out = found.total - len(found.matches)
        rest = [f"({left_out} more; be more specific, or raise limit)"] if left_out else []
        return "\n".join(
            [*(f"{one.path}:{one.line}:{one.column}: {one.text} ({one.context})" for one in found.matches), *rest]
        )


def _match_fields(match: SymbolMatch) -> JsonObject:
    return {
        "file": match.path,
        "line": match.line,
        "column": match.column,
        "text": match.text,
        "context": match.context,
    }


class Edit(ToolArguments):
    """Replace an exact text in a file. It must occur once, unless replace_all is given. The user is asked first."""

    naming = Naming(
        "Edit",
        aliases=("Replace", "ReplaceText", "str_replace", "search_replace", "edit_file"),
        effect="write",
        example={
            "file_path": "/project/src/main.py",
            "old_string": "retries = 3",
            "new_string": "retries = 5",
            "short_description": "Raise the number of retries",
        },
        label="short_description",
        failure=_file_error,
    )
    file_path: FilePath
    old_string: Annotated[str, Field(description="Text to replace, exactly as in the file"), Aliases(*OLD_TEXT)]
    new_string: Annotated[str, Field(description="Text to put there; may be empty"), Aliases(*NEW_TEXT)]
    short_description: Annotated[
        str,
        Field(description="What the edit does, shown to the user", json_schema_extra={REQUIRED_KEY: True}),
        Aliases("description"),
    ] = ""
    replace_all: Annotated[bool, Field(description="Replace every occurrence"), Aliases("replaceAll", "all")] = False

    def operation(self) -> Operation:
        patch = Patch(self.old_string, self.new_string, replace_all=self.replace_all, exact=True)
        names = PatchNames("old_string", "new_string", None, "replace_all")
        return PatchText(self.file_path, (patch,), names=names)

    def render(self, outcome: Outcome) -> Rendered:
        patched = expect(outcome, Patched)
        count = len(patched.places)
        message = f"Replaced {count} occurrence{'' if count == 1 else 's'} in {patched.path}."
        fields = {
            "filePath": self.file_path,
            "replacementsMade": count,
            "message": message,
            "oldStringPreview": _preview(self.old_string),
            "newStringPreview": _preview(self.new_string),
            "editLocations": [
                {"line": place.line, "column": place.column, "context": place.context} for place in patched.places
            ],
        }
        return message, fields


def _preview(text: str) -> str | None:
    return text if len(text) <= PREVIEW_CHARACTERS else text[: PREVIEW_CHARACTERS - 3] + "..."


class Write(ToolArguments):
    """Create a file, or overwrite one with new contents. The user is asked first."""

    naming = Naming(
        "Write",
        aliases=("WriteFile", "create_file", "save_file"),
        effect="write",
        example={"file_path": "/project/notes.txt", "content": "first line\n"},
        failure=_file_error,
    )
    file_path: FilePath
    content: Annotated[str, Field(description="The whole contents of the file"), Aliases(*CONTENT)]

    def operation(self) -> Operation:
        return WriteText(self.file_path, self.content)

    def render(self, outcome: Outcome) -> Rendered:
        written = expect(outcome, Written)
        message = wording.written_text(written)
        fields = {
            "filePath": self.file_path,
            "bytesWritten": written.size,
            "isNewFile": written.created,
            "message": message,
        }
        return message, fields


class Bash(ToolArguments):
    """Run a shell command. The user is asked first."""

    naming = Naming(
        "Bash",
        aliases=("Execute", "Terminal", "RunShellCommand", "shell"),
        effect="execute",
        example={"command": "python -m pytest -q", "timeout": 60000, "description": "Run the tests"},
        label="description",
        failure=_not_run,
    )
    command: Annotated[str, Field(description="Shell command to execute"), Aliases(*COMMAND)]
    timeout: Annotated[float, Field(description="Timeout in milliseconds"), Aliases("timeout_ms")] = DEFAULT_TIMEOUT_MS
    description: Annotated[str | None, Field(description="What the command does, shown to the user")] = None
    run_in_background: Annotated[
        bool | None, Field(description="Do not wait for its end; watch it with BashOutput"), Aliases("background")
    ] = None
    workingDirectory: SkipJsonSchema[str] = "."
    """Not in the document, but in the program."""

    @model_validator(mode="before")
    @classmethod
    def _as_line(cls, given: Json) -> Json:
        """A list of words is one line, as ProxyAI takes it."""
        command = given.get("command") if isinstance(given, dict) else None
        return given | {"command": " ".join(map(str, command))} if isinstance(command, list) else given

    @field_validator("timeout")
    @classmethod
    def _some_time(cls, given: float) -> float:
        if given <= 0:
            raise ValueError(f"{given:g} ms is no time; leave it out for {DEFAULT_TIMEOUT_MS}")
        return given

    def operation(self) -> Operation:
        if self.run_in_background:
            return StartCommand(self.command, self.workingDirectory)
        return RunCommand(self.command, self.workingDirectory, min(self.timeout, MAX_TIMEOUT_MS) / 1000)

    def render(self, outcome: Outcome) -> Rendered:
        if isinstance(outcome, CommandStarted):
            text = f"Started in the background with bash_id {outcome.id}; read its output with BashOutput."
            return text, {"command": self.command, "exitCode": None, "output": text, "bash_id": outcome.id}
        run = expect(outcome, CommandOutput)
        text = wording.command_text(run)
        exit_code = None if run.timed_out else run.exit_code
        return text, {"command": self.command, "exitCode": exit_code, "output": text, "bash_id": None}

    def notes(self) -> tuple[str, ...]:
        if self.timeout <= MAX_TIMEOUT_MS or self.run_in_background:
            return ()
        return (f"the timeout was cut to {MAX_TIMEOUT_MS} ms, the most that is possible",)


BashId = Annotated[
    str, Field(description="The bash_id that Bash gave"), Aliases("bashId", "shell_id", "id", "task_id", "process_id")
]


class BashOutput(ToolArguments):
    """Read what a command in the background has printed since the last look."""

    naming = Naming(
        "BashOutput",
        aliases=("get_output", "shell_output"),
        example={"bash_id": "shell_1"},
        polls=True,
        failure=_unread,
    )
    bash_id: BashId
    filter: Annotated[
        str | None, Field(description="Regular expression; only lines in which it is found"), Aliases("regex")
    ] = None

    def operation(self) -> Operation:
        return ReadCommandOutput(self.bash_id, self.filter)

    def render(self, outcome: Outcome) -> Rendered:
        new = expect(outcome, NewOutput)
        code = "" if new.exit_code is None else f", exit code {new.exit_code}"
        parts = [f"{new.id}: {new.status}{code}"]
        parts += [
            f"{name}:\n{text.rstrip()}" for name, text in (("stdout", new.stdout), ("stderr", new.stderr)) if text
        ]
        if len(parts) == 1 and new.status != "not_found":
            parts.append("(nothing new)")
        return "\n".join([*parts, *new.notes]), _output_fields(
            new.id, new.stdout, new.stderr, new.status, new.exit_code
        )


def _output_fields(bash_id: Json, stdout: str, stderr: str, status: str, exit_code: int | None) -> JsonObject:
    return {"bash_id": bash_id, "stdout": stdout, "stderr": stderr, "status": status, "exit_code": exit_code}


class KillShell(ToolArguments):
    """Stop a command that runs in the background."""

    naming = Naming(
        "KillShell", aliases=("kill_bash", "stop_command"), example={"bash_id": "shell_1"}, failure=_not_killed
    )
    bash_id: BashId

    def operation(self) -> Operation:
        return KillCommand(self.bash_id)

    def render(self, outcome: Outcome) -> Rendered:
        killed = expect(outcome, CommandKilled)
        return killed.message, {"bash_id": killed.id, "success": killed.success, "message": killed.message}


class WebSearch(ToolArguments):
    """Search the web in general. For libraries use ResolveLibraryId and GetLibraryDocs."""

    naming = Naming(
        "WebSearch",
        aliases=("GoogleWebSearch", "search_web"),
        example={"query": "python 3.14 release date"},
        needs="search",
    )
    query: Annotated[str, Field(description="What to search for"), Aliases(*PATTERN)]
    allowed_domains: Annotated[list[str] | None, Field(description="Only results from these domains")] = None
    blocked_domains: Annotated[list[str] | None, Field(description="No results from these domains")] = None

    def operation(self) -> Operation:
        return SearchWeb(
            self.query,
            allowed_domains=tuple(self.allowed_domains or ()),
            blocked_domains=tuple(self.blocked_domains or ()),
        )

    def render(self, outcome: Outcome) -> Rendered:
        found = expect(outcome, SearchHits)
        sources = [f"[{hit.title}]({hit.url})" for hit in found.hits]
        fields = {
            "query": self.query,
            "results": [{"title": hit.title, "url": hit.url, "content": hit.content} for hit in found.hits],
            "sources": sources,
        }
        if not found.hits:
            return f"Nothing was found for {self.query!r}.", fields
        return "\n\n".join(f"{link}\n{hit.content}" for link, hit in zip(sources, found.hits, strict=True)), fields


class ResolveLibraryId(ToolArguments):
    """Find the id of a library by its name, for GetLibraryDocs."""

    naming = Naming(
        "ResolveLibraryId",
        aliases=("resolve-library-id",),
        example={"library_name": "mongodb"},
        needs="docs",
        failure=_error,
    )
    library_name: Annotated[str, Field(description="Name of the library"), Aliases("libraryName", "name", "query")]

    def operation(self) -> Operation:
        return FindLibrary(self.library_name)

    def render(self, outcome: Outcome) -> Rendered:
        found = expect(outcome, Libraries)
        lines = [
            f"{library.id} {library.title} {library.version}".rstrip()
            + (f": {library.description}" if library.description else "")
            for library in found.libraries
        ]
        libraries = [
            {
                "id": library.id,
                "title": library.title,
                "description": library.description,
                "version": library.version,
            }
            for library in found.libraries
        ]
        return "\n".join(lines), {"libraryName": self.library_name, "libraries": libraries}


class GetLibraryDocs(ToolArguments):
    """Read a library's documentation, by the id that ResolveLibraryId gave."""

    naming = Naming(
        "GetLibraryDocs",
        aliases=("get-library-docs",),
        example={"context7CompatibleLibraryID": "/mongodb/docs", "topic": "indexes"},
        needs="docs",
        failure=_error,
    )
    context7CompatibleLibraryID: Annotated[
        str, Field(description="Library id: /org/project or /org/project/version"), Aliases("library_id", "libraryId")
    ]
    mode: Annotated[Literal["code", "info"], Field(description="code: its interface; info: about it")] = "code"
    topic: Annotated[str | None, Field(description="Only what is about this")] = None
    page: Annotated[int, Field(description="Page, 1 to 10")] = 1

    def operation(self) -> Operation:
        return ReadLibraryDocs(self.context7CompatibleLibraryID, self.mode, self.topic, self.page)

    def render(self, outcome: Outcome) -> Rendered:
        docs = expect(outcome, LibraryDocs)
        text = docs.text
        if len(text) > DOCS_CHARACTERS:
            text = text[:DOCS_CHARACTERS] + "\n(cut off here; name a topic, or take the next page)"
        return text, {"libraryId": docs.library_id, "documentation": text, "docMode": docs.mode, "page": docs.page}


class LoadSkillTool(ToolArguments):
    """Load a skill. Its instructions follow as a new message of the user. The user is asked first."""

    naming = Naming(
        "LoadSkill",
        aliases=("skill", "use_skill"),
        effect="skill",
        example={"skill_name": "Release"},
        needs="skills",
        failure=_message,
    )
    skill_name: Annotated[str, Field(description="Title of the skill, from the list"), Aliases("name", "title")]

    def operation(self) -> Operation:
        return LoadSkill(self.skill_name, "message")

    def render(self, outcome: Outcome) -> Rendered:
        skill = expect(outcome, SkillLoaded).skill
        fields = {"title": skill.title, "description": skill.description, "queued": True}
        return f"The skill {skill.title} was loaded; its instructions follow.", fields


class OptionArguments(BaseModel):
    label: Annotated[str, Field(description="The answer")]
    description: Annotated[str, Field(description="What it means")] = ""

    @model_validator(mode="before")
    @classmethod
    def _label_alone(cls, given: Json) -> Json:
        return {"label": given} if isinstance(given, str) else given


class QuestionArguments(BaseModel):
    header: Annotated[str, Field(description="Short name of the question, at most 12 characters")] = ""
    question: Annotated[str, Field(description="The question")]
    options: Annotated[list[OptionArguments], Field(description="Answers to choose from")] = Field(default_factory=list)
    multiSelect: Annotated[bool, Field(description="Whether several may be chosen")] = False


class AskUserQuestion(ToolArguments):
    """Ask the user one to four questions, with answers to choose from."""

    naming = Naming(
        "AskUserQuestion",
        aliases=("ask_user", "question", "ask"),
        effect="state",
        example={
            "questions": [
                {
                    "header": "Database",
                    "question": "Which database?",
                    "options": [{"label": "SQLite"}, {"label": "Postgres"}],
                    "multiSelect": False,
                }
            ]
        },
        needs="questions",
        failure=_message,
    )
    questions: Annotated[list[QuestionArguments], Field(description="One to four questions")]
    answers: Annotated[dict[str, str | list[str]] | None, Field(description="Answers known already, by header")] = None

    def operation(self) -> Operation:
        questions = tuple(
            Question(
                one.question,
                one.header,
                tuple(Option(option.label, option.description) for option in one.options),
                one.multiSelect,
            )
            for one in self.questions
        )
        known = {
            key: (answer,) if isinstance(answer, str) else tuple(answer) for key, answer in (self.answers or {}).items()
        }
        return AskUser(questions, known)

    def render(self, outcome: Outcome) -> Rendered:
        answered = expect(outcome, Answers)
        pairs = list(zip(answered.questions, answered.chosen, strict=True))
        fields = {one.key: list(chosen) if one.multiple else ", ".join(chosen) for one, chosen in pairs}
        return "\n".join(f"{one.key}: {', '.join(chosen)}" for one, chosen in pairs), {"answers": fields}


class TodoArguments(BaseModel):
    content: Annotated[str, Field(description="What is to be done")]
    status: Annotated[str, Field(description="pending, in_progress or completed")] = "pending"
    activeForm: Annotated[str, Field(description="How to say that it is being done")] = ""

    @field_validator("status")
    @classmethod
    def _known(cls, given: str) -> str:
        return todo_status(given)


_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]"}


class TodoWrite(ToolArguments):
    """Put a new todo list in place of the old one."""

    naming = Naming(
        "TodoWrite",
        aliases=("TodoWriteTool", "todo_write", "update_todos"),
        effect="state",
        example={
            "title": "Fix the parser",
            "todos": [
                {"content": "Write a test", "status": "completed", "activeForm": "Writing a test"},
                {"content": "Fix it", "status": "in_progress", "activeForm": "Fixing it"},
            ],
        },
    )
    title: Annotated[
        str, Field(description="Title, at most 4 words", json_schema_extra={REQUIRED_KEY: True}), Aliases("name")
    ] = "Todo"
    todos: Annotated[list[TodoArguments], Field(description="The whole list"), Aliases("items", "tasks")]

    def operation(self) -> Operation:
        todos = tuple(Todo(one.content, todo_status(one.status), active_form=one.activeForm) for one in self.todos)
        return SetTodos(todos, " ".join(self.title.split()[:TITLE_WORDS]))

    def render(self, outcome: Outcome) -> Rendered:
        todos = expect(outcome, TodoList)
        head = f"{todos.title}: {todos.count('completed')} of {len(todos.todos)} done"
        lines = [
            f"{_MARKS[todo.status]} "
            + (todo.active_form if todo.status == "in_progress" and todo.active_form else todo.content)
            for todo in todos.todos
        ]
        return "\n".join([head, *lines]), None

    def notes(self) -> tuple[str, ...]:
        if len(self.title.split()) <= TITLE_WORDS:
            return ()
        return (f"the title was cut to {TITLE_WORDS} words",)


class Task(ToolArguments):
    """Let a sub-agent do a task. It knows nothing but the prompt, and only its report comes back."""

    naming = Naming(
        "Task",
        aliases=("Agent", "delegate", "run_agent"),
        effect="state",
        example={
            "description": "Find the parser",
            "prompt": "Find where dates are parsed and name the file and function.",
            "subagent_type": "research",
        },
        needs="agents",
    )
    description: Annotated[
        str, Field(description="Short label, shown to the user", json_schema_extra={REQUIRED_KEY: True})
    ] = ""
    prompt: Annotated[str, Field(description="All that the sub-agent must know"), Aliases("task", "instructions")]
    subagent_type: Annotated[str, Field(description="Kind of sub-agent"), Aliases("agent_type", "agentType")]
    model: Annotated[str | None, Field(description="Another model than this one")] = None
    project_path: Annotated[
        str | None, Field(description="Folder to work in"), Aliases("projectPath", *WORKING_DIRECTORY)
    ] = None

    def operation(self) -> Operation:
        label = self.description or " ".join(self.prompt.split()[:5])
        return RunAgent(self.prompt, self.subagent_type, label, self.model, self.project_path)

    def render(self, outcome: Outcome) -> Rendered:
        report = expect(outcome, AgentReport)
        fields = {
            "agentType": report.kind,
            "description": report.description,
            "prompt": report.prompt,
            "output": report.output,
            "executionTime": round(report.seconds * 1000),
            "totalTokens": report.tokens,
        }
        return report.output, fields


class Exit(ToolArguments):
    """End the run. For when the task is done, or cannot be done."""

    naming = Naming("Exit", aliases=("finish", "done", "end"), effect="state")

    def operation(self) -> Operation:
        return Finish()

    def render(self, outcome: Outcome) -> Rendered:
        expect(outcome, Finished)
        return "", None


DIALECT = Dialect(
    name="proxyai",
    title="ProxyAI",
    classes=(
        ReadFile,
        IntelliJSearch,
        Edit,
        Write,
        Bash,
        BashOutput,
        KillShell,
        WebSearch,
        ResolveLibraryId,
        GetLibraryDocs,
        LoadSkillTool,
        AskUserQuestion,
        TodoWrite,
        Task,
        Exit,
    ),
)
