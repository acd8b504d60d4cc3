"""Run every folder of fixtures/edits: a text, a call, and the expected result.

``input`` is the text and ``call.json`` has the arguments of `patch_text` (``text`` instead of ``patches`` for other
edit formats), and optionally its ``source``, the public report that inspired the case, and ``why``, the reason for the
result. ``expected`` is the resulting text, or ``expected_error`` has fragments of the rejection, one JSON string per
line. The folder's name is the claim.
"""

import json
from pathlib import Path

import pytest

from adapter.core.errors import EditError
from adapter.editing import patch_text
from adapter.tools.operations import ParameterNames

CASES = sorted((Path(__file__).parents[2] / "fixtures" / "edits").iterdir())


def run(folder):
    text = (folder / "input").read_bytes().decode()
    call = json.loads((folder / "call.json").read_text())
    call.pop("source", None)
    call.pop("why", None)
    names = ParameterNames(**call.pop("names", {}))
    patches = call.pop("text") if "text" in call else call.pop("patches")
    return patch_text(text, patches, names=names, **call)


@pytest.mark.parametrize("folder", [case for case in CASES if (case / "expected").exists()], ids=lambda path: path.name)
def test_an_edit_gives_the_expected_bytes(folder):
    """C250, D2, D3, D4: the whole text, byte for byte; tolerated differences have notes."""
    result = run(folder)
    assert result.text == (folder / "expected").read_bytes().decode()
    assert all(match.notes or match.strictness == "exact" for match in result.matches)


@pytest.mark.parametrize(
    "folder", [case for case in CASES if (case / "expected_error").exists()], ids=lambda path: path.name
)
def test_rejection_contains_the_expected_messages(folder):
    """D5, C251, D1: the reason, the lines, the next step."""
    with pytest.raises(EditError) as caught:
        run(folder)
    for line in (folder / "expected_error").read_text().splitlines():
        assert json.loads(line) in str(caught.value)
    assert str(caught.value).endswith("Nothing was changed.")


def test_case_folder_is_not_empty():
    """A wrong path would make all of this pass."""
    assert len(CASES) >= 300
