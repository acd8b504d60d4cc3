"""A ``reply`` tool for models that are constrained to calls. Its argument becomes the text of the answer.

Small models that can choose freely between a call and text write text far too often. Of the 18 scenarios in
`canitoolcall probe`, SmolLM2-135M passed 6 with a free choice and 12 with this tool; Qwen2.5-Coder-0.5B passed 8 and
16.
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
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

REPLY = Tool(
    name="reply",
    description="Answer the user in words, without any other tool.",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    example={"text": "The file has 3 lines."},
)

_BEGIN = re.compile(r'"text"\s*:\s*"')
_PIECE = re.compile(r'(?:[^"\\]|\\.)*')


def add_reply_tool(tools: ToolSet) -> tuple[ToolSet, Tool]:
    """Add a reply tool under an unused name. Return all tools and the reply tool."""
    name = REPLY.name
    while tools.match(name) is not None:
        name = f"{name}_to_user"
    reply = replace(REPLY, name=name)
    return ToolSet([*tools.values(), reply]), reply


class ReplyParser:
    """A `Parser` for answers that are constrained to calls to ``tools`` and ``reply``. Calls to ``reply`` become text.

    Replies are always streamed; ``stream_arguments`` applies only to calls to ``tools``. A reply after other calls only
    marks their end, and its text is dropped.
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
        all_tools = ToolSet([*tools.values(), reply])
        # The server may enforce a call without markers.
        self._parser = Parser(format, all_tools, turn=turn, policy=APPROVED, stream_arguments=True)
        self._reply = reply.name
        self._stream_arguments = stream_arguments
        self._id = ""  # the call id of the current reply
        self._is_in_text = False
        self._emitted_text = ""
        self._has_called = False

    def feed(self, text: str) -> list[Event]:
        return list(self._translate(self._parser.feed(text)))

    def close(self, finish_reason: str | None = None) -> list[Event]:
        return list(self._translate(self._parser.close(finish_reason)))

    def _translate(self, events: Sequence[Event]) -> Iterator[Event]:
        for event in events:
            match event:
                case ToolCallDelta(name=self._reply) if self._has_called:
                    pass
                case ToolCall(name=self._reply) | InvalidToolCall() if self._has_called:
                    yield MarkupDelta(event.raw)  # the reply only marks the end of the calls, or the call was cut off
                case ToolCallDelta(name=self._reply):
                    if new_text := self._decode_delta(event):
                        yield TextDelta(new_text, "")
                case ToolCall(name=self._reply, arguments=arguments):
                    text = str(arguments.get("text", ""))
                    yield TextDelta(text[len(self._emitted_text) :] if event.id == self._id else text, event.raw)
                case InvalidToolCall(name=self._reply) | InvalidToolCall(name=None):
                    yield self._translate_incomplete(event)
                case ToolCallProgress(name=self._reply) | ToolCallDelta() if not self._stream_arguments:
                    pass
                case _:
                    self._has_called = self._has_called or isinstance(event, ToolCall)
                    yield event

    def _decode_delta(self, delta: ToolCallDelta) -> str:
        """Return a reply's new text from a chunk of its arguments. A chunk never ends inside an escape."""
        if delta.id != self._id:
            self._id, self._is_in_text, self._emitted_text = delta.id, False, ""
        body, start = delta.arguments, 0
        if not self._is_in_text and (text_start := _BEGIN.search(body)):
            self._is_in_text, start = True, text_start.end()
        if not self._is_in_text:
            return ""
        piece = _PIECE.match(body, start)
        assert piece is not None  # it may be empty
        self._is_in_text = piece.end() == len(body)
        new_text = str(json.loads(f'"{piece[0]}"', strict=False))
        self._emitted_text += new_text
        return new_text

    def _translate_incomplete(self, incomplete: InvalidToolCall) -> Event:
        """Return the rest of a truncated reply as an event. Any other invalid call is returned unchanged."""
        text_start = _BEGIN.search(incomplete.raw)
        body = _PIECE.match(incomplete.raw, text_start.end()) if text_start else None
        if f'"{self._reply}"' not in incomplete.raw or body is None:
            return incomplete
        text = str(json.loads(f'"{body[0]}"', strict=False))
        return TextDelta(text[len(self._emitted_text) :] if text.startswith(self._emitted_text) else "", incomplete.raw)
