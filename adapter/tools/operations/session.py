"""Operations on the session: questions to the user, the todo list, notes, skills and the end of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from adapter.tools.operations.outcome import Outcome

MAX_QUESTIONS = 4
"""Maximum number of questions in one request, from ProxyAI's document."""


@dataclass(frozen=True, slots=True)
class Option:
    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the user. Without options, any text is accepted. ``allow_other``: whether text is accepted in
    addition to the options."""

    text: str
    header: str = ""
    """A short name, which is the answer's key. The default is the first twelve characters of the question."""
    options: tuple[Option, ...] = ()
    multiple: bool = False
    allow_other: bool = True

    @property
    def key(self) -> str:
        return self.header or self.text[:12].rstrip()


@dataclass(frozen=True, slots=True)
class AskUser:
    """Ask the user. ``answers`` maps keys to known answers, whose questions are skipped."""

    questions: tuple[Question, ...]
    answers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    max_questions: int = MAX_QUESTIONS


@dataclass(frozen=True, slots=True)
class UserAnswers(Outcome):
    """Answers in the order of the questions: the chosen labels, or text entered by the user."""

    questions: tuple[Question, ...]
    chosen: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Finish:
    """End the run."""


@dataclass(frozen=True, slots=True)
class TaskFinished(Outcome):
    pass


TodoStatus: TypeAlias = Literal["pending", "in_progress", "completed", "cancelled"]
TodoPriority: TypeAlias = Literal["high", "medium", "low"]


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
class TodoList(Outcome):
    todos: tuple[Todo, ...] = ()
    title: str = ""

    def count(self, status: TodoStatus) -> int:
        return sum(todo.status == status for todo in self.todos)


def parse_todo_status(text: str) -> TodoStatus:
    """Parse a status, ignoring letter case and separators. Raises ValueError for other text."""
    spelling = "".join(letter for letter in text.lower() if letter.isalnum())
    if spelling not in _STATUSES:
        raise ValueError(f"{text!r} is not a status; expected one of {', '.join(get_args(TodoStatus))}")
    return _STATUSES[spelling]


_STATUSES: dict[str, TodoStatus] = {
    **{status.replace("_", ""): status for status in get_args(TodoStatus)},
    "todo": "pending",
    "done": "completed",
    "complete": "completed",
    "canceled": "cancelled",
}


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
class MemoryNote(Outcome):
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class MemoryList(Outcome):
    """Names and sizes of the notes, sorted by name. Sizes are in bytes."""

    entries: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class MemoryChanged(Outcome):
    """The result of writing or deleting a note. ``size``: the note's size in bytes; None if it was deleted."""

    path: str
    size: int | None


Delivery: TypeAlias = Literal["result", "message"]
"""The way in which the model gets a skill: as the tool's result, or as a new user message."""


@dataclass(frozen=True, slots=True)
class LoadSkill:
    name: str
    delivery: Delivery = "result"


@dataclass(frozen=True, slots=True)
class Skill:
    """Instructions from a ``SKILL.md``. ``directory``: path of the directory with the files that they mention."""

    name: str
    title: str
    description: str
    body: str
    directory: str


@dataclass(frozen=True, slots=True)
class SkillLoaded(Outcome):
    skill: Skill
    delivery: Delivery

    @property
    def text(self) -> str:
        """The instructions as text for the model."""
        return f"# {self.skill.title}\n\n{self.skill.body.strip()}\n\n(the skill's files are in {self.skill.directory})"
