"""Asking the user: questions are checked first, and what is answered already is not asked again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adapter.core.callbacks import name_of, require_items
from adapter.core.errors import ToolError, UsageError
from adapter.tools.operations import AskUser, Question, UserAnswers
from adapter.workspace.capabilities.host import AsyncQuestions, QuestionAsker

ROLE, EXPECTED = "Host.questions", "a list of texts for each question"


def check(operation: AskUser) -> None:
    """Raises ToolError for questions that nobody could answer."""
    count = len(operation.questions)
    if not 1 <= count <= operation.max_questions:
        raise ToolError(f"got {count} questions; ask 1 to {operation.max_questions} at a time. Nobody was asked")
    keys = [question.key for question in operation.questions]
    for number, question in enumerate(operation.questions, start=1):
        labels = [option.label for option in question.options]
        if not question.text.strip():
            raise ToolError(f"question {number} has no text. Nobody was asked")
        if keys.index(question.key) != number - 1:
            raise ToolError(
                f"questions {keys.index(question.key) + 1} and {number} are both {question.key!r}: "
                "give each a header of its own, for the answers go by it. Nobody was asked"
            )
        if any(not label.strip() for label in labels) or len(set(labels)) < len(labels):
            raise ToolError(f"question {number} has options without a label, or one twice. Nobody was asked")


def ask(questions: QuestionAsker | AsyncQuestions, operation: AskUser) -> UserAnswers:
    """The answers, those given beforehand among them."""
    open_ones = [question for question in operation.questions if question.key not in operation.answers]
    given: Any = questions.ask(open_ones) if open_ones else []
    require_items(questions.ask, ROLE, given, Sequence, EXPECTED)
    for each in given:
        require_items(questions.ask, ROLE, each, str, EXPECTED)
    if len(given) != len(open_ones):
        raise UsageError(f"{name_of(questions.ask)} gave {len(given)} answers to {len(open_ones)} questions")
    answered = dict(operation.answers) | {
        question.key: _checked(question, tuple(answer)) for question, answer in zip(open_ones, given, strict=True)
    }
    return UserAnswers(operation.questions, tuple(answered[question.key] for question in operation.questions))


def _checked(question: Question, answer: tuple[str, ...]) -> tuple[str, ...]:
    """Raises UsageError for an answer that the question does not admit: the host's mistake."""
    labels = {option.label for option in question.options}
    if len(answer) > 1 and not question.multiple:
        raise UsageError(f"{question.key!r} takes one answer, the host gave {len(answer)}")
    if labels and not question.allow_other and not labels.issuperset(answer):
        raise UsageError(f"{question.key!r} takes one of {sorted(labels)}, the host gave {list(answer)}")
    return answer
