"""Track the current Markdown line and code fence, to recognize markers that are only quoted.

Text is buffered until a caller needs the context, usually at a marker. Text without markers is never examined.
"""

from __future__ import annotations

import re
from copy import copy
from functools import lru_cache

from adapter.parsing.stream_buffer import SPACE

FENCE, TILDE_FENCE = "```", "~~~"
FENCE_KIND = 39
"""Maximum length of the text after the backticks that open a code fence, such as a language."""

_MARGIN = SPACE.replace("\n", "")
_OPENING = rf"[{_MARGIN}]*+(?:{FENCE}(?=[^\n]{{0,{FENCE_KIND}}}\n)(?P<more>`*)[^`\n]*\n|(?P<tilde>{TILDE_FENCE}))"
_TICK_RUNS = re.compile(r"`+|[^`]+")
_SPEAKER = re.compile(r"(?: {2,}|\t)\s*(?:assistant|user|human|model|system|tool|ai|bot)\s*:", re.IGNORECASE)
_HEAD_LENGTH = 40
_TAIL_LENGTH = 120
QUOTATION_MARKS = ('"', "'", "“", "„", "«", "‘")
_OPEN_QUOTATION = re.compile(r"(?:(?:^|[\s(\[:=])[\"']|[“„«‘])\Z")
"""Matches a quotation mark that opens a quotation: it follows a space or bracket."""
_SENTENCE_END = re.compile(r"[.:!?…。：！？][ \t]*\Z")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")

MAX_PIECES = 256
"""Maximum number of buffered strings. Each needs about 60 bytes, even for a chunk of four characters."""
MAX_FENCE_LINE = 100
"""Length at which an incomplete line can no longer open or close a code fence, in characters."""


