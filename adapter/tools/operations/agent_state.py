"""What an agent keeps for itself: todo list, memory, skills; with their outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

TodoStatus: TypeAlias = Literal["pending", "in_progress", "completed", "cancelled"]
TodoPriority: TypeAlias = Literal["high", "medium", "low"]
Delivery: TypeAlias = Literal["result", "message"]
"""How a skill reaches the model: as the tool's result, or as a new user message."""


@dataclass(frozen=True, slots=True)
class Todo:
    """``active_form`` is what to show while it is in progress ("Running the tests")."""

    content: str
    status: TodoStatus = "pending"
    priority: TodoPriority | None = None
    active_form: str = ""


@dataclass(frozen=True, slots=True)
class SetTodos:
    """Put these in place of the whole list."""

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
    """One note, or with None the list of all."""

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
    """Names and sizes in bytes, sorted by name."""

    entries: tuple[tuple[str, int], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryChanged:
    """``size`` in bytes; None when the note was deleted."""

    path: str
    size: int | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadSkill:
    name: str
    delivery: Delivery = "result"


@dataclass(frozen=True, slots=True)
class Skill:
    """Instructions from a ``SKILL.md``. ``folder`` holds the files it may speak of."""

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
        """What the model is to follow."""
        return f"# {self.skill.title}\n\n{self.skill.body.strip()}\n\n(the skill's files are in {self.skill.folder})"


def todo_status(written: str) -> TodoStatus:
    """The status that ``written`` spells in any case, with blanks or hyphens. Raises ValueError that names all."""
    plain = "_".join(written.replace("-", " ").replace("_", " ").lower().split())
    plain = {"todo": "pending", "done": "completed", "complete": "completed", "canceled": "cancelled"}.get(plain, plain)
    plain = "in_progress" if plain == "inprogress" else plain
    for status in get_args(TodoStatus):
        if plain == status:
            return status  # type: ignore[no-any-return]
    raise ValueError(f"{written!r} is no status; expected one of {', '.join(get_args(TodoStatus))}")
