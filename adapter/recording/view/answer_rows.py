"""What the page shows of one answer: its row in the list, what it took, its pieces and what each was taken for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from adapter.core.events import Json, JsonObject, RejectedCall, ToolCall
from adapter.core.rejection_codes import REJECTION_REASONS
from adapter.core.repair_codes import REPAIRS
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.turn import Turn

INVALID, REJECTED, FAILED, OTHERWISE, ASKED_AGAIN, NO_ANSWER = (
    "invalid call", "rejected", "failed", "read otherwise", "asked again", "no answer"
)  # fmt: skip
BAD = [INVALID, FAILED, OTHERWISE, NO_ANSWER]
LOOKED_LIKE = 300
"""Characters of a text that is no call which are shown beside the reason."""
TITLE = 120
"""Characters of what an exchange is called in the list."""
MAX_NAMES = 50
"""Tools called in one answer that the list names."""
MAX_PIECES = 2_000
"""Of an answer that are shown apart, and texts in it that look like calls: what follows is one piece."""


@dataclass(frozen=True, slots=True)
class ExchangeStats:
    """What an exchange took, as far as that is known. ``first_s``: until the first piece of the answer. ``retry``:
    answers that were asked again before."""

    first_s: float | None = None
    duration_s: float | None = None
    prompt_tokens: int | None = None
    written_tokens: int | None = None
    retry: int | None = None

    @property
    def cost(self) -> str:
        """In the list."""
        counted = [f"{count:,}" for count in (self.prompt_tokens, self.written_tokens) if count is not None]
        seconds = [f"{self.duration_s:.1f} s"] if self.duration_s is not None else []
        return ", ".join([*([f"{' + '.join(counted)} tokens"] if counted else []), *seconds])

    @property
    def about(self) -> list[tuple[str, str]]:
        told = []
        if self.first_s is not None:
            told.append(("first piece", f"after {self.first_s:.2f} s"))
        if self.duration_s is not None:
            told.append(("took", f"{self.duration_s:.2f} s"))
        if self.prompt_tokens is not None:
            told.append(("prompt", f"{self.prompt_tokens:,} tokens"))
        if self.written_tokens is not None:
            told.append(("written", f"{self.written_tokens:,} tokens{self._speed()}"))
        return [*told, ("retry", str(self.retry))] if self.retry else told

    def _speed(self) -> str:
        writing_s = (self.duration_s or 0.0) - (self.first_s or 0.0)
        return f", {self.written_tokens / writing_s:,.0f} a second" if self.written_tokens and writing_s > 0 else ""


UNKNOWN = ExchangeStats()


def exchange_row(
    title: str, time: str, model: str, figures: ExchangeStats, marks: Sequence[str], calls: Counter[str]
) -> JsonObject:
    """What the list shows of an exchange. ``calls``: how many of each tool."""
    return {
        "title": escape_for_display(" ".join(title[: TITLE * 10].split())[:TITLE]), "time": escape_for_display(time[:19].replace("T", " ")),
        "model": escape_for_display(model), "cost": figures.cost,
        "figures": {name: value for name, value in asdict(figures).items() if value is not None},
        "marks": list(dict.fromkeys(map(escape_for_display, marks))),
        "calls": [[escape_for_display(name), times] for name, times in calls.most_common(MAX_NAMES)],
    }  # fmt: skip


def spans_of(turn: Turn) -> list[JsonObject]:
    """The pieces of an answer, in order, and all that it looked like."""
    pieces = turn.explain()
    text = "".join(piece.text for piece in pieces)
    spans, left = [], MAX_PIECES
    for piece in pieces[:MAX_PIECES]:
        rejected = [[_beginning(text, each), REJECTION_REASONS[each.reason]] for each in piece.rejected[:left]]
        left -= len(rejected)
        spans.append(span(piece.kind, piece.text, piece.call, piece.error, rejected))
    if len(pieces) > MAX_PIECES:
        rest = pieces[MAX_PIECES:]
        calls = sum(piece.call is not None for piece in rest)
        told = f"{len(rest):,} more pieces, {calls:,} calls among them, are not shown apart"
        spans.append(span("markup", text[rest[0].start :]) | {"error": told})
    return spans


def _beginning(text: str, rejected: RejectedCall) -> str:
    end = min(rejected.end, rejected.start + LOOKED_LIKE)
    return truncate_for_page(text[rejected.start : end]) + ("…" if end < rejected.end else "")


def span(
    kind: str, text: str, call: ToolCall | None = None, error: str | None = None, rejected: Sequence[Json] = ()
) -> JsonObject:
    return {
        "kind": kind, "text": truncate_for_page(text), "call": f"{escape_for_display(call.name)} {pretty_json(call.arguments)}" if call else "",
        "fixes": [[fix, REPAIRS[fix]] for fix in call.fixes] if call else [], "error": truncate_for_page(error or ""),
        "rejected": rejected,
    }  # fmt: skip


def turn_badges(turns: Sequence[Turn]) -> list[str]:
    """By what an exchange can be found; ``turns``: as read then, and now where that is asked for."""
    turn = turns[0]
    then, now = ([(call.name, call.arguments) for call in each.calls] for each in (turn, turns[-1]))
    has_fixes = any(call.fixes for call in turn.calls)
    marks = exchange_badges(calls=then, fixes=has_fixes, invalid=turn.invalid, rejected=turn.rejected)
    return [*marks, *([OTHERWISE] if then != now else [])]


def exchange_badges(*, calls: object, fixes: object, invalid: object, rejected: object) -> list[str]:
    """Of what there is."""
    marks = {"calls": calls, "no call": not calls, "fixes": fixes, INVALID: invalid, REJECTED: rejected}
    return [mark for mark, holds in marks.items() if holds]


def title_of(turn: Turn) -> str:
    """What an answer says, or else asks for first."""
    if turn.content.strip() or not turn.calls:
        return turn.content
    return title_of_call(turn.calls[0])


def title_of_call(call: ToolCall) -> str:
    return f"{call.name} {json.dumps(call.arguments, ensure_ascii=False)}"


def pretty_json(value: Json) -> str:
    return truncate_for_page(json.dumps(value, ensure_ascii=False, indent=2))


def truncate_for_page(text: str) -> str:
    """With what hides spelled out, lines kept."""
    return escape_for_display(text, keep="\n\t")
