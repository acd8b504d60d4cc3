"""Texts in which a patch can go wrong: changed files, similar places, duplicates, several patches at once.

`cases` yields these and the plain corruptions together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random

from benchmarks.commits import Commits
from benchmarks.corruptions import (
    KINDS,
    NAME,
    Case,
    Edit,
    Patches,
    altered,
    case_of,
    curly_by_model,
    dedented,
    indent_of,
    indented_more,
    inner_spaces,
    make_edit,
    shifted,
    text_of,
    texts,
    trailing_by_model,
    typo_in_context,
)
from benchmarks.drifts import real_drift, stands_as_block
from benchmarks.misplaced_edits import MISPLACED
from benchmarks.one_sided import ONE_SIDED
from benchmarks.real_files import real_files, version_pairs

# ----------------------------------------------------------------- changed files


def drifted(random: Random, edit: Edit) -> Case | None:
    """Two or three context lines have changed."""
    context = [line for line in edit.context if edit.lines[line].strip()]
    if len(context) < 4 or _has_near_twin(edit, _without_block(edit)):
        return None
    lines = list(edit.lines)
    for line in random.sample(context, random.randint(2, 3)):
        lines[line] = altered(random, lines[line], lines)
    return case_of(replace(edit, lines=tuple(lines)), "drifted", edit.old, edit.new)


def drifted_lines(random: Random, edit: Edit) -> Case | None:
    """In the context, away from the change, one line was added and another removed."""
    inner = [line for line in edit.context if line not in (edit.first, edit.start - 1, edit.stop)]
    inner = [line for line in inner if edit.lines[line].strip() and edit.lines[line - 1].strip()]
    came = altered(random, random.choice(edit.lines[:200]), edit.lines).strip()
    if len(inner) < 2 or len(edit.context) < 5 or not came or _has_near_twin(edit, _without_block(edit)):
        return None
    gone, below = random.sample(inner, 2)
    lines: list[str] = []
    for number, line in enumerate(edit.lines):
        lines += [indent_of(line) + came] if number == below else []
        lines += [line] if number != gone else []
    shift = (below < edit.start) - (gone < edit.start)
    moved = replace(edit, lines=tuple(lines), start=edit.start + shift, stop=edit.stop + shift)
    return case_of(moved, "drifted lines", edit.old, edit.new)


# ------------------------------------------------------------------------------- twins


def _sibling(random: Random, edit: Edit, changed: int) -> list[str]:
    block = edit.old
    block[changed] = altered(random, block[changed], edit.lines)
    return block


def _with_sibling(random: Random, edit: Edit) -> Edit:
    changed = random.choice([index for index, line in enumerate(edit.old) if NAME.search(line)] or [0])
    block = ["separator = 1", *_sibling(random, edit, changed), "separator = 2"]
    if random.random() < 0.5:
        return replace(edit, lines=(*edit.lines, *block))
    lines = (*block, *edit.lines)
    return replace(edit, lines=lines, start=edit.start + len(block), stop=edit.stop + len(block))


def twins(random: Random, edit: Edit) -> Case | None:
    """The model's text matches one of two similar blocks exactly."""
    edit = _with_sibling(random, edit)
    if "\n".join(edit.lines).count("\n".join(edit.old)) > 1:
        return None
    return case_of(edit, "twins", edit.old, edit.new)


def twins_loose(random: Random, edit: Edit) -> Case | None:
    """The model's text has a slip in addition."""
    slip = random.choice([indented_more, trailing_by_model, typo_in_context, inner_spaces, curly_by_model])
    case = slip(random, _with_sibling(random, edit))
    return None if case is None else replace(case, kind="twins, loose")


def twins_hint(random: Random, edit: Edit) -> Case | None:
    edit = _with_sibling(random, edit)
    case = random.choice([indented_more, typo_in_context, dedented])(random, edit)
    if case is None or str(case.patches[0]["old_text"]) in case.text:
        return None
    hint = max(1, edit.first + 1 + random.randint(-3, 3))
    return replace(case, kind="twins, hint", patches=[{**case.patches[0], "start_line": hint}])


