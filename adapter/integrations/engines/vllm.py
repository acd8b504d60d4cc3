"""Provide parsers for vLLM: ``--tool-call-parser adapter --reasoning-parser adapter``.

vLLM calls `register` through an entry point (``vllm.general_plugins``), or through the file printed by ``adapter plugin
vllm``. The parsers named ``adapter`` detect the format from the model's template and name. Names like
``adapter_hermes`` select a format. vLLM is imported only when the parsers are registered.

vLLM splits a response between two parsers. The reasoning parser receives the text until reasoning ends, and the tool
parser the rest, which may contain more reasoning. Without this reasoning parser, reasoning stays in the content
verbatim, as with vLLM's own parsers.
"""

from __future__ import annotations

import json
import logging
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from adapter.core.events import Event, Json, ReasoningDelta
from adapter.integrations.engines.engine_interfaces import VllmCompat, warn_on_failure
from adapter.integrations.engines.engine_tool_definitions import convert_request_tools
from adapter.integrations.engines.format_from_tokenizer import (
    detect_engine_format,
    find_generation_prompt,
    find_reasoning_markers,
)
from adapter.integrations.engines.parser_names import list_parser_names
from adapter.integrations.engines.stream_adapter import EngineDelta, ReasoningRemainder, StreamAdapter
from adapter.parsing.formats import get_format
from adapter.parsing.stream_buffer import SPACE
from adapter.tools.tool_set import ToolSet

STREAM_ARGUMENTS = "ADAPTER_STREAM_ARGUMENTS"
"""Environment variable that turns on the streaming of arguments. Without it, a call is sent when it is complete."""

_log = logging.getLogger("vllm.adapter")


@warn_on_failure(_log)
def register() -> None:
    """Register the parsers with vLLM. This may be repeated. If it fails, log one warning and return False."""
    parsers = VllmParserFactory(VllmCompat())
    for name, format in list_parser_names().items():
        parsers.register(name, format)


class VllmParserFactory:
    """Creates and registers the parser classes for the installed release of vLLM."""

    def __init__(self, vllm: VllmCompat) -> None:
        self._vllm = vllm
        method = vllm.reasoning_method
        self._tool = type("ToolParser", (VllmToolParser, vllm.tool_parser), {"vllm": vllm})
        self._reasoning = type(
            "ReasoningParser",
            (VllmReasoningParser, vllm.reasoning_parser),
            {
                "vllm": vllm,
                method: VllmReasoningParser._extract_complete,
                f"{method}_streaming": VllmReasoningParser._extract_delta,
            },
        )

    def register(self, name: str, format: str | None) -> None:
        tool, reasoning = self.create_classes(format)
        self._vllm.tool_parsers.register_module(name=name, force=True, module=tool)
        self._vllm.reasoning_parsers.register_module(name=name, force=True, module=reasoning)

    def create_classes(self, format: str | None) -> tuple[type[Any], type[Any]]:
        """Return the tool parser and the reasoning parser for ``format``. None means that the format is detected."""
        return type("ToolParser", (self._tool,), {"format_name": format}), type(
            "ReasoningParser", (self._reasoning,), {"format_name": format}
        )


