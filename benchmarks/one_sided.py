"""Slips that only one of the two texts of an edit has, and special characters of the file next to the edit.

A model copies its old text from a listing but writes the new one freely, or marks its additions in the new text. Such
marks must not get into the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from benchmarks.corruptions import NAME, Case, Edit, case_of, indent_of

_MARKS = str.maketrans({"'": "\u2019", '"': "\u201d", "-": "\u2013"})


def _without_plus(edit: Edit) -> bool:
    return not any(line[:1] in ("+", "-") for line in (*edit.lines, *edit.added))


def _with_marks(edit: Edit, kind: str, mark: str) -> Case | None:
    """The added lines are marked, the kept lines are not."""
    if not edit.added or not _without_plus(edit):
        return None
    added = [mark + line for line in edit.added]
    if mark == "+ " and all(not indent_of(line) for line in edit.old):
        return None  # "+ item" is also a list item
    head, tail = edit.lines[edit.first : edit.start], edit.lines[edit.stop : edit.stop + edit.after]
    return case_of(edit, kind, edit.old, [*head, *added, *tail])


def marks_in_new(_: Random, edit: Edit) -> Case | None:
    return _with_marks(edit, "+ in new", "+")


def wide_marks_in_new(_: Random, edit: Edit) -> Case | None:
    return _with_marks(edit, "+ and blank in new", "+ ")


def _diff(edit: Edit) -> list[str]:
    head = [" " + line for line in edit.lines[edit.first : edit.start]]
    tail = [" " + line for line in edit.lines[edit.stop : edit.stop + edit.after]]
    return [*head, *("-" + line for line in edit.removed), *("+" + line for line in edit.added), *tail]


def diff_as_new(_: Random, edit: Edit) -> Case | None:
    """The old text is plain, the new text is a diff."""
    return case_of(edit, "diff as new", edit.old, _diff(edit)) if _without_plus(edit) else None


def old_marked(_: Random, edit: Edit) -> Case | None:
    """The old text is marked as in a diff, the new text is plain."""
    old = [line for line in _diff(edit) if not line.startswith("+")]
    return case_of(edit, "marks in old", old, edit.new) if edit.removed and _without_plus(edit) else None


def old_partly_marked(_: Random, edit: Edit) -> Case | None:
    """Only the removed lines are marked."""
    if not edit.removed or not _without_plus(edit) or not all(line[:1] == " " for line in edit.old):
        return None
    old = [
        *edit.old[: edit.before],
        *("-" + line for line in edit.removed),
        *edit.old[edit.before + len(edit.removed) :],
    ]
    return case_of(edit, "- in old", old, edit.new)


def _tight(first: int, lines: Sequence[str]) -> list[str]:
    return [f"{first + step}|{line}" for step, line in enumerate(lines)]


def tight_numbers(_: Random, edit: Edit) -> Case:
    """Line numbers (``12|x``) only in the old text."""
    return case_of(edit, "12|x in old", _tight(edit.first + 1, edit.old), edit.new)


def tight_numbers_both(_: Random, edit: Edit) -> Case:
    first = edit.first + 1
    return case_of(edit, "12|x in both", _tight(first, edit.old), _tight(first, edit.new))


def numbers_of_kept(_: Random, edit: Edit) -> Case | None:
    old = [f"{edit.first + 1 + step}| {line}" for step, line in enumerate(edit.old)]
    new = [*old[: edit.before], *edit.added, *old[edit.before + len(edit.removed) :]]
    return case_of(edit, "numbers but new", old, new) if edit.before and edit.added else None


def numbers_in_new(_: Random, edit: Edit) -> Case | None:
    if not edit.added:
        return None
    new = [f"{edit.first + 1 + step}| {line}" for step, line in enumerate(edit.new)]
    return case_of(edit, "numbers in new", edit.old, new)


def escaped_breaks_beside_strings(_: Random, edit: Edit) -> Case | None:
    if not any(re.search(r"\\[ntr\"'/]", line) for line in edit.new) or any("\t" in line for line in edit.new):
        return None
    if any(re.search(r"\\n|\\r", line) and not re.search(r"([\"']).*\\[nr].*\1", line) for line in edit.old + edit.new):
        return None
    case = case_of(edit, "breaks escaped", edit.old, edit.new)
    patch = {key: str(value).replace("\n", "\\n") for key, value in case.patches[0].items()}
    return replace(case, patches=[patch])


def curly_beside_new(random: Random, edit: Edit) -> Case | None:
    """The removed lines have typographic characters in the file; the inserted lines are plain."""
    if not edit.removed or not any(line.translate(_MARKS) != line for line in edit.removed):
        return None
    added = [line for line in random.sample(edit.lines, min(40, len(edit.lines))) if line.translate(_MARKS) != line][:2]
    words = {word for line in edit.removed for word in re.findall(r"\w+", line)}
    added = [line for line in added if re.search(r"\w", line) and not words.intersection(re.findall(r"\w+", line))]
    if not added:
        return None
    lines = [
        line.translate(_MARKS) if at in range(edit.start, edit.stop) else line for at, line in enumerate(edit.lines)
    ]
    typographic = replace(edit, lines=tuple(lines), added=tuple(added))
    return case_of(typographic, "curly beside new", edit.old, typographic.new)


def _plural(random: Random, edit: Edit, line: str) -> str | None:
    """Return ``line`` with one name changed at its end by a letter, to a name that is not in the file."""
    text = "\n".join((*edit.lines, *edit.added))
    for match in random.sample(found := list(NAME.finditer(line)), len(found)):
        slip = match[0][:-1] if match[0].endswith("s") else match[0] + "s"
        if len(slip) >= 4 and not re.search(rf"\b{slip}\b", text):
            return line[: match.start()] + slip + line[match.end() :]
    return None


def plural_in_context(random: Random, edit: Edit) -> Case | None:
    row = random.choice(edit.context) - edit.first
    slip = _plural(random, edit, edit.lines[edit.first + row])
    if slip is None:
        return None
    right = edit.lines[edit.first + row]
    if edit.old.count(right) != 1 or edit.new.count(right) != 1:
        return None
    old, new = ([slip if line == right else line for line in part] for part in (edit.old, edit.new))
    return case_of(edit, "plural in context", old, new)


def plural_in_removed(random: Random, edit: Edit) -> Case | None:
    if not edit.removed:
        return None
    slip = _plural(random, edit, edit.removed[0])
    if slip is None:
        return None
    return case_of(edit, "plural in removed", [*edit.old[: edit.before], slip, *edit.old[edit.before + 1 :]], edit.new)


def deeper(random: Random, edit: Edit) -> Case | None:
    """Lines wrapped or moved one level deeper, which still look like the old ones."""
    block = [line for line in edit.old if line.strip()]
    if len(block) != len(edit.old):
        return None
    moved = ["    " + line for line in block]
    head = [indent_of(block[0]) + random.choice(["if ready:", "with lock:", "- name: more"])] * random.randint(0, 1)
    wrapped = replace(edit, start=edit.first, stop=edit.first + len(block), added=(*head, *moved), before=0, after=0)
    return case_of(wrapped, "one level deeper", wrapped.old, wrapped.new)


ONE_SIDED: tuple[Callable[[Random, Edit], Case | None], ...] = (
    marks_in_new,
    wide_marks_in_new,
    diff_as_new,
    old_marked,
    old_partly_marked,
    tight_numbers,
    tight_numbers_both,
    numbers_of_kept,
    numbers_in_new,
    escaped_breaks_beside_strings,
    curly_beside_new,
    plural_in_context,
    plural_in_removed,
    deeper,
)
