"""Texts that cannot be decoded as JSON for other reasons than its syntax are no crash."""

import pytest

from adapter.conversation.guardrails.loop_detection import repeats_in_call
from adapter.dialects import get_dialect
from adapter.workspace import Workspace


@pytest.mark.parametrize("value", ["9" * 6_000, "[" * 20_000], ids=["digits", "lists"])
def test_repeated_digits_and_brackets_are_a_loop(value):
    """Python refuses to convert the digits, and stops at the depth of the lists."""
    tools = get_dialect("blade").tools
    assert repeats_in_call('{"name": "read_file", "arguments": {"path": ' + value, tools)
    assert not repeats_in_call('{"name": "read_file", "arguments": {"path": ', tools)


@pytest.mark.parametrize("name", ["data.json", "data.jsonl"])
def test_edit_of_json_with_a_long_number(tmp_path, name):
    """It stopped the program: the syntax before and after an edit is compared."""
    (tmp_path / name).write_text('{"a": ' + "9" * 6_000 + ', "b": 1}\n', encoding="utf-8")
    with Workspace(tmp_path, approve="yolo") as workspace:
        assert workspace.run("apply_edit", {"path": name, "old_text": '"b": 1', "new_text": '"b": 2'}).ok
    assert (tmp_path / name).read_text(encoding="utf-8").endswith('"b": 2}\n')
