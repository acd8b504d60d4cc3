"""docs/edit.md: its Python sessions are run, and each edit format on it makes the same change."""

import doctest
import re
from pathlib import Path

import pytest

from adapter import patch_text

PAGE = Path(__file__).parent.parent / "docs" / "edit.md"
_EDIT = re.compile(r"<!-- edit format -->\n(```|~~~)\w+\n(.*?)\n\1\n", re.DOTALL)
EDIT_FORMATS = _EDIT.findall(PAGE.read_text(encoding="utf-8"))
STORE = """class Store:
    def get(self, key):
        return self.rows[key]

    def put(self, key, row):
        self.rows[key] = row
"""


def test_sessions_show_the_real_output():
    text = "\n".join(re.findall(r"```pycon\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
    test = doctest.DocTestParser().get_doctest(text, {}, "page", str(PAGE), 0)
    assert len(test.examples) >= 8
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)


@pytest.mark.parametrize("written", [text for _, text in EDIT_FORMATS], ids=range(len(EDIT_FORMATS)))
def test_each_edit_format_makes_the_same_change(written):
    """Only the line that reads a row."""
    assert patch_text(STORE, written).text == STORE.replace("self.rows[key]\n\n", "self.rows.get(key)\n\n")


def test_all_edit_formats_are_found():
    """A wrong pattern would make these tests pass."""
    assert len(EDIT_FORMATS) == 7
