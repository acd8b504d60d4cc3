"""A dialect with one tool for each operation that needs a host, to test them independently of real dialects."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, ClassVar

from pydantic import Field

from adapter.dialects.blade import DIALECT as BLADE
from adapter.dialects.dialect import Dialect
from adapter.dialects.tool_class import Rendered, ToolClass, ToolMetadata
from adapter.tools.operations import (
    AskUser,
    BatchCall,
    BatchResults,
    CodeOutput,
    DeleteMemory,
    Delivery,
    DocsMode,
    FetchPage,
    FindLibrary,
    Finish,
    LoadSkill,
    Operation,
    Option,
    Outcome,
    PageFormat,
    Question,
    ReadLibraryDocs,
    RunBatch,
    RunCode,
    RunSubagent,
    SearchWeb,
    SetTodos,
    SkillLoaded,
    Todo,
    ViewMemory,
    WriteMemory,
    parse_todo_status,
)


class Shown(ToolClass):
    """Render an outcome as JSON."""

    def render(self, outcome: Outcome) -> Rendered:
        fields = asdict(outcome)
        return json.dumps(fields, default=str), fields


class Ask(Shown):
    """Ask the user."""

    naming: ClassVar[ToolMetadata] = ToolMetadata("ask", effect="state", needs="questions")
    questions: list[dict[str, Any]]
    answers: dict[str, str] = Field(default_factory=dict)

    def to_operation(self) -> Operation:
        return AskUser(
            tuple(
                Question(
                    one.get("question", ""),
                    one.get("header", ""),
                    tuple(Option(label) for label in one.get("options", ())),
                    one.get("multiple", False),
                    one.get("other", True),
                )
                for one in self.questions
            ),
            {key: (value,) for key, value in self.answers.items()},
        )


class Todos(Shown):
    """Set the todo list."""

    naming: ClassVar[ToolMetadata] = ToolMetadata("todos", effect="state")
    todos: list[dict[str, str]]

    def to_operation(self) -> Operation:
        return SetTodos(tuple(Todo(one["content"], parse_todo_status(one["status"])) for one in self.todos))


class Memory(Shown):
    """Keep notes."""

    naming: ClassVar[ToolMetadata] = ToolMetadata("memory", effect="state", needs="memory")
    command: str
    path: str | None = None
    content: str = ""

    def to_operation(self) -> Operation:
        match self.command:
            case "write":
                return WriteMemory(self.path or "", self.content)
            case "delete":
                return DeleteMemory(self.path or "")
            case _:
                return ViewMemory(self.path)


class Skill(ToolClass):
    """Load a skill. It has instructions."""

    naming: ClassVar[ToolMetadata] = ToolMetadata("skill", effect="skill", needs="skills")
    name: str
    delivery: Delivery = "result"

    def to_operation(self) -> Operation:
        return LoadSkill(self.name, self.delivery)

    def render(self, outcome: Outcome) -> Rendered:
        assert isinstance(outcome, SkillLoaded)
        return outcome.text if self.delivery == "result" else f"queued {outcome.skill.title}", None


class Exit(Shown):
    """End the run."""

    naming: ClassVar[ToolMetadata] = ToolMetadata("exit", Finish)


class Batch(ToolClass):
    """Make several calls."""

    naming: ClassVar[ToolMetadata] = ToolMetadata("batch", effect="state")
    tool_calls: list[dict[str, Any]]

    def to_operation(self) -> Operation:
        return RunBatch(tuple(BatchCall(one["tool"], one["parameters"]) for one in self.tool_calls))

    def render(self, outcome: Outcome) -> Rendered:
        assert isinstance(outcome, BatchResults)
        return "\n".join(result.content for result in outcome.results), [result.ok for result in outcome.results]


class Code(ToolClass):
    """Run Python."""

    naming: ClassVar[ToolMetadata] = ToolMetadata("code_execution", RunCode, needs="code")
    code: str
    timeout: float = 30.0

    def render(self, outcome: Outcome) -> Rendered:
        assert isinstance(outcome, CodeOutput)
        return outcome.output + (f"return: {outcome.value}" if outcome.value else ""), None


class Task(Shown):
    """Start a sub-agent. It works alone."""

    naming: ClassVar[ToolMetadata] = ToolMetadata("task", effect="state", needs="agents")
    prompt: str
    kind: str = "research"
    model: str | None = None
    cwd: str | None = None

    def to_operation(self) -> Operation:
        return RunSubagent(self.prompt, self.kind, "a task", self.model, self.cwd)


class Fetch(Shown):
    """Fetch a page."""

    naming: ClassVar[ToolMetadata] = ToolMetadata("fetch", FetchPage, needs="web")
    url: str
    format: PageFormat = "markdown"
    timeout: float = 30.0


class Search(Shown):
    """Search."""

    naming: ClassVar[ToolMetadata] = ToolMetadata("search", needs="search")
    query: str
    limit: int = 8
    allowed: list[str] = Field(default_factory=list)
    blocked: list[str] = Field(default_factory=list)

    def to_operation(self) -> Operation:
        return SearchWeb(self.query, self.limit, tuple(self.allowed), tuple(self.blocked))


class Resolve(Shown):
    """Find a library."""

    naming: ClassVar[ToolMetadata] = ToolMetadata("resolve", FindLibrary, needs="docs")
    name: str


class Docs(Shown):
    """Read about a library."""

    naming: ClassVar[ToolMetadata] = ToolMetadata("docs", ReadLibraryDocs, needs="docs")
    id: str
    mode: DocsMode = "code"
    topic: str | None = None
    page: int = 1


OWN = (Ask, Todos, Memory, Skill, Exit, Batch, Code, Task, Fetch, Search, Resolve, Docs)
HOSTED = Dialect("hosted", "Hosted", (*BLADE.classes, *OWN))
