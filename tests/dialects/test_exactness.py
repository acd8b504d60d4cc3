"""Three tool documents promise that an old text matches exactly or not at all."""

import pytest

from adapter import Workspace
from adapter.core.errors import UsageError

TEXT = 'class Store:\n    def get(self, key):\n\treturn self.rows[key]  \n    name = "it\'s"\n    path = a &amp; b\n'
SLIPS = {
    "indentation": "def get(self, key):\n    return self.rows[key]\n",
    "deeper": "        def get(self, key):\n\treturn self.rows[key]  \n",
    "tab-for-spaces": "\tdef get(self, key):\n",
    "spaces-for-tab": "    return self.rows[key]  \n",
    "trailing-blanks": "\treturn self.rows[key]\n    name",
    "inner-blanks": "def get(self,  key):",
    "blank-line": "class Store:\n\n    def get(self, key):\n",
    "typography": "name = \u201cit\u2019s\u201d",
    "entities": "path = a & b",
    "escapes": "def get(self, key):\\n\\treturn",
    "line-numbers": "2: def get(self, key):",
    "fence": "```\n    def get(self, key):\n```",
    "letter": "def gte(self, key):",
    "case": "Class Store:",
    "another body": 'class Store:\n    def put(self, row):\n\tself.rows.clear()\n    name = "it\'s"\n',
}
EDITS = {
    "proto": ("edit", lambda old, new: {"file_path": "f", "old_string": old, "new_string": new}),
    "maki": ("edit", lambda old, new: {"path": "f", "old_string": old, "new_string": new}),
    "maki-many": ("multiedit", lambda old, new: {"path": "f", "edits": [{"old_string": old, "new_string": new}]}),
    "proxyai": (
        "Edit",
        lambda old, new: {"file_path": "f", "old_string": old, "new_string": new, "short_description": "x"},
    ),
}


def edited(folder, tool_set, old, new, edits=None):
    """Return the result of one edit."""
    name, arguments = EDITS[tool_set]
    with Workspace(folder, tool_set.removesuffix("-many"), approve="yolo", edits=edits) as workspace:
        return workspace.run(name, arguments(old, new))


@pytest.mark.parametrize("tool_set", EDITS)
@pytest.mark.parametrize("slip", SLIPS)
def test_nothing_but_the_very_text_is_replaced(tmp_path, tool_set, slip):
    """C034, C106, C108, C164, C169, D5: whitespace, indentation and every other character count. Otherwise nothing is
    written.
    """
    path = tmp_path / "f"
    path.write_text(TEXT)
    before = path.stat().st_mtime_ns
    result = edited(tmp_path, tool_set, SLIPS[slip], "x = 1\n")
    assert not result.ok
    assert "old_string" in (result.error or "")
    assert path.read_text() == TEXT
    assert path.stat().st_mtime_ns == before


@pytest.mark.parametrize("tool_set", EDITS)
@pytest.mark.parametrize(
    ("old", "new", "after"),
    [
        ("    def get(self, key):\n", "def get(key):\n", TEXT.replace("    def get(self, key):", "def get(key):")),
        ("get", "  put\n", TEXT.replace("get", "  put\n")),
        ("\treturn self.rows[key]  \n", "", TEXT.replace("\treturn self.rows[key]  \n", "")),
        ("\treturn self.rows[key]  ", "", TEXT.replace("\treturn self.rows[key]  ", "")),
        ("it's", "it\u2019s", TEXT.replace("it's", "it\u2019s")),
    ],
)
def test_the_new_text_goes_in_as_it_was_written(tmp_path, tool_set, old, new, after):
    """C106, C109, C164, C167, C029, C030: its indentation, line ends and quotes are not adjusted."""
    (tmp_path / "f").write_text(TEXT)
    result = edited(tmp_path, tool_set, old, new)
    assert result.ok, result.content
    assert (tmp_path / "f").read_text() == after


