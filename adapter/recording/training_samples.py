"""What a recording holds as samples to train on: one for each answer of the model, with what came before it.

A sample comes of an exchange (`adapter serve --record`, ``wrap(record=...)``) or of an answer in a transcript
(`adapter run --record`). What is not exported is counted by its reason. What stands for keys in a recording stays.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.turn import Turn
from adapter.parsing.formats import resolve_format
from adapter.parsing.parse_policy import APPROVED
from adapter.parsing.parser import parse
from adapter.protocols.openai_choice import ABANDONED, INCOMPLETE
from adapter.protocols.recorded_exchange import RecordedExchange
from adapter.recording.replay_workspace import dialect_of
from adapter.recording.transcript import (
    ApprovalLine,
    ChunkLine,
    EndLine,
    Line,
    RequestLine,
    ResultLine,
    Transcript,
)
from adapter.tools.tool import ToolSet

WRITTEN = "written"
"""The key of a message under which a transcript has an answer as the model wrote it."""


@dataclass(frozen=True, slots=True)
class TrainingSample:
    """``messages``: what came before, in OpenAI's shape. ``turn``: the answer as it is read today; ``reasoning``: what
    the server had taken out of it. ``ended``: the server's finish reason. ``asked_again``: nobody saw the answer.
    ``refused``: of the questions to the user that it led to, whether one was answered no; None where nobody was asked
    or could be. ``succeeded``: whether all its calls did; None where that is not recorded. ``answered``: whether the
    conversation came to an answer; None where that is not recorded."""

    messages: tuple[JsonObject, ...]
    tools: tuple[JsonObject, ...]
    turn: Turn
    reasoning: str = ""
    ended: str | None = None
    asked_again: bool = False
    refused: bool | None = None
    succeeded: bool | None = None
    answered: bool | None = None

    @property
    def answer(self) -> JsonObject:
        """The assistant's message, in OpenAI's shape."""
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in self.turn.calls
        ]
        reasoning = self.reasoning + self.turn.reasoning
        return {
            "role": "assistant",
            "content": self.turn.content,
            **({"reasoning_content": reasoning} if reasoning else {}),
            **({"tool_calls": calls} if calls else {}),
        }


FILTERS: Mapping[str, Callable[[TrainingSample], bool]] = {
    "valid": lambda sample: (
        not sample.turn.invalid
        and not sample.asked_again
        and sample.ended not in ("length", INCOMPLETE, ABANDONED)
        and bool(sample.turn.calls or sample.turn.content.strip())
    ),
    "unfixed": lambda sample: not any(call.fixes for call in sample.turn.calls),
    "calls": lambda sample: bool(sample.turn.calls),
    "approved": lambda sample: sample.refused is False,
    "succeeded": lambda sample: sample.succeeded is True,
    "answered": lambda sample: sample.answered is True,
}
"""By name, what an answer must be to be exported.

valid: whole, with no broken call, and not asked again. unfixed: no call needed a repair. calls: it has one.
approved: of an agent that asks, and what it asked about was allowed. succeeded: every call did what it was to.
answered: the conversation ended with an answer. What a recording does not say, a server's the last three, is not
passed.
"""


def parse_filters(names: str) -> tuple[str, ...]:
    """Of names with commas between. Raises UsageError for one that does not exist."""
    found = tuple(name.strip() for name in names.split(",") if name.strip())
    if unknown := [name for name in found if name not in FILTERS]:
        raise UsageError(f"unknown filter {unknown[0]!r}; expected {', '.join(FILTERS)}")
    return found


def failing_filter(sample: TrainingSample, filters: Iterable[str]) -> str:
    """The first filter that a sample does not pass; "" where it passes all."""
    return next((name for name in filters if not FILTERS[name](sample)), "")


def samples_of_exchanges(exchanges: Iterable[RecordedExchange]) -> Iterator[TrainingSample | str]:
    """Or why there is none."""
    for exchange in exchanges:
        messages = exchange.sent.get("messages")
        if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
            yield "a completion of a text, without messages"
            continue
        yield TrainingSample(
            tuple(map(_openai, messages)),
            exchange.tools,
            exchange.turn(),
            exchange.reasoning,
            exchange.finish_reason,
            exchange.asked_again,
        )


def samples_of_transcript(transcript: Transcript) -> Iterator[TrainingSample | str]:
    """Or why there is none."""
    header = transcript.header
    try:
        offered = dialect_of(header).tools
    except UsageError as error:
        yield f"tools that are unknown here: {error}"
        return
    tools = ToolSet([offered[name] for name in header.tools if name in offered])
    definitions = tuple(tool.to_openai() for tool in tools.values())
    ends = [line.reason for line in transcript.lines if isinstance(line, EndLine)]
    asks = header.approve != "yolo"
    for request, lines in _answers(transcript.lines):
        chunks = [line for line in lines if isinstance(line, ChunkLine)]
        if not chunks:
            yield "a request that was not answered"
            continue
        ended = next((line.finish_reason for line in reversed(chunks) if line.finish_reason), None)
        text = "".join(line.text for line in chunks)
        results = [line for line in lines if isinstance(line, ResultLine)]
        refusals = [line for line in lines if isinstance(line, ApprovalLine) and not line.granted]
        yield TrainingSample(
            tuple(map(_openai, request.messages)),
            definitions,
            parse(text, tools, resolve_format(header.format), ended, policy=APPROVED),
            "".join(line.reasoning for line in chunks),
            ended,
            refused=bool(refusals) if asks else None,
            succeeded=all(line.ok for line in results) if results else None,
            answered=ends == ["answered"],
        )


def _answers(lines: Sequence[Line]) -> Iterator[tuple[RequestLine, list[Line]]]:
    request, following = None, list[Line]()
    for line in lines:
        if isinstance(line, RequestLine):
            if request is not None:
                yield request, following
            request, following = line, []
        else:
            following.append(line)
    if request is not None:
        yield request, following


def _openai(message: JsonObject) -> JsonObject:
    """Arguments as JSON text, and nothing of ours."""
    made = {key: value for key, value in message.items() if key != WRITTEN}
    if isinstance(calls := made.get("tool_calls"), list):
        made["tool_calls"] = [_with_text(call) for call in calls]
    return made


def _with_text(call: Json) -> Json:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or isinstance(function.get("arguments"), str):
        return call
    return {**call, "function": {**function, "arguments": json.dumps(function.get("arguments"), ensure_ascii=False)}}
