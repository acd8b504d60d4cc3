"""Pairs of an old and a new text, in elements and below labels."""

from __future__ import annotations

import pytest

from adapter.core.errors import EditError
from adapter.editing import patch_text
from adapter.editing.notations.parse_edits import parse_file_edits

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
    "words without a new text": f"SEARCH:\n{OLD}REPLACE:\n",
}


@pytest.mark.parametrize("text", REJECTED.values(), ids=REJECTED)
def test_unclear_pair_is_rejected(text):
    with pytest.raises(EditError):
        patch_text(TEXT, text)
