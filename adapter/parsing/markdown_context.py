"""What a marker in an answer must know of the text before it, to tell quoted ones from meant ones.

Text is only kept until somebody asks: most of an answer is looked at once, when a marker
comes, and an answer without markers not at all.
"""

from __future__ import annotations

import re
from functools import lru_cache

from adapter.parsing.stream_buffer import SPACE

FENCE, TILDE_FENCE = "```", "~~~"
FENCE_KIND = 39
"""Characters that may follow the opening of a code fence on its line."""

_MARGIN = SPACE.replace("\n", "")
_OPENING = rf"[{_MARGIN}]*+(?:{FENCE}(?=[^\n]{{0,{FENCE_KIND}}}\n)(?P<more>`*)[^`\n]*\n|(?P<tilde>{TILDE_FENCE}))"
_TICK_RUNS = re.compile(r"`+|[^`]+")
_SPEAKER = re.compile(r"(?: {2,}|\t)\s*(?:assistant|user|human|model|system|tool|ai|bot)\s*:", re.IGNORECASE)
_HEAD_LENGTH = 40
_LINES = re.compile(r"[^\n]*\n|[^\n]+")

MANY = 256
"""Pieces after which they are looked at all the same: a stream's piece of four characters takes sixty bytes."""
LONG = 100
"""Characters of a line that show whether it is a code fence."""


@lru_cache(maxsize=16)
def _next_border(fence: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Finds what closes ``fence``, or opens one when that is empty, where a text begins and on any later line of it."""
    pattern = rf"[{_MARGIN}]*+{fence}" if fence else _OPENING
    return re.compile(pattern), re.compile("\n" + pattern)


class MarkdownContext:
    """The line so far, and the code fence around it, given in pieces of any size. It forgets the lines before.

    ``has_fences``: whether code fences quote what is in them; in reasoning they are nothing but backticks.
    """

    __slots__ = ("_fence", "_goes_on", "_has_fences", "_head", "_is_blank", "_is_quote", "_opened", "_pieces", "_run")

    def __init__(self, *, has_fences: bool = True) -> None:
        self._has_fences = has_fences
        self._pieces: list[str] = []  # what was not looked at yet
        self._is_blank = True
        self._is_quote = False
        self._head = ""  # its first characters, while they may say who speaks
        self._fence = ""  # what closes the code fence that is open
        self._opened = 0  # backticks that opened inline code; as many close it
        self._run = 0  # backticks at the very end: more may come, so they count only when something else follows
        self._goes_on = False

    @property
    def is_blank(self) -> bool:
        self._look()
        return self._is_blank

    @property
    def is_quote(self) -> bool:
        """Whether it begins with ``>``, or is indented and begins with who speaks, as a quoted transcript does."""
        self._look()
        return self._is_quote

    @property
    def is_fenced(self) -> bool:
        """Whether it stands in a code fence."""
        self._look()
        return bool(self._fence)

    @property
    def quote_reason(self) -> str:
        """What would quote a call that follows, as `REJECTION_REASONS` has it: "" when nothing would."""
        self._look()
        if self._fence:
            return "code-fence"
        if self._opened_after_run():
            return "inline-code"
        return "quotation" if self._is_quote else ""

    def quoted_after(self, text: str) -> str:
        """`quoted_by`, if ``text`` came next."""
        from copy import copy

        ahead = copy(self)
        ahead._pieces = [*self._pieces, text]
        return ahead.quote_reason

    def advance_past_tick(self) -> None:
        """The inline code quotes a marker, so it may go on over line breaks, to the end of its paragraph."""
        self._look()
        self._goes_on = True

    def end_quotation(self) -> None:
        """What quoted the text so far, in backticks or a fence, has ended here."""
        self._look()
        self._fence = ""
        self._forget_ticks()

    def add(self, text: str) -> None:
        self._pieces.append(text)
        if len(self._pieces) >= MANY:
            self._look_at_lines()

    def _look(self) -> None:
        if self._pieces:
            text = "".join(self._pieces)
            self._pieces.clear()
            self._take(text)

    def _look_at_lines(self) -> None:
        """Look at as much as no later text can show in another light: what is a fence shows at the end of its line."""
        text = "".join(self._pieces)
        end = text.rfind("\n") + 1
        if len(text[end:].lstrip(SPACE)) > LONG:
            end = len(text)
        self._pieces[:] = [text[end:]]
        if end:
            self._take(text[:end])

    def _take(self, text: str) -> None:
        at = self._pass_fences(text) if self._has_fences and (FENCE in text or TILDE_FENCE in text) else 0
        if self._fence:
            start = text.rfind("\n", at) + 1
            self._is_blank = (self._is_blank or start > 0) and not text[max(start, at) :].strip(SPACE)
        else:
            self._add(text[at:] if at else text)

    def _pass_fences(self, text: str) -> int:
        """Open and close the code fences of ``text``. Returns where the last that opens or closes one ends, or 0."""
        at = 0
        while True:
            first, later = _next_border(self._fence)
            found = (first.match(text, at) if self._is_blank else None) or later.search(text, at)
            if found is None:
                return at
            self._fence = "" if self._fence else TILDE_FENCE if found["tilde"] else FENCE + found["more"]
            at = found.end()
            self._is_blank, self._is_quote, self._head = text[at - 1] == "\n", False, ""
            self._forget_ticks()

    def _add(self, text: str) -> None:
        if self._goes_on and "\n" in text:
            for line in _LINES.findall(text):
                self._add_line(line)
        else:
            self._add_line(text)

    def _add_line(self, text: str) -> None:
        start = text.rfind("\n") + 1
        if start and not self._goes_on_after(text[:start]):
            self._forget_ticks()
        if start:
            self._is_blank, self._is_quote, self._head = True, False, ""
            text = text[start:]
        self._begin(text)
        self._count_ticks(text)

    def _goes_on_after(self, line: str) -> bool:
        """Whether the inline code is still open after ``line``, the end of the present line."""
        if not self._goes_on:
            return False
        self._begin(line[:-1])
        self._count_ticks(line)
        return self._opened_after_run() != 0 and not self._is_blank

    def _begin(self, piece: str) -> None:
        if len(self._head) < _HEAD_LENGTH and (self._is_blank or self._head):
            self._head = (self._head + piece)[:_HEAD_LENGTH]
            self._is_quote = self._is_quote or _SPEAKER.match(self._head) is not None
        if self._is_blank and (first := piece.lstrip(SPACE)[:1]):
            self._is_blank, self._is_quote = False, self._is_quote or first == ">"

    def _count_ticks(self, piece: str) -> None:
        for part in _TICK_RUNS.findall(piece) if "`" in piece or self._run else ():
            if part[0] == "`":
                self._run += len(part)
            else:
                self._opened, self._run = self._opened_after_run(), 0
                self._goes_on = self._goes_on and self._opened > 0

    def _forget_ticks(self) -> None:
        self._opened = self._run = 0
        self._goes_on = False

    def _opened_after_run(self) -> int:
        if self._run == 0:
            return self._opened
        if self._opened == 0:
            return self._run
        return 0 if self._run == self._opened else self._opened
