"""Plan operations that need the host program or the session's state."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

from adapter.core.callback_checks import require_items, require_result, wrap_tool_observer
from adapter.core.errors import ToolError
from adapter.core.events import JsonObject, ToolResult
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.text.plurals import pluralize
from adapter.tools import operations as ops
from adapter.tools.operations.capabilities import ABSENT, Capability
from adapter.tools.tool_set import ToolSet
from adapter.workspace.capabilities import editor_operations, function_runner, skills, user_questions, web_fetch
from adapter.workspace.capabilities import memory_notes as memory
from adapter.workspace.capabilities.host_capabilities import (
    DocsProvider,
    Editor,
    Host,
    HostEvent,
    NestedCall,
    SearchProvider,
)
from adapter.workspace.capabilities.http_search_and_docs import HttpSearch
from adapter.workspace.capabilities.installed_package_docs import InstalledDocs
from adapter.workspace.capabilities.local_search import LocalSearch
from adapter.workspace.capabilities.memory_editor import CheckedEditor, MemoryEditor
from adapter.workspace.changes.journal import find_state_home
from adapter.workspace.changes.operation_plan import Plan, summarize
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.paths.tree_ops import fingerprint_bytes
from adapter.workspace.pausable_deadline import Deadline
from adapter.workspace.workspace_context import WorkspaceContext

T = TypeVar("T")
MAX_TODOS = 100
"""Maximum number of items of a todo list."""


class SessionWorkspace(Protocol):
    """The methods of a session's workspace that nested calls use."""

    tools: ToolSet

    def find_operation(self, name: str, arguments: JsonObject) -> ops.Operation | None: ...
    def run_within(self, name: str, arguments: JsonObject, deadline: Deadline | None) -> ToolResult: ...


@dataclass
class SessionCapabilities:
    """The capabilities of a session beyond files and processes."""

    host: Host
    root: WorkspaceRoot
    workspace: SessionWorkspace
    todos: ops.TodoList = field(default_factory=ops.TodoList)
    loop: function_runner.EventLoopThread = field(default_factory=function_runner.EventLoopThread)
    approval_lock: threading.RLock = field(default_factory=threading.RLock)
    """Held while the user is asked, so that there is only one question at a time."""
    owns_loop: bool = True
    """True if `close` also closes the event loop. False if the loop belongs to a parent session."""
    memory_lock: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def editor(self) -> Editor | None:
        host_editor = self.host.editor
        return MemoryEditor() if host_editor == "embedded" else host_editor and CheckedEditor(host_editor)

    @cached_property
    def search(self) -> SearchProvider | None:
        return LocalSearch(self.root) if self.host.search == "embedded" else self.host.search

    @cached_property
    def docs(self) -> DocsProvider | None:
        return InstalledDocs() if self.host.docs == "embedded" else self.host.docs

    @cached_property
    def memory(self) -> memory.NoteStore:
        state = self.host.state or find_state_home()
        return memory.NoteStore(memory.find_project_directory(self.root.path, Path(state)) / "memory")

    @property
    def skills(self) -> tuple[ops.Skill, ...]:
        """The available skills. Each access searches for them again, because a call may have just written a skill."""
        return skills.find_skills(self.root, self.host.skill_folders)

    def share(self, other: SessionCapabilities) -> None:
        """Use the locks, memory and event loop of ``other``, which remains responsible for closing them."""
        self.approval_lock, self.memory_lock = other.approval_lock, other.memory_lock
        self.memory, self.loop = other.memory, other.loop
        self.owns_loop = False

    def close(self) -> None:
        if self.owns_loop:
            self.loop.close()

    def emit(self, event: HostEvent) -> None:
        if self.host.events is not None:
            wrap_tool_observer(self.host.events, "Host.events")(event)


def plan_host_operation(
    context: WorkspaceContext,
    capabilities: SessionCapabilities,
    operation: ops.HostOperation,
    deadline: Deadline | None,
) -> Plan:
    """Plan an operation that needs a capability. Raises ToolError if the operation cannot succeed.

    ``deadline``: the deadline of the code that makes the call, which is paused while the user is asked.
    """
    match operation:
        case ops.AskUser():
            user_questions.check_questions(operation)
            return Plan("ask the user", lambda: _ask(capabilities, operation, deadline))
        case ops.LoadSkill():
            return _plan_skill(capabilities, operation)
        case ops.FetchPage():
            access = _require(capabilities.host.web, "web")
            host = web_fetch.parse_url(operation.url, access).host
            summary = summarize("fetch {url}", operation)
            return Plan(summary, lambda: web_fetch.fetch_page(operation, access), subject=host)
        case ops.RunBatch():
            return Plan(f"make {pluralize(len(operation.calls), 'call')}", lambda: _run_batch(capabilities, operation))
        case ops.CallFunction():
            arguments = ", ".join(f"{name}={value!r}" for name, value in operation.arguments.items())
            summary = f"call {operation.name}({escape_for_display(arguments)})"
            return Plan(summary, lambda: function_runner.call_function(operation, capabilities.loop))
        case ops.WriteMemory():
            capabilities.memory.check(operation.path, operation.content)
    if isinstance(operation, ops.EditorOperation):
        return _plan_editor(context, capabilities, operation)
    template, perform = _WITHOUT_PLAN[type(operation)]
    return Plan(summarize(template, operation), lambda: perform(capabilities, operation))


