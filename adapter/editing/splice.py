"""The text that takes the place of a match: the model's changes in the document's own bytes.

A model repeats context to say where its change belongs. Lines that stand in
both its old and its new text are therefore taken from the document, never from
the model; only what it really changed is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq, Opcode

from adapter.core.text.diffs import LineChange, changes
from adapter.editing.document import TextDocument
from adapter.editing.matching.line_mapping import LineMapping
from adapter.editing.matching.normalize import is_comment, normalized_line, strict_line_key, tokenize_line
from adapter.editing.repairs.reindent import IndentMapper, indent_of, indent_width

MIN_PARTNER = 60.0
"""Percent alike from which a written line is taken as the new form of a removed one."""
MIN_KEPT = 1 / 3
"""Share of the letters of a text that stayed, below which the new one is another text."""
MIN_ALIKE = 75.0
"""Percent alike from which it is none, whatever stayed whole."""
MIN_KEPT_LETTERS = 4
"""Of a run of pieces in the middle of a text, from which it is one that stayed and no coincidence."""
MAX_CLOSING = 4
"""Letters of a word that closes a block, or goes on with it, by itself: ``end``, ``else``, ``done``."""

_Found: TypeAlias = tuple[int, str, str]
"""The number of an old line, the line, and that of the document."""


class OutputLine(NamedTuple):
    """A line to write; ``source`` is the document line that lends its line end, if any."""

    text: str
    source: int | None


class AmbiguousReplacement(Exception):
    """The place is known, but not what the change means there. ``str(error)`` says why."""


def build_exact_replacement(document: TextDocument, old: str, new: str, first_line: int) -> str:
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
    return join_lines(document, output, first_line)


def _copied(document: TextDocument, old: Sequence[str], start: int, stop: int, first_line: int) -> Iterator[OutputLine]:
    return (OutputLine(old[index], min(index + first_line, len(document.ends) - 1)) for index in range(start, stop))


def merge_lines(
    document: TextDocument, old: Sequence[str], new: Sequence[str], steps: Sequence[LineMapping]
) -> list[OutputLine]:
    """The lines that replace those of ``steps``: what the model kept as the document
    has it, what it changed at the indentation of the place. Raises Unclear."""
    return _Merge(document, old, new, steps).run()


class _Merge:
    def __init__(
        self, document: TextDocument, old: Sequence[str], new: Sequence[str], steps: Sequence[LineMapping]
    ) -> None:
        self.document, self.old, self.new, self.steps = document, old, new, steps
        self.hunks = changes(old, new)
        self.hunk_of = {line: hunk for hunk in self.hunks for line in range(hunk.start, hunk.end)}
        self.pairs = {step.old_start: step.line_start for step in steps if step.is_pair}
        found = [(index, old[index], document.lines[line]) for index, line in self.pairs.items()]
        self.indents = IndentMapper(_teaching(found), (*old, *new), document.lines)
        ended = [(written, actual) for _, written, actual in found if written != written.rstrip()]
        self.strips = bool(ended) and all(actual == actual.rstrip() for _, actual in ended)
        """The model left blanks at ends of lines that the document does not have."""
        bodies = ((old[index].strip(), document.lines[line].strip()) for index, line in self.pairs.items())
        self.copied = {written: actual for written, actual in bodies if _is_respelt(written, actual)}
        """What the model copied, with the document's blanks and plain characters."""
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

    def _unmentioned(self, step: LineMapping) -> None:
        before, after = self.hunk_of.get(step.old_start - 1), self.hunk_of.get(step.old_start)
        is_blank = not any(line.strip() for line in self.document.lines[step.line_start : step.line_stop])
        if before is not None and before is after:
            if is_blank:
                return
            raise AmbiguousReplacement(
                f"line {step.line_start + 1} stands between the lines to remove, and the old text does not show it"
            )
        if not is_blank and any(hunk.start == hunk.end == step.old_start for hunk in self.waiting):
            raise AmbiguousReplacement(f"the old text leaves out line {step.line_start + 1} just where lines are added")
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

    def _mentioned(self, step: LineMapping) -> None:
        self._write_insertions(step.old_start)
        hunks = [self.hunk_of.get(line) for line in range(step.old_start, step.old_stop)]
        if any(hunk is not hunks[0] for hunk in hunks) or any(
            step.old_start < hunk.start == hunk.end < step.old_stop for hunk in self.waiting
        ):
            raise AmbiguousReplacement(
                f"the change falls inside line {step.line_start + 1}, which the old text breaks differently"
            )
        hunk = hunks[0]
        if hunk is None:
            self._copy(step)
        elif self.waiting and self.waiting[-1] is hunk:
            self.waiting.pop()
            self._write(hunk)

    def _copy(self, step: LineMapping) -> None:
        self.output += [OutputLine(self.document.lines[line], line) for line in range(step.line_start, step.line_stop)]

    def _write_insertions(self, position: int) -> None:
        while self.waiting and self.waiting[-1].start == self.waiting[-1].end <= position:
            self._write(self.waiting.pop())

    def _write(self, hunk: LineChange) -> None:
        partners = _partners(self.old, self.new, hunk)
        for index in range(hunk.new_start, hunk.new_end):
            partner = partners.get(index)
            beside = max(0, min(hunk.start + index - hunk.new_start, hunk.end - 1)) if partner is None else partner
            instead_of = self.pairs.get(beside) if hunk.start < hunk.end else None
            self.output.append(OutputLine(self._line(self.new[index], partner, beside), instead_of))

    def _line(self, text: str, partner: int | None, beside: int) -> str:
        moved = self.indents.move(text.rstrip() if self.strips else text, beside)
        tail = moved[len(moved.rstrip()) :]
        if text.strip() and text.strip() in self.copied:
            return indent_of(moved) + self.copied[text.strip()] + tail
        line = None if partner is None else self.pairs.get(partner)
        if line is None or partner is None:
            return moved
        written, actual = self.old[partner].strip(), self.document.lines[line].strip()
        if written == actual:
            return moved
        return indent_of(moved) + merge_text(written, actual, text.strip()) + tail


