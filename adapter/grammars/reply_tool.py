"""A tool by which a model says something, where it is only allowed calls; what it says comes as text.

Given a free choice between a call and text, small models answer in text far too often. Of the 18 scenarios of
`canitoolcall probe` SmolLM2-135M passed 6 with the free choice and 12 with this; Qwen2.5-Coder-0.5B 8 and 16.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from adapter.core.events import (
    Event,
    InvalidToolCall,
    MarkupDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallProgress,
)
from adapter.parsing.format import Format
from adapter.parsing.parse_policy import APPROVED
from adapter.parsing.parser import Parser
from adapter.tools.tool import Tool, ToolSet

REPLY = Tool(
    name="reply",
    description="Answer the user in words, without any other tool.",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    example={"text": "The file has 3 lines."},
)

_BEGIN = re.compile(r'"text"\s*:\s*"')
_PIECE = re.compile(r'(?:[^"\\]|\\.)*')


def add_reply_tool(tools: ToolSet) -> tuple[ToolSet, Tool]:
    """The tools and one more, by which the model replies: under a name that is not taken."""
    name = REPLY.name
    while tools.match(name) is not None:
        name = f"{name}_to_user"
    reply = replace(REPLY, name=name)
    return ToolSet([*tools.values(), reply]), reply


class ReplyParser:
    """As `Parser`, for an answer that was held to calls of ``tools`` and of ``reply``: a call of that is text.

    ``stream_arguments``: of the other calls. Replies are always handed on while they are written.
    What begins like a reply after other calls says that these were all.
    """

    def __init__(
        self,
        tools: ToolSet,
        reply: Tool,
        *,
        turn: str = "",
        stream_arguments: bool = False,
        format: Format | None = None,
    ) -> None:
        known = ToolSet([*tools.values(), reply])
        # What the server enforces may be a call without markers.
        self._parser = Parser(format, known, turn=turn, policy=APPROVED, stream_arguments=True)
        self._reply = reply.name
        self._streams_arguments = stream_arguments
        self._id = ""  # of the reply that is being written
        self._is_in_text = False
        self._said = ""
        self._has_called = False

    def feed(self, text: str) -> list[Event]:
        return list(self._translated(self._parser.feed(text)))

    def close(self, finish_reason: str | None = None) -> list[Event]:
        return list(self._translated(self._parser.close(finish_reason)))

    def _translated(self, events: Sequence[Event]) -> Iterator[Event]:
        for event in events:
            match event:
                case ToolCallDelta(name=self._reply) if self._has_called:
                    pass
                case ToolCall(name=self._reply) | InvalidToolCall() if self._has_called:
                    yield MarkupDelta(event.raw)  # it only said that these were all, or was cut off
                case ToolCallDelta(name=self._reply):
                    if said := self._more(event):
                        yield TextDelta(said, "")
                case ToolCall(name=self._reply, arguments=arguments):
                    text = str(arguments.get("text", ""))
                    yield TextDelta(text[len(self._said) :] if event.id == self._id else text, event.raw)
                case InvalidToolCall(name=self._reply) | InvalidToolCall(name=None):
                    yield self._cut(event)
                case ToolCallProgress(name=self._reply) | ToolCallDelta() if not self._streams_arguments:
                    pass
                case _:
                    self._has_called = self._has_called or isinstance(event, ToolCall)
                    yield event

    def _more(self, delta: ToolCallDelta) -> str:
        """What a piece of the arguments adds to the text. Pieces never split an escape."""
        if delta.id != self._id:
            self._id, self._is_in_text, self._said = delta.id, False, ""
        written, start = delta.arguments, 0
        if not self._is_in_text and (begins := _BEGIN.search(written)):
            self._is_in_text, start = True, begins.end()
        if not self._is_in_text:
            return ""
        piece = _PIECE.match(written, start)
        assert piece is not None  # it may be empty
        self._is_in_text = piece.end() == len(written)
        said = str(json.loads(f'"{piece[0]}"', strict=False))
        self._said += said
        return said

    def _cut(self, wrong: InvalidToolCall) -> Event:
        """A reply that was cut off is what came of it; any other broken call stays what it is."""
        begins = _BEGIN.search(wrong.raw)
        written = _PIECE.match(wrong.raw, begins.end()) if begins else None
        if f'"{self._reply}"' not in wrong.raw or written is None:
            return wrong
        text = str(json.loads(f'"{written[0]}"', strict=False))
        return TextDelta(text[len(self._said) :] if text.startswith(self._said) else "", wrong.raw)
