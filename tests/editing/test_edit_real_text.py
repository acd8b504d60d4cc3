"""Edits of real source text, with typical model errors: the right result or a rejection, never another text.

The texts are the modules of the standard library; edits are made up in them as in the benchmarks.
"""

import ast
import re
import sysconfig
from pathlib import Path
from random import Random

import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from adapter.core.errors import EditError
from adapter.editing import patch_text
from adapter.editing.matching.normalize import fold_typography, tokenize_line
from adapter.editing.repairs.diff_markers import AmbiguousDiffMarkers, strip_new_text_markers
from adapter.editing.repairs.unescape import undo_double_escaping
from adapter.editing.replacement_text import merge_text
from benchmarks.ambiguity import is_ambiguous
from benchmarks.corruptions import KINDS, make_edit
from benchmarks.misplaced_edits import MISPLACED
from benchmarks.one_sided import (
    ONE_SIDED,
    deeper,
    diff_as_new,
    marks_in_new,
    numbers_of_kept,
    old_marked,
    old_partly_marked,
    plural_in_context,
    plural_in_removed,
    tight_numbers,
    tight_numbers_both,
    wide_marks_in_new,
)
from benchmarks.traps import drifted, drifted_lines, gone, renamed, twin_only
from tests.effort import examples

FILES = sorted(Path(sysconfig.get_path("stdlib")).glob("[a-h]*.py"))
LINES = [
    line.strip()
    for file in FILES[:30]
    for line in file.read_text("utf-8", "replace").split("\n")
    if re.search("['\"-]", line)
]
TYPOGRAPHIC = str.maketrans({"'": "\u2019", '"': "\u201d", "-": "\u2013"})

seeds = st.integers(0, 100_000)
fixed = examples(30)
"""The same cases each time. The benchmark counts the rates."""


def made(seed):
    """The first edit that the files give."""
    random = Random(seed)
    while True:
        edit = make_edit(random, random.choice(FILES))
        if edit is not None:
            return edit


def case_of(make, seed):
    """The first case of a kind that the files give. For a kind that they hardly give, the example is not counted."""
    random = Random(seed)
    for _ in range(300):
        edit = make_edit(random, random.choice(FILES))
        case = make(random, edit) if edit else None
        if case is not None:
            return case
    return reject()


def applied(case):
    try:
        return patch_text(case.text, case.patches).text
    except EditError:
        return None


@given(st.sampled_from(LINES), st.sampled_from(LINES))
def test_rewritten_line_gets_no_character_of_the_old_one(old, new):
    """Quotes and dashes of the document stay where the line was kept, and only there."""
    merged = merge_text(old, old.translate(TYPOGRAPHIC), new)
    assert fold_typography(merged) == fold_typography(new)
    is_extended = any(new.startswith(old[:at]) and new.endswith(old[at:]) for at in range(len(old) + 1))
    if not is_extended and not set(re.findall(r"\w+", old)) & set(re.findall(r"\w+", new)):
        assert merged == new


@pytest.mark.parametrize(
    ("old", "file", "new", "expected"),
    [
        ('#include "util/list.h"', "#include ”util/list.h”", '#import "util/list.h"', "#import ”util/list.h”"),
        ('# print "foo"', "# print “foo”", 'print("foo")', 'print("foo")'),
        ("- item", "– item", "- other", "- other"),
    ],
)
def test_word_after_a_number_sign_is_not_a_comment(old, file, new, expected):
    assert merge_text(old, file, new) == expected


@given(st.sampled_from(LINES), st.data())
def test_text_inserted_into_a_line_stays_as_written(line, data):
    """If one piece is added, all others are the document's."""
    parts = tokenize_line(line)
    at = data.draw(st.integers(0, len(parts)))
    assume(not any(part[0] in "#/*-;<" for part in (*parts[:1], *parts[at - 1 : at], *parts[at : at + 1])))
    new = "".join([*parts[:at], " added ", *parts[at:]])
    merged = merge_text(line, line.translate(TYPOGRAPHIC), new)
    assert " added " in merged
    assert merged.replace(" added ", "").translate(TYPOGRAPHIC) == line.translate(TYPOGRAPHIC)


