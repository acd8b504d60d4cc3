"""Build the replacement for a match. Unchanged parts keep their bytes.

A model repeats context lines to locate its change. Lines that are in both its old and its new text are therefore taken
from the document, never from the model. Only real changes are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import takewhile
from typing import NamedTuple, TypeAlias

from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq, Opcode

from adapter.core.text.diffs import LineChange, find_changes
from adapter.editing.document import TextDocument
from adapter.editing.matching.line_mapping import LineMapping
from adapter.editing.matching.normalize import build_strict_line_key, is_comment, normalize_line, tokenize_line
from adapter.editing.repairs.reindent import IndentMapper, find_enclosing_widths, get_indent, measure_indent

MIN_PARTNER = 60.0
"""Minimum similarity, in percent, between a new line and the removed line that it replaces."""
MIN_KEPT = 1 / 3
"""Minimum share of the old text's letters that the new text must keep. Otherwise, the texts are unrelated."""
MIN_ALIKE = 75.0
"""Minimum similarity, in percent, at which the texts count as related even below ``MIN_KEPT``."""
MIN_KEPT_LETTERS = 4
"""Minimum number of letters in a run of equal tokens in the middle of a text. A shorter run may be a coincidence."""
INDENT_REACH = 200
"""The document's unit of indentation is detected in this number of lines before and after the start of a match."""
CLOSING_WORDS = ("", "do", "done", "else", "end", "esac", "fi", "od", "then", "try")
"""Words that close or continue a block. The empty word is for lines with only brackets."""

_MatchedLine: TypeAlias = tuple[int, str, str]
"""The index of an old line, the line itself, and the document's line."""


class OutputLine(NamedTuple):
    """A line to write. ``line_end_from`` is the document line whose line end it gets, or None."""

    text: str
    line_end_from: int | None


class AmbiguousReplacement(Exception):
    """The match is certain, but the replacement is ambiguous. ``str(error)`` is the reason."""


def build_exact_replacement(document: TextDocument, old: str, new: str, first_line: int) -> str:
    """Return ``new`` with the line ends of the document's lines that it replaces."""
    old_lines, written = old.split("\n"), new.split("\n")
    output: list[OutputLine] = []
    position = 0
    for change in find_changes(old_lines, written):
        output += _copy_lines(document, old_lines, position, change.start, first_line)
        for index, text in enumerate(written[change.new_start : change.new_end], start=change.start):
            replaced_line = first_line + min(index, change.end - 1) if change.start < change.end else None
            output.append(OutputLine(text, replaced_line))
        position = change.end
    output += _copy_lines(document, old_lines, position, len(old_lines), first_line)
    return join_lines(document, output, first_line)


def _copy_lines(
    document: TextDocument, old: Sequence[str], start: int, stop: int, first_line: int
) -> Iterator[OutputLine]:
    return (OutputLine(old[index], min(index + first_line, len(document.ends) - 1)) for index in range(start, stop))


def merge_lines(
    document: TextDocument, old: Sequence[str], new: Sequence[str], steps: Sequence[LineMapping]
) -> list[OutputLine]:
    """Return the lines that replace the matched lines of the document. ``steps`` map the old lines to these lines.

    Kept lines are copied from the document. Changed lines get the document's indentation. Raises AmbiguousReplacement.
    """
    return _Merge(document, old, new, steps).run()


