"""Every file in fixtures/cases is a text and its expected events.

    text = '''...'''              the model's exact text
    events = [["text", "Hi"], ["call", "read_file", '{"path": "a.py"}', "trailing-comma"], ...]
    source = "..."                where the text comes from
    finish_reason = "length"      the server's; default "stop"
    generation_prompt = "..."     the chat template's text before the output
    auto = "..."                  why the case is only parsed with its own format
    trailing = "..."              why text after the last call changes it

Kinds of events, in the order of the text:

    ["text", TEXT]                    content
    ["reasoning", TEXT]               reasoning
    ["markup", RAW]                   markers and other text that is not shown
    ["was-reasoning", RAW]            the content so far turned out to be reasoning, which RAW closed
    ["call", NAME, JSON, REPAIRS]     a call; REPAIRS, separated by spaces, is omitted if there are none
    ["invalid", TEXT]                 an invalid call whose error contains TEXT

The folder is named after the expected format; the cases in ``auto`` are parsed without one. The calls are to tools in
``fixtures/cases/tools.json``. The file name is the claim.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from adapter.parsing.formats import FORMATS
from tests.each import each
from tests.parsing.checks import claims, read

FOLDER = Path(__file__).parents[3] / "fixtures" / "cases"
TOOLS = json.loads((FOLDER / "tools.json").read_text())
CASES = sorted(path for path in FOLDER.glob("*/*.toml") if path.parent.name != "wild")
KEYS = {"text", "events", "source", "finish_reason", "generation_prompt", "auto", "trailing"}

# Repairs that depend on the expected format: bare JSON is the normal spelling of a single format, and a body is foreign
# only if a format is expected.
BY_FORMAT = {"no-markers", "arguments-key", "foreign-body"}


def load(path: Path) -> dict[str, Any]:
    case = tomllib.loads(path.read_text(encoding="utf-8"))
    assert set(case) <= KEYS
    return case


def expected_format(path: Path) -> str | None:
    return None if path.parent.name == "auto" else path.parent.name


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def cases_of(format: str) -> dict[str, Path]:
    return {name_of(path): path for path in CASES if path.parent.name == format}


@pytest.mark.parametrize("format", ["auto", *FORMATS])
def test_case_with_its_format_gives_its_events(format):
    """A text gives exactly the events in its file, for every split."""
    each(cases_of(format), gives_its_events)


@pytest.mark.parametrize("format", FORMATS)
def test_case_without_format_gives_the_same_events(format):
    each({name: path for name, path in cases_of(format).items() if "auto" not in load(path)}, is_detected)


def gives_its_events(path: Path) -> None:
    case = load(path)
    assert case["source"]
    read(case["text"], case["events"], format=expected_format(path), tools=TOOLS, **_circumstances(case))


def is_detected(path: Path) -> None:
    case = load(path)
    events = read(case["text"], format=None, tools=TOOLS, **_circumstances(case))
    assert [_anywhere(claim) for claim in claims(events, case["events"])] == [
        _anywhere([*claim[:2], json.loads(claim[2]), *claim[3:]] if claim[0] == "call" else claim)
        for claim in case["events"]
    ]


def test_every_format_has_cases():
    """At least eight, with file names that read as claims."""
    for name in ("auto", *FORMATS):
        assert sum(path.parent.name == name for path in CASES) >= 8, name
    assert {path.parent.name for path in CASES} == {"auto", *FORMATS}
    assert all(path.stem == path.stem.lower() and "_" not in path.stem for path in CASES)


def _circumstances(case: dict[str, Any]) -> dict[str, Any]:
    return {
        "finish_reason": case.get("finish_reason", "stop"),
        "generation_prompt": case.get("generation_prompt", ""),
        "text_may_follow": "trailing" not in case,
    }


def _anywhere(claim: list[Any]) -> list[Any]:
    if claim[0] != "call":
        return list(claim)
    fixes = claim[3].split() if len(claim) > 3 else []
    return [*claim[:3], " ".join(fix for fix in fixes if fix not in BY_FORMAT)]
