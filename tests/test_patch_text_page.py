"""The page about `patch_text` is true: its sessions are run, and each notation on it makes the same change."""

import doctest
import re
from pathlib import Path

import pytest

from adapter import patch_text

PAGE = Path(__file__).parent.parent / "docs" / "patch_text.md"
NOTATIONS = re.findall(r"<!-- notation -->\n(```|~~~)\w+\n(.*?)\n\1\n", PAGE.read_text(encoding="utf-8"), re.DOTALL)
STORE = """class Store:
    def get(self, key):
        return self.rows[key]

    def put(self, key, row):
        self.rows[key] = row
"""


def test_the_sessions_give_what_they_show():
    """Run as they stand."""
    text = "\n".join(re.findall(r"```pycon\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
    test = doctest.DocTestParser().get_doctest(text, {}, "page", str(PAGE), 0)
    assert len(test.examples) >= 8
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)


@pytest.mark.parametrize("written", [text for _, text in NOTATIONS], ids=range(len(NOTATIONS)))
def test_each_notation_makes_the_same_change(written):
    """The line that reads a row, and nothing else."""
    assert patch_text(STORE, written).text == STORE.replace("self.rows[key]\n\n", "self.rows.get(key)\n\n")


def test_there_are_six_notations():
    """A wrong pattern would make all of this pass."""
    assert len(NOTATIONS) == 6