def _require(capability: T | None, name: Capability) -> T:
    """Return the capability. Raises ToolError, with an alternative, if the session lacks it."""
    if capability is None:
        raise _build_missing_error(name)
    return capability


def _build_missing_error(name: Capability) -> ToolError:
    why, instead = ABSENT[name]
    return ToolError(f"{why}. {instead}")


def _plan_editor(context: WorkspaceContext, capabilities: SessionCapabilities, operation: ops.EditorOperation) -> Plan:
    used = _require(capabilities.editor, "editor")
    planned = editor_operations.plan_editor_operation(context, used, operation)

    def commit() -> ops.Outcome:
        outcome = planned.commit()
        capabilities.emit(used.state())
        return outcome

    return replace(planned, commit=commit)


def _plan_skill(capabilities: SessionCapabilities, operation: ops.LoadSkill) -> Plan:
    skill = skills.find_skill(capabilities.skills, operation.name)

    def commit() -> ops.Outcome:
        capabilities.emit(skill)
        return ops.SkillLoaded(skill, operation.delivery)

    summary = f"load the skill {escape_for_display(skill.title)} from {escape_for_display(skill.directory)}"
    state = {skill.directory: fingerprint_bytes(repr(skill).encode(errors="surrogatepass"))}
    return Plan(summary, commit, subject=skill.title, state=state)


def _ask(capabilities: SessionCapabilities, operation: ops.AskUser, deadline: Deadline | None) -> ops.UserAnswers:
    with capabilities.approval_lock, deadline.pause() if deadline is not None else nullcontext():
        if (asker := capabilities.host.questions) is None:
            raise _build_missing_error("questions")
        return user_questions.ask_questions(asker, operation)


def _set_todos(capabilities: SessionCapabilities, operation: ops.SetTodos) -> ops.TodoList:
    if len(operation.todos) > MAX_TODOS:
        raise ToolError(
            f"the todo list has {len(operation.todos)} items; the maximum is {MAX_TODOS}. Merge or drop some"
        )
    todos = ops.TodoList(operation.todos, operation.title)
    if (active := todos.count("in_progress")) > 1:
        todos = replace(todos, notes=(f"{active} items are in progress; work on one at a time",))
    capabilities.todos = todos
    capabilities.emit(todos)
    return todos


def _view_memory(capabilities: SessionCapabilities, operation: ops.ViewMemory) -> ops.MemoryList | ops.MemoryNote:
    notes, path = capabilities.memory, operation.path
    return notes.list() if path is None else notes.view(path)


def _write_memory(capabilities: SessionCapabilities, operation: ops.WriteMemory) -> ops.MemoryChanged:
    with capabilities.memory_lock:
        return capabilities.memory.write(operation.path, operation.content)


def _run_batch(capabilities: SessionCapabilities, operation: ops.RunBatch) -> ops.BatchResults:
    """Run the calls in parallel, and return their results in order.

    Calls that write run in sequence, so that two edits of a file both apply. Identical calls also run in sequence, so
    that a replay can match their results to them.
    """
    if not operation.calls:
        raise ToolError(f"the batch is empty; give 1 to {ops.MAX_BATCH} calls, each with a tool and its parameters")
    calls, surplus = operation.calls[: ops.MAX_BATCH], operation.calls[ops.MAX_BATCH :]
    lanes: dict[str, list[int]] = {}
    for index, call in enumerate(calls):
        lanes.setdefault("" if _writes(capabilities, call) else repr(call), []).append(index)
    results: dict[int, ToolResult] = {}

    def run_lane(lane: Sequence[int]) -> None:
        for index in lane:
            call = calls[index]
            refusal = "cannot be part of a batch"
            results[index] = _run_nested_call(capabilities, call.name, call.arguments, None, refusal)

    with ThreadPoolExecutor(max_workers=len(lanes), thread_name_prefix="batch") as pool:
        for future in [pool.submit(copy_context().run, run_lane, lane) for lane in lanes.values()]:
            future.result()
    ordered = [results[index] for index in range(len(calls))]
    return ops.BatchResults((*ordered, *map(_build_surplus_result, surplus)))


def _writes(capabilities: SessionCapabilities, call: ops.BatchCall) -> bool:
    nested = capabilities.workspace.find_operation(call.name, call.arguments)
    if nested is None or isinstance(nested, ops.RunSubagent | ops.AskUser):
        return False
    return ops.find_effect(nested) in ("write", "delete", "state")


