"""Log probabilities of tokens, as far as the tokens are in the text that a client gets.

A server tells them for what the model wrote; of that reasoning, calls and their markers are taken out. What is left
still has its tokens, those aside that lie across a border.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from adapter.core.events import Event, Json, JsonObject


class LogprobAligner:
    """``add`` takes the text as it comes, with its tokens; ``take`` says that so many characters of it were read."""

    def __init__(self) -> None:
        self._tokens: deque[tuple[int, int, JsonObject]] = deque()  # where each begins and ends
        self._added = 0
        self._read = 0
        self._shown_from: int | None = None  # where the text began that is shown without a break up to here

    def add(self, text: str, logprobs: Json) -> None:
        """``logprobs``: of OpenAI's shape. Tokens that are not those of ``text`` are left out."""
        entries = logprobs.get("content") if isinstance(logprobs, dict) else None
        tokens = [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
        before = "".join(str(each.get("token")) for each in tokens).rfind(text)
        end = self._added - before
        for each in tokens if before >= 0 else ():
            start, end = end, end + len(str(each.get("token")))
            if self._added <= start and end <= self._added + len(text):
                self._tokens.append((start, end, each))
        self._added += len(text)

    def attach(self, event: Event, made: Sequence[JsonObject | str]) -> None:
        """Put the tokens of ``event`` into ``made``, what the client gets of it, where that is its text as it was."""
        shown = made[0] if len(made) == 1 and isinstance(made[0], dict) else {}
        is_shown = shown.get("content") == event.raw and bool(event.raw)
        if tokens := self.take(len(event.raw), is_shown=is_shown):
            shown["logprobs"] = tokens

    def take(self, size: int, *, is_shown: bool) -> list[JsonObject]:
        """The tokens that end in these characters, where all of each is shown."""
        begin, self._read = self._read, self._read + size
        if not is_shown:
            self._shown_from = None
        elif self._shown_from is None:
            self._shown_from = begin
        shown = []
        while self._tokens and self._tokens[0][1] <= self._read:
            start, _, entry = self._tokens.popleft()
            if self._shown_from is not None and start >= self._shown_from:
                shown.append(entry)
        return shown
