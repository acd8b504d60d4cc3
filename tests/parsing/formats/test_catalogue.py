"""A catalogue of 149 numbered malformations in models' output, each with its correct result.

A file in fixtures/catalogue holds one part of it, an entry for each number::

    number = 24
    claim = "missing-final-closing-brace"
    policy = "..."                 this project's choice where reasonable parsers differ
    source = "owner/repo#n"        where it was observed
    finish_reason = "length"       the server's; default "stop"
    calls = [["read_file", '{"path": "a.py"}'], ...]
    [[entry.case]]
    text = '''...'''               one exact spelling of it
    content = "..."                the text shown to the user; default ""

No format is given. The table of policies in fixtures/catalogue/README.md is written by
``python -m tests.generate``.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from adapter.core.turn import Turn
from tests.each import each
from tests.parsing.checks import read

FOLDER = Path(__file__).parents[3] / "fixtures" / "catalogue"
README = FOLDER / "README.md"
TOOLS = json.loads((FOLDER.parent / "cases" / "tools.json").read_text(encoding="utf-8"))
FILES: dict[str, list[dict[str, Any]]] = {
    path.stem: tomllib.loads(path.read_text(encoding="utf-8"))["entry"] for path in sorted(FOLDER.glob("*.toml"))
}
ENTRIES = [entry for entries in FILES.values() for entry in entries]
KEYS = {"number", "claim", "policy", "source", "finish_reason", "calls", "case"}
TABLE_BEGINS = "| number | what it is | what we do |\n| --- | --- | --- |\n"


@pytest.mark.parametrize("file", FILES)
def test_malformation_gives_expected_calls(file):
    """D8: every spelling gives the expected calls and content, for every split."""
    cases = {
        f"{entry['number']:03}-{entry['claim']}-{number}": (entry, case)
        for entry in FILES[file]
        for number, case in enumerate(entry["case"], 1)
    }
    each(cases, is_read_as_meant)


def is_read_as_meant(entry_and_case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    entry, case = entry_and_case
    events = read(case["text"], tools=TOOLS, finish_reason=entry.get("finish_reason", "stop"), text_may_follow=False)
    turn = Turn.from_events(events)
    assert [(call.name, call.arguments) for call in turn.calls] == [
        (name, json.loads(arguments)) for name, arguments in entry["calls"]
    ]
    assert turn.content == case.get("content", "")


def test_catalogue_is_complete():
    """Each of the 149 numbers occurs once; an entry without a recorded text has several spellings."""
    assert [entry["number"] for entry in ENTRIES] == list(range(1, 150))
    assert all(set(entry) <= KEYS and set(case) <= {"text", "content"} for entry in ENTRIES for case in entry["case"])
    assert all("source" in entry or len(entry["case"]) > 1 for entry in ENTRIES)


def with_table(text: str) -> str:
    return text.partition(TABLE_BEGINS)[0] + _table()


def _table() -> str:
    rows = [
        f"| {entry['number']} | {entry['claim'].replace('-', ' ')} | {entry['policy']} |"
        for entry in ENTRIES
        if "policy" in entry
    ]
    return TABLE_BEGINS + "\n".join(rows) + "\n"