def _build_surplus_result(call: ops.BatchCall) -> ToolResult:
    error = f"{escape_for_display(call.name)} was not run: a batch has at most {ops.MAX_BATCH} calls. Use another batch"
    return ToolResult.from_error(call.name, error)


def _run_code(capabilities: SessionCapabilities, operation: ops.RunCode) -> ops.CodeOutput:
    def run_call(name: str, arguments: JsonObject, deadline: Deadline) -> ToolResult:
        return _run_nested_call(capabilities, name, arguments, deadline, "cannot be called from code")

    from adapter.workspace.capabilities.python_sandbox import run_code

    tools = {name: tuple(tool.properties) for name, tool in capabilities.workspace.tools.items()}
    return run_code(operation, tools, run_call)


def _run_nested_call(
    capabilities: SessionCapabilities, name: str, arguments: JsonObject, deadline: Deadline | None, refusal: str
) -> ToolResult:
    if isinstance(capabilities.workspace.find_operation(name, arguments), ops.RunBatch | ops.RunCode | ops.Finish):
        return ToolResult.from_error(name, f"{name} {refusal}; call it separately")
    result = capabilities.workspace.run_within(name, arguments, deadline)
    capabilities.emit(NestedCall(name, arguments, result))
    return result


def _run_agent(capabilities: SessionCapabilities, operation: ops.RunSubagent) -> ops.AgentReport:
    runner = _require(capabilities.host.agents, "agents")
    capabilities.emit(operation)
    report = runner.run(operation, capabilities.workspace)
    require_result(runner.run, "Host.agents", report, ops.AgentReport, "an AgentReport")
    capabilities.emit(report)
    return report


def _search(capabilities: SessionCapabilities, operation: ops.SearchWeb) -> ops.SearchHits:
    provider = _require(capabilities.search, "search")
    if operation.limit < 1:
        raise ToolError(f"the number of results must be at least 1, got {operation.limit}")
    notes: tuple[str, ...] = ()
    results: Sequence[ops.SearchHit]
    if isinstance(provider, LocalSearch):
        results, notes = provider.search_with_notes(operation)
    else:
        results = provider.search(operation)
        require_items(provider.search, "Host.search", results, ops.SearchHit, "a sequence of SearchHit")
    if isinstance(provider, HttpSearch) and provider.most is not None and provider.most < operation.limit:
        notes = (f"{operation.limit} results were requested; the service returns at most {provider.most}",)
    hits = [
        hit for hit in results if web_fetch.is_in_domains(hit.url, operation.allowed_domains, operation.blocked_domains)
    ]
    return ops.SearchHits(operation.query, tuple(hits[: operation.limit]), notes=notes)


def _find_library(capabilities: SessionCapabilities, operation: ops.FindLibrary) -> ops.Libraries:
    name = operation.name
    docs = _require(capabilities.docs, "docs")
    matches = docs.find(name)
    require_items(docs.find, "Host.docs", matches, ops.Library, "a sequence of Library")
    libraries = tuple(matches)
    if not libraries:
        raise ToolError(f"no library similar to {name!r} was found; check the name, or read its source")
    return ops.Libraries(name, libraries)


def _read_library_docs(capabilities: SessionCapabilities, operation: ops.ReadLibraryDocs) -> ops.LibraryDocs:
    if not operation.library_id.startswith("/"):
        raise ToolError(
            f"invalid library id {operation.library_id!r}: expected one like /org/project; find it by name first"
        )
    if not 1 <= operation.page <= web_fetch.MAX_DOCS_PAGE:
        raise ToolError(f"page must be between 1 and {web_fetch.MAX_DOCS_PAGE}, got {operation.page}")
    provider = _require(capabilities.docs, "docs")
    text = provider.read(operation.library_id, operation.mode, operation.topic, operation.page)
    require_result(provider.read, "Host.docs", text, str, "a text")
    return ops.LibraryDocs(operation.library_id, text, operation.mode, operation.page)


_WITHOUT_PLAN: dict[type, tuple[str, Callable[[SessionCapabilities, Any], ops.Outcome]]] = {
    ops.Finish: ("end the run", lambda _session, _operation: ops.TaskFinished()),
    ops.SetTodos: ("set the todo list", _set_todos),
    ops.ViewMemory: ("read memory", _view_memory),
    ops.WriteMemory: ("note {path}", _write_memory),
    ops.DeleteMemory: ("forget {path}", lambda session, each: session.memory.delete(each.path)),
    ops.RunCode: ("run Python in the sandbox", _run_code),
    ops.RunSubagent: ("start a sub-agent: {description}", _run_agent),
    ops.SearchWeb: ("search: {query}", _search),
    ops.FindLibrary: ("search for the library {name}", _find_library),
    ops.ReadLibraryDocs: ("read about {library_id}", _read_library_docs),
}
"""For each operation that needs no planning: the template of its summary, and the function that performs it."""