@lru_cache(maxsize=16)
def _compile_next_border(fence: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return two patterns, one for the start of a line and one for later text, that find the end of the code fence
    ``fence``: a line or, as many models write it, the end of the last code line. If ``fence`` is "", they find a line
    that opens a code fence."""
    if not fence:
        return re.compile(_OPENING), re.compile("\n" + _OPENING)
    line_start = rf"[{_MARGIN}]*+{fence}"
    return re.compile(line_start), re.compile(rf"\n{line_start}|(?<!{fence[0]}){fence}(?=[{_MARGIN}]*+\n)")


class MarkdownContext:
    """Tracks whether the end of the text so far is in inline code, a code fence or a quotation.

    ``has_fences``: whether text in code fences counts as quoted. In reasoning, only inline code does. ``begins_line``:
    whether the text begins a line, rather than continuing a line after a call.
    """

    __slots__ = (
        "_begins_line", "_fence", "_has_fences", "_head", "_is_blank", "_is_quote", "_open_ticks", "_pieces",
        "_quotes_paragraph", "_spans_lines", "_tail", "_tick_run",
    )  # fmt: skip

    def __init__(self, *, has_fences: bool = True, begins_line: bool = True) -> None:
        self._has_fences, self._begins_line = has_fences, begins_line
        self._pieces: list[str] = []  # text not processed yet
        self._is_blank = True
        self._is_quote = False
        self._head = ""  # the line's start, while it may name a speaker
        self._fence = ""  # closing marker of the open code fence
        self._open_ticks = 0  # number of backticks that opened inline code; the same number closes it
        self._tick_run = 0  # number of backticks at the very end, where more may follow
        self._spans_lines = False
        self._quotes_paragraph = False
        self._tail = ""  # the last characters

    @property
    def is_blank(self) -> bool:
        """True if the current line has only whitespace so far."""
        self._flush()
        return self._is_blank

    @property
    def is_quote(self) -> bool:
        """True if the current line begins with ``>``, with a table's ``|``, or with a speaker's indented name, as in a
        quoted transcript."""
        self._flush()
        return self._is_quote

    @property
    def ends_sentence(self) -> bool:
        """True after a complete sentence or a colon, unless the text is quoted."""
        self._flush()
        return not (self._is_quote or self.quote_reason) and _SENTENCE_END.search(self._tail) is not None

    @property
    def line_above(self) -> str:
        """The last non-blank line before the current one, or only its end if it is long."""
        self._flush()
        return self._tail.rpartition("\n")[0].rstrip().rpartition("\n")[2]

    @property
    def is_fenced(self) -> bool:
        self._flush()
        return bool(self._fence)

    @property
    def quote_reason(self) -> str:
        """Why a call at this position would only be quoted, as a key of `REJECTION_REASONS`, or "" if it would not."""
        self._flush()
        if self._fence:
            return "code-fence"
        if self._find_opened_after_run():
            return "inline-code"
        begins_quotation = self._tail[-1:] in QUOTATION_MARKS and _OPEN_QUOTATION.search(self._tail)
        return "quotation" if self._is_quote or begins_quotation else ""

    @property
    def next_line_quote_reason(self) -> str:
        """The `quote_reason` at the start of the next line, if the current line ended here."""
        next_line = copy(self)
        next_line._pieces = [*self._pieces, "\n"]
        return next_line.quote_reason

    def advance_past_tick(self) -> None:
        """Let the current inline code extend to later lines of the paragraph, up to its closing backticks. This is
        called at a marker in inline code."""
        self._flush()
        self._spans_lines = True

    def advance_past_quotation(self) -> None:
        """Treat the rest of the paragraph as quoted. This is called at a marker inside a quotation."""
        self._flush()
        self._is_quote = self._quotes_paragraph = True

    def end_quotation(self) -> None:
        """End the current inline code or code fence."""
        self._flush()
        self._fence = ""
        self._forget_ticks()

    def add(self, text: str) -> None:
        self._pieces.append(text)
        if len(self._pieces) >= MAX_PIECES:
            self._flush_lines()

    def _flush(self) -> None:
        if self._pieces:
            text = "".join(self._pieces)
            self._pieces.clear()
            self._update(text)

    def _flush_lines(self) -> None:
        """Process all complete lines in the buffer. An incomplete line stays there, because it may become a code
        fence."""
        text = "".join(self._pieces)
        end = text.rfind("\n") + 1
        if len(text[end:].lstrip(SPACE)) > MAX_FENCE_LINE:
            end = len(text)
        self._pieces[:] = [text[end:]]
        if end:
            self._update(text[:end])

    def _update(self, text: str) -> None:
        self._tail = (self._tail + text[-_TAIL_LENGTH:])[-_TAIL_LENGTH:]
        at = self._pass_fences(text) if self._has_fences and (FENCE in text or TILDE_FENCE in text) else 0
        self._add(text[at:] if at else text)

    def _pass_fences(self, text: str) -> int:
        """Process the code fences in ``text``. Return the end of the last line that opens or closes one, or 0."""
        at = 0
        while True:
            first, later = _compile_next_border(self._fence)
            match = (first.match(text, at) if self._is_blank else None) or later.search(text, at)
            if match is None:
                return at
            self._fence = "" if self._fence else TILDE_FENCE if match["tilde"] else FENCE + match["more"]
            at = match.end()
            self._is_blank, self._is_quote, self._head = text[at - 1] == "\n", False, ""
            self._forget_ticks()

    def _add(self, text: str) -> None:
        if (self._spans_lines or self._quotes_paragraph) and "\n" in text:
            for line in _LINES.findall(text):
                self._add_line(line)
        else:
            self._add_line(text)

    def _add_line(self, text: str) -> None:
        start = text.rfind("\n") + 1
        if start and not self._spans_past(text[:start]):
            self._forget_ticks()
        if start:
            is_blank = self._is_blank and not text[:start].strip(SPACE)
            self._quotes_paragraph = self._quotes_paragraph and not is_blank
            self._is_blank, self._is_quote, self._head = True, self._quotes_paragraph, ""
            self._begins_line = True
            text = text[start:]
        self._begin_line(text)
        self._count_ticks(text)

    def _spans_past(self, line: str) -> bool:
        """Return whether inline code that may span lines is still open after ``line``, the rest of the current
        line."""
        if not self._spans_lines:
            return False
        self._begin_line(line[:-1])
        self._count_ticks(line)
        return self._find_opened_after_run() != 0 and not self._is_blank

    def _begin_line(self, piece: str) -> None:
        if len(self._head) < _HEAD_LENGTH and (self._is_blank or self._head):
            self._head = (self._head + piece)[:_HEAD_LENGTH]
            self._is_quote = self._is_quote or _SPEAKER.match(self._head) is not None
        if self._is_blank and (first := piece.lstrip(SPACE)[:1]):
            self._is_blank, self._is_quote = False, self._is_quote or (self._begins_line and first in ">|")

    def _count_ticks(self, piece: str) -> None:
        for part in _TICK_RUNS.findall(piece) if "`" in piece or self._tick_run else ():
            if part[0] == "`":
                self._tick_run += len(part)
            else:
                self._open_ticks, self._tick_run = self._find_opened_after_run(), 0
                self._spans_lines = self._spans_lines and self._open_ticks > 0

    def _forget_ticks(self) -> None:
        self._open_ticks = self._tick_run = 0
        self._spans_lines = False

    def _find_opened_after_run(self) -> int:
        if self._tick_run == 0:
            return self._open_ticks
        if self._open_ticks == 0:
            return self._tick_run
        return 0 if self._tick_run == self._open_ticks else self._open_ticks
