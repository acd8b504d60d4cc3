"""Pairs of an old and a new text, in elements and below labels."""

from __future__ import annotations

from contextlib import suppress

import pytest

from adapter.core.errors import EditError
from adapter.editing import patch_text
from adapter.editing.notations.parse_edits import parse_file_edits
from tests.processor_time import processor_limit

TEXT = """\
import time


def wait(seconds):
    print("waiting")
    time.sleep(seconds)


def main():
    wait(3)
"""
OLD, NEW = '    print("waiting")\n', '    print("waiting", seconds)\n'
CHANGED = TEXT.replace(OLD, NEW)

PAIRS = {
    "elements with the fields' names": f"<old_str>\n{OLD}</old_str>\n<new_str>\n{NEW}</new_str>",
    "elements in a line": f"<old_text>{OLD.strip()}</old_text><new_text>{NEW.strip()}</new_text>",
    "Zed's": f"<edits>\n<old_text line=5>\n{OLD}</old_text>\n<new_text>\n{NEW}</new_text>\n</edits>",
    "search and replace": f"<edit>\n  <search>\n{OLD}  </search>\n  <replace>\n{NEW}  </replace>\n</edit>",
    "find and replace": f"<find>{OLD.strip()}</find>\n<replace>{NEW.strip()}</replace>",
    "original and updated": f"I print the time.\n\n<original>\n{OLD}</original>\n<updated>\n{NEW}</updated>\n",
    "in capital letters": f"<OLD>\n{OLD}</OLD>\n<NEW>\n{NEW}</NEW>",
    "replace and with": f"Replace:\n```python\n{OLD}```\nwith:\n```python\n{NEW}```\n",
    "in a sentence": f"In `wait.py`, change this line\n```python\n{OLD}```\nto this:\n\n```python\n{NEW}```\nDone.",
    "before and after": f"**Before:**\n```\n{OLD}```\n\n**After:**\n```\n{NEW}```",
    "headings": f"### Original code\n\n~~~python\n{OLD}~~~\n\n### Updated code\n\n~~~python\n{NEW}~~~",
    "words": f"SEARCH:\n{OLD}REPLACE:\n{NEW}",
    "words for the new text": f"REPLACE\n{OLD}\nWITH\n{NEW}\n",
    "old code and new code": f"OLD CODE:\n{OLD}\nNEW CODE:\n{NEW}",
}


@pytest.mark.parametrize("text", PAIRS.values(), ids=PAIRS)
def test_pair_changes_the_text(text):
    assert patch_text(TEXT, text).text == CHANGED


SEVERAL = {
    "elements": "<search>wait(3)</search><replace>wait(4)</replace>\n"
    "<search>import time</search><replace>import time as t</replace>",
    "fences": "Change\n```\n    wait(3)\n```\nto\n```\n    wait(4)\n```\nand replace\n```\nimport time\n```\nby\n```\n"
    "import time as t\n```",
    "words": "FIND:\n    wait(3)\nREPLACE WITH:\n    wait(4)\n\nFIND:\nimport time\nREPLACE WITH:\nimport time as t\n",
}


@pytest.mark.parametrize("text", SEVERAL.values(), ids=SEVERAL)
def test_several_pairs_are_applied(text):
    changed = TEXT.replace("wait(3)", "wait(4)").replace("import time", "import time as t")
    assert patch_text(TEXT, text).text == changed


