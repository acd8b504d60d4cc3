"""What speaks against a rough match: lines that differ where the patch changes something, or too much that differs.

What is to be removed must be there exactly, and so must what says where the change is: the lines
beside it, and those that it is in. Other lines may differ as far as the rest leaves no doubt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from adapter.edits.alignment import REACH, Candidate
from adapter.edits.document import line_list
from adapter.edits.folding import line_key, loose_key
from adapter.edits.indent import indent_width
from adapter.edits.readings import is_elision
from adapter.edits.rows import WRAPPED, is_comment
from adapter.edits.search import Search
from adapter.edits.similarity import LOOSE_SIMILARITY
from adapter.text.diffs import Change, changes

FLOORS = ((4, 0.72), (2, 0.80), (1, 0.86), (0, 0.96))
"""Telling lines found, and the score a candidate then needs."""
TELLING_CHARACTERS = 8
SURE_CHARACTERS = 16
"""Of a changed line that says where it is although the one beside it is another; ``address_family:`` does not."""
TELLING_LIKENESS = 0.85
MAX_TELLING_PLACES = 2
"""A line that stands more often than this does not say where it is."""
MIN_UNIQUE = 2
"""Exact lines that stand nowhere else, with which one kept line may read differently."""
NEAR = 2
"""Lines around a candidate in which its own lines may stand out of step."""
ONLY_ALIKE = "it is only"
"""How the refusal of a candidate begins that is too unlike."""
MAX_DRIFTED = 0.5
"""Share of the kept lines that may read differently when the changed ones are beyond doubt."""


def objection(search: Search, old: Sequence[str], new: Sequence[str], candidate: Candidate) -> str:
    """Why the candidate must not be edited, or nothing."""
    return _Judge(search, old, new, candidate).objection()


def _touched(old: Sequence[str], new: Sequence[str], hunk: Change) -> range:
    """The old lines that a hunk removes, or might as well: a block that ends as it began, or as the
    line before it does, can be taken out or put in one line further up or down."""
    block = (old[hunk.start : hunk.end], new[hunk.new_start : hunk.new_end])
    if block[0] and block[1]:
        return range(hunk.start, hunk.end)
    moving = list(block[0] or block[1])
    up = down = 0
    while hunk.start - up > 0 and old[hunk.start - up - 1] == moving[-1 - up % len(moving)]:
        up += 1
    while hunk.end + down < len(old) and old[hunk.end + down] == moving[down % len(moving)]:
        down += 1
    return range(hunk.start - up, hunk.end + down)


class _Judge:
    """One candidate against what the patch does to its lines."""

    def __init__(self, search: Search, old: Sequence[str], new: Sequence[str], candidate: Candidate) -> None:
        self.search, self.old, self.candidate = search, old, candidate
        self.hunks = changes(old, new)
        self.removed = {line for hunk in self.hunks for line in _touched(old, new, hunk)}
        self.lines = {step.old_start: step.line_start for step in candidate.steps if step.is_pair}
        self.says = [index for index, line in enumerate(old) if line_key(line)]

    def objection(self) -> str:
        """Why this candidate must not be edited, or nothing."""
        return (
            self._removal()
            or self._displacement()
            or self._detachment()
            or self._twin()
            or self._other_scope()
            or self._unlike_neighbour()
            or self._conflict()
            or self._strangeness()
            or self._weakness()
        )

    def _removal(self) -> str:
        compared = self.candidate.compared
        for index in self.says:
            if index not in self.removed:
                continue
            if is_elision(self.old[index]):
                return "the new text drops the '...' of the old text, which stands for lines that are not shown"
            if index not in compared:
                return f"line {index + 1} of the old text is to be changed and is not there"
            if compared[index].conflicts or self._has_other_brackets(index) or self._has_other_marks(index):
                return f"line {index + 1} of the old text is to be changed and reads differently there"
            if self.candidate.flaws and self._is_misspelt(index):
                return (
                    f"line {index + 1} of the old text is to be changed and reads differently there, and so do others"
                )
            if self._is_moved_alone(index):
                return f"line {index + 1} of the old text is to be changed and is indented differently there"
        return self._elided_neighbour()

    def _is_misspelt(self, row: int) -> bool:
        """Something else than blanks, quote style or a closing comma differs."""
        return row in self.lines and loose_key(line_key(self.old[row])) != loose_key(self.search.keys[self.lines[row]])

    def _has_other_brackets(self, row: int) -> bool:
        return row in self.lines and _brackets(self.old[row]) != _brackets(self.search.keys[self.lines[row]])

    def _has_other_marks(self, row: int) -> bool:
        """Other marks than quote style or a closing comma, in a line that no other one confirms."""
        if len(self.says) > 1 or row not in self.lines:
            return False
        return _marks(line_key(self.old[row])) != _marks(self.search.keys[self.lines[row]])

    def _is_moved_alone(self, index: int) -> bool:
        """A closing bracket or the like, at another depth while all lines that tell more keep theirs."""
        if index not in self.lines or _is_telling(line_key(self.old[index])) or not self._moves(index):
            return False
        telling = [row for row in self.lines if _is_telling(line_key(self.old[row]))]
        return bool(telling) and not any(map(self._moves, telling))

    def _moves(self, row: int) -> bool:
        return indent_width(self.old[row]) != indent_width(self.search.document.lines[self.lines[row]])

    def _elided_neighbour(self) -> str:
        """After a ``...`` the lines must be the only ones of their kind within reach."""
        for hunk in self.hunks:
            start = next((row for row in range(hunk.start - 1, -1, -1) if is_elision(self.old[row])), None)
            if start is None:
                continue
            stop = next((row for row in range(hunk.end, len(self.old)) if is_elision(self.old[row])), len(self.old))
            keys = [key for line in self.old[start + 1 : stop] if (key := line_key(line))]
            step = next(step for step in self.candidate.steps if step.old_start <= start < step.old_stop)
            after = self.search.find_lines(keys)
            within = [first for first, _ in after if step.line_start <= first < step.line_stop + len(keys) + REACH]
            if len(within) > 1:
                where = line_list([line + 1 for line in within])
                return f"after the '...' the lines to change match {len(within)} places ({where})"
        return ""

    def _displacement(self) -> str:
        """A line that does not fit here and stands elsewhere shows that elsewhere is meant."""
        first, last = self.candidate.first_line, self.candidate.last_line
        for index in self._shown():
            key = line_key(self.old[index])
            if self._fits(index) or not _is_telling(key):
                continue
            places = self._places(key)
            is_near = any(first - NEAR <= line <= last + NEAR for line in places)
            if 0 < len(places) <= MAX_TELLING_PLACES and not is_near:
                return f"line {index + 1} of the old text stands elsewhere ({line_list([at + 1 for at in places])})"
        return ""

    def _fits(self, index: int) -> bool:
        """Whether an old line is there, but for a slip; one that stands elsewhere as it is written is none."""
        found = self.candidate.compared.get(index)
        if found is None or found.conflicts:
            return False
        return found.similarity >= WRAPPED or not self._places(line_key(self.old[index]))

    def _detachment(self) -> str:
        """A line of the file that is not mentioned, right beside the change, must leave no doubt about the place."""
        edges = {edge for hunk in self.hunks for edge in (hunk.start, hunk.end)}
        for step in self.candidate.steps:
            lines = range(step.line_start, step.line_stop)
            if step.is_unmentioned and step.old_start in edges and any(self._is_code(line) for line in lines):
                hunks = [hunk for hunk in self.hunks if step.old_start in (hunk.start, hunk.end)]
                if not all(self._is_beyond_doubt(hunk, SURE_CHARACTERS) for hunk in hunks):
                    return f"line {step.line_start + 1} of the file, beside the change, is not in the old text"
        return ""

    def _twin(self) -> str:
        """Where lines are missing on either side, what is changed must not stand in several places."""
        between = (step for step in self.candidate.steps if step.is_unmentioned)
        came = any(self._is_code(line) for step in between for line in range(step.line_start, step.line_stop))
        if not came and not self.candidate.missing:
            return ""
        for hunk in self.hunks:
            above, below = (
                self._neighbour(range(hunk.start - 1, -1, -1)),
                self._neighbour(range(hunk.end, len(self.old))),
            )
            edges = (hunk.start if above is None else above, hunk.end if below is None else below + 1)
            keys = [key for line in self.old[slice(*edges)] if (key := line_key(line)) and not is_elision(line)]
            places = self.search.find_lines(keys)
            if len(places) > 1:
                where = line_list([first + 1 for first, _ in places])
                return f"the lines to change stand in {len(places)} places ({where}), and others do not fit"
        return ""

    def _other_scope(self) -> str:
        """Lines above the change and indented less are what it is in: a function, a section, a key."""
        for hunk in self.hunks:
            depth = self._depth(hunk)
            for row in range(hunk.start - 1, -1, -1):
                if not line_key(self.old[row]) or indent_width(self.old[row]) >= depth:
                    continue
                depth = indent_width(self.old[row])
                found = self.candidate.compared.get(row)
                if not is_elision(self.old[row]) and (found is None or found.conflicts):
                    reads = "reads differently" if found else "is not"
                    return f"line {row + 1} of the old text, which the change is in, {reads} there"
        return ""

    def _depth(self, hunk: Change) -> int:
        """The least indentation among the changed lines and, for added ones, the line above."""
        rows = range(max(0, hunk.start - (hunk.start == hunk.end)), hunk.end)
        return min((indent_width(self.old[row]) for row in rows if line_key(self.old[row])), default=0)

    def _unlike_neighbour(self) -> str:
        """The lines right beside the change must be there, or the changed ones be beyond doubt themselves."""
        for hunk in self.hunks:
            beside = (self._neighbour(range(hunk.start - 1, -1, -1)), self._neighbour(range(hunk.end, len(self.old))))
            for row in beside:
                found = None if row is None else self.candidate.compared.get(row)
                if row is None or is_elision(self.old[row]) or (found and not found.conflicts):
                    continue
                if not self._is_beyond_doubt(hunk, SURE_CHARACTERS):
                    reads = "reads differently" if found else "is not"
                    return f"line {row + 1} of the old text, beside the change, {reads} there"
        return ""

    def _is_code(self, line: int) -> bool:
        key = self.search.keys[line]
        return bool(key) and not is_comment(key)

    def _conflict(self) -> str:
        conflicting = [index for index, found in self.candidate.compared.items() if found.conflicts]
        missing = [index for index in self._shown() if index not in self.candidate.compared]
        drifted = len(conflicting) + len(missing)
        if not conflicting or (drifted == 1 and self._count_unique() >= MIN_UNIQUE):
            return ""
        if drifted <= MAX_DRIFTED * len(self._shown()) and self._is_change_beyond_doubt():
            return ""
        return f"line {conflicting[0] + 1} of the old text reads differently there"

    def _strangeness(self) -> str:
        """Of several lines one at least must stand there as it is written: slips do not befall all alike."""
        compared = self.candidate.compared.values()
        if len(compared) < 2 or any(found.similarity >= WRAPPED for found in compared):
            return ""
        return "each line of the old text reads differently there"

    def _weakness(self) -> str:
        telling = len(self._telling())
        floor = next(score for lines, score in FLOORS if telling >= lines)
        if self.candidate.score >= floor or self._leaves_out_only_comments():
            return ""
        if self.candidate.score >= 1 - MAX_DRIFTED and self._is_change_beyond_doubt():
            return ""
        return f"{ONLY_ALIKE} {max(0, round(100 * self.candidate.score))} % alike"

    def _leaves_out_only_comments(self) -> bool:
        """Every line is there as written; only comments of the file stand between."""
        is_there = all(
            index in self.lines and self.candidate.compared[index].similarity == 1 for index in self._shown()
        )
        between = (step for step in self.candidate.steps if step.is_unmentioned or step.is_elided)
        lines = (line for step in between for line in range(step.line_start, step.line_stop))
        return is_there and not any(self._is_code(line) for line in lines)

    def _shown(self) -> list[int]:
        return [index for index in self.says if not is_elision(self.old[index])]

    def _telling(self) -> list[int]:
        """Old lines that say where they are, and are there."""
        return [index for index in self.candidate.compared if self._tells(index)]

    def _count_unique(self) -> int:
        """Old lines that stand exactly here and nowhere else."""
        exact = (index for index in self._telling() if self.candidate.compared[index].similarity >= LOOSE_SIMILARITY)
        return sum(len(self._places(line_key(self.old[index]))) == 1 for index in exact)

    def _tells(self, index: int) -> bool:
        found = self.candidate.compared[index]
        if found.conflicts or found.similarity < TELLING_LIKENESS:
            return False
        key = line_key(self.old[index])
        line = self.lines.get(index)
        actual = key if line is None else self.search.keys[line]
        return _is_telling(key) and max(len(self._places(key)), len(self._places(actual))) <= MAX_TELLING_PLACES

    def _is_change_beyond_doubt(self) -> bool:
        """Every hunk touches exact lines that stand nowhere else in the document, and there are several such."""
        if self._count_unique() < MIN_UNIQUE:
            return False
        return bool(self.hunks) and all(self._is_beyond_doubt(hunk) for hunk in self.hunks)

    def _is_beyond_doubt(self, hunk: Change, characters: int = TELLING_CHARACTERS) -> bool:
        compared, keys = self.candidate.compared, [line_key(line) for line in self.old]
        if hunk.start < hunk.end:
            block = [index for index in range(hunk.start, hunk.end) if keys[index]]
        else:
            beside = (self._neighbour(range(hunk.start - 1, -1, -1)), self._neighbour(range(hunk.end, len(self.old))))
            block = [index for index in beside if index is not None]
        if not block or any(index not in compared or compared[index].similarity < LOOSE_SIMILARITY for index in block):
            return False
        sure = (index for index in block if _is_telling(keys[index], characters))
        return any(self._tells(index) and len(self._places(keys[index])) == 1 for index in sure)

    def _neighbour(self, rows: range) -> int | None:
        return next((row for row in rows if line_key(self.old[row])), None)

    def _places(self, key: str) -> Sequence[int]:
        return self.search.places(key)


def _brackets(line: str) -> str:
    return re.sub(r"[^()\[\]{}]", "", line)


def _marks(key: str) -> str:
    return re.sub(r"\w", "", loose_key(key))


def _is_telling(key: str, characters: int = TELLING_CHARACTERS) -> bool:
    return sum(map(str.isalnum, key)) >= characters
