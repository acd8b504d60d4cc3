"""SGLang's own `ReasoningParser` and `FunctionCallParser`, one after the other as its chat serving code calls them."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from adapter.engines.interfaces import Sglang
from benchmarks.engines.serving_vllm import Message


class Serving:
    """Answers of one parser pair. ``tool_parser``, ``reasoning_parser``: their registered names."""

    def __init__(self, tool_parser: str, reasoning_parser: str | None) -> None:
        self._sglang = Sglang()
        self._names = (tool_parser, reasoning_parser)
        protocol = import_module("sglang.srt.entrypoints.openai.protocol")
        self._tool = protocol.Tool

    def answer(
        self, tools: Sequence[Any], pieces: Sequence[str], *, stream: bool, opens_reasoning: bool, ends: bool
    ) -> Message:
        """The message that a client gets. ``opens_reasoning``: what SGLang reads off the chat template. ``ends``: the
        answer was not cut."""
        tool_name, reasoning_name = self._names
        offered = [self._tool(**tool) for tool in tools]
        calls = self._sglang.tool_parser(offered, tool_name)
        reasoning = None
        if reasoning_name is not None:
            options: dict[str, Any] = {"force_reasoning": opens_reasoning}
            if "tool_call_parser_active" in inspect.signature(self._sglang.reasoning_parser.__init__).parameters:
                options["tool_call_parser_active"] = bool(offered)
            reasoning = self._sglang.reasoning_parser(reasoning_name, True, **options)
        if not stream:
            return _whole(reasoning, calls, "".join(pieces))
        return _streamed(reasoning, calls, pieces, ends=ends)


def _whole(reasoning: Any, calls: Any, text: str) -> Message:
    message: Message = {"content": text, "reasoning": "", "tool_calls": []}
    if reasoning is not None:
        message["reasoning"], message["content"] = reasoning.parse_non_stream(text)
    if message["content"] and calls.has_tool_call(message["content"]):
        message["content"], made = calls.parse_non_stream(message["content"])
        message["tool_calls"] = [{"name": call.name, "arguments": call.parameters} for call in made]
    return message


def _streamed(reasoning: Any, calls: Any, pieces: Sequence[str], *, ends: bool) -> Message:
    message: Message = {"content": "", "reasoning": "", "tool_calls": []}

    def take(content: str, made: Sequence[Any]) -> None:
        message["content"] += content
        for call in made:
            while len(message["tool_calls"]) <= call.tool_index:
                message["tool_calls"].append({"name": "", "arguments": ""})
            own = message["tool_calls"][call.tool_index]
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
    detector = calls.detector
    if ends and detector.prev_tool_call_arr and detector.streamed_args_for_tool:
        import json

        at = len(detector.prev_tool_call_arr) - 1
        wanted = detector.prev_tool_call_arr[at].get("arguments", {})
        expected = wanted if isinstance(wanted, str) else json.dumps(wanted, ensure_ascii=False)
        if at < len(detector.streamed_args_for_tool) and at < len(message["tool_calls"]):
            message["tool_calls"][at]["arguments"] += expected.replace(detector.streamed_args_for_tool[at], "", 1)
    return message
