"""Texts that people pasted into public issue trackers, and what a careful reader takes them for.

A file in fixtures/cases/wild holds the cases of one family::

    [[case]]
    name = "doubled-channel-marker"
    thread = "owner/repo#n"           the issue or pull request that shows this shape of output
    format = "harmony"                what is told; each case is read without it, too
    tools = ["bash(command, timeout?: integer)"]
    text = '''...'''
    calls = [["bash", '{"command": "ls"}']]
    content = "..."                   white space aside; nothing when left out
    reasoning = "..."
    invalid = 1                       calls that are answered with what is wrong
    finish_reason, generation_prompt  as in the other cases
    either = true                     an answer that says what is wrong is right, too
    either_text = true                so is the text as it is
    any_content, any_reasoning, invalid_ok, loose_space = true
                                      the thread does not tell what these should be
    unmet_told, unmet_detected = "..."
                                      why it is not so yet where the format is told, where it is not

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
def test_cases_are_read_as_a_careful_reader_does(family):
    """A text from the wild gives the calls, the content and the reasoning that were meant, however it arrives.

    What is unmet is not given, or it is to be called so no longer.
    """
    cases = [case for case in CASES if case["family"] == family]
    each({f"{case['name']}, {way}": (case, way) for case in cases for way in ways(case)}, is_read_as_meant)


def ways(case: dict[str, Any]) -> list[str]:
    return ["detected", *(["told"] if "format" in case else [])]


def is_read_as_meant(case_and_way: tuple[dict[str, Any], str]) -> None:
    case, way = case_and_way
    turn = turn_of(case, case["format"] if way == "told" else None)
    wrong = fault(case, turn)
    if unmet := case.get(f"unmet_{way}"):
        assert wrong, f"it is read as meant by now: {unmet}"
    else:
        assert not wrong, f"{wrong}: {shown(turn)}"


def test_cases_are_whole():
    """Each case has a name of its own and a thread, and says nothing that is not read."""
    assert all(set(case) <= KEYS for case in CASES)
    assert len({(case["family"], case["name"]) for case in CASES}) == len(CASES) >= 532
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+(#|/discussions/)\d+", case["thread"]) for case in CASES)


def turn_of(case: dict[str, Any], format: str | None) -> Turn:
    """The text read in every split."""
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
    """What of the turn is not as expected; "" when all is."""
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
    """``bash(command, timeout?: integer)`` as a tool definition."""
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