FILES = {
    "elements": "<path>a.py</path>\n<old>x</old>\n<new>y</new>\n<path>b.py</path>\n<old>x</old>\n<new>y</new>",
    "attributes": "\n".join(f'<edit path="{path}"><old>x</old><new>y</new></edit>' for path in ("a.py", "b.py")),
    "sentences": "".join(f"In `{path}`, replace\n```\nx\n```\nwith\n```\ny\n```\n" for path in ("a.py", "b.py")),
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_pairs_of_several_files(text):
    assert [edit.path for edit in parse_file_edits(text)] == ["a.py", "b.py"]


TAGS = {
    "new text on lines of its own": (f"<old>{OLD.strip()}</old>\n<new>\n{NEW.strip()}\n</new>", CHANGED),
    "old text on lines of its own": (f"<old>\n{OLD}</old>\n<new>{NEW.rstrip()}</new>", CHANGED),
    "a blank line as new text": (f"<old>\n{OLD}</old>\n<new>\n\n  </new>", TEXT.replace(OLD, "\n")),
    "an empty new text": (f"<old>\n{OLD}</old>\n<new>\n  </new>", TEXT.replace(OLD, "")),
}


@pytest.mark.parametrize(("text", "expected"), TAGS.values(), ids=TAGS)
def test_line_ends_of_tags_are_not_in_the_text(text, expected):
    assert patch_text(TEXT, text).text == expected


def test_labels_in_elements_are_text():
    """And elements below labels."""
    labeled = "OLD\nwait\nNEW\nrun\n"
    assert patch_text(f"{labeled}wait\n", f"<old>\n{labeled}</old>\n<new>\nx\n</new>").text == "x\nwait\n"
    element = "<old>1</old><new>2</new>\n"
    assert patch_text(element, f"SEARCH:\n{element}REPLACE:\n{element.replace('2', '3')}").text == (
        "<old>1</old><new>3</new>\n"
    )


def test_paragraphs_of_a_new_text_below_words():
    """They are indented or repeat an old line."""
    new = f"{OLD}\n    print(seconds)\n\n    time.sleep(seconds)\n\n\ndef main():\n"
    old = "".join(TEXT.splitlines(keepends=True)[4:9])
    assert patch_text(TEXT, f"SEARCH:\n{old}REPLACE:\n{new}").text == TEXT.replace(old, new)


REJECTED = {
    "element without a new text": f"<old_text>\n{OLD}</old_text>",
    "new text without its closing tag": f"<old_text>\n{OLD}</old_text>\n<new_text>\n{NEW}",
    "text that contains the tags around it": "<old>a</old><new><old>b</old></new>",
    "text between the elements": f"<old>{OLD}</old>\nbecomes\n<new>{NEW}</new>",
    "elements in the wrong order": f"<new>{NEW}</new><old>{OLD}</old>",
    "old text that is not in the file": "<old_text>sleep(1)</old_text><new_text>sleep(2)</new_text>",
    "fence that belongs to no pair": f"Replace\n```\n{OLD}```\nwith\n```\n{NEW}```\nOutput:\n```\nwaiting 3\n```",
    "fences without labels": f"It was\n```\n{OLD}```\nwhich prints:\n```\nwaiting\n```",
    "fence without an old text": f"Replace\n```\n```\nwith\n```\n{NEW}```",
    "block without a divider": f"<<<<<<< SEARCH\n{OLD}>>>>>>> REPLACE\n",
    "sentence below the new text": f"SEARCH:\n{OLD}REPLACE:\n{NEW}\nThis prints the time.",
    "sentence between pairs": f"OLD\n{OLD}NEW\n{NEW}\nThen call it:\n\nOLD\nwait(3)\nNEW\nwait(4)\n",
    "label in the new text": f"OLD\n{OLD}NEW\nNEW\n{NEW}",
    "path between pairs": f"a.py\nOLD\n{OLD}NEW\n{NEW}\nb.py\nOLD\nwait(3)\nNEW\nwait(4)\n",
    "words without a new text": f"SEARCH:\n{OLD}REPLACE:\n",
}


@pytest.mark.parametrize("text", REJECTED.values(), ids=REJECTED)
def test_unclear_pair_is_rejected(text):
    with pytest.raises(EditError):
        patch_text(TEXT, text)


def test_long_lines_take_linear_time():
    """In elements and above fences, where a search for the end of each match was slow."""
    for above in ("<path>" + " " * 30_000, "old " * 50 + " " * 300_000 + "x"):
        with processor_limit(2), suppress(EditError):
            patch_text(TEXT, f"{above}<old>{OLD}</old><new>{NEW}</new>\n```\na\n```\nwith:\n```\nb\n```")
