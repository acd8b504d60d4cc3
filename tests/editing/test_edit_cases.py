"""Every folder of fixtures/edits: a text, a call, and what comes of it.

``input`` is the text, ``call.json`` the arguments of `patch_text` (``text`` in
place of ``patches``: written in another notation; ``source``: the public report of
such a fault, whose text is another one), and ``expected`` the text afterwards; or ``expected_error``
holds pieces of the refusal, one JSON string a line. The folder's name is the claim.
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
    names = ParameterNames(**call.pop("names", {}))
    patches = call.pop("text") if "text" in call else call.pop("patches")
    return patch_text(text, patches, names=names, **call)


@pytest.mark.parametrize("folder", [case for case in CASES if (case / "expected").exists()], ids=lambda path: path.name)
def test_an_edit_gives_the_expected_bytes(folder):
    """C250: the whole text, byte for byte; what was tolerated is said."""
    result = run(folder)
    assert result.text == (folder / "expected").read_bytes().decode()
    assert all(match.notes or match.strictness == "exact" for match in result.matches)


@pytest.mark.parametrize(
    "folder", [case for case in CASES if (case / "expected_error").exists()], ids=lambda path: path.name
)
def test_a_refusal_says_what_helps(folder):
    """The reason, the lines, the next step."""
    with pytest.raises(EditError) as caught:
        run(folder)
    for line in (folder / "expected_error").read_text().splitlines():
        assert json.loads(line) in str(caught.value)
    assert str(caught.value).endswith("Nothing was changed.")


def test_there_are_cases():
    """A wrong path would make all of this pass."""
    assert len(CASES) >= 300
