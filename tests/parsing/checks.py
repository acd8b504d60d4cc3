"""Reads a text in every way it can arrive and checks what must hold each time.

One helper, used by every test that reads text: the same events must come from
the whole text, from its characters, from any few pieces and from random pieces.
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
from adapter.tools.tool import ToolDefinitions, ToolSet
from tests.effort import EFFORT

Claim: TypeAlias = Sequence[str]
"""An event as a case file has it: ``["text", "Hi"]``, ``["call", name, arguments as JSON, "fix fix"]``,
``["reasoning", ...]``, ``["markup", ...]``, ``["was-reasoning", ...]``, ``["invalid", "piece of the message"]``."""

MARKER_CHARACTERS = frozenset("<>{}[]\"'`|\\")
"""Where a split may separate what belongs together."""

MAX_CUTS = 24 * EFFORT
"""Places where one text is cut, besides its characters; a text this short is cut at every place."""

CUTS_AT_ONCE = 3 if EFFORT == 1 else 1
"""Of them in one reading, as far from each other as can be: what stands between two is still a long piece."""

DAMAGE = frozenset({"unescaped-quote", "curly-quotes", "missing-bracket", "missing-comma", "key-without-value"})
"""Fixes of JSON that reads as something else until the damage comes."""

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
    """The merged events of ``text``, after comparing them with ``expected`` (in the form of a case file)
    and with those of every other split. ``text_may_follow``: text after a last, closed call must not change it."""
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
    """The merged events of a text that arrives in ``pieces``."""
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
    """A text that arrives in ``pieces``, read."""
    parser = Parser(format, tools, generation_prompt=generation_prompt)
    events = [event for piece in pieces for event in parser.feed(piece)]
    events += parser.close(finish_reason)
    assert parser.close(finish_reason) == []
    with pytest.raises(UsageError):
        parser.feed("more")
    return Turn.from_events(events)


def check_spans(turn: Turn, text: str) -> None:
    """What must hold of every explanation: it covers the text, and what was rejected lies within its spans."""
    spans = turn.explain()
    assert "".join(span.text for span in spans) == text
    assert all(text[span.start : span.end] == span.text for span in spans)
    assert sum((span.rejected for span in spans), ()) == turn.rejected
    for rejected in turn.rejected:
        assert 0 <= rejected.start < rejected.end <= len(text)
        assert rejected.reason in REJECTION_REASONS


def ways_to_split(text: str) -> Iterable[list[str]]:
    """Characters, long pieces, random pieces; for a long text a seeded sample of cuts, mostly around markers."""
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
    for longest in (3, 9, 40):
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
    """What must hold of every call: known fixes, ids of its own, arguments that are JSON."""
    calls = [event for event in events if isinstance(event, ToolCall)]
    assert len({call.id for call in calls}) == len(calls)
    for call in calls:
        assert set(call.fixes) <= set(REPAIRS), f"unknown names in {call.fixes}"
        assert len(set(call.fixes)) == len(call.fixes)
        assert isinstance(call.arguments, dict)
        written = json.dumps(call.arguments, allow_nan=False, ensure_ascii=False)
        assert json.loads(written) == call.arguments


def stream_fault(events: Iterable[Event], plain: Sequence[Event]) -> str | None:
    """What is wrong with ``events``, read with ``stream_arguments``, beside ``plain``, the merged ones without.

    The pieces of a call must join up to the arguments of the call that comes next, and there must be such a
    call: only one that was cut off or is damaged may turn out to be none, and then it comes as an error.
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
    if [event.raw for event in merged] != [event.raw for event in plain]:
        return f"{merged} instead of {plain}"
    for number, (event, other) in enumerate(zip(merged, plain, strict=True)):
        raw = next((each.raw for each in plain[number:] if each.raw), "")  # calls in one list share it
        if _without_id(event) != _without_id(other) and not _is_refusal(event, other, raw):
            return f"{event} instead of {other}"
    return None


def _is_refusal(event: Event, other: Event, raw: str) -> bool:
    """Whether ``event`` refuses the damaged call ``other``, of which something else was handed on."""
    if not isinstance(event, InvalidToolCall) or not isinstance(other, ToolCall):
        return False
    return "after the first of them were handed on" in event.error and is_damaged(replace(other, raw=raw))


def _without_id(event: Event) -> Event:
    return replace(event, id="") if isinstance(event, ToolCall) else event


def is_damaged(call: ToolCall) -> bool:
    """Whether a call was not valid as written, or says something twice."""
    keys = re.findall(r'"([^"\\]*)"\s*:', call.raw)
    return bool(DAMAGE & set(call.fixes)) or len(set(keys)) < len(keys)


def claims(events: Iterable[Event], expected: Sequence[Claim] = ()) -> list[list[Json]]:
    """Events in the form of a case file. An error that contains the expected piece is shown as that piece."""
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
    """Whether the text ends with a call that its own marker closed, so that more text cannot change it."""
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