def twin_only(random: Random, edit: Edit) -> Case | None:
    """The block was removed, and a similar block remains whose line to change is different."""
    if not edit.removed or not NAME.search(edit.removed[0]):
        return None
    sibling = _sibling(random, edit, edit.before)
    if sibling == edit.old or sibling[edit.before] in edit.added:
        return None
    lines = (*edit.lines[: edit.first], "separator = 1", *edit.lines[edit.stop + edit.after :], *sibling)
    if stands_as_block(lines, edit.old):
        return None
    case = case_of(replace(edit, lines=lines), "twin only", edit.old, edit.new)
    if random.random() < 0.3:
        case = texts(case, shifted)
    return replace(case, expected=None)


def _twice(edit: Edit) -> Edit:
    return replace(edit, lines=(*edit.lines, "separator = 1", *edit.old))


def duplicates(_: Random, edit: Edit) -> Case:
    return replace(case_of(_twice(edit), "duplicates", edit.old, edit.new), expected=None)


def duplicates_hint(random: Random, edit: Edit) -> Case:
    hint = edit.first + 1 + random.randint(-1, 1)
    return case_of(_twice(edit), "duplicates, hint", edit.old, edit.new, start_line=hint)


def duplicates_loose(random: Random, edit: Edit) -> Case | None:
    case = random.choice([dedented, indented_more, trailing_by_model])(random, _twice(edit))
    if case is None or str(case.patches[0]["old_text"]) in case.text:
        return None
    return replace(case, kind="duplicates, loose", expected=None)


def duplicates_typo(random: Random, edit: Edit) -> Case | None:
    case = typo_in_context(random, _twice(edit))
    return None if case is None else replace(case, kind="duplicates, typo", expected=None)


def replace_all_loose(random: Random, edit: Edit) -> Case | None:
    """All copies of a block, which the model indents differently, unless the file has copies with other indentation."""
    is_only = _without_blanks(edit.lines).count(_without_blanks(edit.old)) == 1
    if not edit.removed or any(not line.strip() for line in edit.new) or not is_only:
        return None
    case = indented_more(random, _twice(edit))
    expected = "\n".join([*edit.result, "separator = 1", *edit.new])
    patches: Patches = [{**case.patches[0], "replace_all": True}]
    return replace(case, kind="replace all, loose", patches=patches, expected=expected)


# ------------------------------------------------------------------ nothing to change


def already_applied(_: Random, edit: Edit) -> Case | None:
    text = "\n".join(edit.result)
    if not edit.added or "\n".join(edit.old) in text:
        return None
    return replace(case_of(edit, "already applied", edit.old, edit.new), text=text, expected=None)


def deleted_before(_: Random, edit: Edit) -> Case | None:
    edit = replace(edit, added=())
    text = "\n".join(edit.result)
    if not edit.removed or "\n".join(edit.old) in text:
        return None
    return replace(case_of(edit, "already deleted", edit.old, edit.new), text=text, expected=None)


def applied_with_twin(random: Random, edit: Edit) -> Case | None:
    case = already_applied(random, edit)
    if case is None or len(edit.old) < 3:
        return None
    twin = shifted("\n".join(edit.old))
    return replace(case, kind="applied, and a twin", text=f"{case.text}\nseparator = 1\n{twin}")


def gone(_: Random, edit: Edit) -> Case | None:
    """The lines to change have been removed."""
    lines = (*edit.lines[: edit.start], *edit.lines[edit.stop :])
    if not edit.removed or stands_as_block(lines, edit.old) or _has_near_twin(edit, lines):
        return None
    return replace(case_of(replace(edit, lines=lines), "gone", edit.old, edit.new), expected=None)


def renamed(random: Random, edit: Edit) -> Case | None:
    """The lines to change have another name, number or operator now."""
    if not edit.removed or not NAME.search(edit.removed[0]):
        return None
    lines = list(edit.lines)
    lines[edit.start] = altered(random, lines[edit.start], lines)
    if lines[edit.start] in edit.added or stands_as_block(lines, edit.old) or _has_near_twin(edit, lines):
        return None
    return replace(case_of(replace(edit, lines=tuple(lines)), "renamed", edit.old, edit.new), expected=None)


