"""What a program around the agent can give it: a person to ask, an editor, a model for sub-agents, knowledge.

Each capability is a small protocol. One that is absent (None) is not
advertised: its tools are left out of the session, and so of the prompt, and a
call to one answers why and what to do instead. ``"embedded"`` is the
implementation that comes with the package and needs nobody.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from adapter.core.arguments import NONE, PATH, check_types
from adapter.core.callbacks import require_sync
from adapter.core.errors import UsageError
from adapter.core.events import JsonObject, ToolResult
from adapter.tools.operations import (
    AgentReport,
    DocsMode,
    EditorState,
    Library,
    MediaKind,
    Question,
    RunSubagent,
    SearchHit,
    SearchWeb,
    Skill,
    TodoList,
)
from adapter.tools.operations.capabilities import Capability, is_installed

Session = TypeVar("Session", contravariant=True)
"""The workspace whose call started a sub-agent, as its runner knows it."""

Embedded: TypeAlias = Literal["embedded"]


class QuestionAsker(Protocol):
    """Somebody who answers."""

    def ask(self, questions: Sequence[Question]) -> Sequence[Sequence[str]]:
        """By question the labels chosen, or own words. Raises ToolError when the user does not answer."""
        ...


class AsyncQuestions(Protocol):
    """`QuestionAsker` for an `AsyncAgent`."""

    async def ask(self, questions: Sequence[Question]) -> Sequence[Sequence[str]]: ...


@dataclass(frozen=True, slots=True)
class EditorRange:
    """A piece of a file, 1-based: from before ``start_column`` to before ``end_column``."""

    path: str
    start_line: int
    start_column: int
    end_line: int
    end_column: int


class Editor(Protocol):
    """The editor of the user, or one in memory. Paths are relative to the workspace root.

    The workspace checks every path and line before it calls, and makes all changes of files itself.
    """

    def state(self) -> EditorState: ...
    def open(self, path: str, line: int | None = None) -> None: ...
    def goto(self, line: int, column: int = 1) -> None: ...
    def selection(self) -> EditorRange | None:
        """None when nothing is selected."""
        ...

    def changed(self, path: str, line: int, column: int) -> None:
        """The file was changed on disk; the cursor goes behind the change, nothing is selected."""
        ...


class AgentRunner(Protocol[Session]):
    """Runs sub-agents; several may run at once."""

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kinds there are, each with one sentence."""
        ...

    def run(self, task: RunSubagent, workspace: Session) -> AgentReport:
        """Work on ``task`` for the session that ``workspace`` is. Raises ToolError when it cannot."""
        ...


class SearchProvider(Protocol):
    def search(self, wanted: SearchWeb) -> Sequence[SearchHit]:
        """Best first. Raises ToolError when the search fails."""
        ...


class DocsProvider(Protocol):
    def find(self, name: str) -> Sequence[Library]:
        """Best first. Raises ToolError when the search fails."""
        ...

    def read(self, library_id: str, mode: DocsMode, topic: str | None, page: int) -> str:
        """One page of the documentation. Raises ToolError when there is none."""
        ...


@dataclass(frozen=True, slots=True)
class WebAccess:
    """What fetching may do. ``allow_loopback`` lifts the ban on this machine's own addresses, and on
    other ports than those of the web; it is for tests and for servers that the user runs."""

    allow_loopback: bool = False
    upgrade: bool = True
    """Fetch ``http:`` addresses by ``https:``."""
    max_bytes: int = 5_000_000
    max_redirects: int = 5


@dataclass(frozen=True, slots=True)
class NestedCall:
    """A call inside a batch or code, and what it gave."""

    name: str
    arguments: JsonObject
    result: ToolResult


HostEvent: TypeAlias = "TodoList | EditorState | Skill | RunSubagent | AgentReport | NestedCall"
"""What a display may want to show."""


METHODS: Mapping[str, tuple[str, ...]] = {
    "questions": ("ask",),
    "editor": ("state", "open", "goto", "selection", "changed"),
    "agents": ("run",),
    "search": ("search",),
    "docs": ("find", "read"),
}
"""What is called of each capability of a `Host`."""


@dataclass(frozen=True, slots=True)
class Host:
    """The capabilities that a program gives a session: questions, editor, search, sub-agents and others. As it stands
    it works without a person and without a configuration.

    ``state``: the folder that holds what outlives a session (memory); by default
    ``toolcall-adapter`` in ``$XDG_STATE_HOME`` or ``~/.local/state``.
    ``skill_folders``: folders of the user's, besides those in the workspace.
    ``search``: what web search asks; ``"embedded"`` has no web, its tool says that it searches the workspace.
    ``media``: what the model takes beside text; the files themselves then stand in the results' ``data``.
    Methods of a capability may be async for an `AsyncAgent`. One that returns another type than documented raises
    UsageError from the call that needed it, and so does an exception in ``events``.
    """

    questions: QuestionAsker | AsyncQuestions | None = None
    editor: Editor | Embedded | None = "embedded"
    agents: AgentRunner[Any] | None = None
    search: SearchProvider | Embedded | None = None
    docs: DocsProvider | Embedded | None = "embedded"
    web: WebAccess | None = WebAccess()
    events: Callable[[HostEvent], Awaitable[None] | None] | None = None
    memory: bool = True
    state: str | None = None
    skill_folders: tuple[str, ...] = ()
    media: frozenset[MediaKind] = frozenset()

    def __post_init__(self) -> None:
        """Raises UsageError for a word where a capability belongs, but "embedded" where there is one."""
        for name in ("questions", "editor", "agents", "search", "docs", "web"):
            words = ("embedded",) if name in ("editor", "search", "docs") else ()
            if isinstance(given := getattr(self, name), str) and given not in words:
                expected = "".join(f'"{word}", ' for word in words) + "None, or an object that can do it"
                raise UsageError(f"{name} cannot be {given!r}; give {expected}")

        check_types(
            "Host",
            events=(self.events, Callable, NONE),
            state=(self.state, *PATH, NONE),
            skill_folders=(self.skill_folders, Iterable),
            media=(self.media, Iterable),
        )
        for folder in self.skill_folders:
            check_types("Host", skill_folders=(folder, *PATH))

    def require_sync(self) -> None:
        """Raises UsageError for what is async, or lacks a method: a `Workspace` awaits nothing."""
        for name, methods in METHODS.items():
            capability = getattr(self, name)
            if capability is not None and not isinstance(capability, str):
                for method in methods:
                    require_sync(getattr(capability, method, None), f"Host.{name}.{method}")
        if self.events is not None:
            require_sync(self.events, "Host.events")

    def capabilities(self) -> frozenset[Capability]:
        """What tools may count on; skills come to it when the workspace or a folder has any."""
        found: dict[Capability, bool] = {
            "questions": self.questions is not None,
            "editor": self.editor is not None,
            "agents": self.agents is not None,
            "search": self.search is not None,
            "docs": self.docs is not None,
            "web": self.web is not None,
            "code": True,
            "memory": self.memory,
        }
        return frozenset(name for name, is_there in found.items() if is_there and is_installed(name))
