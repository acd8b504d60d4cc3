"""Restore the messages and answers of a saved chat, so that a new session can continue it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from adapter.conversation.session import STOPPED_ANSWER
from adapter.core.events import ERROR_LABEL, InvalidToolCall, ToolCall, ToolResult
from adapter.core.turn import Turn
from adapter.parsing.parse_policy import APPROVED
from adapter.parsing.parser import parse
from adapter.recording import transcript_lines
from adapter.recording.transcript import Transcript
from adapter.tools.tool_set import ToolSet

REFUSED = f"{ERROR_LABEL} the call was refused and not made"
"""Result of a recorded call that has no result although the model was queried again."""


@dataclass(slots=True)
class ResumedMessage:
    """A user message, which includes notes for the model, and the model's answers with their tool results."""

    text: str
    answers: list[tuple[Turn, tuple[ToolResult, ...]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ResumedChat:
    """A restored chat. The next user message must include ``notes`` for the model."""

    messages: list[ResumedMessage]
    notes: list[str]


def restore_chat(transcript: Transcript, tools: ToolSet) -> ResumedChat:
    """Return the messages of a chat, for `Agent.resume`. Retried answers are dropped, as in the recorded session."""
    messages, notes = [ResumedMessage(transcript.header.task)], list[str]()
    lines = list[transcript_lines.Line]()

    def add_answer(*, is_last: bool) -> None:
        answer = _build_answer(lines, tools, is_last=is_last) if lines else None
        messages[-1].answers += [answer] if answer else []
        lines.clear()

    for line in transcript.lines:
        match line:
            case transcript_lines.RequestLine():
                add_answer(is_last=False)
            case transcript_lines.UserMessageLine(text=text):
                add_answer(is_last=True)
                messages.append(ResumedMessage("\n\n".join([*notes, text])))
                notes.clear()
            case transcript_lines.NoteLine(text=text):
                notes.append(text)
            case transcript_lines.EndLine(reason=reason):
                add_answer(is_last=True)
                if reason == "interrupted" and messages[-1].answers:
                    notes.append(STOPPED_ANSWER)
            case _:
                lines.append(line)
    add_answer(is_last=True)
    return ResumedChat(messages, notes)


def _build_answer(
    lines: Sequence[transcript_lines.Line], tools: ToolSet, *, is_last: bool
) -> tuple[Turn, tuple[ToolResult, ...]] | None:
    """Build an answer and its results from the ``lines`` after a request. Return None if the model need not see the
    answer again, because it was retried. ``is_last`` is True if no other request follows for the same user message."""
    chunks = [line for line in lines if isinstance(line, transcript_lines.ChunkLine)]
    reasoning = "".join(line.reasoning for line in chunks)
    turn = parse("".join(line.text for line in chunks), tools, policy=APPROVED)
    calls = tuple(
        ToolCall(line.id, line.name, line.arguments, raw="", fixes=line.fixes)
        for line in lines
        if isinstance(line, transcript_lines.CallLine)
    )
    invalid = tuple(
        InvalidToolCall(line.raw, line.error) for line in lines if isinstance(line, transcript_lines.InvalidLine)
    )
    if not (calls or invalid) and (not is_last or not turn.content.strip()):
        return None
    results = {line.call_id: _build_result(line) for line in lines if isinstance(line, transcript_lines.ResultLine)}
    if not is_last:
        results = {call.id: ToolResult(call.name, False, REFUSED, call_id=call.id) for call in calls} | results
    return Turn(turn.content, reasoning + turn.reasoning, calls, invalid, ()), tuple(results.values())


def _build_result(line: transcript_lines.ResultLine) -> ToolResult:
    return ToolResult(line.name, line.ok, line.content, call_id=line.call_id, user_message=line.user_message)