def absent(_: Random, edit: Edit) -> Case | None:
    """The whole block is not in the file."""
    lines = _without_block(edit)
    if stands_as_block(lines, edit.old):
        return None
    case = case_of(replace(edit, lines=lines), "absent block", edit.old, edit.new)
    return None if _has_near_twin(edit, lines) else replace(case, expected=None)


def twin_remains(_: Random, edit: Edit) -> Case | None:
    """The whole block is not in the file, but its lines to change occur in another block."""
    lines = _without_block(edit)
    touched = edit.removed or list(edit.lines[edit.start - 1 : edit.start + 1])
    if not stands_as_block(lines, touched) or stands_as_block(lines, edit.old) or _has_near_twin(edit, lines):
        return None
    case = case_of(replace(edit, lines=lines), "twin remains", edit.old, edit.new)
    return replace(case, expected=None)


def _without_block(edit: Edit) -> tuple[str, ...]:
    return (*edit.lines[: edit.first], *edit.lines[edit.stop + edit.after :])


def _has_near_twin(edit: Edit, lines: Sequence[str]) -> bool:
    size, below = len(edit.old), len(edit.old) - edit.after
    text = _without_blanks(lines)
    return any(
        stands_as_block(lines, edit.old[:at]) and stands_as_block(lines, edit.old[at + 1 :])
        for at in (*range(edit.before), *range(below, size))
    ) or any(
        2 * (last - first) >= size and _without_blanks(edit.old[first:last]) in text
        for first in range(edit.before)
        for last in range(below + 1, size + 1)
    )


def _without_blanks(lines: Sequence[str]) -> str:
    return "".join("".join(lines).split())


def placeholder(random: Random, edit: Edit) -> Case | None:
    """The new text has a placeholder instead of lines."""
    if edit.after < 2:
        return None
    promise = random.choice(["// ... existing code ...", "# ... rest of the file ...", "// rest of the code unchanged"])
    head = [*edit.lines[edit.first : edit.start], *edit.added, indent_of(edit.lines[edit.stop]) + promise]
    return replace(case_of(edit, "placeholder", edit.old, head), expected=None)


def no_change(_: Random, edit: Edit) -> Case:
    return replace(case_of(edit, "no change", edit.old, edit.old), expected=None)


# --------------------------------------------------------------------- several patches


def several(random: Random, edit: Edit) -> Case | None:
    lines = list(edit.lines)
    places = [edit.start, *random.sample(range(6, len(lines) - 8), 3)]
    patches: Patches = []
    result = list(lines)
    taken: set[int] = set()
    for place in places:
        old = lines[place - 1 : place + 2]
        changed = altered(random, lines[place], lines)
        block = set(range(place - 1, place + 2))
        if block & taken or not lines[place].strip() or "\n".join(lines).count("\n".join(old)) != 1:
            continue
        taken |= block
        patches.append({"old_text": "\n".join(old), "new_text": "\n".join([old[0], changed, old[2]])})
        result[place] = changed
    if len(patches) < 2 or result == lines:
        return None
    return Case("several patches", "\n".join(lines), patches, "\n".join(result))


def _stretches(random: Random, edit: Edit, kind: str, spans: Sequence[tuple[int, int]], at: int) -> Case | None:
    """Return a case with one patch per span, which changes the line at offset ``at`` in the span."""
    lines, result = list(edit.lines), list(edit.lines)
    patches: Patches = []
    for start, stop in spans:
        old = lines[start:stop]
        if not all(line.strip() for line in old) or "\n".join(lines).count("\n".join(old)) != 1:
            return None
        result[start + at] = altered(random, old[at], lines)
        new = [*old[:at], result[start + at], *old[at + 1 :]]
        if new == old:
            return None
        patches.append({"old_text": "\n".join(old), "new_text": "\n".join(new)})
    random.shuffle(patches)
    return Case(kind, "\n".join(lines), patches, "\n".join(result))


def shared_context(random: Random, edit: Edit) -> Case | None:
    """Two patches whose context lines overlap."""
    at = edit.start
    return _stretches(random, edit, "shared context", [(at - 1, at + 2), (at + 1, at + 4)], 1)


def adjacent(random: Random, edit: Edit) -> Case | None:
    """Patches of consecutive lines, without context between them."""
    at = edit.start
    return _stretches(random, edit, "adjacent", [(at - 2, at), (at, at + 2), (at + 2, at + 3)], 0)


