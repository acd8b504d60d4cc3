"""Plurals in messages: no ``1 places``."""

from __future__ import annotations

from adapter.core.text.plurals import pluralize
from adapter.workspace import Workspace


def test_one_is_one():
    """The plural has an s, or is given."""
    assert [pluralize(number, "byte") for number in (0, 1, 2)] == ["0 bytes", "1 byte", "2 bytes"]
    assert [pluralize(number, "entry", "entries") for number in (1, 3)] == ["1 entry", "3 entries"]


def test_one_place_is_one_place(tmp_path):
    """In an edit that may replace all, and in its error."""
    with Workspace(tmp_path, "proto", approve="yolo") as workspace:
        written = workspace.run("write_file", {"file_path": "a.txt", "content": "x"})
        edit = {"file_path": "a.txt", "old_string": "x", "new_string": "y", "replace_all": True}
        edited = workspace.run("edit", edit)
    assert "(1 byte)" in written.content
    assert "1 place was replaced" in edited.content
