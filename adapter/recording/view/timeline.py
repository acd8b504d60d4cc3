"""Divide the duration of an exchange into phases."""

from __future__ import annotations

from collections.abc import Sequence

from adapter.core.events import JsonObject
from adapter.core.text.display_escaping import escape_for_display
from adapter.protocols.recorded_exchange import RecordedExchange

MAX_CALLS = 20
"""Maximum number of calls that have phases of their own."""


def build_timeline(exchange: RecordedExchange, names: Sequence[str] = ()) -> list[JsonObject]:
    """Return the phases of an exchange in order, or an empty list if the times were not recorded.

    A phase has a start and an end, in seconds after the request, and the kind of span that determines its color.
    ``names``: the names of the called tools, if known.
    """
    if exchange.first_s is None or exchange.duration_s is None:
        return []
    ends = [("markup", "until the first part", exchange.first_s)]
    ends += [("reasoning", "reasoning", exchange.reasoning_s)] if exchange.reasoning_s is not None else []
    calls_s = exchange.calls_s
    labels = names if len(names) == len(calls_s) else [f"{number}" for number in range(1, len(calls_s) + 1)]
    ends += [("call", f"call {label}", end_s) for label, end_s in zip(labels[:MAX_CALLS], calls_s, strict=False)]
    ends += [("call", f"{len(calls_s) - MAX_CALLS:,} more calls", calls_s[-1])] if len(calls_s) > MAX_CALLS else []
    phases: list[JsonObject] = []
    start_s = 0.0
    for kind, name, end_s in [*ends, ("content", "until the end", exchange.duration_s)]:
        end_s = min(max(start_s, end_s), exchange.duration_s)
        phases.append({"kind": kind, "name": escape_for_display(name), "start_s": start_s, "end_s": end_s})
        start_s = end_s
    return phases if phases[-1]["end_s"] > phases[-1]["start_s"] else phases[:-1]
