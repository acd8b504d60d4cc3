"""What the page of `adapter view` shows, as JSON: exchanges and transcripts, each answer with what it was taken for.

::

    {"name": "said.jsonl", "kind": "recording", "prompt": "What the model was sent", "goes_on": true,
     "bad": ["invalid call", ...], "parts": [{"role": "user", "text": ...}, ...],
     "exchanges": [{"time", "model", "title", "cost", "marks": [...], "calls": [names], "about": [[name, value], ...],
                    "notes": [...], "prompt": [parts], "tools": [parts], "settings": [parts],
                    "readings": [{"name", "spans": [{"kind", "text", "call", "fixes", "error", "rejected"}]}],
                    "results": [{"name", "ok", "text", "diffs"}]}]}

A part (a message, a tool's definition) that comes in many exchanges stands there once. What hides in texts is spelled
out (`adapter.text.visible`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from adapter.formats import get_format, told_format
from adapter.formats.parser import parse
from adapter.reading.format import Format
from adapter.reading.policy import APPROVED, get_policy
from adapter.text.visible import visible
from adapter.tools.definition import ToolSet
from adapter.transcripts.edited import Edited
from adapter.transcripts.exchanges import difference
from adapter.transcripts.recorded import dialect_of
from adapter.transcripts.transcript import (
    CallLine,
    ChunkLine,
    EndLine,
    InvalidLine,
    Line,
    RequestLine,
    ResultLine,
    Transcript,
)
from adapter.values.errors import UsageError
from adapter.values.events import Json, JsonObject, RejectedCall, ToolCall
from adapter.values.fixes import FIXES
from adapter.values.rejections import REJECTIONS
from adapter.values.turn import Turn
from adapter.wire.recorded import Exchange

INVALID, REJECTED, FAILED, OTHERWISE, ASKED_AGAIN = (
    "invalid call", "rejected", "failed", "read otherwise", "asked again"
)  # fmt: skip
BAD = [INVALID, FAILED, OTHERWISE]
LOOKED_LIKE = 300
"""Characters of a text that is no call which are shown beside the reason."""
TITLE = 120
"""Characters of what an exchange is called in the list."""


@dataclass(frozen=True, slots=True)
class Again:
    """How answers are read once more. ``format``: any when None, as for those that were recorded. Raises UsageError
    for a policy that does not exist."""

    format: Format | None = None
    policy: str | None = None

    def __post_init__(self) -> None:
        if self.policy is not None:
            get_policy(self.policy)

    @classmethod
    def named(cls, format: str | None, policy: str | None) -> Again | None:
        """None where neither is given. ``format``: a name, or auto."""
        if format is None and policy is None:
            return None
        return cls(None if format in (None, "auto") else get_format(str(format)), policy)

    @property
    def name(self) -> str:
        told = [self.format.name if self.format else "", self.policy or ""]
        return f"As read now: {', '.join(filter(None, told)) or 'any format'}"


class View:
    """Gathers what a page shows; `data` is all of it. ``prompt``: what stands above an exchange's messages.
    ``goes_on``: what an exchange has from the one before is of less interest."""

    def __init__(self, name: str, kind: str, prompt: str = "What the model was sent", *, goes_on: bool = True) -> None:
        self._head: JsonObject = {
            "name": visible(name), "kind": kind, "prompt": prompt, "goes_on": goes_on, "bad": BAD,
        }  # fmt: skip
        self._parts: list[JsonObject] = []
        self._places: dict[tuple[str, str], int] = {}
        self._exchanges: list[JsonObject] = []

    def part(self, role: str, text: str) -> int:
        """The place of this text among the parts."""
        if (role, text) not in self._places:
            self._places[role, text] = len(self._parts)
            self._parts.append({"role": visible(role), "text": shown(text)})
        return self._places[role, text]

    def messages(self, messages: Iterable[JsonObject]) -> list[int]:
        return [self.part(str(message.get("role")), message_text(message)) for message in messages]

    def definitions(self, tools: Iterable[JsonObject]) -> list[int]:
        found = [inner if isinstance(inner := tool.get("function"), dict) else tool for tool in tools]
        return [self.part(str(each.get("name")), _indented(each)) for each in found]

    def add(
        self, *, title: str, prompt: Sequence[int], readings: Sequence[JsonObject], calls: Sequence[str],
        marks: Sequence[str], about: Sequence[tuple[str, str]], time: str = "", model: str = "", cost: str = "",
        notes: Sequence[str] = (), tools: Sequence[int] = (), settings: Sequence[int] = (),
        results: Sequence[JsonObject] = (),
    ) -> None:  # fmt: skip
        self._exchanges.append({
            "title": visible(" ".join(title.split())[:TITLE]), "time": visible(time[:19].replace("T", " ")),
            "model": visible(model), "cost": cost, "marks": list(dict.fromkeys(map(visible, marks))),
            "calls": [visible(name) for name in calls],
            "about": [[name, visible(value)] for name, value in about if value],
            "notes": [shown(note) for note in notes if note],
            "prompt": prompt, "tools": tools, "settings": settings, "readings": readings, "results": results,
        })  # fmt: skip

    @property
    def data(self) -> JsonObject:
        return {**self._head, "parts": self._parts, "exchanges": self._exchanges}


def shown(text: str) -> str:
    """With what hides spelled out, lines kept."""
    return visible(text, keep="\n\t")


def message_text(message: JsonObject) -> str:
    """What a message of a chat says, with its calls; of images and the like their size."""
    content = message.get("content")
    parts = [each if isinstance(each, str) else _part_text(each) for each in _as_list(content)]
    for call in _as_list(message.get("tool_calls")):
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            arguments = function.get("arguments")
            told = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            parts.append(f"-> {function.get('name')}({told})")
    return "\n".join(filter(None, parts))


def view_exchanges(exchanges: Sequence[Exchange], name: str, again: Again | None = None) -> View:
    """What a server or a wrapped client recorded."""
    view = View(name, "recording")
    for exchange in exchanges:
        turn = exchange.turn()
        turns = [turn] if again is None else [turn, exchange.turn(again.format, again.policy)]
        messages = [each for each in _as_list(exchange.sent.get("messages")) if isinstance(each, dict)]
        if isinstance(own := exchange.sent.get("prompt"), str):
            messages.append({"role": "prompt", "content": own})
        rest = {key: value for key, value in exchange.sent.items() if key not in ("messages", "prompt", "tools")}
        changed = difference(exchange)
        asked = f"{ASKED_AGAIN}: {exchange.guardrail}" if exchange.guardrail else ASKED_AGAIN
        view.add(
            title=_title(turn), time=exchange.time, model=exchange.model, calls=[call.name for call in turn.calls],
            prompt=view.messages(messages), tools=view.definitions(exchange.tools),
            settings=[view.part("", _indented(rest))], readings=_readings(turns, exchange.reasoning, again),
            marks=[*_marks(turns), *([asked] if exchange.asked_again else []), *([OTHERWISE] if changed else [])],
            about=[
                ("time", exchange.time), ("model", exchange.model), ("format", exchange.format),
                ("policy", exchange.policy), ("ended", exchange.finish_reason or ""),
            ],
            notes=[f"The calls are read otherwise today: {changed}" if changed else ""],
        )  # fmt: skip
    return view


def view_transcript(transcript: Transcript, name: str, again: Again | None = None) -> View:
    """One conversation of `adapter run`: an exchange for each answer."""
    view, header, edited = View(name, "transcript"), transcript.header, Edited(transcript.header.files)
    try:
        offered = dialect_of(header).tools
    except UsageError:
        offered = ToolSet()
    tools = ToolSet([offered[tool] for tool in header.tools if tool in offered])
    definitions = [{"name": t.name, "description": t.description, "parameters": t.parameters} for t in tools.values()]
    for request, lines in _by_request(transcript.lines):
        chunks = [line for line in lines if isinstance(line, ChunkLine)]
        text, reasoning = "".join(line.text for line in chunks), "".join(line.reasoning for line in chunks)
        finish_reason = next((line.finish_reason for line in reversed(chunks) if line.finish_reason), None)
        turns = [
            parse(text, tools, way.format or told_format(header.format), finish_reason, policy=way.policy or APPROVED)
            for way in ([Again()] if again is None else [Again(), again])
        ]
        made = {line.id: line for line in lines if isinstance(line, CallLine)}
        note = _changed(made.values(), turns[0], lines)
        given = [line for line in lines if isinstance(line, ResultLine)]
        results: list[JsonObject] = []
        for line in given:
            call = made.get(line.call_id)
            tool = tools.get(call.name) if call else None
            diffs = edited.diffs(tool, call.arguments, line.changed) if call and line.ok else []
            results.append({
                "name": visible(line.name), "ok": line.ok, "text": shown(line.content),
                "diffs": [shown(diff) for diff in diffs],
            })  # fmt: skip
        counted = next((line.prompt_tokens for line in reversed(chunks) if line.prompt_tokens), None)
        ended = [f"{line.reason} {line.content}".rstrip() for line in lines if isinstance(line, EndLine)]
        failed = [FAILED] if any(not line.ok for line in given) else []
        view.add(
            title=_title(turns[0]), model=header.model, calls=[call.name for call in turns[0].calls],
            prompt=view.messages(request.messages), tools=view.definitions(definitions), results=results,
            readings=_readings(turns, reasoning, again), cost=f"{counted:,} tokens" if counted else "",
            marks=[*_marks(turns), *failed, *([OTHERWISE] if note else [])],
            about=[
                ("task", header.task), ("model", header.model), ("server", header.server), ("dialect", header.dialect),
                ("format", header.format), ("ended", finish_reason or ""), ("conversation", "".join(ended)),
                ("prompt tokens", f"{counted:,}" if counted else ""),
            ],
            notes=[note],
        )  # fmt: skip
    return view


def _by_request(lines: Sequence[Line]) -> list[tuple[RequestLine, list[Line]]]:
    found: list[tuple[RequestLine, list[Line]]] = []
    for line in lines:
        if isinstance(line, RequestLine):
            found.append((line, []))
        elif found:
            found[-1][1].append(line)
    return found


def _changed(made: Iterable[CallLine], turn: Turn, lines: Iterable[Line]) -> str:
    """What the record says of the calls where the text reads otherwise today."""
    recorded = [(call.name, call.arguments) for call in made]
    if recorded == [(call.name, call.arguments) for call in turn.calls]:
        return ""
    refused = [line.error for line in lines if isinstance(line, InvalidLine)]
    told = [f"{name}({json.dumps(arguments, ensure_ascii=False)})" for name, arguments in recorded]
    return f"The calls are read otherwise today. Recorded: {', '.join(told) or 'no call'}. {' '.join(refused)}".rstrip()


def _readings(turns: Sequence[Turn], reasoning: str, again: Again | None) -> list[JsonObject]:
    """``reasoning``: what the server had taken out of the text."""
    apart = [span("reasoning", reasoning)] if reasoning else []
    names = ["The answer, as read"] if again is None else ["As read then", again.name]
    return [{"name": name, "spans": apart + _spans(turn)} for name, turn in zip(names, turns, strict=True)]


def _spans(turn: Turn) -> list[JsonObject]:
    pieces = turn.explain()
    text = "".join(piece.text for piece in pieces)
    return [
        span(
            piece.kind, piece.text, piece.call, piece.error,
            [[_beginning(text, each), REJECTIONS[each.reason]] for each in piece.rejected],
        )
        for piece in pieces
    ]  # fmt: skip


def _beginning(text: str, rejected: RejectedCall) -> str:
    end = min(rejected.end, rejected.start + LOOKED_LIKE)
    return shown(text[rejected.start : end]) + ("…" if end < rejected.end else "")


def span(
    kind: str, text: str, call: ToolCall | None = None, error: str | None = None, rejected: Sequence[Json] = ()
) -> JsonObject:
    return {
        "kind": kind, "text": shown(text), "call": f"{visible(call.name)} {_indented(call.arguments)}" if call else "",
        "fixes": [[fix, FIXES[fix]] for fix in call.fixes] if call else [], "error": shown(error or ""),
        "rejected": rejected,
    }  # fmt: skip


def _marks(turns: Sequence[Turn]) -> list[str]:
    """By what an exchange can be found; ``turns``: as read then, and now where that is asked for."""
    turn = turns[0]
    marks = {
        "calls": turn.calls, "no call": not turn.calls, "fixes": any(call.fixes for call in turn.calls),
        INVALID: turn.invalid, REJECTED: turn.rejected,
        OTHERWISE: [(call.name, call.arguments) for call in turns[-1].calls]
        != [(call.name, call.arguments) for call in turn.calls],
    }  # fmt: skip
    return [mark for mark, holds in marks.items() if holds]


def _title(turn: Turn) -> str:
    """What an answer says, or else asks for first."""
    if turn.content.strip() or not turn.calls:
        return turn.content
    return f"{turn.calls[0].name} {json.dumps(turn.calls[0].arguments, ensure_ascii=False)}"


def _indented(value: Json) -> str:
    return shown(json.dumps(value, ensure_ascii=False, indent=2))


def _as_list(value: Json) -> list[Json]:
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _part_text(part: Json) -> str:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    kind = part.get("type", "part") if isinstance(part, dict) else "part"
    return f"[{kind}, {len(json.dumps(part)):,} characters]"
