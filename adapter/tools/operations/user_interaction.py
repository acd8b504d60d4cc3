"""Operations that ask the user or end the run, and their outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
