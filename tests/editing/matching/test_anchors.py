"""Changes located by surrounding lines that differ from the file."""

from dataclasses import replace
from random import Random

import pytest

from adapter.core.errors import EditError
from adapter.editing import patch_text
from adapter.editing.document import TextDocument
from adapter.editing.matching import anchors
from adapter.editing.matching.anchors import ContextScorer
from adapter.editing.matching.document_index import DocumentIndex
from benchmarks.ambiguity import is_ambiguous
from benchmarks.corruptions import altered, case_of
from tests.editing.test_edit_real_text import applied, made

FILLING = "".join(f"    value_{number} = compute({number})\n" for number in range(300))


def patched(text, old, new):
    return patch_text(text, {"old_text": old, "new_text": new}).text


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


def test_short_line_is_changed_between_distinctive_lines():
    """``*/`` occurs three times; the line below it and those further up are unique."""
    expected = STYLES.replace("    */\n    readonly dim", "    */ // rare\n    readonly dim")
    assert patched(STYLES, OLD, OLD.replace("*/", "*/ // rare")) == expected


def test_anchored_change_has_a_note():
    """Lines around the change may read differently, and none of them is written."""
    result = patch_text(STYLES, {"old_text": OLD, "new_text": OLD.replace("    */\n", "    -/\n")})
    assert result.matches[0].strictness == "aligned"
    assert "only the changed lines were matched" in result.matches[0].notes[0]


def test_short_line_with_context_on_one_side_is_not_located():
    """The context above does not occur in the file, so the line above the context below may be a different one."""
    old = "    readonly gone: this;\n    Emits light.\n    */\n    readonly dim: this;\n"
    assert "not found" in refusal(STYLES, old, old.replace("*/", "-/"))


CLOSED = """\
            Shell::Custom(line) => {
                command.args(&line[1..]);
                command
            }
        }
    }
}

/// What is done when a command fails.
"""


def test_correct_lines_of_consecutive_equal_lines_are_changed():
    """The second and third of four brackets are located by their indentation."""
    old = CLOSED.split("\n", 1)[1] + "#[derive(Clone)]\n"
    assert patched(FILLING + CLOSED, old, old.replace("        }\n    }\n", "        }\n        x\n    }\n")) == (
        FILLING + CLOSED.replace("        }\n    }\n", "        }\n        x\n    }\n")
    )


OVERLOADS = f"""\
{FILLING}
    public Factory createFactory(String pattern) {{
      return createFactory(new Adapter<>(this, pattern));
    }}

    public Factory createFactory(int dateStyle, int timeStyle) {{
      return createFactory(new Adapter<>(this, dateStyle, timeStyle));
    }}
"""


def test_a_bracket_belongs_to_the_line_that_opens_it():
    old = """\
    public Factory createFactory(int style) {
      return createFactory(new Adapter<>(this, style));
    }

    public Factory createFactory(int dateStyle, int timeStyle) {
      return createFactory(new Adapter<>(this, dateStyle, timeStyle));
"""
    assert "not found" in refusal(OVERLOADS, old, old.replace("    }\n", "    } // one\n", 1))


RECEIVE = """\
async def receive() -> Message:
    await opened()
    body = request.body
    if isinstance(body, str):
        encoded = body
"""


def test_a_function_with_another_parameter_is_the_same_function():
    """Its head reads differently, with a word more."""
    old = RECEIVE.replace(" -> Message", "").replace("    await opened()\n", "")
    new = old.replace("(body, str)", "(body, bytes)")
    assert patched(FILLING + RECEIVE, old, new) == FILLING + RECEIVE.replace("(body, str)", "(body, bytes)")
    assert "not found" in refusal(FILLING + RECEIVE.replace("receive", "send"), old, new)


def test_lines_outside_the_block_are_not_context():
    """``path`` of one function is gone, and that of the next is a different one, however similar the parameters are."""
    text = f"""\
{FILLING}
def set_cookie(
    self,
    key: str,
    value: str = "",
    max_age: int | None = None,
    path: str | None = "/",
) -> None:
    cookie()

def delete_cookie(
    self,
    key: str,
    path: str = "/",
    secure: bool = False,
    httponly: bool = False,
) -> None:
"""
    old = """\
    self,
    key: str,
    value: str = "",
    max_age: int = None,
    path: str = "/",
    domain: str = None,
    secure: bool = False,
    httponly: bool = False,
"""
    assert "not found" in refusal(text, old, old.replace("    path", "    new_path"))


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
    assert context.cost(range(30, 31)) <= 2 * 40 * (40 + 15)


def test_change_far_from_the_hint_is_not_located():
    """The hint may be off by some lines."""
    patch = {"old_text": OLD, "new_text": OLD.replace("*/", "*/ // rare")}
    assert patch_text(STYLES, {**patch, "start_line": 290}).text != STYLES
    with pytest.raises(EditError):
        patch_text(STYLES, {**patch, "start_line": 20})


def test_change_is_not_located_above_the_cost_limit(monkeypatch):
    """A change that would be found is refused if fewer comparisons are allowed."""
    monkeypatch.setattr(anchors, "MAX_COMPARISONS", 100)
    assert "not found" in refusal(STYLES, OLD, OLD.replace("*/", "*/ // rare"))


def test_short_context_lines_are_not_enough():
    """Even if they are unique."""
    text = f"{FILLING}    aa = 1\n    }}\n    bb = 2\n"
    old = "    cc = 3\n    aa = 1\n    }\n    bb = 2\n    dd = 4\n"
    assert "not found" in refusal(text, old, old.replace("}", ")"))


def test_block_of_similar_lines_is_a_twin():
    """The block that has the lines as they are shown is gone."""
    text = f"""\
{FILLING}
    this.dateType = requireNonNull(dateType);
    dateFormats.add(DateFormat.getDateTimeInstance(dateStyle, timeStyle, Locale.US));
    if (JavaVersion.isJava9OrLater()) {{
      dateFormats.add(PreJava9Provider.getUsDateTimeFormat(dateStyle, timeStyle));
      dateFormats.sortByDateTimeStyle();
"""
    old = """\
    dateFormats.add(DateFormat.getDateInstance(dateStyle, Locale.US));
    if (JavaVersion.isJava9OrLater()) {
      dateFormats.add(PreJava9Provider.getUsDateFormat(dateStyle));
      dateFormats.sortByDateStyle();
"""
    assert "not found" in refusal(text, old, old.replace("    if (JavaVersion", "    if (!JavaVersion"))


def test_line_more_frequent_in_old_text_than_in_file_is_not_located():
    """And that may be the one to change."""
    text = f"{FILLING}    begin_of_block()\n    finish()\n    end_of_block()\n    rest_of_block()\n"
    old = (
        "    begin_of_block()\n    finish()\n    end_of_block()\n    rest_of_block()\n    finish()\n    other_block()\n"
    )
    new = old.replace("    finish()\n    other", "    finish(1)\n    other")
    assert "not found" in refusal(text, old, new)
    assert "not found" in refusal(text, old, old.replace("    finish()\n    end", "    finish(1)\n    end"))


@pytest.mark.parametrize(("line", "least", "most"), [("}", 2, 2), ("end", 4, 5), ("value_7 = compute(7)", 8, 9)])
def test_rarer_and_longer_lines_have_more_bits(line, least, most):
    text = FILLING + "}\nend\n"
    assert least <= ContextScorer(DocumentIndex(TextDocument(text)), [line]).bits([0]) <= most


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