def overlapping(_: Random, edit: Edit) -> Case | None:
    """Two patches that change the same line in different ways."""
    other = replace(edit, before=0, added=("something_else = 1", *edit.added))
    if not edit.removed or not edit.added or "\n".join(edit.lines).count("\n".join(other.old)) != 1:
        return None
    patches = [*case_of(edit, "", edit.old, edit.new).patches, *case_of(other, "", other.old, other.new).patches]
    return Case("overlapping", "\n".join(edit.lines), patches, None)


def dependent(_: Random, edit: Edit) -> Case | None:
    old, new = "\n".join(edit.old), "\n".join(edit.new)
    if not edit.removed or not edit.added or new in "\n".join(edit.lines) or new.split() == old.split():
        return None
    case = case_of(edit, "dependent", edit.old, edit.new)
    second = [*edit.new[: edit.before], "brought_in = 1", *edit.new[edit.before :]]
    patches: Patches = [*case.patches, {"old_text": "\n".join(edit.new), "new_text": "\n".join(second)}]
    return replace(case, patches=patches, expected=None)


def one_fails(random: Random, edit: Edit) -> Case | None:
    case = several(random, edit)
    if case is None:
        return None
    patches: Patches = [*case.patches, {"old_text": "if absent_here(1):\n    nowhere()", "new_text": "pass"}]
    random.shuffle(patches)
    return replace(case, kind="one fails", patches=patches, expected=None)


TRAPS: tuple[Callable[[Random, Edit], Case | None], ...] = (
    drifted,
    drifted_lines,
    twins,
    twins_loose,
    twins_hint,
    twin_only,
    duplicates,
    duplicates_hint,
    duplicates_loose,
    duplicates_typo,
    replace_all_loose,
    already_applied,
    deleted_before,
    applied_with_twin,
    gone,
    renamed,
    absent,
    twin_remains,
    placeholder,
    no_change,
    several,
    shared_context,
    adjacent,
    overlapping,
    dependent,
    one_fails,
)


def cases(
    seed: int, per_kind: int, held_out: bool, roots: Sequence[Path] = (), repositories: Sequence[Path] = ()
) -> list[Case]:
    """Return at most ``per_kind`` cases of each kind, equally from all languages. Rare kinds have fewer.

    The edits come from commits in ``repositories``. Without these, they are invented in this machine's files.
    """
    random = Random(seed)
    if repositories:
        commits = Commits(random, repositories)
        return [*_corrupted(random, per_kind, commits.edit), *_drifts_of(random, per_kind, commits)]
    by_language = [files for files in real_files(roots, held_out).values() if files]
    made = partial(_made_edit, random, by_language)
    return [*_corrupted(random, per_kind, made), *_real_drifts(random, per_kind, version_pairs(roots, held_out))]


def _made_edit(random: Random, by_language: Sequence[Sequence[Path]]) -> Edit | None:
    return make_edit(random, random.choice(random.choice(by_language)))


def _corrupted(random: Random, per_kind: int, draw: Callable[[], Edit | None]) -> Iterator[Case]:
    for make in (*KINDS, *ONE_SIDED, *TRAPS, *MISPLACED):
        count = 0
        for _ in range(per_kind * 12):
            edit = draw()
            case = make(random, edit) if edit else None
            if case is not None and edit is not None:
                yield replace(case, source=edit.source)
                count += 1
            if count == per_kind:
                break


def _drifts_of(random: Random, per_kind: int, commits: Commits) -> Iterator[Case]:
    drawn = (commits.versions() for _ in range(per_kind * 60))
    found = (case for pair in drawn if pair and (case := real_drift(random, *pair)) is not None)
    return islice(found, per_kind * 3)


def _real_drifts(random: Random, per_kind: int, pairs: Sequence[tuple[Path, Path]]) -> Iterator[Case]:
    tried = random.sample(pairs, min(len(pairs), per_kind * 6))
    versions = ((str(older), text_of(older).split("\n"), text_of(newer).split("\n")) for older, newer in tried)
    found = (case for pair in versions if (case := real_drift(random, *pair)) is not None)
    return islice(found, per_kind)
