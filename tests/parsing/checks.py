"""Parse a text in every way it can arrive, and check the invariants each time.

All parsing tests use this helper: the same events must come from the complete text, from its characters, from a few
pieces and from random pieces.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

import pytest

from adapter.core.errors import UsageError
from adapter.core.events import (
    ContentReclassified,
    Event,
    InvalidToolCall,
    Json,
    MarkupDelta,
    ReasoningDelta,
    RejectedCall,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallProgress,
)
from adapter.core.rejection_codes import REJECTION_REASONS
from adapter.core.repair_codes import REPAIRS
from adapter.core.turn import Turn, merge_deltas
from adapter.parsing.parser import Parser
from adapter.parsing.stream_buffer import SPACE
from adapter.tools.tool_set import ToolDefinitions, ToolSet
from tests.effort import EFFORT

Claim: TypeAlias = Sequence[str]
"""An event as a case file has it: ``["text", "Hi"]``, ``["call", name, arguments as JSON, "fix fix"]``,
``["reasoning", ...]``, ``["markup", ...]``, ``["was-reasoning", ...]``, ``["invalid", "piece of the message"]``."""

MARKER_CHARACTERS = frozenset("<>{}[]\"'`|\\")
"""Characters of markers, next to which splits are most critical."""

MAX_CUTS = 24 * EFFORT
"""Maximum number of positions at which one text is cut; a text this short is cut everywhere."""

CUTS_AT_ONCE = 12 if EFFORT == 1 else 1
"""Number of cuts in one parse, far apart, so that the pieces between them are still long."""

DAMAGE = frozenset({"unescaped-quote", "curly-quotes", "missing-bracket", "missing-comma", "key-without-value"})
"""Repairs of JSON that looks valid until the damage."""

TRAILING = "\n\nThat is all."


def read(
    text: str,
    expected: Sequence[Claim] | None = None,
    *,
    format: str | None = None,
    tools: ToolSet | ToolDefinitions = (),
    finish_reason: str | None = "stop",
    generation_prompt: str = "",
    text_may_follow: bool = True,
) -> tuple[Event, ...]:
    """Return the merged events of ``text``, compared with ``expected`` (as in a case file) and with every other split.

    ``text_may_follow``: text after a last, closed call must not change it.
    """
    known = tools if isinstance(tools, ToolSet) else ToolSet(tools)

    def turn_of(pieces: Iterable[str]) -> Turn:
        return read_turn(
            pieces, format=format, tools=known, finish_reason=finish_reason, generation_prompt=generation_prompt
        )

    turn = turn_of([text])
    events = turn.events
    assert "".join(event.raw for event in events) == text
    check_calls(events)
    check_spans(turn, text)
    if expected is not None:
        assert claims(events, expected) == [_parsed(claim) for claim in expected]
    for pieces in ways_to_split(text):
        assert turn_of(pieces) == turn, f"split as {_shown(pieces)}"
    if text_may_follow and finish_reason == "stop" and _ends_in_closed_call(events):
        trailing = TextDelta(TRAILING, TRAILING)
        assert turn_of([text, TRAILING]).events == (*events, trailing), "with text after the call"
    return events


def read_pieces(
    pieces: Iterable[str],
    *,
    format: str | None = None,
    tools: ToolSet | ToolDefinitions = (),
    finish_reason: str | None = "stop",
    generation_prompt: str = "",
) -> tuple[Event, ...]:
    """Return the merged events of a text that arrives in ``pieces``."""
    return read_turn(
        pieces, format=format, tools=tools, finish_reason=finish_reason, generation_prompt=generation_prompt
    ).events


def read_turn(
    pieces: Iterable[str],
    *,
    format: str | None,
    tools: ToolSet | ToolDefinitions,
    finish_reason: str | None,
    generation_prompt: str,
) -> Turn:
    """Parse a text that arrives in ``pieces``."""
    parser = Parser(format, tools, generation_prompt=generation_prompt)
    events = [event for piece in pieces for event in parser.feed(piece)]
    events += parser.close(finish_reason)
    assert parser.close(finish_reason) == []
    with pytest.raises(UsageError):
        parser.feed("more")
    return Turn.from_events(events)


def check_spans(turn: Turn, text: str) -> None:
    """Check the explanation: it covers the text, and each rejected part lies within its spans."""
    spans = turn.explain()
    assert "".join(span.text for span in spans) == text
    assert all(text[span.start : span.end] == span.text for span in spans)
    assert sum((span.rejected for span in spans), ()) == turn.rejected
    for rejected in turn.rejected:
        assert 0 <= rejected.start < rejected.end <= len(text)
        assert rejected.reason in REJECTION_REASONS


def ways_to_split(text: str) -> Iterable[list[str]]:
    """Yield characters, long pieces, random pieces (short or long: thousands of texts share both); for a long text a
    seeded sample of cuts, mostly around markers."""
    yield list(text)
    places = list(range(1, len(text)))
    chance = random.Random(text)
    if len(places) > MAX_CUTS:
        near = [at for at in places if text[at - 1] in MARKER_CHARACTERS or text[at] in MARKER_CHARACTERS]
        near = near if len(near) <= MAX_CUTS - 8 else chance.sample(near, MAX_CUTS - 8)
        places = sorted({*near, *chance.sample(places, 8)})
    readings = -(-len(places) // CUTS_AT_ONCE)
    for first in range(readings):
        cuts = places[first::readings]
        yield [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    for longest in (4, 40) if EFFORT > 1 else (chance.choice((4, 40)),):
        yield random_pieces(text, chance, longest)


def random_pieces(text: str, chance: random.Random, longest: int) -> list[str]:
    pieces = []
    start = 0
    while start < len(text):
        size = chance.randint(1, longest)
        pieces.append(text[start : start + size])
        start += size
    return pieces


def check_calls(events: Iterable[Event]) -> None:
    """Check every call: known repairs, unique ids, arguments that are JSON."""
    calls = [event for event in events if isinstance(event, ToolCall)]
    assert len({call.id for call in calls}) == len(calls)
    for call in calls:
        assert set(call.fixes) <= set(REPAIRS), f"unknown names in {call.fixes}"
        assert len(set(call.fixes)) == len(call.fixes)
        assert isinstance(call.arguments, dict)
        written = json.dumps(call.arguments, allow_nan=False, ensure_ascii=False)
        assert json.loads(written) == call.arguments


def stream_fault(events: Iterable[Event], plain: Sequence[Event]) -> str | None:
    """Return the difference between ``events``, parsed with ``stream_arguments``, and ``plain``, the merged ones
    without.

    The pieces of a call must join to the arguments of the next call, which must exist; only a call that was cut off or
    is damaged may be missing, and is then an error.
    """
    events = list(events)
    merged, written = merge_deltas(events), list[ToolCallDelta]()
    for event in events:
        match event:
            case ToolCallDelta():
                written.append(event)
            case ToolCall():
                joined = "".join(delta.arguments for delta in written)
                if {(delta.id, delta.name) for delta in written} != {(event.id, event.name)}:
                    return f"the pieces {written} before the call {event}"
                if json.loads(joined) != event.arguments:
                    return f"the pieces join to {joined}, the call is {event}"
                written = []
            case InvalidToolCall():
                written = []
            case ToolCallProgress() | RejectedCall():
                pass
            case _:
                if written and event.raw.strip(SPACE):  # white space before a call is told with it
                    return f"the pieces {written} before {event}"
    if written:
        return f"the pieces {written} at the end"
    merged, plain = _put_errors_first(merged), _put_errors_first(plain)
    if [event.raw for event in merged] != [event.raw for event in plain]:
        return f"{merged} instead of {plain}"
    for number, (event, other) in enumerate(zip(merged, plain, strict=True)):
        raw = next((each.raw for each in plain[number:] if each.raw), "")  # calls in one list share it
        if _without_id(event) != _without_id(other) and not _is_refusal(event, other, raw):
            return f"{event} instead of {other}"
    return None


def _put_errors_first(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return ``events`` with each error of a call that shares its text with others before these, as it is if something
    of the damaged call was streamed."""
    ordered: list[Event] = []
    for event in events:
        place = len(ordered)
        if isinstance(event, InvalidToolCall) and not event.raw:
            while place and isinstance(ordered[place - 1], ToolCall):
                place -= 1
        ordered.insert(place, event)
    return tuple(ordered)


