"""What was said and answered in a recorded conversation, for another session to go on from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from adapter.conversation.session import STOPPED_ANSWER
from adapter.core.events import InvalidToolCall, ToolCall, ToolResult
from adapter.core.turn import Turn
from adapter.parsing.parse_policy import APPROVED
from adapter.parsing.parser import parse
from adapter.recording.transcript import (
    CallLine,
    ChunkLine,
    EndLine,
    InvalidLine,
    Line,
    NoteLine,
    RequestLine,
    ResultLine,
    Transcript,
    UserMessageLine,
)
from adapter.tools.tool import ToolSet

REFUSED = "tool_error: the call was refused and not made"


@dataclass(slots=True)
class ResumedMessage:
    """What the user said, with what the model was told besides, and the answers to it."""

    text: str
    answers: list[tuple[Turn, tuple[ToolResult, ...]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ResumedChat:
    """``told``: what the model is to be told with the next message."""

    messages: list[ResumedMessage]
    told: list[str]


def restore_chat(transcript: Transcript, tools: ToolSet) -> ResumedChat:
    """All that `Agent.recall` takes. Answers that were asked again are left out, as they were then."""
    messages, told = [ResumedMessage(transcript.header.task)], list[str]()
    answer: list[Line] = []

    def take(*, is_last: bool) -> None:
        made = _answer(answer, tools, is_last=is_last) if answer else None
        messages[-1].answers += [made] if made else []
        answer.clear()

    for line in transcript.lines:
        match line:
            case RequestLine():
                take(is_last=False)
            case UserMessageLine(text=text):
                take(is_last=True)
                messages.append(ResumedMessage("\n\n".join([*told, text])))
                told.clear()
            case NoteLine(text=text):
                told.append(text)
            case EndLine(reason=reason):
                take(is_last=True)
                if reason == "interrupted" and messages[-1].answers:
                    told.append(STOPPED_ANSWER)
            case _:
                answer.append(line)
    take(is_last=True)
    return ResumedChat(messages, told)


def _answer(lines: Sequence[Line], tools: ToolSet, *, is_last: bool) -> tuple[Turn, tuple[ToolResult, ...]] | None:
    """None for an answer of which nothing is to be shown again."""
    chunks = [line for line in lines if isinstance(line, ChunkLine)]
    reasoning = "".join(line.reasoning for line in chunks)
    read = parse("".join(line.text for line in chunks), tools, policy=APPROVED)
    calls = tuple(
        ToolCall(line.id, line.name, line.arguments, raw="", fixes=line.fixes)
        for line in lines
        if isinstance(line, CallLine)
    )
    invalid = tuple(InvalidToolCall(line.raw, line.error) for line in lines if isinstance(line, InvalidLine))
    if not (calls or invalid) and (not is_last or not read.content.strip()):
        return None
    given = {line.call_id: _result(line) for line in lines if isinstance(line, ResultLine)}
    if not is_last:
        given = {call.id: ToolResult(call.name, False, REFUSED, call_id=call.id) for call in calls} | given
    return Turn(read.content, reasoning + read.reasoning, calls, invalid, ()), tuple(given.values())


def _result(line: ResultLine) -> ToolResult:
    return ToolResult(line.name, line.ok, line.content, call_id=line.call_id, user_message=line.user_message)
