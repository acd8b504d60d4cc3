"""Provide tool call parsers and reasoning parsers for SGLang: ``--tool-call-parser adapter``.

Releases with plugins call `register` through an entry point (``sglang.srt.plugins``). For older releases, ``python -m
adapter.integrations.engines.sglang ARGS...`` registers the parsers and starts SGLang's server with ``ARGS``. SGLang is
imported only when the parsers are registered.

SGLang passes a response to the reasoning parser, and the text that this parser returns to the tool parser. Neither sees
the prompt. Newer releases also pass the tokenizer, whose template determines the end of the prompt.
"""

from __future__ import annotations

import inspect
import json
import logging
import sys
import uuid
from typing import Any, ClassVar

from adapter.core.events import Event, InvalidToolCall, ReasoningDelta, ToolCall
from adapter.integrations.engines.engine_interfaces import SglangCompat, warn_on_failure
from adapter.integrations.engines.engine_tool_definitions import convert_request_tools
from adapter.integrations.engines.format_from_tokenizer import detect_engine_format, find_generation_prompt
from adapter.integrations.engines.parser_names import list_parser_names
from adapter.integrations.engines.stream_adapter import EngineDelta, StreamAdapter
from adapter.parsing.format import CUT_OFF, Format
from adapter.parsing.formats import get_format
from adapter.parsing.marker_tables import REASONING
from adapter.tools.tool_set import ToolSet

REASONING_ARGUMENTS = ("enable_thinking", "thinking")
"""Chat template arguments that turn reasoning on or off."""

_log = logging.getLogger("sglang.adapter")


@warn_on_failure(_log)
def register() -> None:
    """Register the parsers with SGLang. This may be repeated. If it fails, log one warning and return False."""
    sglang = SglangCompat()
    for name, format in list_parser_names().items():
        tool, reasoning = create_parsers(sglang, format)
        sglang.tool_parser.ToolCallParserEnum[name] = tool
        sglang.reasoning_parser.DetectorMap[name] = reasoning


def create_parsers(sglang: SglangCompat, format: str | None) -> tuple[type[Any], type[Any]]:
    """Return the tool parser and the reasoning parser for ``format``. None means that the format is detected."""
    class_fields = {"sglang": sglang, "format_name": format}
    return type("ToolDetector", (SglangToolParser, sglang.detector), class_fields), type(
        "ReasoningDetector", (SglangReasoningParser, sglang.reasoning_detector), class_fields
    )


def _format(name: str | None, tokenizer: object) -> Format | None:
    return get_format(name) if name else detect_engine_format(tokenizer)


class ContentText(str):
    """The content of a complete response, which also carries ``raw``, the response without its reasoning, for the tool
    parser. SGLang passes it between the two parsers as a string."""

    __slots__ = ("raw",)
    raw: str

    @classmethod
    def from_text(cls, content: str, raw: str) -> ContentText:
        normal = cls(content)
        normal.raw = raw
        return normal


class SglangToolParser:
    """Tool parser, mixed in before SGLang's base class. Each instance parses one response."""

    sglang: ClassVar[SglangCompat]
    format_name: ClassVar[str | None]
    prev_tool_call_arr: list[dict[str, Any]]
    streamed_args_for_tool: list[str]
    current_tool_id: int

    def __init__(self, tokenizer: Any = None) -> None:
        super().__init__()
        self._format = _format(self.format_name, tokenizer)
        self._prompt = find_generation_prompt(tokenizer, {})
        self._stream: StreamAdapter | None = None

    def has_tool_call(self, text: str) -> bool:
        """Return whether the text contains a call, complete or truncated."""
        return any(map(_is_removed, _read_all(self._create_stream([]), text)))

    def detect_and_parse(self, text: str, tools: list[Any]) -> Any:
        """Return the calls and the content of a complete response."""
        stream = self._create_stream(tools)
        delta = stream.emit_calls(_read_all(stream, text))
        indexes = {tool.function.name: at for at, tool in enumerate(tools)}
        calls = [
            self.sglang.call(
                tool_index=indexes.get(call.name, -1),
                name=call.name,
                parameters=json.dumps(call.arguments, ensure_ascii=False),
            )
            for call in delta.completed
        ]
        return self.sglang.result(normal_text=delta.content, calls=calls)

    def parse_streaming_increment(self, new_text: str, tools: list[Any]) -> Any:
        """Parse ``new_text``, and return its content and calls."""
        if self._stream is None:
            self._stream = self._create_stream(tools)
        return self._stream_delta(self._stream, self._stream.feed(new_text))

    def finish(self, tools: list[Any]) -> Any:  # noqa: ARG002
        """Return the last delta. Some releases call this at the end of a stream."""
        return self.sglang.result() if self._stream is None else self._stream_delta(self._stream, self._stream.close())

    def supports_structural_tag(self) -> bool:
        """Return False, because forced calls are constrained to JSON, which SGLang itself parses."""
        return False

    def structure_info(self) -> Any:
        raise NotImplementedError("this parser does not support structural tags")

    def build_ebnf(self, tools: list[Any]) -> Any:
        raise NotImplementedError("this parser does not support grammars")

    def _stream_delta(self, stream: StreamAdapter, events: list[Event]) -> Any:
        """Convert events to a stream result, and update the attributes that SGLang reads from its parsers."""
        delta: EngineDelta = stream.emit_calls(events)
        calls = []
        for call in delta.calls:
            if call.name is not None:
                calls.append(self.sglang.call(tool_index=call.index, name=call.name, parameters=""))
                self.current_tool_id = call.index
            calls.append(self.sglang.call(tool_index=call.index, parameters=call.arguments))
        stream.record_calls(delta, self.prev_tool_call_arr, self.streamed_args_for_tool)
        return self.sglang.result(normal_text=delta.content, calls=calls)

    def _create_stream(self, tools: list[Any]) -> StreamAdapter:
        splits_reasoning = SglangReasoningParser.is_in_use
        return StreamAdapter(
            self._format,
            convert_request_tools(tools),
            generation_prompt="" if splits_reasoning else self._prompt,
            turn=uuid.uuid4().hex,
            splits_reasoning=splits_reasoning,
        )


