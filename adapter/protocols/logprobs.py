"""Align the log probabilities of tokens (logprobs) with the content sent to the client.

Servers send logprobs for the model's whole text, but reasoning, calls and markers are then removed from it. Tokens that
are entirely content keep their logprobs; tokens that are only partly content lose them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from adapter.core.events import Event, Json, JsonObject


class LogprobAligner:
    """Assigns tokens with their logprobs to parsed events. `add` takes the model's text with its tokens, and `attach`
    copies the tokens of an event to the delta that is sent for it."""

    def __init__(self) -> None:
        self._tokens: deque[tuple[int, int, JsonObject]] = deque()  # start, end and the server's entry
        self._added = 0
        self._read = 0
        self._shown_from: int | None = None  # start of the current run of content

    def add(self, text: str, logprobs: Json) -> None:
        """Add text with its logprobs in OpenAI's format. Tokens that do not match ``text`` are ignored."""
        entries = logprobs.get("content") if isinstance(logprobs, dict) else None
        tokens = [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
        before = "".join(str(each.get("token")) for each in tokens).rfind(text)
        end = self._added - before
        for each in tokens if before >= 0 else ():
            start, end = end, end + len(str(each.get("token")))
            if self._added <= start and end <= self._added + len(text):
                self._tokens.append((start, end, each))
        self._added += len(text)

    def attach(self, event: Event, deltas: Sequence[JsonObject | str]) -> None:
        """Add the logprobs of ``event`` to its delta, if the delta has the event's unchanged text."""
        delta = deltas[0] if len(deltas) == 1 and isinstance(deltas[0], dict) else {}
        is_shown = delta.get("content") == event.raw and bool(event.raw)
        if tokens := self.consume(len(event.raw), is_shown=is_shown):
            delta["logprobs"] = tokens

    def consume(self, size: int, *, is_shown: bool) -> list[JsonObject]:
        """Consume the next ``size`` characters, and return the tokens that end within them and consist entirely of
        content. ``is_shown`` is True if these characters are content."""
        begin, self._read = self._read, self._read + size
        if not is_shown:
            self._shown_from = None
        elif self._shown_from is None:
            self._shown_from = begin
        entries = []
        while self._tokens and self._tokens[0][1] <= self._read:
            start, _, entry = self._tokens.popleft()
            if self._shown_from is not None and start >= self._shown_from:
                entries.append(entry)
        return entries
