"""Define the guardrails by name, and parse the settings that turn them on and off."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from adapter.core.argument_checks import check_types
from adapter.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Guardrail:
    """A guardrail's name, and its effect on an answer."""

    name: str
    recognizes: str
    """Description of the answers that it detects."""
    stops: bool = False
    """True to stop the agent if all retries fail. If False, the answer is then accepted."""
    drops: bool = False
    """True to drop the call or answer if no retry helps or is possible."""


GUARDRAILS = {
    each.name: each
    for each in (
        Guardrail("unreadable_call", "a call that cannot be parsed", stops=True),
        Guardrail("unknown_tool", "a call to a tool that does not exist"),
        Guardrail(
            "wrong_arguments", "arguments that are missing, of a wrong type or not among the choices", drops=True
        ),
        Guardrail("placeholder", "an argument such as “your path”, “<entity_id>” or “/path/to/file”", drops=True),
        Guardrail("own_words", "a guardrail's message, copied into an argument or an answer", drops=True),
        Guardrail("too_many_calls", "more calls in one answer than the limit", drops=True),
        Guardrail("repeated_in_answer", "a needless repetition of an earlier call in the same answer", drops=True),
        Guardrail(
            "guessed_result",
            "a change with invented values to a target that an earlier call in the same answer only begins to read",
            drops=True,
        ),
        Guardrail("undone_in_answer", "a call that undoes an earlier call in the same answer", drops=True),
        Guardrail(
            "unasked_action",
            "an unrequested destructive call, or one that would lose the text of a file",
            drops=True,
        ),
        Guardrail("invented_text", "a short text for a file, with no word in common with the conversation"),
        Guardrail("missing_prerequisite", "a call before its prerequisite according to the steps", stops=True),
        Guardrail("missing_steps", "a final answer before the required steps are done", stops=True),
        Guardrail("after_the_end", "a call after the one that ends the task, according to the steps", stops=True),
        Guardrail("made_already", "a repetition of a recent call that succeeded", drops=True),
        Guardrail("failed_already", "a repetition of a call that failed, unless the error may be temporary"),
        Guardrail("repeated_call", "the same call with the same result, for the fourth time", stops=True, drops=True),
        Guardrail("missing_call", "an answer without the call that `tool_choice` requires"),
        Guardrail("empty_answer", "an answer that is empty, or only reasoning", stops=True),
        Guardrail("invented_result", "a tool's result written by the model, without a call"),
        Guardrail("wrong_markup", "a call to a known tool in text that is not parsed as a call"),
        Guardrail("call_as_answer", "only a call to an unknown tool, written as JSON text", drops=True),
        Guardrail(
            "unmade_change", "an answer in words, without a reason, although the user requested a change to a file"
        ),
        Guardrail(
            "unread_file",
            "an invented number, quotation or placeholder in an answer about a file, without a tool call",
        ),
        Guardrail("announced_call", "an announcement of an action, without the action"),
        Guardrail("refusal", "“I have no access to ...” despite a tool for it; “I can't do that.” without a reason"),
        Guardrail(
            "unused_tool",
            "a short answer in words, without a reason or with an invented number, to a request that a tool fulfills",
        ),
        Guardrail("unfounded_success", "only “Done!”, without a tool call or without the requested information"),
        Guardrail("invented_turn", "a call after an invented user message and an answer to this message"),
    )
}

DEFAULT = frozenset(GUARDRAILS)
"""Names of the guardrails that are active by default: all."""
RETIRED = frozenset({"cycle", "ignored_result", "other_speaker"})
"""Names of removed guardrails. Settings may still contain them; they have no effect."""

WITHIN_ANSWER = frozenset(
    {"too_many_calls", "repeated_in_answer", "guessed_result", "undone_in_answer", "unasked_action"}
)
"""Guardrails that drop further calls of an answer, without a retry."""
LOOPS = ("made_already", "repeated_call")
"""Guardrails that drop a call only if the model repeats it after a retry."""
COPIES = frozenset({"placeholder", "own_words"})
"""Guardrails against copied text."""
UNUSABLE = frozenset({"own_words", "call_as_answer", "empty_answer"})
"""Guardrails against text that never counts as an answer, even at the end of a run."""
BROKEN_CALLS = frozenset({"unreadable_call", "unknown_tool", "wrong_arguments"})
"""Guardrails against calls that cannot be run."""
BY_STEPS = frozenset({"missing_prerequisite", "missing_steps", "after_the_end"})
"""Guardrails that enforce the required steps of a task."""
REQUIRED_CALLS = frozenset({"missing_call"})
"""Guardrails that enforce ``tool_choice: "required"``."""


def parse_guardrails(text: str) -> frozenset[str]:
    """Parse the names of the active guardrails.

    ``text`` begins with ``on`` (all guardrails) or ``off``. Names after it add guardrails, or remove them with ``-``:
    ``on,-refusal``. Raises UsageError for an unknown name.
    """
    check_types("guardrails", names=(text, str))
    names: frozenset[str] = DEFAULT
    for word in filter(None, (word.strip() for word in text.split(","))):
        match word:
            case "on" | "all":
                names = DEFAULT
            case "off":
                names = frozenset()
            case _:
                validate_guardrails([word.removeprefix("-")])
                names = names - {word[1:]} if word.startswith("-") else names | {word}
    return names - RETIRED


def validate_guardrails(names: Collection[str]) -> frozenset[str]:
    """Return the active guardrails among ``names``. Raises UsageError for an unknown guardrail."""
    check_types("Guardrails", on=(names, Iterable))
    known = DEFAULT | RETIRED
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise UsageError(f"unknown guardrail {name!r}; expected on, off, or some of {', '.join(GUARDRAILS)}")
    return frozenset(names) - RETIRED


def validate_retries(retries: int) -> int:
    """Return ``retries`` unchanged. Raises UsageError unless it is an integer of at least 0."""
    if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
        raise UsageError(f"retries must be an integer of at least 0, got {retries!r}")
    return retries


def validate_max_calls(max_calls: int) -> int:
    """Return ``max_calls`` unchanged. Raises UsageError unless it is an integer of at least 1."""
    if not isinstance(max_calls, int) or isinstance(max_calls, bool) or max_calls < 1:
        raise UsageError(f"max_calls must be an integer of at least 1, got {max_calls!r}")
    return max_calls
