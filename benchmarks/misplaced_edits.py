"""Slips that can move an edit to another place or scope, or lose unrelated lines or characters.

The slips are wrong line numbers, equal patches, another unit of indentation, new text that already occurs elsewhere,
comments that stand for the rest of a file, and special characters near a slip.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from random import Random

from benchmarks.corruptions import (
    Case,
    Edit,
    Patches,
    altered,
    blank_dropped,
    case_of,
    comment_of,
    dedented,
    indent_of,
    indented_more,
    trailing_by_model,
)

# ------------------------------------------------------------------------ line numbers


def _copies(edit: Edit, count: int, random: Random) -> tuple[list[str], list[int]]:
    """Append ``count`` copies of the old lines to the file. Return its lines, and the index of each occurrence."""
    lines, firsts = list(edit.lines), [edit.first]
    for number in range(count):
        gap = random.sample(edit.lines, min(len(edit.lines), random.randint(3, 30)))
        lines += [f"separator = {number}", *gap, f"separator = {number}"]
        firsts.append(len(lines))
        lines += edit.old
    return lines, firsts


def _changed_at(edit: Edit, lines: Sequence[str], firsts: Sequence[int]) -> str:
    result = list(lines)
    for first in sorted(firsts, reverse=True):
        result[first : first + len(edit.old)] = edit.new
    return "\n".join(result)


def _count(text: str, edit: Edit) -> int:
    return text.count("\n".join(edit.old))


def number_behind_end(random: Random, edit: Edit) -> Case | None:
    """Two equal blocks, and a line number that the file does not have."""
    lines, _ = _copies(edit, 1, random)
    hint = len(lines) + random.randint(2, 400)
    case = case_of(replace(edit, lines=tuple(lines)), "number behind end", edit.old, edit.new, start_line=hint)
    return replace(case, expected=None)


def number_between(random: Random, edit: Edit) -> Case | None:
    """Two equal blocks, and a line number about halfway between them."""
    lines, (first, second) = _copies(edit, 1, random)
    between = (first + second) // 2 + random.randint(-1, 1)
    if second - first < 30:
        return None
    case = case_of(replace(edit, lines=tuple(lines)), "number between", edit.old, edit.new, start_line=between)
    return replace(case, expected=None)


def equal_patches(random: Random, edit: Edit) -> Case | None:
    lines, firsts = _copies(edit, random.randint(1, 2), random)
    text = "\n".join(lines)
    if _count(text, edit) != len(firsts):
        return None
    patch = case_of(edit, "", edit.old, edit.new).patches[0]
    return Case("equal patches", text, [dict(patch) for _ in firsts], _changed_at(edit, lines, firsts))


def equal_patches_shifted(random: Random, edit: Edit) -> Case | None:
    """Equal patches for equal blocks, whose line numbers are all wrong by the same amount."""
    lines, firsts = _copies(edit, random.randint(1, 2), random)
    text, shift = "\n".join(lines), random.choice([-9, -4, 3, 8])
    if _count(text, edit) != len(firsts) or firsts[0] + shift < 1:
        return None
    patch = case_of(edit, "", edit.old, edit.new).patches[0]
    patches: Patches = [{**patch, "start_line": first + 1 + shift} for first in firsts]
    return Case("equal patches, shifted", text, patches, _changed_at(edit, lines, firsts))


def too_few_equal_patches(random: Random, edit: Edit) -> Case | None:
    """Two equal patches for three equal blocks."""
    lines, _ = _copies(edit, 2, random)
    patch = case_of(edit, "", edit.old, edit.new).patches[0]
    return Case("too few equal patches", "\n".join(lines), [dict(patch), dict(patch)], None)


# ------------------------------------------------------------------ units of indentation


def _unit_of(edit: Edit) -> str | None:
    """Return the unit of indentation of all lines in the file and the edit, or None."""
    indents = {indent_of(line) for line in (*edit.lines, *edit.added) if line.strip()}
    for unit in ("\t", "    ", "  "):
        if unit in indents and all(not indent.replace(unit, "") for indent in indents):
            return unit
    return None


def _in_unit(lines: Sequence[str], unit: str, other: str) -> list[str]:
    return [other * (len(indent_of(line)) // len(unit)) + line.lstrip() if line.strip() else line for line in lines]


def other_unit(random: Random, edit: Edit) -> Case | None:
    """Both texts have a different unit of indentation than the file."""
    unit = _unit_of(edit)
    if unit is None or not any(indent_of(line) for line in edit.old):
        return None
    other = random.choice([other for other in ("  ", "    ", "   ", "        ", "\t") if other != unit])
    old, new = (_in_unit(part, unit, other) for part in (edit.old, edit.new))
    return case_of(edit, "another unit", old, new)


def other_unit_less_deep(random: Random, edit: Edit) -> Case | None:
    """Both texts have a different unit of indentation, and begin in column 0."""
    unit = _unit_of(edit)
    least = min((indent_of(line) for line in (*edit.old, *edit.new) if line.strip()), key=len)
    if unit is None or not least or all(indent_of(line) == least for line in edit.old if line.strip()):
        return None
    other = random.choice([other for other in ("  ", "    ", "\t") if other != unit])
    old, new = (_in_unit([line[len(least) :] for line in part], unit, other) for part in (edit.old, edit.new))
    return case_of(edit, "another unit, dedented", old, new)


# ------------------------------------------------------------------------ already present


def new_text_elsewhere(random: Random, edit: Edit) -> Case | None:
    """The edit has already been made in a copy of the block, but not in the intended block."""
    if not edit.added:
        return None
    lines = (*edit.lines, "separator = 1", *edit.new)
    if _count("\n".join(lines), edit) != 1:
        return None
    case = random.choice([_exact, trailing_by_model])(random, replace(edit, lines=lines))
    return replace(case, kind="new text elsewhere")


def _exact(_: Random, edit: Edit) -> Case:
    return case_of(edit, "", edit.old, edit.new)


# ------------------------------------------------------------------------ placeholders

PHRASES = (
    "... existing code ...",
    "... (rest unchanged)",
    "the rest is identical to the original",
    "unchanged",
    "(unchanged lines omitted)",
    "remaining code stays the same",
    "... keep the existing implementation ...",
    "same as before",
    "[previous content here]",
    "etc.",
    "...",
)


def phrase_elided(random: Random, edit: Edit) -> Case | None:
    """A comment in both texts stands for 3 to 40 lines above or below the change."""
    size = random.randint(3, 40)
    is_above = random.random() < 0.5
    first = edit.start - 2 - size if is_above else edit.stop + 2
    last = first + size
    edges = (first - 1, first, last, last - 1, last + 1, edit.start - 1, edit.stop)
    if first < 1 or last + 1 >= len(edit.lines) or not all(edit.lines[line].strip() for line in edges):
        return None
    mark = indent_of(edit.lines[first]) + comment_of(edit, random.choice(PHRASES))
    above = [*edit.lines[first - 2 : first], mark, *edit.lines[last : edit.start]] if is_above else None
    below = [*edit.lines[edit.stop : first], mark, *edit.lines[last : last + 2]] if not is_above else None
    head = above or list(edit.lines[edit.first : edit.start])
    tail = below or list(edit.lines[edit.stop : edit.stop + edit.after])
    return case_of(edit, "phrase elided", [*head, *edit.removed, *tail], [*head, *edit.added, *tail])


def phrase_in_new(random: Random, edit: Edit) -> Case | None:
    """The new text has a comment in place of the lines below the change, which the old text shows."""
    below = list(edit.lines[edit.stop : edit.stop + random.randint(3, 12)])
    if len(below) < 3 or not below[0].strip() or not below[-1].strip():
        return None
    wider = replace(edit, after=len(below))
    mark = indent_of(below[0]) + comment_of(edit, random.choice(PHRASES))
    new = [*edit.lines[edit.first : edit.start], *edit.added, mark]
    case = case_of(wider, "phrase in new", wider.old, new)
    return replace(case, expected=None, also=(str(case.expected),))


def own_ellipsis(random: Random, edit: Edit) -> Case | None:
    """The file itself has a line ``...`` or a comment with dots, which the model copies."""
    at = random.choice(edit.context)
    own = indent_of(edit.lines[at]) + random.choice(["...", comment_of(edit, "... and so on ...")])
    if not edit.lines[at].strip() or own in edit.lines:
        return None
    lines = (*edit.lines[:at], own, *edit.lines[at + 1 :])
    changed = replace(edit, lines=lines)
    case = random.choice([_exact, trailing_by_model, indented_more])(random, changed)
    return replace(case, kind="own dots")


# -------------------------------------------------------------------------- characters


OWN_CHARACTERS = {
    "escapes beside": (r'pattern = "^\"a\\n\t/[\/\\]\"$"', r'"fix": "pnpm run \"/^fix:.*/\"",', r"x = /\/\/.*$/;"),
    "entities beside": ("<b>&lt;one&gt; &amp; two</b>", "Q &amp; A&nbsp;&copy; &quot;us&quot;"),
    "marks beside": ("+ an item", "- an item", "| a | b |", "12 | 13", "@@ -1,2 +1,2 @@", "> quoted"),
    "typography beside": ("say \u201cyes\u201d \u2013 or wait\u2026", "l\u2019\u00e9t\u00e9 \u2026 1\u00a0000"),
}
"""Lines whose own characters look like slips."""


def own_characters(kind: str, random: Random, edit: Edit) -> Case | None:
    """Such a line is in the context, another is inserted, and all lines have a whitespace slip."""
    at = random.choice(edit.context)
    context, added = (random.choice(OWN_CHARACTERS[kind]) for _ in range(2))
    if not edit.lines[at].strip():
        return None
    indent = indent_of(edit.lines[at])
    lines = (*edit.lines[:at], indent + context, *edit.lines[at + 1 :])
    changed = replace(edit, lines=lines, added=(*edit.added, indent + added))
    if _count("\n".join(lines), changed) != 1:
        return None
    case = random.choice([_exact, blank_dropped, trailing_by_model, dedented, indented_more])(random, changed)
    return case and replace(case, kind=kind)


def blank_beside(random: Random, edit: Edit) -> Case | None:
    above, below = edit.lines[edit.start - 1], edit.lines[edit.stop]
    if not edit.added or not above.strip() or not below.strip():
        return None
    lines = list(edit.lines)
    is_above = random.random() < 0.5
    lines.insert(edit.start if is_above else edit.stop, "")
    moved = replace(edit, lines=tuple(lines), start=edit.start + is_above, stop=edit.stop + is_above)
    moved = replace(moved, before=edit.before + is_above, after=edit.after + (not is_above))
    if _count("\n".join(lines), moved) != 1:
        return None
    case = random.choice([trailing_by_model, dedented, indented_more])(random, moved)
    return case and replace(case, kind="blank line beside")


def drifted_far(random: Random, edit: Edit) -> Case | None:
    if edit.before < 2 or len(edit.removed) < 1 or len(edit.old) < 4:
        return None
    lines = list(edit.lines)
    lines[edit.first] = altered(random, lines[edit.first], lines)
    if lines[edit.first] == edit.lines[edit.first]:
        return None
    return case_of(replace(edit, lines=tuple(lines)), "one line drifted", edit.old, edit.new)


MISPLACED: tuple[Callable[[Random, Edit], Case | None], ...] = (
    number_behind_end,
    number_between,
    equal_patches,
    equal_patches_shifted,
    too_few_equal_patches,
    other_unit,
    other_unit_less_deep,
    new_text_elsewhere,
    phrase_elided,
    phrase_in_new,
    own_ellipsis,
    blank_beside,
    *(partial(own_characters, kind) for kind in OWN_CHARACTERS),
    drifted_far,
)
