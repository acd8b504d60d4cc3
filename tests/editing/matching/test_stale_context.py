"""Changes located by surrounding lines that differ from the file."""

from dataclasses import replace
from random import Random

import pytest

from adapter.core.errors import EditError
from adapter.editing import patch_text
from adapter.editing.document import TextDocument
from adapter.editing.matching import stale_context
from adapter.editing.matching.document_index import DocumentIndex
from adapter.editing.matching.stale_context import ContextScorer
from benchmarks.ambiguity import is_ambiguous
from benchmarks.corruptions import altered, case_of
from tests.editing.test_edit_real_text import applied, made

FILLING = "".join(f"    value_{number} = compute({number})\n" for number in range(300))


def refusal(text, old, new):
    with pytest.raises(EditError) as caught:
        patch_text(text, {"old_text": old, "new_text": new})
    return str(caught.value)


STYLES = f"""\
{FILLING}
    /**
    Modifier: make the text bold.
    */
    readonly bold: this;

    /**
    Modifier: make the text dimmed (inconsistent across terminals).
    */
    readonly dim: this;

    /**
    Modifier: underline the text.
    */
    readonly underline: this;
"""
OLD = """\
    readonly bold: this;

    /**
    Modifier: emit a small amount of light.
    */
    readonly dim: this;

    /**
"""


def test_anchored_change_has_a_note():
    """Lines around the change may read differently, and none of them is written."""
    result = patch_text(STYLES, {"old_text": OLD, "new_text": OLD.replace("    */\n", "    -/\n")})
    assert result.matches[0].strictness == "aligned"
    assert "only the changed lines were matched" in result.matches[0].notes[0]


TWINS = """\
def fore(x):
    level = old_level(x)
    send(level, old_level)
    return of(fore, level)
def back(x):
    level = old_level(x)
    send(level, new_level)
    return of(back, level)
"""


def test_patch_of_text_from_another_patch_is_not_fuzzy_matched():
    """Although the file has a similar text that it would match."""
    old = TWINS.split("def back")[0]
    new = old.replace("old_level)", "new_level)")
    second = new.replace("    send", "    added = 1\n    send")
    assert applied_both(old, new, second) is None


def applied_both(old, new, second):
    patches = [{"old_text": old, "new_text": new}, {"old_text": new, "new_text": second}]
    try:
        return patch_text(FILLING + TWINS, patches).text
    except EditError:
        return None


def test_long_text_with_many_matches_is_not_compared_with_all():
    """The cost of a comparison is known in advance, and linear in the number of matches."""
    old = [f"line {number}" for number in range(60)]
    context = ContextScorer(DocumentIndex(TextDocument("\n".join(old))), old)
    assert context.count_comparisons(range(30, 31)) <= 2 * 40 * (40 + 15)


def test_change_far_from_the_hint_is_not_located():
    """The hint may be off by some lines."""
    patch = {"old_text": OLD, "new_text": OLD.replace("*/", "*/ // rare")}
    assert patch_text(STYLES, {**patch, "start_line": 290}).text != STYLES
    with pytest.raises(EditError):
        patch_text(STYLES, {**patch, "start_line": 20})


def test_change_is_not_located_above_the_cost_limit(monkeypatch):
    """A change that would be found is refused if fewer comparisons are allowed."""
    monkeypatch.setattr(stale_context, "MAX_COMPARISONS", 100)
    assert "not found" in refusal(STYLES, OLD, OLD.replace("*/", "*/ // rare"))


@pytest.mark.parametrize(("line", "least", "most"), [("}", 2, 2), ("end", 4, 5), ("value_7 = compute(7)", 8, 9)])
def test_rarer_and_longer_lines_have_more_bits(line, least, most):
    text = FILLING + "}\nend\n"
    assert least <= ContextScorer(DocumentIndex(TextDocument(text)), [line]).sum_bits([0]) <= most


@pytest.mark.parametrize("seed", range(25))
def test_change_with_drifted_context_is_applied_or_rejected(seed):
    """Every second context line differs, and the file ends with a twin of the block."""
    random = Random(seed)
    edit = made(seed)
    lines = list(edit.lines)
    for line in edit.context[::2]:
        lines[line] = altered(random, lines[line], lines)
    case = case_of(edit, "drifted", edit.old, edit.new)
    twin = [altered(random, line, lines) for line in edit.old]
    result = [*lines[: edit.start], *edit.added, *lines[edit.stop :]]
    text, expected = ("\n".join([*some, "separator = 1", *twin]) for some in (lines, result))
    case = replace(case, text=text, expected=expected)
    got = applied(case)
    assert got in (None, expected) or is_ambiguous(case, got)