class SglangReasoningParser:
    """Reasoning parser, mixed in before SGLang's base class. Each instance parses one response."""

    sglang: ClassVar[SglangCompat]
    format_name: ClassVar[str | None]
    is_in_use: ClassVar[bool] = False
    """True once the first instance has been created. Each response then passes through this parser first."""

    def __init__(
        self,
        stream_reasoning: bool = True,
        force_reasoning: bool | None = None,
        tokenizer: Any = None,
        tool_call_parser_active: bool | None = None,
        **options: Any,
    ) -> None:
        """Create a parser for one response.

        ``force_reasoning`` is True if the request turns reasoning on, or None if SGLang cannot determine this.
        ``tool_call_parser_active`` is True if a tool parser gets the remaining text, or None in older releases.
        """
        self._format = _format(self.format_name, tokenizer)
        markers = {"<think>": "</think>"} if self._format is None else self._format.reasoning
        self._opening, closing = next(iter(markers.items()), ("<think>", "</think>"))
        parameters = inspect.signature(self.sglang.reasoning_detector.__init__).parameters
        is_always_on = self._format is not None and self._format.starts_in_reasoning
        class_fields = options | {"reasoning_default": "always" if is_always_on else None}
        initialize: Any = super().__init__
        initialize(
            self._opening,
            closing,
            force_reasoning=bool(force_reasoning),
            stream_reasoning=stream_reasoning,
            **{name: value for name, value in class_fields.items() if name in parameters},
        )
        SglangReasoningParser.is_in_use = True
        self._prompt = self._find_generation_prompt(force_reasoning, tokenizer)
        self._feeds_tool_parser = tool_call_parser_active is not False
        self._stream: StreamAdapter | None = None

    def _find_generation_prompt(self, is_on: bool | None, tokenizer: Any) -> str | None:
        """Return the template's generation prompt.

        Without a template, the prompt is assumed to end with the opening marker of reasoning if reasoning is on. The
        result is None if the format must decide.
        """
        found = find_generation_prompt(tokenizer, {} if is_on is None else dict.fromkeys(REASONING_ARGUMENTS, is_on))
        if found is not None or is_on is None:
            return found
        if not is_on:
            return ""
        return self._opening if self._format and self._opening in REASONING.keys() & self._format.reasoning else None

    def detect_and_parse(self, text: str) -> Any:
        """Return the reasoning and the remaining text of a complete response."""
        stream = self._create_stream()
        events = _read_all(stream, text)
        delta = stream.emit_text(events, with_cut_off=True)
        content = (
            ContentText.from_text(delta.content, _join_raw_text(events)) if self._feeds_tool_parser else delta.content
        )
        return self.sglang.reasoning_result(normal_text=content, reasoning_text=delta.reasoning)

    def parse_streaming_increment(self, new_text: str) -> Any:
        """Parse ``new_text``, and return its reasoning and its remaining text."""
        if self._stream is None:
            self._stream = self._create_stream()
        return self._build_result(self._stream, self._stream.feed(new_text))

    def finish(self) -> Any:
        """Return the last delta. Some releases call this at the end of a stream."""
        if self._stream is None:
            return self.sglang.reasoning_result()
        return self._build_result(self._stream, self._stream.close())

    def _build_result(self, stream: StreamAdapter, events: list[Event]) -> Any:
        delta = stream.emit_text(events, with_cut_off=True)
        content = _join_raw_text(events) if self._feeds_tool_parser else delta.content
        return self.sglang.reasoning_result(normal_text=content, reasoning_text=delta.reasoning)

    def _create_stream(self) -> StreamAdapter:
        return StreamAdapter(self._format, ToolSet(), generation_prompt=self._prompt, turn="")


def _read_all(stream: StreamAdapter, text: str) -> list[Event]:
    """Return all events of a complete response."""
    return [*stream.feed(getattr(text, "raw", text)), *stream.close()]


def _join_raw_text(events: list[Event]) -> str:
    return "".join(event.raw for event in events if not isinstance(event, ReasoningDelta))


def _is_removed(event: Event) -> bool:
    return isinstance(event, ToolCall) or (isinstance(event, InvalidToolCall) and event.error == CUT_OFF)


def main() -> None:
    """Start SGLang's server with the command-line arguments of this process."""
    from runpy import run_module

    run_module("sglang.launch_server", run_name="__main__", alter_sys=True)


if __name__ in ("__main__", "__mp_main__"):  # SGLang's child processes import this module and must also register
    if not register() and __name__ == "__main__":
        sys.exit(1)
    if __name__ == "__main__":
        main()