def _teaching(found: Sequence[_Found]) -> Sequence[_Found]:
    """The lines that show how the place is indented: those of one shape, and no ``end`` or ``}`` that alone stands
    otherwise, which may be another one."""
    alike = [pair for pair in found if _is_of_one_shape(*pair[1:])] or found
    kept = [pair for pair in alike if indent_width(pair[1]) == indent_width(pair[2])]
    moved = set(alike).difference(kept)
    is_other = all(_says_little(pair[1]) for pair in moved) and not all(_says_little(pair[1]) for pair in kept)
    return kept if is_other else alike


def _says_little(line: str) -> bool:
    """Whether a line is one short word at most, and marks."""
    words = [piece for piece in tokenize_line(line) if _kind(piece) == "word"]
    return len(words) < 2 and _letters(words) <= MAX_CLOSING


def _is_of_one_shape(written: str, actual: str) -> bool:
    """Whether two lines are made of words and marks in the same order; another line may be indented otherwise."""
    if written.strip() == actual.strip():
        return True
    left, right = (tokenize_line(normalized_line(line).rstrip(",;")) for line in (written, actual))
    return [_kind(piece) for piece in left if piece != " "] == [_kind(piece) for piece in right if piece != " "]


def _is_respelt(written: str, actual: str) -> bool:
    """Whether the two differ in plain blanks alone, or in typographic characters that only the model has."""
    if actual.isascii():
        return normalized_line(written) == normalized_line(actual)
    blanks = {character for character in actual if character.isspace()}
    return strict_line_key(written) == strict_line_key(actual) and blanks <= {" ", "\t", *written}


