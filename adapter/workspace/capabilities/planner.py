"""Operations that need the host or the session itself, planned as all others are."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, TypeAlias, TypeVar, assert_never

from adapter.core.callbacks import require_answer, require_items, tool_observer
from adapter.core.errors import ToolError
from adapter.core.events import JsonObject, ToolResult
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.text.plurals import pluralize
from adapter.tools.operations import (
    AgentReport,
    AskUser,
    BatchCall,
    BatchResults,
    CallFunction,
    CodeOutput,
    DeleteMemory,
    FetchPage,
    FindLibrary,
    Finish,
    HostOperation,
    Libraries,
    Library,
    LibraryDocs,
    LoadSkill,
    MemoryChanged,
    MemoryList,
    MemoryNote,
    Operation,
    Outcome,
    ReadLibraryDocs,
    RunBatch,
    RunCode,
    RunSubagent,
    SearchHit,
    SearchHits,
    SearchWeb,
    SetTodos,
    Skill,
    SkillLoaded,
    TaskFinished,
    TodoList,
    UserAnswers,
    ViewMemory,
    WriteMemory,
    effect_of,
)
from adapter.tools.operations.capabilities import ABSENT, Capability
from adapter.tools.tool import ToolSet
from adapter.workspace.capabilities import editor, function_runner, parallel_calls, questions, skills, web_fetch
from adapter.workspace.capabilities import notes as memory
from adapter.workspace.capabilities.host import DocsProvider, Editor, Host, HostEvent, NestedCall, SearchProvider
from adapter.workspace.capabilities.http_providers import HttpSearch
from adapter.workspace.capabilities.library_docs import InstalledDocs
from adapter.workspace.capabilities.local_search import LocalSearch
from adapter.workspace.changes.plan import Plan
from adapter.workspace.context import WorkspaceContext
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.sandbox.deadline import Deadline

T = TypeVar("T")
MAX_TODOS = 100
"""Items of a todo list."""


class SessionWorkspace(Protocol):
    """The workspace of a session, as calls within its calls see it."""

    tools: ToolSet

    def operation_of(self, name: str, arguments: JsonObject) -> Operation | None: ...
    def run_within(self, name: str, arguments: JsonObject, clock: Deadline | None) -> ToolResult: ...


@dataclass
class SessionCapabilities:
    """What one session has beyond files and processes."""

    host: Host
    root: WorkspaceRoot
    workspace: SessionWorkspace
    todos: TodoList = field(default_factory=TodoList)
    loop: function_runner.EventLoopThread = field(default_factory=function_runner.EventLoopThread)
    person: threading.RLock = field(default_factory=threading.RLock)
    """Held while the user is asked something: one question at a time."""
    owns_loop: bool = True
    remembering: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def editor(self) -> Editor | None:
        given = self.host.editor
        return editor.MemoryEditor() if given == "embedded" else given and editor.CheckedEditor(given)

    @cached_property
    def search(self) -> SearchProvider | None:
        return LocalSearch(self.root) if self.host.search == "embedded" else self.host.search

    @cached_property
    def docs(self) -> DocsProvider | None:
        return InstalledDocs() if self.host.docs == "embedded" else self.host.docs

    @cached_property
    def memory(self) -> memory.NoteStore:
        state = memory.state_folder(self.host.state)
        return memory.NoteStore(memory.project_folder(self.root.path, state) / "memory")

    @property
    def skills(self) -> tuple[Skill, ...]:
        """Looked for anew each time: one may have just been written."""
        return skills.find_skills(self.root, self.host.skill_folders)

    def share(self, other: SessionCapabilities) -> None:
        """Use the person, the memory and the loop of another session, which stays their owner."""
        self.person, self.remembering, self.memory, self.loop = (
            other.person,
            other.remembering,
            other.memory,
            other.loop,
        )
        self.owns_loop = False

    def close(self) -> None:
        if self.owns_loop:
            self.loop.close()

    def emit(self, event: HostEvent) -> None:
        if self.host.events is not None:
            tool_observer(self.host.events, "Host.events")(event)


OfCalls: TypeAlias = RunBatch | RunCode | RunSubagent | CallFunction
OfWeb: TypeAlias = FetchPage | SearchWeb | FindLibrary | ReadLibraryDocs


def plan(desk: WorkspaceContext, hosted: SessionCapabilities, operation: HostOperation, clock: Deadline | None) -> Plan:
    """Raises ToolError when it is clear beforehand that the operation cannot be done."""
    if isinstance(operation, editor.EditorOperation):
        return _with_editor(desk, hosted, operation)
    if isinstance(operation, OfCalls):
        return _plan_calls(hosted, operation)
    if isinstance(operation, OfWeb):
        return _plan_web(hosted, operation)
    match operation:
        case AskUser():
            questions.check(operation)
            return Plan("ask the user", lambda: _ask(hosted, operation, clock))
        case Finish():
            return Plan("end the run", TaskFinished)
        case SetTodos():
            return Plan("set the todo list", lambda: _set_todos(hosted, operation))
        case ViewMemory():
            return Plan("look into memory", lambda: _view_memory(hosted, operation))
        case WriteMemory():
            hosted.memory.check(operation.path, operation.content)
            return Plan(f"note {escape_for_display(operation.path)}", lambda: _write_memory(hosted, operation))
        case DeleteMemory(path=path):
            return Plan(f"forget {escape_for_display(path)}", lambda: hosted.memory.delete(path))
        case LoadSkill():
            skill = skills.find_skill(hosted.skills, operation.name)
            summary = f"load the skill {escape_for_display(skill.title)} from {escape_for_display(skill.folder)}"
            return Plan(summary, lambda: _load_skill(hosted, skill, operation), subject=skill.title)
        case _:
            assert_never(operation)


def _plan_calls(hosted: SessionCapabilities, operation: OfCalls) -> Plan:
    """What runs other code, or makes other calls."""
    match operation:
        case RunBatch():
            return Plan(f"make {pluralize(len(operation.calls), 'call')}", lambda: _batch(hosted, operation))
        case RunCode():
            return Plan("run Python in the sandbox", lambda: _code(hosted, operation))
        case RunSubagent():
            return Plan(
                f"start a sub-agent: {escape_for_display(operation.description)}", lambda: _agent(hosted, operation)
            )
        case CallFunction():
            arguments = ", ".join(f"{name}={value!r}" for name, value in operation.arguments.items())
            summary = f"call {operation.name}({escape_for_display(arguments)})"
            return Plan(summary, lambda: function_runner.call_function(operation, hosted.loop))
        case _:
            assert_never(operation)


def _plan_web(hosted: SessionCapabilities, operation: OfWeb) -> Plan:
    """What asks others: pages, searches, libraries."""
    match operation:
        case FetchPage():
            access = _present(hosted.host.web, "web")
            url = web_fetch.parse_url(operation.url, access)
            return Plan(
                f"fetch {escape_for_display(operation.url)}",
                lambda: web_fetch.fetch(operation, access),
                subject=url.host,
            )
        case SearchWeb():
            return Plan(f"search: {escape_for_display(operation.query)}", lambda: _search(hosted, operation))
        case FindLibrary(name=name):
            return Plan(f"look for the library {escape_for_display(name)}", lambda: _find_library(hosted, name))
        case ReadLibraryDocs():
            return Plan(
                f"read about {escape_for_display(operation.library_id)}", lambda: _library_docs(hosted, operation)
            )
        case _:
            assert_never(operation)


def _present(capability: T | None, name: Capability) -> T:
    """Raises ToolError for a capability that the session has not."""
    if capability is None:
        raise _absent(name)
    return capability


def _absent(name: Capability) -> ToolError:
    why, instead = ABSENT[name]
    return ToolError(f"{why}. {instead}")


def _with_editor(desk: WorkspaceContext, hosted: SessionCapabilities, operation: editor.EditorOperation) -> Plan:
    used = _present(hosted.editor, "editor")
    planned = editor.plan(desk, used, operation)

    def commit() -> Outcome:
        outcome = planned.commit()
        hosted.emit(used.state())
        return outcome

    return replace(planned, commit=commit)


def _ask(hosted: SessionCapabilities, operation: AskUser, clock: Deadline | None) -> UserAnswers:
    with hosted.person, clock.paused() if clock is not None else nullcontext():
        if (person := hosted.host.questions) is None:
            raise _absent("questions")
        return questions.ask(person, operation)


def _set_todos(hosted: SessionCapabilities, operation: SetTodos) -> TodoList:
    if len(operation.todos) > MAX_TODOS:
        raise ToolError(f"a todo list has at most {MAX_TODOS} items, this one has {len(operation.todos)}")
    todos = TodoList(operation.todos, operation.title)
    if (at_once := todos.count("in_progress")) > 1:
        todos = replace(todos, notes=(f"{at_once} items are in progress; work on one at a time",))
    hosted.todos = todos
    hosted.emit(todos)
    return todos


def _view_memory(hosted: SessionCapabilities, operation: ViewMemory) -> MemoryList | MemoryNote:
    return hosted.memory.list() if operation.path is None else hosted.memory.view(operation.path)


def _write_memory(hosted: SessionCapabilities, operation: WriteMemory) -> MemoryChanged:
    with hosted.remembering:
        return hosted.memory.write(operation.path, operation.content)


def _load_skill(hosted: SessionCapabilities, skill: Skill, operation: LoadSkill) -> SkillLoaded:
    hosted.emit(skill)
    return SkillLoaded(skill, operation.delivery)


def _batch(hosted: SessionCapabilities, operation: RunBatch) -> BatchResults:
    def operation_of(call: BatchCall) -> Operation | None:
        return hosted.workspace.operation_of(call.name, call.arguments)

    def call(one: BatchCall) -> ToolResult:
        if isinstance(operation_of(one), RunBatch | RunCode | Finish):
            error = f"{one.name} cannot be a part of a batch; call it by itself"
            return ToolResult(one.name, ok=False, content=f"tool_error: {error}", error=error)
        return _inner(hosted, one.name, one.arguments, None)

    def writes(one: BatchCall) -> bool:
        wanted = operation_of(one)
        if wanted is None or isinstance(wanted, RunSubagent | AskUser):
            return False
        return effect_of(wanted) in ("write", "delete", "state")

    return parallel_calls.run_batch(operation, call, writes)


def _code(hosted: SessionCapabilities, operation: RunCode) -> CodeOutput:
    def call(name: str, arguments: JsonObject, clock: Deadline) -> ToolResult:
        if isinstance(hosted.workspace.operation_of(name, arguments), RunBatch | RunCode | Finish):
            error = f"{name} cannot be called from code; call it by itself"
            return ToolResult(name, ok=False, content=f"tool_error: {error}", error=error)
        return _inner(hosted, name, arguments, clock)

    from adapter.workspace.capabilities.python_sandbox import run_code

    tools = {name: tuple(tool.properties) for name, tool in hosted.workspace.tools.items()}
    return run_code(operation, tools, call)


def _inner(hosted: SessionCapabilities, name: str, arguments: JsonObject, clock: Deadline | None) -> ToolResult:
    result = hosted.workspace.run_within(name, arguments, clock)
    hosted.emit(NestedCall(name, arguments, result))
    return result


def _agent(hosted: SessionCapabilities, operation: RunSubagent) -> AgentReport:
    runner = _present(hosted.host.agents, "agents")
    hosted.emit(operation)
    report = runner.run(operation, hosted.workspace)
    require_answer(runner.run, "Host.agents", report, AgentReport, "an AgentReport")
    hosted.emit(report)
    return report


def _search(hosted: SessionCapabilities, operation: SearchWeb) -> SearchHits:
    provider = _present(hosted.search, "search")
    if operation.limit < 1:
        raise ToolError(f"{operation.limit} results are none; ask for 1 or more")
    notes: tuple[str, ...] = ()
    found: Sequence[SearchHit]
    if isinstance(provider, LocalSearch):
        found, notes = provider.look(operation)
    else:
        found = provider.search(operation)
        require_items(provider.search, "Host.search", found, SearchHit, "a sequence of SearchHit")
    if isinstance(provider, HttpSearch) and provider.most is not None and provider.most < operation.limit:
        notes = (f"{operation.limit} results were asked for; the service gives at most {provider.most}",)
    hits = [
        hit for hit in found if web_fetch.is_in_domains(hit.url, operation.allowed_domains, operation.blocked_domains)
    ]
    return SearchHits(operation.query, tuple(hits[: operation.limit]), notes)


def _find_library(hosted: SessionCapabilities, name: str) -> Libraries:
    docs = _present(hosted.docs, "docs")
    found = docs.find(name)
    require_items(docs.find, "Host.docs", found, Library, "a sequence of Library")
    libraries = tuple(found)
    if not libraries:
        raise ToolError(f"no library like {name!r} is known here; check the name, or read its source")
    return Libraries(name, libraries)


def _library_docs(hosted: SessionCapabilities, operation: ReadLibraryDocs) -> LibraryDocs:
    if not operation.library_id.startswith("/"):
        raise ToolError(
            f"{operation.library_id!r} is no library id: they look like /org/project; find it by name first"
        )
    if not 1 <= operation.page <= web_fetch.MAX_DOCS_PAGE:
        raise ToolError(f"page {operation.page} is not possible; pages go from 1 to {web_fetch.MAX_DOCS_PAGE}")
    provider = _present(hosted.docs, "docs")
    text = provider.read(operation.library_id, operation.mode, operation.topic, operation.page)
    require_answer(provider.read, "Host.docs", text, str, "a text")
    return LibraryDocs(operation.library_id, text, operation.mode, operation.page)