@given(
    st.lists(st.sampled_from(LINES), min_size=2, max_size=5), st.lists(st.sampled_from(LINES), min_size=1, max_size=5)
)
def test_one_way_to_undo_escapes_gives_both_texts_back(old, new):
    """Escaped throughout, as JSON is, or only the line breaks: the texts are among the readings, as a pair."""
    old_text, new_text = "\n".join(old), "\n".join(new)

    def escaped(text):
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    ways = list(undo_double_escaping(escaped(old_text), escaped(new_text)))
    assert (old_text, new_text) in ways
    if "\\" not in old_text + new_text:
        ways = list(undo_double_escaping(old_text.replace("\n", "\\n"), new_text.replace("\n", "\\n")))
        assert old_text in [way[0] for way in ways]


@given(st.lists(st.sampled_from(LINES), min_size=2, max_size=4, unique=True), st.data())
def test_markers_only_in_new_text_are_removed_or_rejected(lines, data):
    """Never half of them, and never from a text that has none."""
    indents = data.draw(st.lists(st.sampled_from(["", "    ", "        "]), min_size=6, max_size=6))
    old = [indent + line for indent, line in zip(indents, lines, strict=False)]
    added = indents[4] + data.draw(st.sampled_from(LINES))
    assume(not any(line[:1] in ("+", "-") for line in (*old, added)))
    at = data.draw(st.integers(0, len(old)))
    truth = "\n".join([*old[:at], added, *old[at:]])
    for mark in ("+", "+ "):
        try:
            found = strip_new_text_markers(
                "\n".join(old), "\n".join([*old[:at], mark + added, *old[at:]]), "\n".join(old)
            )
        except AmbiguousDiffMarkers:
            continue
        assert found is not None
        assert found[0] == truth
    assert strip_new_text_markers("\n".join(old), truth, "\n".join(old)) is None


@fixed
@pytest.mark.parametrize("make", ONE_SIDED, ids=lambda make: make.__name__)
@given(seeds)
def test_error_in_one_text_gives_the_right_result_or_a_rejection(make, seed):
    """Marks, numbers, escapes and characters that only one of the two texts has, and one letter too many."""
    case = case_of(make, seed)
    assert applied(case) in (case.expected, None)


@fixed
@pytest.mark.parametrize(
    "make",
    [marks_in_new, wide_marks_in_new, diff_as_new, old_marked, old_partly_marked, tight_numbers, tight_numbers_both,
     numbers_of_kept, plural_in_context, plural_in_removed, drifted_lines],
    ids=lambda make: make.__name__,
)  # fmt: skip
@given(seeds)
def test_applied_patch_is_not_applied_again(make, seed):
    """A repeated patch is already applied or not found; the text is unchanged."""
    case = case_of(make, seed)
    assume(applied(case) == case.expected)
    assert patch_again(case) in (case.expected, None)


@fixed
@given(seeds)
def test_lines_moved_one_level_deeper_are_not_moved_twice(seed):
    """The new text occurs verbatim, and the old one matches it except for its indentation."""
    case = case_of(deeper, seed)
    assume(applied(case) == case.expected)
    assert patch_again(case) is None


def patch_again(case):
    try:
        return patch_text(case.expected, case.patches).text
    except EditError:
        return None


@fixed
@given(seeds, st.sampled_from([drifted, drifted_lines, gone, renamed, twin_only]))
def test_drift_gives_the_right_result_or_a_rejection(seed, make):
    """Around the change the file reads differently; where the lines to change are gone nothing is edited."""
    case = case_of(make, seed)
    assert applied(case) in (case.expected, None)


@pytest.mark.parametrize("make", MISPLACED, ids=[str(number) for number in range(len(MISPLACED))])
def test_edit_is_made_in_the_right_place_or_rejected(make):
    """Right or refused: no other place, no other block, no line lost."""
    for seed in range(6):
        case = case_of(make, seed)
        got = applied(case)
        assert got is None or got == case.expected or is_ambiguous(case, got)


