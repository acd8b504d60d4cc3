"""Validate the model's questions, and ask the user the questions that are not answered yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from adapter.core.callback_checks import get_name, require_items
from adapter.core.errors import ToolError, UsageError
from adapter.tools.operations import AskUser, Question, UserAnswers
from adapter.workspace.capabilities.host_capabilities import AsyncQuestionAsker, QuestionAsker

ROLE, EXPECTED = "Host.questions", "a list of texts for each question"


def check_questions(operation: AskUser) -> None:
    """Raise ToolError for questions that the user could not answer."""
    for problem in _find_problems(operation):
        raise ToolError(f"{problem}. The user was not asked")


def _find_problems(operation: AskUser) -> Iterator[str]:
    count = len(operation.questions)
    if not 1 <= count <= operation.max_questions:
        yield f"got {count} questions; ask 1 to {operation.max_questions} at a time"
    first: dict[str, int] = {}
    for number, question in enumerate(operation.questions, start=1):
        labels = [option.label for option in question.options]
        if not question.text.strip():
            yield f"question {number} has no text; give it one"
        if (same := first.setdefault(question.key, number)) != number:
            both = f"questions {same} and {number} have the same header, {question.key!r}"
            yield f"{both}; give each its own, because it identifies the answer"
        if not all(map(str.strip, labels)):
            yield f"question {number} has an option without a label; give it one"
        if len(set(labels)) < len(labels):
            twice = next(label for label in labels if labels.count(label) > 1)
            yield f"question {number} has two options with the label {twice!r}; give each its own"


def ask_questions(questions: QuestionAsker | AsyncQuestionAsker, operation: AskUser) -> UserAnswers:
    """Return the answers to all questions, including the answers supplied by the model."""
    unanswered = [question for question in operation.questions if question.key not in operation.answers]
    answers: Any = questions.ask(unanswered) if unanswered else []
    require_items(questions.ask, ROLE, answers, Sequence, EXPECTED)
    for answer in answers:
        require_items(questions.ask, ROLE, answer, str, EXPECTED)
    if len(answers) != len(unanswered):
        raise UsageError(f"{get_name(questions.ask)} returned {len(answers)} answers to {len(unanswered)} questions")
    by_key = dict(operation.answers) | {
        question.key: _check_answer(question, tuple(answer))
        for question, answer in zip(unanswered, answers, strict=True)
    }
    return UserAnswers(operation.questions, tuple(by_key[question.key] for question in operation.questions))


def _check_answer(question: Question, answer: tuple[str, ...]) -> tuple[str, ...]:
    """Return the answer. Raises UsageError if the host returned an answer that the question does not allow."""
    labels = {option.label for option in question.options}
    if len(answer) > 1 and not question.multiple:
        raise UsageError(f"question {question.key!r} takes one answer, but the host returned {len(answer)}")
    if labels and not question.allow_other and not labels.issuperset(answer):
        expected = f"question {question.key!r} takes one of {sorted(labels)}"
        raise UsageError(f"{expected}, but the host returned {list(answer)}")
    return answer
