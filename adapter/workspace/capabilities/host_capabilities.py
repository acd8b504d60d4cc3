"""Define the capabilities that a host program supplies: questions, an editor, sub-agents, search and documentation.

Each capability is a small protocol. If a capability is absent (None), its tools are left out of the session and the
prompt, and a call of such a tool fails with the reason and an alternative. ``"embedded"`` is the built-in
implementation, which needs no service.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from adapter.core.argument_checks import NONE, PATH, check_types
from adapter.core.callback_checks import require_sync
from adapter.core.errors import UsageError
from adapter.core.events import JsonObject, ToolResult
from adapter.tools import operations as ops
from adapter.tools.operations.capabilities import Capability, is_installed

Session = TypeVar("Session", contravariant=True)
"""Type of the workspace that starts a sub-agent."""

Embedded: TypeAlias = Literal["embedded"]


class QuestionAsker(Protocol):
    """Asks the user questions."""

    def ask(self, questions: Sequence[ops.Question]) -> Sequence[Sequence[str]]:
        """Return the chosen labels or free text for each question. Raises ToolError if the user does not answer."""
        ...


class AsyncQuestionAsker(Protocol):
    """Async version of `QuestionAsker`, for an `AsyncAgent`."""

    async def ask(self, questions: Sequence[ops.Question]) -> Sequence[Sequence[str]]: ...


@dataclass(frozen=True, slots=True)
class EditorRange:
    """A range in a file. Lines and columns are 1-based, and the character at ``end_column`` is not included."""

    path: str
    start_line: int
    start_column: int
    end_line: int
    end_column: int


class Editor(Protocol):
    """The user's editor or an in-memory editor. Paths are relative to the workspace root.

    The workspace checks every path and line before a call, and makes all file changes itself.
    """

    def state(self) -> ops.EditorState: ...
    def open(self, path: str, line: int | None = None) -> None: ...
    def goto(self, line: int, column: int = 1) -> None: ...
    def selection(self) -> EditorRange | None:
        """Return the selection, or None if nothing is selected."""
        ...

    def changed(self, path: str, line: int, column: int) -> None:
        """Handle a file change on disk: open the file, move the cursor to the position and clear the selection."""
        ...


class AgentRunner(Protocol[Session]):
    """Runs sub-agents. Several calls of `run` may be active at the same time."""

    @property
    def kinds(self) -> Mapping[str, str]:
        """The available kinds of sub-agents, each with a description of one sentence."""
        ...

    def run(self, task: ops.RunSubagent, workspace: Session) -> ops.AgentReport:
        """Let a sub-agent work on ``task`` for the session of ``workspace``. Raises ToolError on failure."""
        ...


class SearchProvider(Protocol):
    def search(self, request: ops.SearchWeb) -> Sequence[ops.SearchHit]:
        """Return the search hits, best first. Raises ToolError if the search fails."""
        ...


class DocsProvider(Protocol):
    def find(self, name: str) -> Sequence[ops.Library]:
        """Return the matching libraries, best first. Raises ToolError if the search fails."""
        ...

    def read(self, library_id: str, mode: ops.DocsMode, topic: str | None, page: int) -> str:
        """Return a page of documentation. Raises ToolError if the page does not exist."""
        ...


@dataclass(frozen=True, slots=True)
class WebAccess:
    """Limits for fetching pages."""

    allow_loopback: bool = False
    """True to permit this machine's own addresses, with any port: for tests and for the user's own servers."""
    upgrade: bool = True
    """True to replace ``http:`` with ``https:`` in addresses."""
    max_bytes: int = 5_000_000
    max_redirects: int = 5


@dataclass(frozen=True, slots=True)
class NestedCall:
    """A call made by a batch or by code, and its result."""

    name: str
    arguments: JsonObject
    result: ToolResult


HostEvent: TypeAlias = "ops.TodoList | ops.EditorState | ops.Skill | ops.RunSubagent | ops.AgentReport | NestedCall"
"""An event that a host can show to the user."""

METHODS: Mapping[str, tuple[str, ...]] = {
    "questions": ("ask",),
    "editor": ("state", "open", "goto", "selection", "changed"),
    "agents": ("run",),
    "search": ("search",),
    "docs": ("find", "read"),
}
"""Names of the methods that sessions call on each capability of a `Host`."""


@dataclass(frozen=True, slots=True)
class Host:
    """The capabilities that a program gives a session: questions, editor, search, sub-agents and others.

    The defaults work without a user and without configuration. For an `AsyncAgent`, the methods of a capability may be
    async. If a method returns a value of the wrong type, or if ``events`` raises an exception, the tool call that
    caused it raises UsageError.
    """

    questions: QuestionAsker | AsyncQuestionAsker | None = None
    editor: Editor | Embedded | None = "embedded"
    agents: AgentRunner[Any] | None = None
    search: SearchProvider | Embedded | None = None
    """The web search service; ``"embedded"`` searches only the documents in the workspace."""
    docs: DocsProvider | Embedded | None = "embedded"
    web: WebAccess | None = WebAccess()
    events: Callable[[HostEvent], Awaitable[None] | None] | None = None
    memory: bool = True
    state: str | None = None
    """Directory for data that outlives a session (notes), by default ``toolcall-adapter`` in ``$XDG_STATE_HOME`` or
    ``~/.local/state``.
    """
    skill_folders: tuple[str, ...] = ()
    """The user's skill directories, in addition to the directories in the workspace."""
    media: frozenset[ops.MediaKind] = frozenset()
    """Media types accepted by the model. Files of these types are passed in the results' ``data``."""

    def __post_init__(self) -> None:
        """Raise UsageError if a capability is a string, unless it is "embedded" and has a built-in implementation."""
        for name in ("questions", "editor", "agents", "search", "docs", "web"):
            words = ("embedded",) if name in ("editor", "search", "docs") else ()
            if isinstance(value := getattr(self, name), str) and value not in words:
                expected = "".join(f'"{word}", ' for word in words) + "None, or an object that implements it"
                raise UsageError(f"invalid {name} {value!r}; expected {expected}")
        check_types("Host", events=(self.events, Callable, NONE), state=(self.state, *PATH, NONE))
        check_types("Host", skill_folders=(self.skill_folders, Iterable), media=(self.media, Iterable))
        for folder in self.skill_folders:
            check_types("Host", skill_folders=(folder, *PATH))

    def require_sync(self) -> None:
        """Raise UsageError if a method is missing, or is async, because a `Workspace` cannot await it."""
        for name, methods in METHODS.items():
            capability = getattr(self, name)
            if capability is not None and not isinstance(capability, str):
                for method in methods:
                    require_sync(getattr(capability, method, None), f"Host.{name}.{method}")
        if self.events is not None:
            require_sync(self.events, "Host.events")

    def capabilities(self) -> frozenset[Capability]:
        """Return the available capabilities. The workspace adds "skills" if it finds any."""
        optional: tuple[Capability, ...] = ("questions", "editor", "agents", "search", "docs", "web")
        always: tuple[Capability, ...] = ("code", "memory") if self.memory else ("code",)
        present = [name for name in optional if getattr(self, name) is not None]
        return frozenset(filter(is_installed, (*present, *always)))
