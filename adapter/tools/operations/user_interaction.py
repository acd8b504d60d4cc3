"""Operations that ask the user or end the run, and their outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_QUESTIONS = 4
"""Maximum number of questions, from ProxyAI's document."""


@dataclass(frozen=True, slots=True)
class Option:
    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question. Without options any text is accepted; with ``allow_other`` also in addition to them."""

    text: str
    header: str = ""
    """Short name, used as the key of the answer; by default the first twelve characters of the text."""
    options: tuple[Option, ...] = ()
    multiple: bool = False
    allow_other: bool = True

    @property
    def key(self) -> str:
        return self.header or self.text[:12].rstrip()


@dataclass(frozen=True, slots=True)
class AskUser:
    """Ask the user. ``answers``: known answers by key; those questions are skipped."""

    questions: tuple[Question, ...]
    answers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    max_questions: int = MAX_QUESTIONS


@dataclass(frozen=True, slots=True)
class UserAnswers:
    """Answers in the order of the questions: the chosen labels, or the user's own text."""

    questions: tuple[Question, ...]
    chosen: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finish:
    """End the run."""


@dataclass(frozen=True, slots=True)
class TaskFinished:
    notes: tuple[str, ...] = ()