class _Merge:
    def __init__(
        self, document: TextDocument, old: Sequence[str], new: Sequence[str], steps: Sequence[LineMapping]
    ) -> None:
        self.document, self.old, self.new, self.steps = document, old, new, steps
        self.hunks = find_changes(old, new)
        self.hunk_of = {line: hunk for hunk in self.hunks for line in range(hunk.start, hunk.end)}
        self.pairs = {step.old_start: step.line_start for step in steps if step.is_pair}
        alike = self.pairs
        if not any(old[index].strip() for index in alike):  # only wrapped lines, whose first lines correspond
            found = (step for step in steps if not (step.is_unmentioned or step.is_missing or step.is_elided))
            alike = {step.old_start: step.line_start for step in found}
        samples = [(index, old[index], document.lines[line]) for index, line in alike.items()]
        first = steps[0].line_start
        nearby = document.lines[max(first - INDENT_REACH, 0) : first + INDENT_REACH]
        self.indents = IndentMapper(_find_indent_samples(samples), (old, new), nearby)
        self.is_indented_otherwise = any(get_indent(written) != get_indent(actual) for _, written, actual in samples)
        self.above = nearby[: first - max(first - INDENT_REACH, 0)]
        self.depth = min((measure_indent(actual) for _, _, actual in samples if actual.strip()), default=0)
        ended = [(written, actual) for _, written, actual in samples if written != written.rstrip()]
        self.strips = bool(ended) and all(actual == actual.rstrip() for _, actual in ended)
        """True if the model wrote trailing spaces that the document does not have."""
        bodies = ((old[index].strip(), document.lines[line].strip()) for index, line in self.pairs.items())
        self.respelled = {written: actual for written, actual in bodies if _differs_in_spelling(written, actual)}
        """Maps each line that the model copied with other spelling to the document's spelling."""
        self.output: list[OutputLine] = []
        self.has_added_comma = self.ends_with_addition = False
        self.pending = list(reversed(self.hunks))

    def run(self) -> list[OutputLine]:
        for step in self.steps:
            if step.old_start == step.old_stop:
                self._add_unmentioned(step)
            else:
                self._add_mentioned(step)
        self._write_insertions(len(self.old))
        return self.output

    def _add_unmentioned(self, step: LineMapping) -> None:
        before, after = self.hunk_of.get(step.old_start - 1), self.hunk_of.get(step.old_start)
        is_blank = not any(line.strip() for line in self.document.lines[step.line_start : step.line_stop])
        if before is not None and before is after:
            if is_blank:
                return
            raise AmbiguousReplacement(
                f"line {step.line_start + 1} is between the lines to remove and is not in the old text"
            )
        if not is_blank and any(hunk.start == hunk.end == step.old_start for hunk in self.pending):
            raise AmbiguousReplacement(f"the old text omits line {step.line_start + 1} exactly where lines are added")
        if is_blank and self._ends_before_blank(step.old_start):
            self._write_insertions(step.old_start)
        self._copy(step)

    def _ends_before_blank(self, position: int) -> bool:
        """Return whether added lines belong above an omitted blank line, as most do. They belong below if they end with
        a blank line, decorator or comment, or if only the line below has the same indentation."""
        hunk = self.pending[-1] if self.pending else None
        if hunk is None or not hunk.start == hunk.end == position:
            return False
        last = self.new[hunk.new_end - 1]
        above, below = self.old[max(position - 1, 0)], self.old[min(position, len(self.old) - 1)]
        if not last.strip() or get_indent(last) != get_indent(below):
            return bool(last.strip())
        return get_indent(last) == get_indent(above) and not (last.lstrip().startswith("@") or is_comment(last.strip()))

    def _add_mentioned(self, step: LineMapping) -> None:
        self._write_insertions(step.old_start)
        hunks = [self.hunk_of.get(line) for line in range(step.old_start, step.old_stop)]
        if any(hunk is not hunks[0] for hunk in hunks) or any(
            step.old_start < hunk.start == hunk.end < step.old_stop for hunk in self.pending
        ):
            raise AmbiguousReplacement(
                f"the change is inside line {step.line_start + 1}, which the old text wraps differently"
            )
        hunk = hunks[0]
        if hunk is None:
            self._copy(step)
        elif self.pending and self.pending[-1] is hunk:
            self.pending.pop()
            self._write(hunk)

    def _copy(self, step: LineMapping) -> None:
        if step.line_start == step.line_stop and self._separates_addition(step):
            self.output.append(OutputLine("", None))
            return
        self.ends_with_addition = False
        self.output += [OutputLine(self.document.lines[line], line) for line in range(step.line_start, step.line_stop)]
        self.has_added_comma = self._lacks_comma(step)
        if self.has_added_comma:
            self.output[-1] = OutputLine(self.output[-1].text.rstrip() + ",", step.line_start)

    def _separates_addition(self, step: LineMapping) -> bool:
        """Return whether the blank lines in ``step``, which the new text lacks, separate added lines from others."""
        beside = (*self.old[max(0, step.old_start - 1) : step.old_start], *self.old[step.old_stop : step.old_stop + 1])
        if any(map(str.strip, self.old[step.old_start : step.old_stop])) or all(map(str.strip, beside)):
            return False
        has_text_above = bool(self.output) and self.output[-1].text.strip() != ""
        hunk = self.pending[-1] if self.pending else None
        is_above = hunk is not None and hunk.start == hunk.end == step.old_stop and self.new[hunk.new_start].strip()
        return has_text_above and (self.ends_with_addition or bool(is_above))

    def _lacks_comma(self, step: LineMapping) -> bool:
        """Return whether a kept line was the last of a list, and needs a comma because an item is added below it."""
        hunk = self.pending[-1] if self.pending else None
        if not step.is_pair or hunk is None or not hunk.start == hunk.end == step.old_stop:
            return False
        written, actual = (line.rstrip() for line in (self.old[step.old_start], self.document.lines[step.line_start]))
        return written.endswith(",") and normalize_line(written[:-1]) == normalize_line(actual)

    def _write_insertions(self, position: int) -> None:
        while self.pending and self.pending[-1].start == self.pending[-1].end <= position:
            self._write(self.pending.pop())

    def _write(self, hunk: LineChange) -> None:
        partners = _pair_with_removed(self.old, self.new, hunk)
        is_list_end = hunk.start == hunk.end and self.has_added_comma
        self.ends_with_addition = not any(map(str.strip, self.old[hunk.start : hunk.end]))
        for index in range(hunk.new_start, hunk.new_end):
            partner = partners.get(index)
            nearest_row = max(0, min(hunk.start + index - hunk.new_start, hunk.end - 1)) if partner is None else partner
            replaced_line = self.pairs.get(nearest_row) if hunk.start < hunk.end else None
            if self.indents.is_doubtful(self.new[index]):
                raise AmbiguousReplacement(
                    f"{self.new[index].strip()[:60]!r} is indented with tabs, which the file does not use: indent the "
                    "lines as the file does"
                )
            line = self._build_line(self.new[index], partner, nearest_row)
            if is_list_end and index == hunk.new_end - 1:
                line = line.rstrip().removesuffix(",")
            self._check_enclosed(line)
            self.output.append(OutputLine(line, replaced_line))

    def _check_enclosed(self, line: str) -> None:
        """Reject a reindented line that leaves its enclosing block without matching an outer block's indentation."""
        if not self.is_indented_otherwise or not line.strip():
            return
        width = measure_indent(line)
        if width < max(self._enclosing_widths, default=0) and width not in self._enclosing_widths:
            raise AmbiguousReplacement(
                f"{line.strip()[:60]!r} would be indented by {width} columns, unlike every enclosing block"
            )

    @cached_property
    def _enclosing_widths(self) -> set[int]:
        return find_enclosing_widths(self.above, self.depth)

    def _build_line(self, text: str, partner: int | None, nearest_row: int) -> str:
        moved = self.indents.move(text.rstrip() if self.strips else text, nearest_row)
        tail = moved[len(moved.rstrip()) :]
        if text.strip() and text.strip() in self.respelled:
            return get_indent(moved) + self.respelled[text.strip()] + tail
        line = None if partner is None else self.pairs.get(partner)
        if line is None or partner is None:
            return moved
        written, actual = self.old[partner].strip(), self.document.lines[line].strip()
        if written == actual:
            return moved
        return get_indent(moved) + merge_text(written, actual, text.strip()) + tail


