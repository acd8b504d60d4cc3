"""Operations on the agent's own state (todo list, memory, skills), and the outcomes of these operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

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
