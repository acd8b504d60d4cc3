"""Results can always be encoded: lone surrogates are replaced, wherever they come from."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter import tool
from adapter.core.errors import ToolError
from adapter.core.text.display_escaping import replace_lone_surrogates, replace_surrogates_in_json
from adapter.workspace import Workspace

LONE = "a\udc80b\ud83d"


@tool(effect="read")
def give() -> str:
    """Give."""
    return LONE


@tool(effect="read")
def fail() -> str:
    """Fail."""
    raise ToolError(LONE)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("give", {}),
        ("fail", {}),
        ("read_file", {"path": LONE}),
        ("write_file", {"path": "x", "content": LONE}),
        ("find_files_glob", {"pattern": "*"}),
        ("list_directory", {"path": "."}),
        ("grep_search", {"pattern": LONE}),
        (LONE, {"x": LONE}),
        ("run_command", {"command": f"echo {LONE}", "cwd": "."}),
    ],
)
def test_lone_surrogates_are_replaced_in_results(tmp_path, name, arguments):
    """In text, JSON and MCP results. The replacement is visible."""
    with open(os.path.join(os.fsencode(tmp_path), b"caf\xe9.txt"), "w"):  # noqa: PTH118, PTH123
        pass
    with Workspace(tmp_path, approve="yolo", tools=[give, fail]) as workspace:
        result = workspace.run(name, arguments)
    for text in (result.name, result.content, result.error or "", result.diff, *result.notes):
        text.encode()
    json.dumps(result.data, ensure_ascii=False).encode()
    if name in ("give", "fail"):
        assert "a\ufffdb\ufffd" in result.content


@given(st.text(st.characters(), max_size=20))
def test_encodable_result_is_unchanged(text):
    """Pairs of surrogates become their character, in text and in JSON."""
    halves = text.encode("utf-16-le", "surrogatepass")
    split = "".join(chr(int.from_bytes(halves[at : at + 2], "little")) for at in range(0, len(halves), 2))
    replace_lone_surrogates(split).encode()
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert replace_lone_surrogates(text) == replace_lone_surrogates(split) == text
        assert json.loads(replace_surrogates_in_json(json.dumps(text))) == text
    json.loads(replace_surrogates_in_json(json.dumps({"x": split}))).__str__().encode()