@pytest.mark.parametrize("tool_set", EDITS)
def test_line_ends_marks_and_mode_are_kept(tmp_path, tool_set):
    """C106, C164, D4: a model that sees line feeds cannot write other line ends. The file keeps its own, its byte order
    mark, its missing final newline and its mode.
    """
    path = tmp_path / "f"
    path.write_bytes(b"\xef\xbb\xbfa\r\n  b\r\nc")
    path.chmod(0o755)
    assert edited(tmp_path, tool_set, "a\n  b\n", "a\n  x\n  y\n").ok
    assert path.read_bytes() == b"\xef\xbb\xbfa\r\n  x\r\n  y\r\nc"
    assert path.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("tool_set", EDITS)
def test_a_refusal_shows_the_lines_to_copy(tmp_path, tool_set):
    """With their numbers, and with the tabs and spaces that differ."""
    (tmp_path / "f").write_text(TEXT)
    error = edited(tmp_path, tool_set, SLIPS["indentation"], "x\n").error
    assert "old_string does not occur verbatim in the file; lines 2-3 are nearly the same" in error
    assert "2:     def get(self, key):\n3: \u2192return self.rows[key]\u00b7\u00b7" in error


@pytest.mark.parametrize("tool_set", EDITS)
def test_tolerance_is_the_users_choice_and_named(tmp_path, tool_set):
    """D6: with edits="tolerant", a deviation is accepted, and the result names it and the setting."""
    path = tmp_path / "f"
    path.write_text("class A:\n    def f(self):\n        return 1\n")
    slip = "def f(self):\n    return 1\n"
    result = edited(tmp_path, tool_set, slip, slip.replace("1", "2"), edits="tolerant")
    assert result.ok, result.content
    assert path.read_text() == "class A:\n    def f(self):\n        return 2\n"
    assert any("except for whitespace" in note for note in result.notes)
    assert any('because of edits="tolerant"' in note for note in result.notes)
    again = edited(tmp_path, tool_set, "    def f(self):\n", "    def g(self):\n", edits="tolerant")
    assert again.ok
    assert not any("tolerant" in note for note in again.notes)


def test_exactness_can_be_chosen_for_every_tool_set(tmp_path):
    """Also for tools whose document does not mention it, and for patches in an edit format."""
    path = tmp_path / "f"
    path.write_text("class A:\n    x = 1\nlast")
    exact = "@@ -2,2 +2,2 @@\n-    x = 1\n+    x = 2\n last\n"
    with Workspace(tmp_path, approve="yolo", edits="exact") as workspace:
        slip = workspace.run("apply_edit", {"path": "f", "old_text": "x  = 1", "new_text": "x = 2"})
        assert "does not occur verbatim" in slip.content
        diff = workspace.run("apply_patch", {"path": "f", "patch": exact.replace("    x", "  x")})
        assert "does not occur verbatim" in diff.content
        assert path.read_text() == "class A:\n    x = 1\nlast"
        assert workspace.run("apply_patch", {"path": "f", "patch": exact}).ok
    assert path.read_text() == "class A:\n    x = 2\nlast"
    with Workspace(tmp_path, approve="yolo") as workspace:
        assert workspace.run("apply_edit", {"path": "f", "old_text": "x  = 2", "new_text": "x = 3"}).ok


def test_a_part_of_a_session_keeps_the_choice(tmp_path):
    """A sub-agent does not bypass it."""
    (tmp_path / "f").write_text("    x = 1\n    y = 2\n")
    with (
        Workspace(tmp_path, approve="yolo", edits="exact") as workspace,
        workspace.open_subsession(host=workspace.host) as part,
    ):
        result = part.run("apply_edit", {"path": "f", "old_text": "x = 1\ny = 2", "new_text": "x = 2\ny = 2"})
    assert not result.ok


def test_another_choice_is_an_error(tmp_path):
    """The error names the two."""
    with pytest.raises(UsageError, match="edits must be exact or tolerant, got 'fuzzy'"):
        Workspace(tmp_path, edits="fuzzy")  # type: ignore[arg-type]