@fixed
@given(seeds, st.sampled_from([*KINDS, *ONE_SIDED]))
def test_a_module_that_parsed_parses_after_an_adapted_edit(seed, make):
    """Whatever was read, moved or merged: a true edit that parses leaves a module that does."""
    case = case_of(make, seed)
    assume(parses(case.text) and parses(case.expected))
    try:
        result = patch_text(case.text, case.patches, "module.py")
    except EditError:
        return
    assert parses(result.text)
    assert result.notes == ()


def parses(text):
    try:
        ast.parse(text.removeprefix("\ufeff"))
    except (SyntaxError, ValueError):
        return False
    return True


@pytest.mark.parametrize(
    ("path", "before", "old", "new", "said"),
    [
        ("a.py", "x = 1\ny = 2\n", "y = 2", "y = (2", "line 2 no longer parses: '(' was never closed"),
        ("a.json", '{"a": 1,\n "b": 2}\n', '"b": 2', '"b": 2,', "line 2 no longer parses: Expecting property name"),
        ("a.geojson", '{"a": 1,\n "b": 2}\n', '"b": 2', '"b": 2,', "line 2 no longer parses: Expecting property name"),
        ("a.jsonc", '// c\n{"a": "//", // d\n "b": 2,}\n', '"b": 2', '"b" 2', "line 3 no longer parses: Expecting ':'"),
        ("tsconfig.json", '{"a": 1, /* c */\n "b": 2}\n', '"b": 2', '"b": [2', "line 2 no longer parses"),
        ("a.jsonl", '{"a": 1}\n{"b": 2}\n', '{"b": 2}', '{"b": 2', "line 2 no longer parses: Expecting ','"),
        ("a.go", 'package a\nvar a = "x"\n', '"x"', '"x\ny"', "line 3 no longer parses"),
        ("a.go", "package a\nvar a = 'x'\n", "'x'", "'\n'", "line 2 no longer parses: newline in rune literal"),
        ("a.ts", 'const a = "x";\nf();\n', '"x"', '"x\ny"', "line 2 no longer parses"),
        ("a.toml", "a = 1\nb = 2\n", "b = 2", "b =", "line 2 no longer parses: Invalid value"),
        ("a.js", "f(1);\ng(2);\n", "g(2);", "g(2;", "line 2 no longer parses"),
    ],
)
def test_unadapted_edit_that_breaks_the_file_has_a_note(path, before, old, new, said):
    """The model wrote it so, and may mean it; it learns where the file stops making sense."""
    (note,) = patch_text(before, [{"old_text": old, "new_text": new}], path).notes
    assert note.startswith(said)


LIST = "x = [\n    'a',\n    2,\n]\n"


@pytest.mark.parametrize(
    ("path", "before", "old", "new", "after"),
    [
        ("a.json", '{\n  "port": 80,\n  "x": 1\n}\n', '"port": 80,', '"port": 90', '{\n  "port": 90,\n  "x": 1\n}\n'),
        ("a.py", LIST, "'a',", "'b'", LIST.replace("a", "b")),
        # lookalikes
        ("a.py", LIST, "    'a',\n", "    3\n    4\n", "x = [\n    3\n    4\n    2,\n]\n"),
        ("a.json", '{"a": 1,\n"b": 2}\n', '"a": 1,\n', "", '{"b": 2}\n'),
        ("a.txt", "a, b\n", "a,", "c", "c b\n"),
    ],
)
def test_comma_that_the_file_needs_is_kept(path, before, old, new, after):
    """`Qwen2.5-Coder-0.5B` leaves it out of the new text of an item."""
    result = patch_text(before, [{"old_text": old, "new_text": new}], path)
    assert result.text == after
    assert any("comma at the end of old_text was kept" in note for note in result.notes) == (f"{new}," in after)


@pytest.mark.parametrize("path", ["a.txt", "a.yaml", "Makefile", "a.py"])
def test_no_note_for_a_file_that_did_not_parse_before(path):
    """The file was invalid before the edit."""
    assert patch_text("x = (\ny = 2\n", [{"old_text": "y = 2", "new_text": "y = 3"}], path).notes == ()
