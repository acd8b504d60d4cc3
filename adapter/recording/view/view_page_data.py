"""Build the JSON data for the page of `adapter view` from exchanges and transcripts.

::

    {"name": "said.jsonl", "kind": "recording", "prompt": "Messages sent to the model", "goes_on": true,
     "bad": ["invalid call", ...], "parts": [{"role": "user", "text": ...}, ...],
     "exchanges": [{"time", "model", "question", "title", "conversation": number, "cost", "figures": {name: number},
                    "marks": [...], "calls": [[name, times], ...], "about": [[name, value], ...], "notes": [...],
                    "timeline": [{"kind", "name", "start_s", "end_s"}],
                    "prompt": [parts], "tools": [parts], "settings": [parts],
                    "readings": [{"name", "spans": [{"kind", "text", "call", "fixes", "error", "rejected"}]}],
                    "results": [{"name", "ok", "text", "diffs"}]}]}

A part (a message or a tool definition) that several exchanges use is stored once. Hidden characters are escaped
(`adapter.core.text.display_escaping`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.text.display_escaping import escape_for_display
from adapter.core.turn import Turn
from adapter.parsing.format import Format
from adapter.parsing.formats import get_format, resolve_format
from adapter.parsing.parse_policy import APPROVED, get_policy
from adapter.parsing.parser import parse
from adapter.protocols.recorded_exchange import RecordedExchange
from adapter.recording.exchange_log import reparse
from adapter.recording.replay_workspace import build_dialect
from adapter.recording.transcript import Transcript, group_by_request
from adapter.recording.transcript_lines import (
    CallLine,
    ChunkLine,
    EndLine,
    InvalidLine,
    Line,
    RequestLine,
    ResultLine,
    UserMessageLine,
)
from adapter.recording.view.conversation_grouping import Conversations, find_question
from adapter.recording.view.edit_diffs import EditDiffs
from adapter.recording.view.exchange_page_data import (
    ASKED_AGAIN,
    BAD,
    FAILED,
    OTHERWISE,
    UNKNOWN,
    ExchangeStats,
    build_exchange_row,
    build_span_row,
    build_spans,
    build_title,
    escape_for_page,
    format_pretty_json,
    list_turn_badges,
)
from adapter.tools.tool_set import ToolSet


@dataclass(frozen=True, slots=True)
class ReparseOptions:
    """Options for parsing answers again. If ``format`` is None, it is detected. Raises UsageError for an unknown
    policy."""

    format: Format | None = None
    policy: str | None = None

    def __post_init__(self) -> None:
        if self.policy is not None:
            get_policy(self.policy)

    @classmethod
    def from_names(cls, format: str | None, policy: str | None) -> ReparseOptions | None:
        """Build the options. Return None if both names are None. ``format`` is a format name, or "auto"."""
        if format is None and policy is None:
            return None
        return cls(None if format in (None, "auto") else get_format(str(format)), policy)

    @property
    def name(self) -> str:
        names = [self.format.name if self.format else "", self.policy or ""]
        return f"Parsed again: {', '.join(filter(None, names)) or 'any format'}"


class PageData:
    """Collects the data of a page.

    ``prompt`` is the heading above an exchange's messages. If ``goes_on`` is true, an exchange may continue the
    previous one, and the page can hide the messages that they have in common.
    """

    def __init__(
        self, name: str, kind: str, prompt: str = "Messages sent to the model", *, goes_on: bool = True
    ) -> None:
        self._head: JsonObject = {
            "name": escape_for_display(name), "kind": kind, "prompt": prompt, "goes_on": goes_on, "bad": BAD,
        }  # fmt: skip
        self._parts: list[JsonObject] = []
        self._part_indices: dict[tuple[str, str], int] = {}
        self._exchanges: list[JsonObject] = []

    def add_part(self, role: str, text: str) -> int:
        """Add a part, such as a message or a tool definition, unless the page already has it. Return its index."""
        if (role, text) not in self._part_indices:
            self._part_indices[role, text] = len(self._parts)
            self._parts.append({"role": escape_for_display(role), "text": escape_for_page(text)})
        return self._part_indices[role, text]

    def add_messages(self, messages: Iterable[JsonObject]) -> list[int]:
        return [self.add_part(str(message.get("role")), render_message_text(message)) for message in messages]

    def add_definitions(self, tools: Iterable[JsonObject]) -> list[int]:
        found = [inner if isinstance(inner := tool.get("function"), dict) else tool for tool in tools]
        return [self.add_part(str(each.get("name")), format_pretty_json(each)) for each in found]

    def add(
        self, *, title: str, prompt: Sequence[int], readings: Sequence[JsonObject], calls: Sequence[str],
        marks: Sequence[str], about: Sequence[tuple[str, str]], time: str = "", model: str = "",
        figures: ExchangeStats = UNKNOWN, notes: Sequence[str] = (), tools: Sequence[int] = (),
        settings: Sequence[int] = (), results: Sequence[JsonObject] = (), question: str = "", conversation: int = 0,
        timeline: Sequence[JsonObject] = (),
    ) -> None:  # fmt: skip
        self._exchanges.append({
            **build_exchange_row(
                title, question, time, model, figures, marks, Counter(calls), conversation or self.next_number
            ),
            "about": [[name, escape_for_display(value)] for name, value in [*about, *figures.about] if value],
            "notes": [escape_for_page(note) for note in notes if note],
            "prompt": prompt, "tools": tools, "settings": settings, "readings": readings, "results": results,
            "timeline": timeline,
        })  # fmt: skip

    @property
    def next_number(self) -> int:
        """Number of the exchange that is added next; the first one is 1."""
        return len(self._exchanges) + 1

    @property
    def data(self) -> JsonObject:
        return {**self._head, "parts": self._parts, "exchanges": self._exchanges}


def render_message_text(message: JsonObject) -> str:
    """Return the text and calls of a chat message. Other content, such as an image, appears as its kind and size."""
    content = message.get("content")
    parts = [each if isinstance(each, str) else _get_part_text(each) for each in _to_list(content)]
    for call in _to_list(message.get("tool_calls")):
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            arguments = function.get("arguments")
            names = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            parts.append(f"-> {function.get('name')}({names})")
    return "\n".join(filter(None, parts))


def build_exchanges_view(
    exchanges: Sequence[RecordedExchange], name: str, again: ReparseOptions | None = None
) -> PageData:
    """Build the page data for exchanges that a server or a wrapped client recorded."""
    view, conversations = PageData(name, "recording"), Conversations()
    for exchange in exchanges:
        turn, changed = reparse(exchange)
        turns = [turn] if again is None else [turn, exchange.parse_turn(again.format, again.policy)]
        messages, chat = list_messages(exchange.sent), list_client_messages(exchange)
        if isinstance(own := exchange.sent.get("prompt"), str):
            messages.append({"role": "prompt", "content": own})
        rest = {key: value for key, value in exchange.sent.items() if key not in ("messages", "prompt", "tools")}
        view.add(
            title=build_title(turn), time=exchange.time, model=exchange.model, calls=[call.name for call in turn.calls],
            question=find_question(chat), timeline=build_timeline(exchange, [call.name for call in turn.calls]),
            conversation=conversations.assign(
                view.next_number, chat, id=exchange.conversation, is_retry=exchange.retry > 0
            ),
            prompt=view.add_messages(messages), tools=view.add_definitions(exchange.tools),
            settings=[view.add_part("", format_pretty_json(rest))],
            readings=_parse_readings(turns, exchange.reasoning, again),
            figures=build_exchange_stats(exchange),
            marks=[*list_turn_badges(turns), *list_retry_badges(exchange), *([OTHERWISE] if changed else [])],
            about=[
                ("time", exchange.time), ("model", exchange.model), ("format", exchange.format),
                ("policy", exchange.policy), ("ended", exchange.finish_reason or ""),
                ("conversation", exchange.conversation),
                ("dropped calls", ", ".join(f"{each.name} ({each.guardrail})" for each in exchange.dropped)),
            ],
            notes=[f"The parser now finds other calls: {changed}" if changed else ""],
        )  # fmt: skip
    return view


def list_client_messages(exchange: RecordedExchange) -> list[JsonObject]:
    return list_messages(exchange.sent) if exchange.messages is None else list(exchange.messages)


def list_messages(body: JsonObject) -> list[JsonObject]:
    return [each for each in _to_list(body.get("messages")) if isinstance(each, dict)]


def build_exchange_stats(exchange: RecordedExchange) -> ExchangeStats:
    tokens = exchange.prompt_tokens, exchange.written_tokens
    return ExchangeStats(exchange.first_s, exchange.duration_s, *tokens, exchange.retry or None)


def list_retry_badges(exchange: RecordedExchange) -> list[str]:
    """Return the badges of an exchange that was retried, or that is a retry."""
    asked = f"{ASKED_AGAIN}: {exchange.guardrail}" if exchange.guardrail else ASKED_AGAIN
    dropped = dict.fromkeys(f"dropped: {each.guardrail}" for each in exchange.dropped)
    return [*([asked] if exchange.asked_again else []), *(["retry"] if exchange.retry else []), *dropped]


def build_transcript_view(transcript: Transcript, name: str, again: ReparseOptions | None = None) -> PageData:
    """Build the page data for a transcript. Each answer is an exchange."""
    view, header, edit_diffs = PageData(name, "transcript"), transcript.header, EditDiffs(transcript.header.files)
    try:
        offered = build_dialect(header).tools
    except UsageError:
        offered = ToolSet()
    tools = ToolSet([offered[tool] for tool in header.tools if tool in offered])
    definitions = [{"name": t.name, "description": t.description, "parameters": t.parameters} for t in tools.values()]
    question = header.task
    for request, lines in group_by_request(transcript.lines):
        chunks = [line for line in lines if isinstance(line, ChunkLine)]
        text, reasoning = "".join(line.text for line in chunks), "".join(line.reasoning for line in chunks)
        finish_reason = next((line.finish_reason for line in reversed(chunks) if line.finish_reason), None)
        turns = [
            parse(
                text, tools, way.format or resolve_format(header.format), finish_reason, policy=way.policy or APPROVED
            )
            for way in ([ReparseOptions()] if again is None else [ReparseOptions(), again])
        ]
        recorded_calls = {line.id: line for line in lines if isinstance(line, CallLine)}
        note = _describe_changed_calls(recorded_calls.values(), turns[0], lines)
        result_lines = [line for line in lines if isinstance(line, ResultLine)]
        results: list[JsonObject] = []
        for line in result_lines:
            call = recorded_calls.get(line.call_id)
            tool = tools.get(call.name) if call else None
            diffs = edit_diffs.render_diffs(tool, call.arguments, line.changed) if call and line.ok else []
            results.append({
                "name": escape_for_display(line.name), "ok": line.ok, "text": escape_for_page(line.content),
                "diffs": [escape_for_page(diff) for diff in diffs],
            })  # fmt: skip
        have_results = {line.call_id for line in result_lines}
        not_run = [line.name for call_id, line in recorded_calls.items() if call_id not in have_results]
        end_texts = [f"{line.reason} {line.content}".rstrip() for line in lines if isinstance(line, EndLine)]
        failed = [FAILED] if any(not line.ok for line in result_lines) else []
        view.add(
            title=build_title(turns[0]), question=question, conversation=1, model=header.model,
            calls=[call.name for call in turns[0].calls],
            time=_add_seconds(header.time, request.at_s), figures=_build_response_stats(request, chunks),
            prompt=view.add_messages(request.messages), tools=view.add_definitions(definitions), results=results,
            readings=_parse_readings(turns, reasoning, again),
            marks=[*list_turn_badges(turns), *failed, *([OTHERWISE] if note else [])],
            about=[
                ("task", header.task), ("model", header.model), ("server", header.server), ("dialect", header.dialect),
                ("format", header.format), ("ended", finish_reason or ""), ("conversation", "".join(end_texts)),
                ("calls not run", ", ".join(not_run)),
            ],
            notes=[note],
        )  # fmt: skip
        question = next((line.text for line in reversed(lines) if isinstance(line, UserMessageLine)), question)
    return view


def _build_response_stats(request: RequestLine, chunks: Sequence[ChunkLine]) -> ExchangeStats:
    """Return the statistics of an answer with these ``chunks``."""
    counted = next((line for line in reversed(chunks) if line.prompt_tokens), ChunkLine())
    ends = [chunk.at_s for chunk in chunks if chunk.at_s is not None]
    first_s, duration_s = (
        (round(max(0.0, end - (request.at_s or 0.0)), 3) for end in (ends[0], ends[-1])) if ends else (None, None)
    )
    return ExchangeStats(first_s, duration_s, counted.prompt_tokens, counted.written_tokens)


def _add_seconds(time: str, seconds: float | None) -> str:
    """Add seconds to a time in ISO 8601 format; "" if the time is unknown."""
    try:
        return (datetime.fromisoformat(time) + timedelta(seconds=seconds or 0.0)).isoformat() if time else ""
    except (ValueError, OverflowError):
        return time


def _describe_changed_calls(recorded_calls: Iterable[CallLine], turn: Turn, lines: Iterable[Line]) -> str:
    """Describe the recorded calls if the current parser finds different calls, otherwise return ""."""
    recorded = [(call.name, call.arguments) for call in recorded_calls]
    if recorded == [(call.name, call.arguments) for call in turn.calls]:
        return ""
    refused = [line.error for line in lines if isinstance(line, InvalidLine)]
    names = [f"{name}({json.dumps(arguments, ensure_ascii=False)})" for name, arguments in recorded]
    return f"The parser now finds other calls. Recorded: {', '.join(names) or 'no call'}. {' '.join(refused)}".rstrip()


def _parse_readings(turns: Sequence[Turn], reasoning: str, again: ReparseOptions | None) -> list[JsonObject]:
    """Return the spans of each of ``turns``, after the ``reasoning`` that the server had separated from the answer. If
    the text was parsed again, ``again`` has the options of the second turn."""
    apart = [build_span_row("reasoning", reasoning)] if reasoning else []
    names = ["The parsed answer"] if again is None else ["As recorded", again.name]
    return [{"name": name, "spans": apart + build_spans(turn)} for name, turn in zip(names, turns, strict=True)]


def _to_list(value: Json) -> list[Json]:
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _get_part_text(part: Json) -> str:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    kind = part.get("type", "part") if isinstance(part, dict) else "part"
    return f"[{kind}, {len(json.dumps(part)):,} characters]"


MAX_CALLS = 20
"""Maximum number of calls that have separate bars in an exchange's timeline."""


def build_timeline(exchange: RecordedExchange, names: Sequence[str] = ()) -> list[JsonObject]:
    """Return the phases of an exchange in order, or an empty list if the times were not recorded.

    A phase has a start and an end, in seconds after the request, and a kind, which determines its color. ``names``: the
    called tools, if known.
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
