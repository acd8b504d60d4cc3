"""A text that is being edited: what it says, apart from how its lines end.

Matching works on a *view* in which every line ends with a line feed and the
byte order mark is gone. Every position in the view maps back to the text as it
was given, so that what no edit touches is never written anew.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

from adapter.core.text.lines import line_end, split_lines, to_lf

BYTE_ORDER_MARK = "\ufeff"


class TextDocument:
    """``text`` with its lines: ``lines[i]`` is without its end, ``ends[i]`` is that end.

    As in an editor, text after the last line end is a line too, even when empty.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
        body = text[len(self.mark) :]
        self.is_plain = "\r" not in body
        """Every line ends with a line feed, so that the view is the text."""
        if not self.is_plain:
            pieces = split_lines(body)
            self.ends = [line_end(piece) for piece in pieces]
            self.lines = [piece[: len(piece) - len(end)] for piece, end in zip(pieces, self.ends, strict=True)]
            if self.ends[-1]:
                self.lines.append("")
                self.ends.append("")
            self.view = "\n".join(self.lines)
        else:
            self.lines = body.split("\n")
            self.ends = ["\n"] * (len(self.lines) - 1) + [""]
            self.view = body

    @cached_property
    def _view_starts(self) -> list[int]:
        return list(accumulate(map((1).__add__, map(len, self.lines[:-1])), initial=0))

    @cached_property
    def _text_starts(self) -> list[int]:
        pieces = zip(self.lines[:-1], self.ends[:-1], strict=True)
        return list(accumulate((len(line) + len(end) for line, end in pieces), initial=len(self.mark)))

    @cached_property
    def line_count(self) -> int:
        """Lines as an editor's status bar counts them: a final line end opens no further line."""
        return len(self.lines) - (not self.lines[-1])

    @cached_property
    def common_end(self) -> str:
        """The line end most lines have; a line feed when there is none."""
        counts = Counter(end for end in self.ends if end)
        return counts.most_common(1)[0][0] if counts else "\n"

    def line_at(self, view_offset: int) -> int:
        """The 0-based line that ``view_offset`` is in."""
        return bisect_right(self._view_starts, view_offset) - 1

    def view_offset(self, line: int) -> int:
        """Where ``line`` (0-based) starts in the view."""
        return self._view_starts[line]

    def text_offset(self, view_offset: int) -> int:
        """The place in ``text`` of a place in the view."""
        if self.is_plain:
            return len(self.mark) + view_offset
        line = self.line_at(view_offset)
        return self._text_starts[line] + view_offset - self._view_starts[line]

    def end_near(self, line: int) -> str:
        """The line end for a line written at ``line``: its own, the one above, or the usual one."""
        return self.ends[line] or (self.ends[line - 1] if line else "") or self.common_end

    def new_end(self, line: int) -> str:
        """The line end for a line that is new at ``line``: as beside it. A lone carriage return among lines that end
        otherwise is a part of the text to most programs, and is not made twice."""
        end = self.end_near(line)
        return self.common_end if end == "\r" else end


def normalize_newlines(text: str) -> str:
    """What a model wrote, as the view spells it: line feeds only, no byte order mark."""
    return to_lf(text.removeprefix(BYTE_ORDER_MARK))


def format_line_list(numbers: Sequence[int], limit: int = 12) -> str:
    """``lines 14, 88`` for 1-based line numbers; many are cut short."""
    shown = ", ".join(map(str, numbers[:limit]))
    return f"line{'s' if len(numbers) > 1 else ''} {shown}{', ...' if len(numbers) > limit else ''}"


def format_line_range(start: int, end: int) -> str:
    """``line 3`` or ``lines 3-5``, 1-based, both included."""
    return f"line {start}" if start == end else f"lines {start}-{end}"