def _find_indent_samples(matched: Sequence[_MatchedLine]) -> Sequence[_MatchedLine]:
    """Return the matched lines that show how the document's indentation differs from the model's: lines with the same
    words and punctuation on both sides, or all if there are none.

    If only lines such as ``end`` or ``}`` differ in indentation, they are left out, because they may be paired wrongly.
    """
    alike = [pair for pair in matched if _has_same_shape(*pair[1:])]
    if not any(written.strip() for _, written, _ in alike):
        alike = list(matched)
    kept = [pair for pair in alike if measure_indent(pair[1]) == measure_indent(pair[2])]
    moved = set(alike).difference(kept)
    is_other = all(_is_closing_line(pair[1]) for pair in moved) and not all(_is_closing_line(pair[1]) for pair in kept)
    return kept if is_other else alike


def _is_closing_line(line: str) -> bool:
    """Return whether a line has no word except, perhaps, one that closes or continues a block."""
    words = " ".join(piece for piece in tokenize_line(line) if _classify_piece(piece) == "word")
    return words in CLOSING_WORDS and not {"'", '"'}.intersection(line)


def _has_same_shape(written: str, actual: str) -> bool:
    """Return whether two lines have words and punctuation in the same order."""
    if written.strip() == actual.strip():
        return True
    left, right = (tokenize_line(normalize_line(line).rstrip(",;")) for line in (written, actual))
    return [_classify_piece(piece) for piece in left if piece != " "] == [
        _classify_piece(piece) for piece in right if piece != " "
    ]


def _differs_in_spelling(written: str, actual: str) -> bool:
    """Return whether two lines differ only in whitespace, or in typographic characters that only the model wrote."""
    if actual.isascii():
        return normalize_line(written) == normalize_line(actual)
    blanks = {character for character in actual if character.isspace()}
    return build_strict_line_key(written) == build_strict_line_key(actual) and blanks <= {" ", "\t", *written}


