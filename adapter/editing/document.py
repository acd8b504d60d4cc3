"""The text being edited, with its lines, line ends and a normalized view for matching.

In the *view* every line ends with a line feed and the byte order mark is removed. Every position in the view maps back
to the original text, so that unchanged parts of the text keep their bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

from adapter.core.text.lines import get_line_end, split_lines, to_lf

BYTE_ORDER_MARK = "\ufeff"
MAX_LISTED = 12
"""Maximum number of lines listed in a message."""
_PROSE_FILES = frozenset(["adoc", "diff", "markdown", "md", "mdx", "org", "patch", "rst", "tex", "txt"])
"""Extensions of files whose text may contain headings, code fences or patches. Files without an extension may contain
them as well."""


def is_prose_file(path: str) -> bool:
    return path.rpartition("/")[2].rpartition(".")[2].lower() in _PROSE_FILES


class TextDocument:
    """A text, split into ``lines`` without their line ends, and the line end of each line in ``ends``.

    ``view`` is the text with line feeds as the only line ends, and without a byte order mark.
    As in an editor, the text after the last line end is also a line, even if it is empty. ``path`` names the file.
    """

    def __init__(self, text: str, path: str = "") -> None:
        self.text, self.path = text, path
        self.mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
        """The text's byte order mark, or an empty string."""
        body = text[len(self.mark) :]
        self.is_plain = "\r" not in body
        """True if every line ends with a line feed. The view then equals the text."""
        if not self.is_plain:
            pieces = split_lines(body)
            self.ends = [get_line_end(piece) for piece in pieces]
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
        """Number of lines as editors count them: a final line end does not start another line."""
        return len(self.lines) - (not self.lines[-1])

    @cached_property
    def common_end(self) -> str:
        """The most frequent line end, or a line feed if the text has a single line."""
        counts = Counter(end for end in self.ends if end)
        return counts.most_common(1)[0][0] if counts else "\n"

    def find_line(self, view_offset: int) -> int:
        """Return the 0-based line that contains ``view_offset``."""
        return bisect_right(self._view_starts, view_offset) - 1

    def get_view_offset(self, line: int) -> int:
        """Return the offset of the start of ``line`` (0-based) in the view."""
        return self._view_starts[line]

    def get_text_offset(self, view_offset: int) -> int:
        """Convert an offset in the view to an offset in ``text``."""
        if self.is_plain:
            return len(self.mark) + view_offset
        line = self.find_line(view_offset)
        return self._text_starts[line] + view_offset - self._view_starts[line]

    def find_line_end(self, line: int) -> str:
        """Return the line end of ``line``. If it has none, return the line end above or, for the first line, the most
        frequent line end."""
        return self.ends[line] or (self.ends[line - 1] if line else "") or self.common_end

    def normalize(self, new_text: str) -> str:
        """Convert all line ends of new text to line feeds, and remove its byte order mark unless the document is
        empty."""
        return normalize_newlines(new_text) if self.text else to_lf(new_text)

    def choose_line_end(self, line: int) -> str:
        """Return the line end for a new line at ``line``.

        A lone carriage return is used only if the text has no other line ends, because most programs treat it as text.
        """
        end = self.find_line_end(line)
        return self.common_end if end == "\r" else end


def normalize_newlines(text: str) -> str:
    """Convert all line ends to line feeds, and remove the byte order mark."""
    return to_lf(text.removeprefix(BYTE_ORDER_MARK))


def format_line_list(numbers: Sequence[int]) -> str:
    """Return ``lines 14, 88`` for 1-based line numbers; long lists are truncated."""
    shown = ", ".join(map(str, numbers[:MAX_LISTED]))
    return f"line{'s' if len(numbers) > 1 else ''} {shown}{', ...' if len(numbers) > MAX_LISTED else ''}"


def format_line_indexes(lines: Sequence[int]) -> str:
    """Return ``lines 14, 88`` for 0-based line numbers."""
    return format_line_list([line + 1 for line in lines])


def format_line_range(start: int, end: int) -> str:
    """Return ``line 3`` or ``lines 3-5``, 1-based and inclusive."""
    return f"line {start}" if start == end else f"lines {start}-{end}"
