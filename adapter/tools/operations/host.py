"""Operations that need a user, an editor, a model, a network or the session, and the outcomes of these operations.

Lines and columns of the editor are 1-based.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from adapter.core.events import Json, JsonObject, ToolResult

Effect: TypeAlias = Literal["read", "state", "write", "delete", "execute", "network", "skill"]
"""The kind of effect that an operation has, which determines whether it needs approval.

``state`` changes only the agent's own state (todo list, memory, cursor). ``skill`` loads instructions.
"""

MAX_BATCH = 25
"""Maximum number of calls in a batch, from Maki's document."""


@dataclass(frozen=True, slots=True)
class BatchCall:
    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class RunBatch:
    """Run independent calls in parallel. Calls after the first ``MAX_BATCH`` are dropped."""

    calls: tuple[BatchCall, ...]


@dataclass(frozen=True, slots=True)
class BatchResults:
    """One result per call, in the order of the calls."""

    results: tuple[ToolResult, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunCode:
    """Run Python in a sandbox in which the session's tools are async functions."""

    code: str
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class CodeOutput:
    """Printed output, and the last expression as JSON text ("" for None)."""

    output: str
    value: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunSubagent:
    """Run a sub-agent on ``prompt``."""

    prompt: str
    kind: str = "research"
    """``research`` (reads only), ``general`` or a custom kind."""
    description: str = ""
    model: str | None = None
    """A model or a tier of models, by its name in the dialect."""
    cwd: str | None = None
    """The sub-agent's folder in the workspace."""


@dataclass(frozen=True, slots=True)
class AgentReport:
    """The report from a sub-agent. ``seconds``: elapsed time. ``tokens``: None if the server did not report usage."""

    kind: str
    description: str
    prompt: str
    output: str
    seconds: float
    tokens: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallFunction:
    """Call a function of the host program. It may be async. ``effect`` is declared by the function's tool."""

    name: str
    function: Callable[..., object]
    arguments: JsonObject = field(default_factory=dict)
    effect: Effect = "execute"
    runner: str = ""
    """Name of the external runner, such as ``the MCP server 'git'``; "" for a function of this program."""
    notice: str = ""
    """A reason to request approval, which the approver sees. It applies regardless of the effect, until the call has
    been allowed once."""


@dataclass(frozen=True, slots=True)
class FunctionResult:
    """The result of a function: text for the model, and the value as JSON if the function returned one."""

    text: str
    data: Json = None
    is_error: bool = False
    notes: tuple[str, ...] = ()


MAX_QUESTIONS = 4
"""Maximum number of questions in one request, from ProxyAI's document."""


@dataclass(frozen=True, slots=True)
class Option:
    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question. If it has no options, any text is accepted. ``allow_other``: whether text is accepted in addition to
    the options."""

    text: str
    header: str = ""
    """A short name, which is the key of the answer. The default is the first twelve characters of the question."""
    options: tuple[Option, ...] = ()
    multiple: bool = False
    allow_other: bool = True

    @property
    def key(self) -> str:
        return self.header or self.text[:12].rstrip()


@dataclass(frozen=True, slots=True)
class AskUser:
    """Ask the user. ``answers``: answers that are already known, by key; questions with a known answer are skipped."""

    questions: tuple[Question, ...]
    answers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    max_questions: int = MAX_QUESTIONS


@dataclass(frozen=True, slots=True)
class UserAnswers:
    """Answers in the order of the questions: the chosen labels, or text that the user entered."""

    questions: tuple[Question, ...]
    chosen: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finish:
    """End the run."""


@dataclass(frozen=True, slots=True)
class TaskFinished:
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GetEditorState:
    pass


@dataclass(frozen=True, slots=True)
class OpenInEditor:
    path: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class GoToLine:
    """Move the cursor in the active file."""

    line: int
    column: int | None = None


@dataclass(frozen=True, slots=True)
class GetSelection:
    pass


@dataclass(frozen=True, slots=True)
class ReplaceSelection:
    content: str


@dataclass(frozen=True, slots=True)
class InsertAtCursor:
    content: str


@dataclass(frozen=True, slots=True)
class EditorState:
    """Open files, cursor and selection. ``active_tab_index``: 0-based index; -1 if no file is open."""

    active_file: str | None = None
    open_files: tuple[str, ...] = ()
    active_tab_index: int = -1
    cursor_line: int | None = None
    cursor_column: int | None = None
    selection_start_line: int | None = None
    selection_end_line: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SelectedText:
    path: str
    text: str
    start_line: int
    end_line: int
    notes: tuple[str, ...] = ()


TodoStatus: TypeAlias = Literal["pending", "in_progress", "completed", "cancelled"]
TodoPriority: TypeAlias = Literal["high", "medium", "low"]
Delivery: TypeAlias = Literal["result", "message"]
"""Delivery of a skill to the model: as the tool's result, or as a new user message."""


@dataclass(frozen=True, slots=True)
class Todo:
    """An entry in the todo list. ``active_form``: its label while it is in progress ("Running the tests")."""

    content: str
    status: TodoStatus = "pending"
    priority: TodoPriority | None = None
    active_form: str = ""


@dataclass(frozen=True, slots=True)
class SetTodos:
    """Replace the whole todo list."""

    todos: tuple[Todo, ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class TodoList:
    todos: tuple[Todo, ...] = ()
    title: str = ""
    notes: tuple[str, ...] = ()

    def count(self, status: TodoStatus) -> int:
        return sum(todo.status == status for todo in self.todos)


@dataclass(frozen=True, slots=True)
class ViewMemory:
    """Show one note, or the list of all notes if ``path`` is None."""

    path: str | None = None


@dataclass(frozen=True, slots=True)
class WriteMemory:
    path: str
    content: str


@dataclass(frozen=True, slots=True)
class DeleteMemory:
    path: str


@dataclass(frozen=True, slots=True)
class MemoryNote:
    path: str
    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryList:
    """Names and sizes of the notes, sorted by name. Sizes are in bytes."""

    entries: tuple[tuple[str, int], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryChanged:
    """The result of writing or deleting a note. ``size``: the note's size in bytes; None if it was deleted."""

    path: str
    size: int | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadSkill:
    name: str
    delivery: Delivery = "result"


@dataclass(frozen=True, slots=True)
class Skill:
    """Instructions from a ``SKILL.md``. ``folder``: path of the folder with the files that they refer to."""

    name: str
    title: str
    description: str
    body: str
    folder: str


@dataclass(frozen=True, slots=True)
class SkillLoaded:
    skill: Skill
    delivery: Delivery
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The instructions as text for the model."""
        return f"# {self.skill.title}\n\n{self.skill.body.strip()}\n\n(the skill's files are in {self.skill.folder})"


def parse_todo_status(text: str) -> TodoStatus:
    """Parse a status in any letter case, with spaces, hyphens or underscores. Raises ValueError for any other text."""
    spelling = "_".join(text.replace("-", " ").replace("_", " ").lower().split())
    spelling = {"todo": "pending", "done": "completed", "complete": "completed", "canceled": "cancelled"}.get(
        spelling, spelling
    )
    spelling = "in_progress" if spelling == "inprogress" else spelling
    for status in get_args(TodoStatus):
        if spelling == status:
            return status  # type: ignore[no-any-return]
    raise ValueError(f"{text!r} is not a status; expected one of {', '.join(get_args(TodoStatus))}")


PageFormat: TypeAlias = Literal["markdown", "text", "html"]
DocsMode: TypeAlias = Literal["code", "info"]


@dataclass(frozen=True, slots=True)
class FetchPage:
    url: str
    format: PageFormat = "markdown"
    timeout_s: float = 30.0
    """Maximum total time, including redirects, in seconds."""


@dataclass(frozen=True, slots=True)
class Page:
    """A web page. ``url``: final URL after redirects. ``status``: HTTP status."""

    url: str
    content_type: str
    text: str
    status: int = 200
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchWeb:
    """Search the web. A domain includes its subdomains. Blocked domains take precedence over allowed ones."""

    query: str
    limit: int = 8
    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchHit:
    title: str
    url: str
    content: str


@dataclass(frozen=True, slots=True)
class SearchHits:
    query: str
    hits: tuple[SearchHit, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FindLibrary:
    name: str


@dataclass(frozen=True, slots=True)
class Library:
    """A library. ``id`` is ``/org/project`` or ``/org/project/version``, the argument of `ReadLibraryDocs`."""

    id: str
    title: str
    description: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Libraries:
    name: str
    libraries: tuple[Library, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadLibraryDocs:
    """Read the documentation of a library. ``page``: 1-based page number."""

    library_id: str
    mode: DocsMode = "code"
    topic: str | None = None
    page: int = 1


@dataclass(frozen=True, slots=True)
class LibraryDocs:
    library_id: str
    text: str
    mode: DocsMode
    page: int
    notes: tuple[str, ...] = ()