def _partners(old: Sequence[str], new: Sequence[str], hunk: LineChange) -> dict[int, int]:
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


def merge_text(written: str, actual: str, new: str) -> str:
    """``new`` with the document's own spelling where ``written`` was kept: its blanks,
    its typographic characters, its words where the model made a typing error.

    What was written anew is never touched: a quote or dash of ``new`` is taken for a kept one
    only in a run of pieces that stayed, and where it still opens, closes or joins what it did.
    """
    old_pieces, new_pieces, own_pieces = tokenize_line(written), tokenize_line(new), tokenize_line(actual)
    if [_kind(piece) for piece in old_pieces] != [_kind(piece) for piece in own_pieces]:
        return new
    runs = _kept_runs(old_pieces, new_pieces)
    kept = sum(_letters(old_pieces[run.src_start : run.src_end]) for run in runs)
    stayed = sum(run.src_end - run.src_start for run in runs)
    is_unlike = kept < MIN_KEPT * _letters(old_pieces) and fuzz.ratio(written, new) < MIN_ALIKE
    is_other = is_unlike or is_comment(written) != is_comment(new)
    if not kept or (is_other and stayed < min(len(old_pieces), len(new_pieces))):
        return new  # another text altogether, and neither is the other one with more
    merged = list(new_pieces)
    was, becomes = _sides(old_pieces), _sides(new_pieces)
    for run in runs:
        for at, to in zip(range(run.src_start, run.src_end), range(run.dest_start, run.dest_end), strict=True):
            if _kind(old_pieces[at]) != "mark" or (
                (was.get(at) or _roles(old_pieces, at)) & (becomes.get(to) or _roles(new_pieces, to))
            ):
                merged[to] = own_pieces[at]
    return "".join(merged)


def _kept_runs(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    """Pieces that stayed: at the beginning, at the end, and elsewhere in runs that hold words."""
    equal = [code for code in LCSseq.opcodes(old, new) if code.tag == "equal"]
    return [
        code
        for code in equal
        if code.src_start == code.dest_start == 0
        or (code.src_end, code.dest_end) == (len(old), len(new))
        or _letters(old[code.src_start : code.src_end]) >= MIN_KEPT_LETTERS
    ]


def _sides(pieces: Sequence[str]) -> dict[int, set[str]]:
    """What double quotes are where there is a closing one for each that opens, blanks in what is quoted or not."""
    quotes = [at for at, piece in enumerate(pieces) if piece == '"']
    return {} if len(quotes) % 2 else {at: {"closes" if number % 2 else "opens"} for number, at in enumerate(quotes)}


def _roles(pieces: Sequence[str], at: int) -> set[str]:
    """What a mark can be by what is beside it: an apostrophe is no closing quote, a minus no dash."""
    before = _kind(pieces[at - 1]) if at else "blank"
    after = _kind(pieces[at + 1]) if at + 1 < len(pieces) else "blank"
    roles = {
        "joins": before == after == "word",
        "opens": before != "word" and after != "blank",
        "closes": after != "word" and before != "blank",
        "stands alone": before == after == "blank",
    }
    return {role for role, is_possible in roles.items() if is_possible}


def _letters(pieces: Sequence[str]) -> int:
    return sum(len(piece) for piece in pieces if _kind(piece) == "word")


def _kind(piece: str) -> str:
    return "blank" if piece.isspace() else "word" if piece[0].isalnum() or piece[0] == "_" else "mark"


def join_lines(document: TextDocument, lines: Sequence[OutputLine], first_line: int) -> str:
    """The lines as text without a final line end; new ones end as their neighbour above does."""
    parts: list[str] = []
    near = first_line
    for line in lines[:-1]:
        near = near if line.source is None else line.source
        parts += (line.text, document.new_end(near) if line.source is None else document.end_near(near))
    parts += [line.text for line in lines[-1:]]
    return "".join(parts)
