"""Run SGLang's `ReasoningParser` and `FunctionCallParser` in sequence, as its chat serving code does."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from adapter.integrations.engines.engine_interfaces import SglangCompat
from benchmarks.engines.serving_vllm import Message


class Serving:
    """Returns the answers of one parser pair. ``tool_parser``, ``reasoning_parser``: their registered names."""

    def __init__(self, tool_parser: str, reasoning_parser: str | None) -> None:
        self._sglang = SglangCompat()
        self._names = (tool_parser, reasoning_parser)
        protocol = import_module("sglang.srt.entrypoints.openai.protocol")
        self._tool = protocol.Tool

    def answer(
        self,
        tokenizer: Any,
        tools: Sequence[Any],
        pieces: Sequence[str],
        *,
        stream: bool,
        is_on: bool,
        ends: bool,
    ) -> Message:
        """Return the message that a client gets. ``is_on``: whether reasoning is on, which SGLang derives from the chat
        template and the request. ``ends``: whether the answer is complete."""
        tool_name, reasoning_name = self._names
        offered = [self._tool(**tool) for tool in tools]
        calls = _given(self._sglang.tool_parser, offered, tool_name, tokenizer=tokenizer)
        reasoning = None
        if reasoning_name is not None:
            reasoning = _given(
                self._sglang.reasoning_parser,
                reasoning_name,
                True,
                force_reasoning=is_on,
                tokenizer=tokenizer,
                tool_call_parser_active=bool(offered),
            )
        if not stream:
            return _whole(reasoning, calls, "".join(pieces))
        return _streamed(reasoning, calls, pieces, ends=ends)


def _given(made: Any, *values: Any, **options: Any) -> Any:
    """Create an instance of the class ``made``, with the options that the installed release has."""
    takes = inspect.signature(made.__init__).parameters
    return made(*values, **{name: value for name, value in options.items() if name in takes})


def _whole(reasoning: Any, calls: Any, text: str) -> Message:
    message: Message = {"content": text, "reasoning": "", "tool_calls": []}
    if reasoning is not None:
        message["reasoning"], message["content"] = reasoning.parse_non_stream(text)
    if message["content"] and calls.has_tool_call(message["content"]):
        message["content"], made = calls.parse_non_stream(message["content"])
        message["tool_calls"] = [{"function": {"name": call.name, "arguments": call.parameters}} for call in made]
    return message


def _streamed(reasoning: Any, calls: Any, pieces: Sequence[str], *, ends: bool) -> Message:
    message: Message = {"content": "", "reasoning": "", "tool_calls": []}

    def take(content: str, made: Sequence[Any]) -> None:
        message["content"] += content
        for call in made:
            while len(message["tool_calls"]) <= call.tool_index:
                message["tool_calls"].append({"function": {"name": "", "arguments": ""}})
            own = message["tool_calls"][call.tool_index]["function"]
            own["name"] += call.name or ""
            own["arguments"] += call.parameters or ""

    for at, piece in enumerate(pieces):
        text: str = piece
        if reasoning is not None:
            reasoned, text = reasoning.parse_stream_chunk(piece)
            if at == len(pieces) - 1 and hasattr(reasoning, "parse_stream_end"):
                last, more = reasoning.parse_stream_end()
                reasoned, text = reasoned + last, text + more
            message["reasoning"] += reasoned or ""
        if text:
            take(*calls.parse_stream_chunk(text))
    if hasattr(calls, "parse_stream_end"):
        take(*calls.parse_stream_end())
    if ends:
        _complete(calls.detector, message["tool_calls"])
    return message


def _complete(detector: Any, calls: list[Any]) -> None:
    at = len(detector.prev_tool_call_arr) - 1
    if not 0 <= at < min(len(calls), len(detector.streamed_args_for_tool)):
        return
    wanted = detector.prev_tool_call_arr[at].get("arguments", {})
    expected = wanted if isinstance(wanted, str) else json.dumps(wanted, ensure_ascii=False)
    streamed = detector.streamed_args_for_tool[at]
    if expected.startswith(streamed):
        calls[at]["function"]["arguments"] += expected.removeprefix(streamed)