def _is_refusal(event: Event, other: Event, raw: str) -> bool:
    """Return whether ``event`` rejects the damaged call ``other``, of which something else was streamed."""
    if not isinstance(event, InvalidToolCall) or not isinstance(other, ToolCall):
        return False
    return "after the first of them were streamed" in event.error and is_damaged(replace(other, raw=raw))


def _without_id(event: Event) -> Event:
    return replace(event, id="") if isinstance(event, ToolCall) else event


def is_damaged(call: ToolCall) -> bool:
    """Return whether a call was not valid as written, or repeats a key."""
    keys = re.findall(r'"([^"\\]*)"\s*:', call.raw)
    return bool(DAMAGE & set(call.fixes)) or len(set(keys)) < len(keys)


def claims(events: Iterable[Event], expected: Sequence[Claim] = ()) -> list[list[Json]]:
    """Return events in the form of a case file. An error that contains the expected piece is shown as that piece."""
    pieces = [claim[1] for claim in expected if claim[0] == "invalid"]
    found: list[list[Json]] = []
    for event in events:
        match event:
            case TextDelta():
                found.append(["text", event.text])
            case ReasoningDelta():
                found.append(["reasoning", event.text])
            case MarkupDelta():
                found.append(["markup", event.raw])
            case ContentReclassified():
                found.append(["was-reasoning", event.raw])
            case ToolCall():
                found.append(["call", event.name, event.arguments, " ".join(event.fixes)])
            case InvalidToolCall():
                piece = pieces.pop(0) if pieces else ""
                found.append(["invalid", piece if piece and piece in event.error else event.error])
            case ToolCallProgress() | RejectedCall():
                pass
    return found


def _parsed(claim: Claim) -> list[Json]:
    if claim[0] != "call":
        return list(claim)
    name, arguments, *fixes = claim[1:]
    return ["call", name, json.loads(arguments), *(fixes or [""])]


def _ends_in_closed_call(events: Sequence[Event]) -> bool:
    """Return whether the text ends with a call closed by its own marker, so that more text cannot change it."""
    if not events or not isinstance(events[-1], ToolCall):
        return False
    call = events[-1]
    if isinstance(events[0], ReasoningDelta) or any(isinstance(event, ReasoningDelta) for event in events[:2]):
        closings = [event for event in events if isinstance(event, MarkupDelta) and event.raw.startswith("</think")]
        if not closings:
            return False  # the call counts only because reasoning never closed and nothing follows
    return call.raw.endswith(">") and not {"missing-close-tag", "no-markers"} & set(call.fixes)


def _shown(pieces: Sequence[str]) -> str:
    return repr(pieces) if len(pieces) <= 4 else f"{len(pieces)} pieces, the first {list(pieces[:3])!r}"
