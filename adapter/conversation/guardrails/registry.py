"""The guardrails by name: what each recognises, and whether it is on when nobody says anything."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from adapter.core.arguments import check_types
from adapter.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Guardrail:
    """``stops``: where asking again did not help a loop should end; without it the answer then counts as it is."""

    name: str
    recognises: str
    is_default: bool = True
    stops: bool = False


GUARDRAILS = {
    each.name: each
    for each in (
        Guardrail("unreadable_call", "a call that cannot be read", stops=True),
        Guardrail("unknown_tool", "a call of a tool that does not exist"),
        Guardrail("wrong_arguments", "arguments that are missing, of a wrong type or not among the choices"),
        Guardrail("missing_prerequisite", "a call that needs another before it, by the steps", stops=True),
        Guardrail("missing_steps", "an end before the required steps are done", stops=True),
        Guardrail("after_the_end", "a call after one that ends the task, by the steps", stops=True),
        Guardrail("made_already", "the very call that was made right before, and succeeded"),
        Guardrail("repeated_call", "the same call with the same result, for the fourth time", stops=True),
        Guardrail("cycle", "two to four calls in turn with the same results, for the third time", stops=True),
        Guardrail("empty_answer", "nothing, or nothing but reasoning", stops=True),
        Guardrail("invented_result", "a tool's result that the model wrote itself, without a call"),
        Guardrail("wrong_markup", "a call of a known tool in the midst of text, where none is read"),
        Guardrail("announced_call", "an answer that ends by saying what comes next, which does not come"),
        Guardrail("refusal", "“I have no access to ...” where a tool gives it; “I can't do that.”, and no reason"),
        Guardrail(
            "unfounded_success",
            "“Done!” and nothing more, where no tool was called, or something was to be told",
        ),
        Guardrail(
            "invented_turn", "a call after words of the user, and an answer to them, that the model wrote itself"
        ),
        Guardrail("ignored_result", "a success reported after the last tool failed", is_default=False),
        Guardrail("other_speaker", "the user's next words, written by the model", is_default=False),
    )
}

DEFAULT = frozenset(each.name for each in GUARDRAILS.values() if each.is_default)

BROKEN_CALLS = frozenset({"unreadable_call", "unknown_tool", "wrong_arguments"})
BY_STEPS = frozenset({"missing_prerequisite", "missing_steps", "after_the_end"})


def parse_guardrails(text: str) -> frozenset[str]:
    """The guardrails that ``text`` names: ``on`` (the default ones), ``off`` or ``all``, then names, with ``-`` those
    to leave out: ``on,-refusal,other_speaker``. Names alone add to the default ones.

    Raises UsageError for an unknown name.
    """
    check_types("guardrails", names=(text, str))
    names: frozenset[str] = DEFAULT
    for word in filter(None, (word.strip() for word in text.split(","))):
        match word:
            case "on":
                names = DEFAULT
            case "off":
                names = frozenset()
            case "all":
                names = frozenset(GUARDRAILS)
            case _:
                validate_guardrails([word.removeprefix("-")])
                names = names - {word[1:]} if word.startswith("-") else names | {word}
    return names


def validate_guardrails(names: Collection[str]) -> frozenset[str]:
    """``names``, if all are guardrails. Raises UsageError for another."""
    check_types("Guardrails", on=(names, Iterable))
    for name in names:
        if not isinstance(name, str) or name not in GUARDRAILS:
            raise UsageError(f"unknown guardrail {name!r}; expected on, off, all, or some of {', '.join(GUARDRAILS)}")
    return frozenset(names)


def validate_retries(retries: int) -> int:
    """``retries``, if an answer can be asked again so often. Raises UsageError otherwise."""
    if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
        raise UsageError(f"retries cannot be {retries!r}; give a number from 0 on")
    return retries
