"""Build the data of an answer for the page of `adapter view`: its row in the list, its statistics and its spans."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile

from adapter.core.events import Json, JsonObject, RejectedCall, ToolCall
from adapter.core.rejection_codes import REJECTION_REASONS
from adapter.core.repair_codes import REPAIRS
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.turn import Turn

INVALID, REJECTED, FAILED, OTHERWISE, ASKED_AGAIN, NO_ANSWER = (
    "invalid call", "rejected", "failed", "read otherwise", "asked again", "no answer"
)  # fmt: skip
BAD = [INVALID, FAILED, OTHERWISE, NO_ANSWER]
MAX_REJECTED = 300
"""Number of characters of a rejected call that are shown with the reason for its rejection."""
TITLE = 120
"""Maximum length of an exchange's title in the list, in characters."""
MAX_NAMES = 50
"""Maximum number of tools that the list shows for an answer."""
MAX_PIECES = 2_000
"""Maximum number of spans, and of rejected calls, that are shown for an answer. The rest is shown as one span."""


@dataclass(frozen=True, slots=True)
class ExchangeStats:
    """Duration and token counts of an exchange; unknown values are None. ``first_s`` is the time to the first chunk."""

    first_s: float | None = None
    duration_s: float | None = None
    prompt_tokens: int | None = None
    written_tokens: int | None = None
    retry: int | None = None

    @property
    def cost(self) -> str:
        """Token counts and duration as text for the list."""
        counted = [f"{count:,}" for count in (self.prompt_tokens, self.written_tokens) if count is not None]
        seconds = [f"{self.duration_s:.1f} s"] if self.duration_s is not None else []
        return ", ".join([*([f"{' + '.join(counted)} tokens"] if counted else []), *seconds])

    @property
    def about(self) -> list[tuple[str, str]]:
        rows = []
        if self.first_s is not None:
            rows.append(("first part", f"after {self.first_s:.2f} s"))
        if self.duration_s is not None:
            rows.append(("took", f"{self.duration_s:.2f} s"))
        if self.prompt_tokens is not None:
            rows.append(("prompt", f"{self.prompt_tokens:,} tokens"))
        if self.written_tokens is not None:
            rows.append(("written", f"{self.written_tokens:,} tokens{self._format_speed()}"))
        return [*rows, ("retry", str(self.retry))] if self.retry else rows

    def _format_speed(self) -> str:
        writing_s = (self.duration_s or 0.0) - (self.first_s or 0.0)
        return f", {self.written_tokens / writing_s:,.0f} a second" if self.written_tokens and writing_s > 0 else ""


UNKNOWN = ExchangeStats()


def build_exchange_row(
    title: str, question: str, time: str, model: str, figures: ExchangeStats, marks: Sequence[str],
    calls: Counter[str], conversation: int,
) -> JsonObject:  # fmt: skip
    """Build the row of an exchange in the list.

    ``question`` is the user's last message, ``figures`` are the statistics, ``marks`` the badges, and ``calls`` has the
    number of calls for each tool. ``conversation`` is the number of the first exchange in the conversation.
    """
    return {
        "title": _shorten(title), "question": _shorten(question), "conversation": conversation,
        "time": escape_for_display(time[:19].replace("T", " ")),
        "model": escape_for_display(model), "cost": figures.cost,
        "figures": {name: value for name, value in asdict(figures).items() if value is not None},
        "marks": list(dict.fromkeys(map(escape_for_display, marks))),
        "calls": [[escape_for_display(name), times] for name, times in calls.most_common(MAX_NAMES)],
    }  # fmt: skip


def _shorten(text: str) -> str:
    return escape_for_display(" ".join(text[: TITLE * 10].split())[:TITLE])


def build_spans(turn: Turn) -> list[JsonObject]:
    """Return the rows of an answer's spans: text, reasoning, markup and calls, in order. The row of a span lists the
    rejected calls in its text."""
    pieces = turn.explain()
    text = "".join(piece.text for piece in pieces)
    spans, remaining = [], MAX_PIECES
    for piece in pieces[:MAX_PIECES]:
        rejected = [
            [_quote_rejected(text, each), REJECTION_REASONS[each.reason]] for each in piece.rejected[:remaining]
        ]
        remaining -= len(rejected)
        spans.append(build_span_row(piece.kind, piece.text, piece.call, piece.error, rejected))
    if len(pieces) > MAX_PIECES:
        rest = pieces[MAX_PIECES:]
        calls = sum(piece.call is not None for piece in rest)
        rows = f"{len(rest):,} more spans with {calls:,} calls, shown as one"
        spans.append(build_span_row("markup", text[rest[0].start :]) | {"error": rows})
    return spans


def _quote_rejected(text: str, rejected: RejectedCall) -> str:
    end = min(rejected.end, rejected.start + MAX_REJECTED)
    return escape_for_page(text[rejected.start : end]) + ("…" if end < rejected.end else "")


def build_span_row(
    kind: str, text: str, call: ToolCall | None = None, error: str | None = None, rejected: Sequence[Json] = ()
) -> JsonObject:
    return {
        "kind": kind, "text": escape_for_page(text),
        "call": f"{escape_for_display(call.name)} {format_pretty_json(call.arguments)}" if call else "",
        "fixes": [[fix, REPAIRS[fix]] for fix in call.fixes] if call else [], "error": escape_for_page(error or ""),
        "rejected": rejected,
    }  # fmt: skip


def list_turn_badges(turns: Sequence[Turn]) -> list[str]:
    """Return the badges of an exchange. The page filters its list by badges. ``turns`` has the recorded turn and, if
    the text was parsed again, the new one."""
    turn = turns[0]
    then, now = ([(call.name, call.arguments) for call in each.calls] for each in (turn, turns[-1]))
    has_fixes = any(call.fixes for call in turn.calls)
    marks = list_exchange_badges(calls=then, fixes=has_fixes, invalid=turn.invalid, rejected=turn.rejected)
    return [*marks, *([OTHERWISE] if then != now else [])]


def list_exchange_badges(*, calls: object, fixes: object, invalid: object, rejected: object) -> list[str]:
    """Return the badges of an answer: one for each argument that is true, and "no call" if ``calls`` is false."""
    marks = {"calls": calls, "no call": not calls, "fixes": fixes, INVALID: invalid, REJECTED: rejected}
    return [mark for mark, holds in marks.items() if holds]


def build_title(turn: Turn) -> str:
    """Return the title of an answer, which is its first call, or its content if that comes first."""
    if not turn.calls:
        return turn.content
    before = Turn.from_events(takewhile(lambda event: not isinstance(event, ToolCall), turn.events)).content
    return before if before.strip() else build_call_title(turn.calls[0])


def build_call_title(call: ToolCall) -> str:
    return f"{call.name} {json.dumps(call.arguments, ensure_ascii=False)}"


def format_pretty_json(value: Json) -> str:
    return escape_for_page(json.dumps(value, ensure_ascii=False, indent=2))


def escape_for_page(text: str) -> str:
    """Escape hidden characters except line breaks and tabs."""
    return escape_for_display(text, keep="\n\t")