class _VllmParserBase:
    """Base class of both parsers, with the format and the response that is being parsed."""

    vllm: ClassVar[VllmCompat]
    format_name: ClassVar[str | None] = None
    model_tokenizer: Any
    engine_based_streaming = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._format = get_format(self.format_name) if self.format_name else detect_engine_format(self.model_tokenizer)
        self._stream: StreamAdapter | None = None
        self._markers = find_reasoning_markers(self.model_tokenizer, self._format)

    def adjust_request(self, request: Any) -> Any:
        """Keep special tokens in the response text if some of them are markers."""
        adjust = getattr(super(), "adjust_request", None)
        request = request if adjust is None else adjust(request)
        if self._needs_special_tokens(request) and getattr(request, "skip_special_tokens", False) is not False:
            request.skip_special_tokens = False
        return request

    def _needs_special_tokens(self, request: Any) -> bool:
        raise NotImplementedError

    def _find_current_stream(self, previous_text: str) -> StreamAdapter | None:
        """Return the stream of the response whose text so far is ``previous_text``, or None if a new response begins.

        Releases that call ``finish_streaming`` create a parser for each stream; ``previous_text`` may then be empty.
        """
        stream = self._stream
        if stream is None or stream.has_read(previous_text):
            return stream
        return stream if self.vllm.ends_streams and not previous_text else None

    def _ends_response(self, delta_text: str, delta_token_ids: Sequence[int]) -> bool:
        """Return whether the last token ends the response. The last token ends it if it is a special token that is
        neither part of ``delta_text`` nor a marker."""
        if not delta_token_ids:
            return False
        last = delta_token_ids[-1]
        if last not in getattr(self.model_tokenizer, "all_special_ids", ()):
            return False
        token = self.model_tokenizer.decode([last], skip_special_tokens=False)
        return not delta_text.endswith(token) and not self._markers.contains(token)

    def _build_message(self, delta: EngineDelta) -> Any:
        """Convert a delta to vLLM's message, or to None if it is empty."""
        vllm, fields = self.vllm, dict[str, Any]()
        if delta.content:
            fields["content"] = delta.content
        if delta.reasoning:
            fields[vllm.reasoning_field] = delta.reasoning
        calls = []
        for call in delta.calls:
            if call.name is None:
                calls.append(vllm.call_delta(index=call.index, function=vllm.function_delta(arguments=call.arguments)))
                continue
            head: dict[str, Any] = {"index": call.index, "id": call.id, "type": "function"}
            if vllm.ends_arguments:
                function = vllm.function_delta(name=call.name, arguments=call.arguments)
                calls.append(vllm.call_delta(**head, function=function))
            else:
                calls.append(vllm.call_delta(**head, function=vllm.function_delta(name=call.name)))
                calls.append(vllm.call_delta(index=call.index, function=vllm.function_delta(arguments=call.arguments)))
        if calls:
            fields["tool_calls"] = calls
        return vllm.message(**fields) if fields else None


class VllmToolParser(_VllmParserBase):
    """Tool parser, mixed in before vLLM's own base class."""

    prev_tool_call_arr: list[dict[str, Json]]
    streamed_args_for_tool: list[str]

    def extract_tool_calls(self, model_output: str, request: Any) -> Any:
        """Return the calls and the content of a complete response."""
        if isinstance(model_output, ReasoningRemainder):
            delta = model_output.delta
        else:
            stream = self._create_stream(request)
            delta = stream.emit_calls([*stream.feed(model_output), *stream.close()])
        calls = [
            self.vllm.call(id=call.id, type="function", function=self.vllm.function(name=call.name, arguments=text))
            for call in delta.completed
            for text in [json.dumps(call.arguments, ensure_ascii=False)]
        ]
        return self.vllm.extracted(tools_called=bool(calls), tool_calls=calls, content=delta.content or None)

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,  # noqa: ARG002
        delta_text: str,
        previous_token_ids: Sequence[int],  # noqa: ARG002
        current_token_ids: Sequence[int],  # noqa: ARG002
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> Any:
        """Return vLLM's delta message with the content and calls in ``delta_text``.

        The first ``delta_text`` after reasoning is empty. Before vLLM 0.13, it starts with whitespace.
        """
        stream = self._find_current_stream(previous_text)
        if stream is None:
            self.prev_tool_call_arr, self.streamed_args_for_tool = [], []
            is_after_reasoning = len(delta_text) == 0 if self.vllm.continues_in_same_delta else delta_text[:1].isspace()
            stream = self._stream = self._create_stream(
                request, follows_reasoning=is_after_reasoning and not previous_text
            )
            # Some releases read this attribute. It is set only now, because it changes how forced calls are parsed.
            self.engine_based_streaming = self.vllm.ends_streams
            if previous_text:  # this parser missed the previous text
                self._emit(stream, stream.feed(previous_text))
        events = stream.feed(delta_text)
        if self._ends_response(delta_text, delta_token_ids):
            events += stream.close()
        delta = self._emit(stream, events)
        if isinstance(delta_text, ReasoningRemainder):
            delta.reasoning = delta_text.delta.reasoning + delta.reasoning
        return self._build_message(delta)

    def finish_streaming(self) -> Any:
        """Return the final message. Some vLLM releases call this at the end of a stream."""
        if self._stream is None:
            return None
        return self._build_message(self._emit(self._stream, self._stream.close()))

    def _needs_special_tokens(self, request: Any) -> bool:
        return bool(getattr(request, "tools", None)) and getattr(request, "tool_choice", None) != "none"

    def _emit(self, stream: StreamAdapter, events: Iterable[Event]) -> EngineDelta:
        """Convert events to a delta, and update the attributes that vLLM reads from its parser."""
        delta = stream.emit_calls(events)
        stream.record_calls(delta, self.prev_tool_call_arr, self.streamed_args_for_tool)
        return delta

    def _create_stream(self, request: Any, *, follows_reasoning: bool = False) -> StreamAdapter:
        splits_reasoning = VllmReasoningParser.is_in_use
        arguments = getattr(request, "chat_template_kwargs", None) or {}
        return StreamAdapter(
            self._format,
            convert_request_tools(getattr(request, "tools", None)),
            generation_prompt="" if splits_reasoning else find_generation_prompt(self.model_tokenizer, arguments),
            turn=uuid.uuid4().hex,
            splits_reasoning=splits_reasoning,
            stream_arguments=bool(os.environ.get(STREAM_ARGUMENTS)),
            follows_reasoning=follows_reasoning and splits_reasoning,
        )


