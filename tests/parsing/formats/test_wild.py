"""Texts from public issue trackers, and the turns that a careful reader would expect.

A file in fixtures/cases/wild holds the cases of one family::

    [[case]]
    name = "doubled-channel-marker"
    thread = "owner/repo#n"           the issue or pull request that shows this shape of output, or "owner/repo: FILE",
                                      the test
    format = "harmony"                the expected format; each case is also parsed without it
    tools = ["bash(command, timeout?: integer)"]
    text = '''...'''
    calls = [["bash", '{"command": "ls"}']]
    content = "..."                   ignoring whitespace; default ""
    reasoning = "..."
    invalid = 1                       number of calls that are errors
    finish_reason, generation_prompt  as in the other cases
    either = true                     an error is also correct
    either_text = true                plain text is also correct
    any_content, any_reasoning, invalid_ok, loose_space = true
                                      the thread leaves these open
    unmet_told, unmet_detected = "..."
                                      why the case still fails with its format, or without it

Texts are shortened to the shape of the output; values and prose are our own.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from adapter.core.events import Json, JsonObject
from adapter.core.turn import Turn
from tests.each import each
from tests.parsing.checks import read

FOLDER = Path(__file__).parents[3] / "fixtures" / "cases" / "wild"
CASES: list[dict[str, Any]] = [
    {"family": path.stem, **case}
    for path in sorted(FOLDER.glob("*.toml"))
    for case in tomllib.loads(path.read_text(encoding="utf-8"))["case"]
]
KEYS = {
    *("family", "name", "thread", "format", "tools", "text", "calls", "content", "reasoning", "invalid"),
    *("finish_reason", "generation_prompt", "either", "either_text", "any_content", "any_reasoning", "invalid_ok"),
    *("loose_space", "unmet_told", "unmet_detected"),
}
_SIGNATURE = re.compile(r"([\w.-]+)\((.*)\)")
_PARAMETER = re.compile(r"([\w-]+)(\??)(?:: (\w+)(\[\])?)?")


@pytest.mark.parametrize("family", sorted({case["family"] for case in CASES}))
def test_wild_case_gives_expected_turn(family):
    """The calls, content and reasoning of a text from the wild, for every split.

    A case marked as unmet must still fail.
    """
    cases = [case for case in CASES if case["family"] == family]
    each({f"{case['name']}, {way}": (case, way) for case in cases for way in ways(case)}, is_read_as_meant)


def ways(case: dict[str, Any]) -> list[str]:
    return ["detected", *(["expected"] if "format" in case else [])]


def is_read_as_meant(case_and_way: tuple[dict[str, Any], str]) -> None:
    case, way = case_and_way
    turn = turn_of(case, case["format"] if way == "expected" else None)
    wrong = fault(case, turn)
    if unmet := case.get("unmet_told" if way == "expected" else "unmet_detected"):
        assert wrong, f"the case passes now; remove its mark: {unmet}"
    else:
        assert not wrong, f"{wrong}: {shown(turn)}"


def test_wild_cases_are_complete():
    """Each case has a name of its own, a thread, and no unknown keys."""
    assert all(set(case) <= KEYS for case in CASES)
    assert len({(case["family"], case["name"]) for case in CASES}) == len(CASES) >= 1973
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+((#|/discussions/)\d+|: [\w./-]+)", case["thread"]) for case in CASES)


def turn_of(case: dict[str, Any], format: str | None) -> Turn:
    """Parse the text in every split."""
    return Turn.from_events(
        read(
            case["text"],
            format=format,
            tools=[definition_of(signature) for signature in case["tools"]],
            finish_reason=case.get("finish_reason", "stop"),
            generation_prompt=case.get("generation_prompt", ""),
            text_may_follow=False,
        )
    )


def fault(case: dict[str, Any], turn: Turn) -> str:
    """Return the difference between the turn and the expectation; "" if there is none."""
    if case.get("either") and turn.invalid and not turn.calls:
        return ""
    if case.get("either_text") and not turn.calls and _words(turn.content) == _words(case["text"]):
        return ""
    loose = case.get("loose_space", False)
    found = [(call.name, _stripped(call.arguments) if loose else call.arguments) for call in turn.calls]
    expected: list[tuple[str, JsonObject]] = [(name, _object(text)) for name, text in case.get("calls", ())]
    if loose:
        expected = [(name, _stripped(arguments)) for name, arguments in expected]
    if found != expected or any(_types(a[1]) != _types(b[1]) for a, b in zip(found, expected, strict=True)):
        return "calls"
    if not case.get("invalid_ok") and len(turn.invalid) != case.get("invalid", 0):
        return "invalid"
    if not case.get("any_content") and _words(turn.content) != _words(case.get("content", "")):
        return "content"
    if not case.get("any_reasoning") and _words(turn.reasoning) != _words(case.get("reasoning", "")):
        return "reasoning"
    return ""


def shown(turn: Turn) -> str:
    calls = [(call.name, call.arguments, call.fixes) for call in turn.calls]
    return f"{calls=} {turn.content=} {turn.reasoning=} invalid={[each.error for each in turn.invalid]}"


def definition_of(signature: str) -> JsonObject:
    """Parse ``bash(command, timeout?: integer)`` to a tool definition."""
    found = _SIGNATURE.fullmatch(signature)
    assert found is not None, signature
    properties: JsonObject = {}
    required = []
    for text in filter(None, found.group(2).split(", ")):
        parameter = _PARAMETER.fullmatch(text)
        assert parameter is not None, text
        name, optional, kind, is_list = parameter.groups()
        inner = {"type": kind or "string"}
        properties[name] = {"type": "array", "items": inner} if is_list else inner
        required += [] if optional else [name]
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": found.group(1), "parameters": parameters}}


def _object(text: str) -> JsonObject:
    value: JsonObject = json.loads(text)
    return value


def _words(text: str) -> list[str]:
    return text.split()


def _types(value: Json) -> str:
    return json.dumps(value)  # 3 is neither 3.0 nor True


def _stripped(value: JsonObject) -> JsonObject:
    return {key: each.strip() if isinstance(each, str) else each for key, each in value.items()}
