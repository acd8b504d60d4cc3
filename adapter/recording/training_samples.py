"""Extract training samples from recordings. A sample is an answer with the messages before it.

A sample comes from an exchange (`adapter serve --record`, ``wrap(record=...)``) or from an answer in a transcript
(`adapter run --record`). Answers that are not exported are counted by reason. Redacted credentials stay redacted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.turn import Turn
from adapter.parsing.formats import resolve_format
from adapter.parsing.parse_policy import APPROVED
from adapter.parsing.parser import parse
from adapter.protocols.choice_stream import ABANDONED, INCOMPLETE
from adapter.protocols.recorded_exchange import RecordedExchange
from adapter.recording.replay_workspace import build_dialect
from adapter.recording.transcript import Transcript, group_by_request
from adapter.recording.transcript_lines import ApprovalLine, ChunkLine, EndLine, ResultLine
from adapter.tools.tool_set import ToolSet

WRITTEN = "written"
"""Key of a transcript's message for the answer exactly as the model wrote it."""


@dataclass(frozen=True, slots=True)
class TrainingSample:
    """One answer with its context and outcome. Outcomes that were not recorded are None."""

    messages: tuple[JsonObject, ...]
    """Earlier messages in OpenAI's format."""
    tools: tuple[JsonObject, ...]
    turn: Turn
    """The answer, parsed with the current parser."""
    reasoning: str = ""
    """The reasoning that the server had separated from the answer."""
    ended: str | None = None
    """The server's finish reason."""
    asked_again: bool = False
    """True if the answer triggered a retry. The client never got such an answer."""
    refused: bool | None = None
    """True if the user denied a call of the answer; None if no approval was requested."""
    succeeded: bool | None = None
    """True if all its calls succeeded."""
    answered: bool | None = None
    """True if the conversation ended with an answer."""

    @property
    def answer(self) -> JsonObject:
        """The assistant's message in OpenAI's format."""
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
"""The conditions that a sample can be required to meet::

    valid       the answer is complete, has no invalid call, and was not retried
    unfixed     no call needed a repair
    calls       the answer has calls
    approved    approval was requested, and no call was denied
    succeeded   every call succeeded
    answered    the conversation ended with an answer

A sample fails a condition if the required information was not recorded. A server never records the information for the
last three.
"""


def parse_filters(names: str) -> tuple[str, ...]:
    """Parse comma-separated filter names. Raises UsageError for an unknown name."""
    found = tuple(name.strip() for name in names.split(",") if name.strip())
    if unknown := [name for name in found if name not in FILTERS]:
        raise UsageError(f"unknown filter {unknown[0]!r}; expected {', '.join(FILTERS)}")
    return found


def find_failing_filter(sample: TrainingSample, filters: Iterable[str]) -> str:
    """Return the name of the first filter that rejects a sample, or "" if all filters accept it."""
    return next((name for name in filters if not FILTERS[name](sample)), "")


def list_exchange_samples(exchanges: Iterable[RecordedExchange]) -> Iterator[TrainingSample | str]:
    """Yield a sample for each exchange, or the reason why there is no sample."""
    for exchange in exchanges:
        messages = exchange.sent.get("messages")
        if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
            yield "a text completion, without messages"
            continue
        yield TrainingSample(
            tuple(map(_to_openai, messages)),
            exchange.tools,
            exchange.parse_turn(),
            exchange.reasoning,
            exchange.finish_reason,
            exchange.asked_again,
        )


def list_transcript_samples(transcript: Transcript) -> Iterator[TrainingSample | str]:
    """Yield a sample for each answer, or the reason why there is no sample."""
    header = transcript.header
    try:
        offered = build_dialect(header).tools
    except UsageError as error:
        yield f"unknown tools: {error}"
        return
    tools = ToolSet([offered[name] for name in header.tools if name in offered])
    definitions = tuple(tool.to_openai() for tool in tools.values())
    ends = [line.reason for line in transcript.lines if isinstance(line, EndLine)]
    asks = header.approve != "yolo"
    for request, lines in group_by_request(transcript.lines):
        chunks = [line for line in lines if isinstance(line, ChunkLine)]
        if not chunks:
            yield "a request without an answer"
            continue
        ended = next((line.finish_reason for line in reversed(chunks) if line.finish_reason), None)
        text = "".join(line.text for line in chunks)
        results = [line for line in lines if isinstance(line, ResultLine)]
        refusals = [line for line in lines if isinstance(line, ApprovalLine) and not line.granted]
        yield TrainingSample(
            tuple(map(_to_openai, request.messages)),
            definitions,
            parse(text, tools, resolve_format(header.format), ended, policy=APPROVED),
            "".join(line.reasoning for line in chunks),
            ended,
            refused=bool(refusals) if asks else None,
            succeeded=all(line.ok for line in results) if results else None,
            answered=ends == ["answered"],
        )


def _to_openai(message: JsonObject) -> JsonObject:
    """Convert a message to OpenAI's format: encode arguments as JSON text, and remove private keys."""
    converted = {key: value for key, value in message.items() if key != WRITTEN}
    if isinstance(calls := converted.get("tool_calls"), list):
        converted["tool_calls"] = [_encode_arguments(call) for call in calls]
    return converted


def _encode_arguments(call: Json) -> Json:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or isinstance(function.get("arguments"), str):
        return call
    return {**call, "function": {**function, "arguments": json.dumps(function.get("arguments"), ensure_ascii=False)}}