class VllmReasoningParser(_VllmParserBase):
    """Reasoning parser, mixed in before vLLM's own base class."""

    is_in_use: ClassVar[bool] = False
    """True once the first instance has been created. Each response then passes through this parser first."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        VllmReasoningParser.is_in_use = True
        self.engine_based_streaming = self.vllm.ends_streams
        self._prompt: Sequence[int] | None = None
        self._is_closed_in_prompt = False
        self._delta: list[int] | None = None
        """Token ids of the last delta."""
        self._pending_text = ""
        """Text that was parsed but has not led to an event yet."""
        self._first: tuple[Any, str] | None = None
        """Message and text of the first delta. vLLM 0.10 passes the prompt only later, and then uses this message."""
        self._is_over = False
        self._end_of_reasoning: tuple[Any, str, str] | None = None
        """The message in which reasoning ended, its reasoning, and the text after the reasoning."""

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """Return whether reasoning has ended in ``input_ids``, which may be the prompt or the last delta."""
        if self._delta is not None and list(input_ids) == self._delta:
            return self.has_engine_confirmed_reasoning_end()
        if input_ids is self._prompt:
            return self._is_closed_in_prompt
        is_closed = self._markers.is_reasoning_closed(input_ids)
        if self._prompt is None and input_ids:
            self._prompt, self._is_closed_in_prompt = input_ids, is_closed
            if is_closed and self._first is not None:
                message, text = self._first
                setattr(message, self.vllm.reasoning_field, None)
                message.content, self._stream = text or None, None
        return is_closed

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        if self._stream is not None:
            return self.has_engine_confirmed_reasoning_end()
        return self._markers.closes_reasoning(input_ids, list(delta_ids))

    def has_engine_confirmed_reasoning_end(self) -> bool:
        """Return whether reasoning has ended. vLLM asks after each delta, and the tool parser gets the content."""
        if self._is_over and self._end_of_reasoning is not None:
            message, reasoning, rest = self._end_of_reasoning
            setattr(message, self.vllm.reasoning_field, reasoning or None)
            message.content = ReasoningRemainder.from_text(rest, EngineDelta(reasoning=reasoning)) or None
            self._stream = None  # the tool parser gets the rest
        return self._is_over

    def finish_streaming(self) -> Any:
        """Return the final message at the end of a stream, or None if the remaining text went to the tool parser."""
        if self._stream is None:
            return None
        return self._build_message(self._stream.emit_text(self._stream.close(), with_cut_off=True))

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        self.is_reasoning_end(prompt_token_ids)

    def _needs_special_tokens(self, request: Any) -> bool:  # noqa: ARG002
        return self._markers.are_special_tokens(getattr(self.model_tokenizer, "all_special_ids", ()))

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        return self._markers.select_tokens_after_reasoning(input_ids)

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        return self._markers.count_reasoning_tokens(
            token_ids, is_open=self._prompt is not None and not self._is_closed_in_prompt
        )

    def _extract_complete(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        """Return the reasoning and the content of a complete response. The content includes all calls as raw text."""
        tools = convert_request_tools(getattr(request, "tools", None))
        stream = self._create_stream(tools, getattr(request, "chat_template_kwargs", None) or {})
        events = [*stream.feed(model_output), *stream.close()]
        if getattr(request, "tool_choice", None) not in (None, "auto", "none"):  # vLLM parses the rest itself
            reasoning, rest = _split_reasoning(stream, events, model_output)
            return reasoning or None, rest or None
        delta = stream.emit_text(events, with_cut_off=not tools)
        return delta.reasoning or None, ReasoningRemainder.from_text(
            delta.content, stream.emit_calls(events)
        ) if delta.content else None

    def _extract_delta(
        self,
        previous_text: str,
        current_text: str,  # noqa: ARG002
        delta_text: str,
        previous_token_ids: Sequence[int],  # noqa: ARG002
        current_token_ids: Sequence[int],  # noqa: ARG002
        delta_token_ids: Sequence[int],
    ) -> Any:
        """Return the message for ``delta_text``, with its reasoning or the content after it."""
        self._delta = list(delta_token_ids)
        stream = self._find_current_stream(previous_text)
        if stream is None:
            self._is_over, self._end_of_reasoning = False, None
            stream = self._stream = self._create_stream(ToolSet(), {})
            self._pending_text = previous_text[sum(len(event.raw) for event in stream.feed(previous_text)) :]
        events = stream.feed(delta_text)
        message = self._read(stream, events, delta_text, delta_token_ids)
        if self._prompt is None and not previous_text:
            message = message or self.vllm.message()
            self._first = (message, delta_text)
        return message

    def _read(self, stream: StreamAdapter, events: list[Event], delta_text: str, delta_token_ids: Sequence[int]) -> Any:
        self._end_of_reasoning = None
        is_last = self._ends_response(delta_text, delta_token_ids)
        if is_last:
            events += stream.close()
        text = self._pending_text + delta_text
        self._pending_text = text[sum(len(event.raw) for event in events) :]
        message = self._build_message(stream.emit_text(events, with_cut_off=True))
        if self._is_over or (is_last and not self.vllm.continues_in_same_delta):
            return message
        if stream.find_end_of_reasoning(events) is not None:
            self._is_over, message = True, message or self.vllm.message()
            self._end_of_reasoning = (message, *_split_reasoning(stream, events, text))
        return message

    def _create_stream(self, tools: ToolSet, arguments: Mapping[str, Json]) -> StreamAdapter:
        prompt = self._prompt
        return StreamAdapter(
            self._format,
            tools,
            generation_prompt=(
                find_generation_prompt(self.model_tokenizer, dict(arguments))
                if prompt is None
                else self._markers.find_generation_prompt(prompt)
            ),
            turn=uuid.uuid4().hex,
        )


def _split_reasoning(stream: StreamAdapter, events: list[Event], text: str) -> tuple[str, str]:
    """Split ``text`` into its initial reasoning and the raw rest. ``events`` are the events of ``text``."""
    end = stream.find_end_of_reasoning(events)
    before = events if end is None else events[:end]
    reasoning = "".join(event.text for event in before if isinstance(event, ReasoningDelta))
    return reasoning, "" if end is None else text[sum(len(event.raw) for event in before) :].lstrip(SPACE)