def _pair_with_removed(old: Sequence[str], new: Sequence[str], hunk: LineChange) -> dict[int, int]:
    """Map the new lines of a hunk to the removed lines that they replace, in order."""
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
    """Return ``new`` with the document's spelling in all parts that ``new`` has in common with ``written``.

    ``actual`` is the document's text for ``written``, which may differ in spaces, typographic characters and typos.
    Added text is never changed. A quote or dash in ``new`` is replaced only in a run of common tokens, and only if it
    still has the same role (opens, closes or joins).
    """
    old_pieces, new_pieces, actual_pieces = tokenize_line(written), tokenize_line(new), tokenize_line(actual)
    if [_classify_piece(piece) for piece in old_pieces] != [_classify_piece(piece) for piece in actual_pieces]:
        return new
    runs = _find_kept_runs(old_pieces, new_pieces)
    kept = sum(_count_letters(old_pieces[run.src_start : run.src_end]) for run in runs)
    kept_pieces = sum(run.src_end - run.src_start for run in runs)
    is_unlike = kept < MIN_KEPT * _count_letters(old_pieces) and fuzz.ratio(written, new) < MIN_ALIKE
    is_other = is_unlike or (is_comment(written) != is_comment(new) and written.lstrip()[:1] != new.lstrip()[:1])
    is_extended = _is_extended(written, new)
    if not kept and not is_extended:
        return new
    if is_other and not is_extended and kept_pieces < min(len(old_pieces), len(new_pieces)):
        return new  # a different text, and neither contains the other
    merged = list(new_pieces)
    old_roles, new_roles = _quote_roles(old_pieces), _quote_roles(new_pieces)
    for run in runs:
        for at, to in zip(range(run.src_start, run.src_end), range(run.dest_start, run.dest_end), strict=True):
            if _classify_piece(old_pieces[at]) != "mark" or (
                (old_roles.get(at) or _find_roles(old_pieces, at)) & (new_roles.get(to) or _find_roles(new_pieces, to))
            ):
                merged[to] = actual_pieces[at]
    return "".join(merged)


def _is_extended(text: str, longer: str) -> bool:
    """Return whether ``longer`` is ``text`` with one added part without quotes or dashes. If the part is at the end, it
    must not follow a word."""
    if not re.search(r"\w", text):
        return longer.startswith(text) and longer[len(text) :][:1].isspace()
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, longer, strict=False)))
    rest = text[head:]
    return longer.endswith(rest) and not set("'\"-").intersection(longer[head : len(longer) - len(rest)])


def _find_kept_runs(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    """Return the runs of common tokens: at the start, at the end, and elsewhere if they have enough letters."""
    equal = [code for code in LCSseq.opcodes(old, new) if code.tag == "equal"]
    return [
        code
        for code in equal
        if code.src_start == code.dest_start == 0
        or (code.src_end, code.dest_end) == (len(old), len(new))
        or _count_letters(old[code.src_start : code.src_end]) >= MIN_KEPT_LETTERS
    ]


def _quote_roles(pieces: Sequence[str]) -> dict[int, set[str]]:
    """Map the position of each double quote to its role, ``opens`` or ``closes``. The mapping is empty if the quotes
    are not balanced."""
    quotes = [at for at, piece in enumerate(pieces) if piece == '"']
    return {} if len(quotes) % 2 else {at: {"closes" if number % 2 else "opens"} for number, at in enumerate(quotes)}


def _find_roles(pieces: Sequence[str], at: int) -> set[str]:
    """Return the roles that a punctuation character may have. An apostrophe, for example, is not a closing quote."""
    before = _classify_piece(pieces[at - 1]) if at else "blank"
    after = _classify_piece(pieces[at + 1]) if at + 1 < len(pieces) else "blank"
    roles = {
        "joins": before == after == "word",
        "opens": before != "word" and after != "blank",
        "closes": after != "word" and before != "blank",
        "alone": before == after == "blank",
    }
    return {role for role, is_possible in roles.items() if is_possible}


def _count_letters(pieces: Sequence[str]) -> int:
    return sum(len(piece) for piece in pieces if _classify_piece(piece) == "word")


def _classify_piece(piece: str) -> str:
    return "blank" if piece.isspace() else "word" if piece[0].isalnum() or piece[0] == "_" else "mark"


def join_lines(document: TextDocument, lines: Sequence[OutputLine], first_line: int) -> str:
    """Join lines, without a final line end. New lines get the line end of the line above them."""
    parts: list[str] = []
    nearest = first_line
    for line in lines[:-1]:
        nearest = nearest if line.line_end_from is None else line.line_end_from
        parts += (
            line.text,
            document.choose_line_end(nearest) if line.line_end_from is None else document.find_line_end(nearest),
        )
    parts += [line.text for line in lines[-1:]]
    return "".join(parts)
