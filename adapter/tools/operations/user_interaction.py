"""Asking the person, and ending the run; with their outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_QUESTIONS = 4
"""ProxyAI's document: one to four questions."""


@dataclass(frozen=True, slots=True)
class Option:
    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One question. Without options any text is an answer; ``allow_other``: also with them."""

    text: str
    header: str = ""
    """A short name, the key of its answer; the first twelve characters of the text when empty."""
    options: tuple[Option, ...] = ()
    multiple: bool = False
    allow_other: bool = True

    @property
    def key(self) -> str:
        return self.header or self.text[:12].rstrip()


@dataclass(frozen=True, slots=True)
class AskUser:
    """Ask the user. ``answers`` holds what is answered already, by key: that is not asked."""

    questions: tuple[Question, ...]
    answers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    max_questions: int = MAX_QUESTIONS


@dataclass(frozen=True, slots=True)
class UserAnswers:
    """By question, in order: the labels chosen, or the user's own words."""

    questions: tuple[Question, ...]
    chosen: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finish:
    """End the run."""


@dataclass(frozen=True, slots=True)
class TaskFinished:
    notes: tuple[str, ...] = ()
