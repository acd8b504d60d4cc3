"""Every file in fixtures/cases is one text and the events that must come out of it.

    text = '''...'''              the model's text, exactly
    events = [["text", "Hi"], ["call", "read_file", '{"path": "a.py"}', "trailing-comma"], ...]
    source = "..."                where the text comes from
    finish_reason = "length"      the server's; "stop" when left out
    generation_prompt = "..."     what the chat template put before the text
    auto = "..."                  why the case is read with its own format only
    trailing = "..."              why text after the last call changes it

The folder is the format; in ``auto`` none is told. The file name is the claim.
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

# Bare JSON is one format's own way to call; where none is told it is nobody's, and says so.
# A body of another format than the one told is said too; where none is told there is no other.
BY_FORMAT = {"no-markers", "arguments-key", "foreign-body"}


def load(path: Path) -> dict[str, Any]:
    case = tomllib.loads(path.read_text(encoding="utf-8"))
    assert set(case) <= KEYS
    return case


def told(path: Path) -> str | None:
    return None if path.parent.name == "auto" else path.parent.name


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def cases_of(format: str) -> dict[str, Path]:
    return {name_of(path): path for path in CASES if path.parent.name == format}


@pytest.mark.parametrize("format", ["auto", *FORMATS])
def test_cases_give_their_events(format):
    """A text gives exactly the events its file names, however it arrives, when its format is told."""
    each(cases_of(format), gives_its_events)


@pytest.mark.parametrize("format", FORMATS)
def test_cases_are_detected(format):
    """The same events come out when the format is not told."""
    each({name: path for name, path in cases_of(format).items() if "auto" not in load(path)}, is_detected)


def gives_its_events(path: Path) -> None:
    case = load(path)
    assert case["source"]
    read(case["text"], case["events"], format=told(path), tools=TOOLS, **_circumstances(case))


def is_detected(path: Path) -> None:
    case = load(path)
    events = read(case["text"], format=None, tools=TOOLS, **_circumstances(case))
    assert [_anywhere(claim) for claim in claims(events, case["events"])] == [
        _anywhere([*claim[:2], json.loads(claim[2]), *claim[3:]] if claim[0] == "call" else claim)
        for claim in case["events"]
    ]


def test_there_are_cases_for_every_format():
    """Each format is held by cases of its own, and each file name can be read as a claim."""
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
