"""Recognize cases in which the file and the patch do not show which edit is meant.

Such cases arise by chance: noise makes different lines of a file equal, or a slip makes a text match another place
better than its own. A rejection is then right, and so is either edit. They are counted separately, as neither right nor
wrong.
"""

from __future__ import annotations

from adapter.core.text.diffs import find_changes
from adapter.editing.matching.normalize import normalize_line
from adapter.editing.repairs.interpretations import Interpretation, list_interpretations
from benchmarks.corruptions import UNSEEN, Case

BLANKS_BY_MODEL = (
    *("trailing by model", "twins, loose", "twins, hint", "indent", "tabs", "two for four", "two at once"),
    *("blank line beside", "escapes beside", "entities beside", "marks beside", "typography beside"),
    "new text elsewhere",
)
"""Beginnings of the names of kinds that add whitespace at line ends, or move lines that contain only whitespace."""


def is_ambiguous(case: Case, got: str | None) -> bool:
    if case.also and (got is None or _stripped(got) in map(_stripped, case.also)):
        return True  # a block that was moved inwards has deeper indentation
    if case.expected is None or got == case.expected:
        return False
    if got is not None and (
        _is_of_equal_lines(case.expected, got)
        or _is_of_equal_lines_but_blanks(case, got)
        or _is_of_comment(case, got)
        or _is_of_blanks_by_model(case, got)
        or _is_of_last_end(case, got)
    ):
        return True
    return _fits_elsewhere(case, case.expected, got)


def _is_of_equal_lines(expected: str, got: str) -> bool:
    return sorted(expected.split("\n")) == sorted(got.split("\n")) and _keys(expected) == _keys(got)


def _is_of_equal_lines_but_blanks(case: Case, got: str) -> bool:
    expected = case.expected or ""
    lines = {*case.text.split("\n"), *(line for patch in case.patches for line in str(patch["new_text"]).split("\n"))}
    is_stripped_same = [line.rstrip() for line in expected.split("\n")] == [line.rstrip() for line in got.split("\n")]
    return case.kind == "trailing in file" and is_stripped_same and lines.issuperset(got.split("\n"))


def _is_of_comment(case: Case, got: str) -> bool:
    texts = [[line for line in text.split("\n") if UNSEEN not in line] for text in (case.expected or "", got)]
    rest = iter(got.split("\n"))
    is_added_to = all(line in rest for line in case.text.split("\n"))
    return case.kind == "comment dropped" and texts[0] == texts[1] and is_added_to


def fits_anew(case: Case) -> bool:
    if len(case.patches) != 1:
        return False
    old, new = (str(case.patches[0][key]) for key in ("old_text", "new_text"))
    return any(
        one.old in case.text and one.new not in case.text for one in list_interpretations(Interpretation(old, new))
    )


def _is_of_blanks_by_model(case: Case, got: str) -> bool:
    is_such = case.kind.startswith(BLANKS_BY_MODEL)
    expected = case.expected or ""
    return is_such and [line.rstrip() for line in expected.split("\n")] == [line.rstrip() for line in got.split("\n")]


def _is_of_last_end(case: Case, got: str) -> bool:
    old, new = (str(case.patches[0][key]) for key in ("old_text", "new_text"))
    return new.endswith("\n") and not old.endswith("\n") and _keys(case.expected or "") == _keys(got)


def _fits_elsewhere(case: Case, expected: str, got: str | None) -> bool:
    if len(case.patches) != 1:
        return False
    lines = case.text.split("\n")
    wanted = _keys(str(case.patches[0]["old_text"]))
    filled = [(number, key) for number, line in enumerate(lines) if (key := normalize_line(line))]
    places = [
        range(filled[at][0], filled[at + len(wanted) - 1][0] + 1)
        for at in range(len(filled) - len(wanted) + 1)
        if [key for _, key in filled[at : at + len(wanted)]] == wanted
    ]
    meant = _changed(case.text, expected)
    exact = _exact_place(case)
    places = places if exact is None or _touch(exact, meant) else [exact]
    if not wanted or not places or any(_touch(place, meant) for place in places):
        return False
    return got is None or any(_touch(place, _changed(case.text, got)) for place in places)


def _exact_place(case: Case) -> range | None:
    old = str(case.patches[0]["old_text"])
    start = case.text.find(old)
    if start < 0 or case.text.find(old, start + 1) >= 0:
        return None
    first = case.text.count("\n", 0, start)
    return range(first, first + old.count("\n") + 1)


def _stripped(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n")]


def _changed(text: str, other: str) -> range:
    found = find_changes(text.split("\n"), other.split("\n"))
    return range(found[0].start, found[-1].end + 1)


def _touch(place: range, other: range) -> bool:
    return place.start < other.stop and other.start < place.stop


def _keys(text: str) -> list[str]:
    return [key for line in text.split("\n") if (key := normalize_line(line))]
