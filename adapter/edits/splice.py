"""The text that takes the place of a match: the model's changes in the document's own bytes.

A model repeats context to say where its change belongs. Lines that stand in
both its old and its new text are therefore taken from the document, never from
the model; only what it really changed is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq

from adapter.edits.document import Document
from adapter.edits.folding import pieces
from adapter.edits.indent import IndentMap, indent_of
from adapter.edits.steps import Step
from adapter.text.diffs import Change, changes

MIN_PARTNER = 60.0
"""Percent alike from which a written line is taken as the new form of a removed one."""


class OutputLine(NamedTuple):
    """A line to write; ``source`` is the document line that lends its line end, if any."""

    text: str
    source: int | None


class Unclear(Exception):
    """The place is known, but not what the change means there. ``str(error)`` says why."""


def exact_replacement(document: Document, old: str, new: str, first_line: int) -> str:
    """``new`` as written, each line with the line end of the document line it is written for."""
    old_lines, written = old.split("\n"), new.split("\n")
    output: list[OutputLine] = []
    position = 0
    for change in changes(old_lines, written):
        output += _copied(document, old_lines, position, change.start, first_line)
        for index, text in enumerate(written[change.new_start : change.new_end], start=change.start):
            instead_of = first_line + min(index, change.end - 1) if change.start < change.end else None
            output.append(OutputLine(text, instead_of))
        position = change.end
    output += _copied(document, old_lines, position, len(old_lines), first_line)
    return joined(document, output, first_line)


def _copied(document: Document, old: Sequence[str], start: int, stop: int, first_line: int) -> Iterator[OutputLine]:
    return (OutputLine(old[index], min(index + first_line, len(document.ends) - 1)) for index in range(start, stop))


def merged_lines(document: Document, old: Sequence[str], new: Sequence[str], steps: Sequence[Step]) -> list[OutputLine]:
    """The lines that replace those of ``steps``: what the model kept as the document
    has it, what it changed at the indentation of the place. Raises Unclear."""
    return _Merge(document, old, new, steps).run()


class _Merge:
    def __init__(self, document: Document, old: Sequence[str], new: Sequence[str], steps: Sequence[Step]) -> None:
        self.document, self.old, self.new, self.steps = document, old, new, steps
        self.hunks = changes(old, new)
        self.hunk_of = {line: hunk for hunk in self.hunks for line in range(hunk.start, hunk.end)}
        self.pairs = {step.old_start: step.line_start for step in steps if step.is_pair}
        self.indents = IndentMap(
            ((index, old[index], document.lines[line]) for index, line in self.pairs.items()), (*old, *new)
        )
        self.strips = any(
            old[index] != old[index].rstrip() and document.lines[line] == document.lines[line].rstrip()
            for index, line in self.pairs.items()
        )
        """The model left blanks at ends of lines that the document does not have."""
        self.output: list[OutputLine] = []
        self.waiting = list(reversed(self.hunks))

    def run(self) -> list[OutputLine]:
        for step in self.steps:
            if step.old_start == step.old_stop:
                self._unmentioned(step)
            else:
                self._mentioned(step)
        self._write_insertions(len(self.old))
        return self.output

    def _unmentioned(self, step: Step) -> None:
        before, after = self.hunk_of.get(step.old_start - 1), self.hunk_of.get(step.old_start)
        is_blank = not any(line.strip() for line in self.document.lines[step.line_start : step.line_stop])
        if before is not None and before is after:
            if is_blank:
                return
            raise Unclear(
                f"line {step.line_start + 1} stands between the lines to remove, and the old text does not show it"
            )
        if not is_blank and any(hunk.start == hunk.end == step.old_start for hunk in self.waiting):
            raise Unclear(f"the old text leaves out line {step.line_start + 1} just where lines are added")
        if is_blank and self._ends_before_blank(step.old_start):
            self._write_insertions(step.old_start)
        self._copy(step)

    def _ends_before_blank(self, position: int) -> bool:
        """Lines added at a blank line that the model left out belong above it, unless they bring one along."""
        hunk = self.waiting[-1] if self.waiting else None
        if hunk is None or not hunk.start == hunk.end == position:
            return False
        added = self.new[hunk.new_start : hunk.new_end]
        return not (added and not added[-1].strip())

    def _mentioned(self, step: Step) -> None:
        self._write_insertions(step.old_start)
        hunks = [self.hunk_of.get(line) for line in range(step.old_start, step.old_stop)]
        if any(hunk is not hunks[0] for hunk in hunks) or any(
            step.old_start < hunk.start == hunk.end < step.old_stop for hunk in self.waiting
        ):
            raise Unclear(f"the change falls inside line {step.line_start + 1}, which the old text breaks differently")
        hunk = hunks[0]
        if hunk is None:
            self._copy(step)
        elif self.waiting and self.waiting[-1] is hunk:
            self.waiting.pop()
            self._write(hunk)

    def _copy(self, step: Step) -> None:
        self.output += [OutputLine(self.document.lines[line], line) for line in range(step.line_start, step.line_stop)]

    def _write_insertions(self, position: int) -> None:
        while self.waiting and self.waiting[-1].start == self.waiting[-1].end <= position:
            self._write(self.waiting.pop())

    def _write(self, hunk: Change) -> None:
        partners = _partners(self.old, self.new, hunk)
        for index in range(hunk.new_start, hunk.new_end):
            partner = partners.get(index)
            beside = max(0, min(hunk.start + index - hunk.new_start, hunk.end - 1)) if partner is None else partner
            instead_of = self.pairs.get(beside) if hunk.start < hunk.end else None
            self.output.append(OutputLine(self._line(self.new[index], partner, beside), instead_of))

    def _line(self, text: str, partner: int | None, beside: int) -> str:
        moved = self.indents.move(text.rstrip() if self.strips else text, beside)
        line = None if partner is None else self.pairs.get(partner)
        if line is None or partner is None:
            return moved
        written, actual = self.old[partner].strip(), self.document.lines[line].strip()
        if written == actual:
            return moved
        return indent_of(moved) + merged_text(written, actual, text.strip())


def _partners(old: Sequence[str], new: Sequence[str], hunk: Change) -> dict[int, int]:
    """New lines of a hunk and the removed lines they are new forms of, in order."""
    if hunk.end - hunk.start == hunk.new_end - hunk.new_start:
        return dict(zip(range(hunk.new_start, hunk.new_end), range(hunk.start, hunk.end), strict=True))
    partners: dict[int, int] = {}
    position = hunk.start
    for index in range(hunk.new_start, hunk.new_end):
        likes = [(fuzz.ratio(new[index].strip(), old[line].strip()), -line) for line in range(position, hunk.end)[:40]]
        likeness, line = max(likes, default=(0.0, 0))
        if likeness >= MIN_PARTNER:
            partners[index] = -line
            position = -line + 1
    return partners


def merged_text(written: str, actual: str, new: str) -> str:
    """``new`` with the document's own spelling where ``written`` was kept: its blanks,
    its typographic characters, its words where the model made a typing error."""
    old_pieces, new_pieces, own_pieces = pieces(written), pieces(new), pieces(actual)
    if [_kind(piece) for piece in old_pieces] != [_kind(piece) for piece in own_pieces]:
        return new
    merged: list[str] = []
    for code in LCSseq.opcodes(old_pieces, new_pieces):
        if code.tag == "equal":
            merged += own_pieces[code.src_start : code.src_end]
        elif code.tag == "insert":
            merged += new_pieces[code.dest_start : code.dest_end]
    return "".join(merged)


def _kind(piece: str) -> str:
    return "blank" if piece.isspace() else "word" if piece[0].isalnum() or piece[0] == "_" else "mark"


def joined(document: Document, lines: Sequence[OutputLine], first_line: int) -> str:
    """The lines as text without a final line end; new ones end as their neighbour above does."""
    parts: list[str] = []
    near = first_line
    for line in lines[:-1]:
        near = near if line.source is None else line.source
        parts += (line.text, document.end_near(near))
    parts += [line.text for line in lines[-1:]]
    return "".join(parts)
