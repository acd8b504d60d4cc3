"""Our reader as vLLM's tool parsers and reasoning parsers: ``--tool-call-parser adapter --reasoning-parser adapter``.

vLLM calls `register` through its entry points (``vllm.general_plugins``), or through the file that
``adapter plugin vllm`` names. ``adapter`` reads the format that the model's template and name tell, ``adapter_hermes``
and the like the one they name. Nothing of vLLM is imported before.

vLLM splits an answer between two parsers: the reasoning parser has it until reasoning is over, and what follows goes to
the tool parser, which reads reasoning that comes later, too. Where no reasoning parser of ours is asked for, reasoning
stays in the content as it was written, as with vLLM's own parsers.
"""

from __future__ import annotations

import json
import logging
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from adapter.core.events import Event, Json, ReasoningDelta
from adapter.integrations.engines.compat import InterfaceError, VllmCompat
from adapter.integrations.engines.request_tools import parser_names, tools_from_request
from adapter.integrations.engines.stream_adapter import EngineDelta, ReasoningRemainder, StreamAdapter
from adapter.integrations.engines.tokenizer_detection import (
    detect_engine_format,
    generation_prompt,
    reasoning_markers_of,
)
from adapter.parsing.formats import get_format
from adapter.parsing.stream_buffer import SPACE
from adapter.tools.tool import ToolSet

STREAM_ARGUMENTS = "ADAPTER_STREAM_ARGUMENTS"
"""The environment variable by which arguments are handed on as they are written; else a call comes when it is whole."""

_log = logging.getLogger("vllm.adapter")


def register() -> None:
    """Make our parsers known to the vLLM that is installed; a message in its log where its interface is not known.

    May be called any number of times, in each of vLLM's processes.
    """
    try:
        parsers = Parsers(VllmCompat())
    except InterfaceError as error:
        _log.warning("toolcall-adapter: its parsers are not there for --tool-call-parser: %s", error)
        return
    for name, format in parser_names().items():
        parsers.register(name, format)


class Parsers:
    """Our parser classes for one release of vLLM."""

    def __init__(self, vllm: VllmCompat) -> None:
        self._vllm = vllm
        reading = {name: getattr(VllmReasoningParser, f"_{name}") for name in ("whole", "streaming")}
        method = vllm.reasoning_method
        self._tool = type("ToolParser", (VllmToolParser, vllm.tool_parser), {"vllm": vllm})
        self._reasoning = type(
            "ReasoningParser",
            (VllmReasoningParser, vllm.reasoning_parser),
            {"vllm": vllm, method: reading["whole"], f"{method}_streaming": reading["streaming"]},
        )

    def register(self, name: str, format: str | None) -> None:
        tool, reasoning = self.of(format)
        self._vllm.tool_parsers.register_module(name=name, force=True, module=tool)
        self._vllm.reasoning_parsers.register_module(name=name, force=True, module=reasoning)

    def of(self, format: str | None) -> tuple[type[Any], type[Any]]:
        """The tool parser and the reasoning parser of one format; of the model's for None."""
        return type("ToolParser", (self._tool,), {"format_name": format}), type(
            "ReasoningParser", (self._reasoning,), {"format_name": format}
        )


class _VllmReader:
    """What both parsers know: the format, and the answer that they are reading."""

    vllm: ClassVar[VllmCompat]
    format_name: ClassVar[str | None] = None
    model_tokenizer: Any
    engine_based_streaming = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._format = get_format(self.format_name) if self.format_name else detect_engine_format(self.model_tokenizer)
        self._answer: StreamAdapter | None = None
        self._marks = reasoning_markers_of(self.model_tokenizer, self._format)

    def adjust_request(self, request: Any) -> Any:
        """Markers that are special tokens stay in the text."""
        adjust = getattr(super(), "adjust_request", None)
        request = request if adjust is None else adjust(request)
        if self._needs_special_tokens(request) and getattr(request, "skip_special_tokens", False) is not False:
            request.skip_special_tokens = False
        return request

    def _needs_special_tokens(self, request: Any) -> bool:
        raise NotImplementedError

    def _answer_at(self, previous_text: str) -> StreamAdapter | None:
        """The answer whose text so far is ``previous_text``: None for one that is new here, or another one.

        Releases that end streams have one parser for each, and may leave out the text so far.
        """
        answer = self._answer
        if answer is None or answer.has_read(previous_text):
            return answer
        return answer if self.vllm.ends_streams and not previous_text else None

    def _ends(self, delta_text: str, delta_token_ids: Sequence[int]) -> bool:
        """Whether the answer ended with a token that was kept from its text: all others of its kind stand in it, or
        are markers."""
        if not delta_token_ids:
            return False
        last = delta_token_ids[-1]
        if last not in getattr(self.model_tokenizer, "all_special_ids", ()):
            return False
        token = self.model_tokenizer.decode([last], skip_special_tokens=False)
        return not delta_text.endswith(token) and not self._marks.have(token)

    def _message(self, piece: EngineDelta) -> Any:
        """What vLLM streams for ``piece``, None for nothing."""
        vllm, fields = self.vllm, dict[str, Any]()
        if piece.content:
            fields["content"] = piece.content
        if piece.reasoning:
            fields[vllm.reasoning_field] = piece.reasoning
        calls = []
        for call in piece.calls:
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


class VllmToolParser(_VllmReader):
    """A tool parser: goes before vLLM's own class of that name."""

    prev_tool_call_arr: list[dict[str, Json]]
    streamed_args_for_tool: list[str]

    def extract_tool_calls(self, model_output: str, request: Any) -> Any:
        """The calls of a whole answer, and its content."""
        if isinstance(model_output, ReasoningRemainder):
            piece = model_output.piece
        else:
            answer = self._new_answer(request)
            piece = answer.emitted_calls([*answer.feed(model_output), *answer.close()])
        calls = [
            self.vllm.call(id=call.id, type="function", function=self.vllm.function(name=call.name, arguments=text))
            for call in piece.made
            for text in [json.dumps(call.arguments, ensure_ascii=False)]
        ]
        return self.vllm.extracted(tools_called=bool(calls), tool_calls=calls, content=piece.content or None)

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
        """What ``delta_text`` adds to the answer. Of the text before only the length and the end are looked at.

        The first piece after reasoning is known by being empty, or (before 0.13) by the blanks that it begins with.
        """
        answer = self._answer_at(previous_text)
        if answer is None:
            self.prev_tool_call_arr, self.streamed_args_for_tool = [], []
            follows = len(delta_text) == 0 if self.vllm.reads_on_at_once else delta_text[:1].isspace()
            answer = self._answer = self._new_answer(request, follows_reasoning=follows and not previous_text)
            # asked for by releases that end streams; said now, because it changes how forced calls are read
            self.engine_based_streaming = self.vllm.ends_streams
            if previous_text:  # some of it never came here
                self._told(answer, answer.feed(previous_text))
        events = answer.feed(delta_text)
        if self._ends(delta_text, delta_token_ids):
            events += answer.close()
        piece = self._told(answer, events)
        if isinstance(delta_text, ReasoningRemainder):
            piece.reasoning = delta_text.piece.reasoning + piece.reasoning
        return self._message(piece)

    def finish_streaming(self) -> Any:
        """What the answer's end tells, for releases that ask for it."""
        if self._answer is None:
            return None
        return self._message(self._told(self._answer, self._answer.close()))

    def _needs_special_tokens(self, request: Any) -> bool:
        return bool(getattr(request, "tools", None)) and getattr(request, "tool_choice", None) != "none"

    def _told(self, answer: StreamAdapter, events: Iterable[Event]) -> EngineDelta:
        """The events as vLLM streams them; it looks at its parser for what was called."""
        piece = answer.emitted_calls(events)
        for call in piece.calls:
            if call.name is not None:
                self.prev_tool_call_arr.append({"name": call.name, "arguments": {}})
                self.streamed_args_for_tool.append("")
            self.streamed_args_for_tool[call.index] += call.arguments
        for call_made in piece.made:
            self.prev_tool_call_arr[answer.index_of(call_made)]["arguments"] = call_made.arguments
        return piece

    def _new_answer(self, request: Any, *, follows_reasoning: bool = False) -> StreamAdapter:
        splits = VllmReasoningParser.is_asked_for
        arguments = getattr(request, "chat_template_kwargs", None) or {}
        return StreamAdapter(
            self._format,
            tools_from_request(getattr(request, "tools", None)),
            generation_prompt="" if splits else generation_prompt(self.model_tokenizer, arguments),
            turn=uuid.uuid4().hex,
            splits=splits,
            stream_arguments=bool(os.environ.get(STREAM_ARGUMENTS)),
            follows_reasoning=follows_reasoning and splits,
        )


class VllmReasoningParser(_VllmReader):
    """A reasoning parser: goes before vLLM's own class of that name."""

    is_asked_for: ClassVar[bool] = False
    """Whether this process has made one: it then stands before the tool parser of each answer."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        VllmReasoningParser.is_asked_for = True
        self.engine_based_streaming = self.vllm.ends_streams
        self._prompt: Sequence[int] | None = None
        self._is_closed_in_prompt = False
        self._delta: list[int] | None = None
        """The tokens of the last piece."""
        self._held = ""
        """What was read of reasoning, and nothing said about."""
        self._first: tuple[Any, str] | None = None
        """The message of the first piece, and its text: 0.10 tells of the prompt after that, and takes the content."""
        self._is_over = False
        self._at_end: tuple[Any, str, str] | None = None
        """The message in which reasoning ended, the reasoning in it, and the text after that."""

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """Of the last piece that was read here, whether reasoning is over; of other tokens, by themselves."""
        if self._delta is not None and list(input_ids) == self._delta:
            return self.has_engine_confirmed_reasoning_end()
        if input_ids is self._prompt:
            return self._is_closed_in_prompt
        is_closed = self._marks.are_closed(input_ids)
        if self._prompt is None and input_ids:
            self._prompt, self._is_closed_in_prompt = input_ids, is_closed
            if is_closed and self._first is not None:
                message, text = self._first
                setattr(message, self.vllm.reasoning_field, None)
                message.content, self._answer = text or None, None
        return is_closed

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        if self._answer is not None:
            return self.has_engine_confirmed_reasoning_end()
        return self._marks.close_in(input_ids, list(delta_ids))

    def has_engine_confirmed_reasoning_end(self) -> bool:
        """vLLM asks after each piece; where reasoning is over, the tool parser reads on from the message's content."""
        if self._is_over and self._at_end is not None:
            message, reasoning, rest = self._at_end
            setattr(message, self.vllm.reasoning_field, reasoning or None)
            message.content = ReasoningRemainder.of(rest, EngineDelta(reasoning=reasoning)) or None
            self._answer = None  # what comes now is not read here
        return self._is_over

    def finish_streaming(self) -> Any:
        """What the answer's end tells, for releases that ask for it: nothing where another reads on."""
        if self._answer is None:
            return None
        return self._message(self._answer.told_as_text(self._answer.close(), with_cut_off=True))

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        self.is_reasoning_end(prompt_token_ids)

    def _needs_special_tokens(self, request: Any) -> bool:  # noqa: ARG002
        return self._marks.are_special_tokens(getattr(self.model_tokenizer, "all_special_ids", ()))

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        return self._marks.after(input_ids)

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        return self._marks.count(token_ids, is_open=self._prompt is not None and not self._is_closed_in_prompt)

    def _whole(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        """The reasoning of a whole answer, and its content with all calls as they were written."""
        tools = tools_from_request(getattr(request, "tools", None))
        answer = self._new_answer(tools, getattr(request, "chat_template_kwargs", None) or {})
        events = [*answer.feed(model_output), *answer.close()]
        if getattr(request, "tool_choice", None) not in (None, "auto", "none"):  # vLLM reads what is not reasoning
            reasoning, rest = _parted(answer, events, model_output)
            return reasoning or None, rest or None
        piece = answer.told_as_text(events, with_cut_off=not tools)
        return piece.reasoning or None, ReasoningRemainder.of(
            piece.content, answer.emitted_calls(events)
        ) if piece.content else None

    def _streaming(
        self,
        previous_text: str,
        current_text: str,  # noqa: ARG002
        delta_text: str,
        previous_token_ids: Sequence[int],  # noqa: ARG002
        current_token_ids: Sequence[int],  # noqa: ARG002
        delta_token_ids: Sequence[int],
    ) -> Any:
        """What ``delta_text`` adds to the reasoning, or to the content after it."""
        self._delta = list(delta_token_ids)
        answer = self._answer_at(previous_text)
        if answer is None:
            self._is_over, self._at_end = False, None
            answer = self._answer = self._new_answer(ToolSet(), {})
            self._held = previous_text[sum(len(event.raw) for event in answer.feed(previous_text)) :]
        events = answer.feed(delta_text)
        message = self._read(answer, events, delta_text, delta_token_ids)
        if self._prompt is None and not previous_text:
            message = message or self.vllm.message()
            self._first = (message, delta_text)
        return message

    def _read(self, answer: StreamAdapter, events: list[Event], delta_text: str, delta_token_ids: Sequence[int]) -> Any:
        self._at_end = None
        is_last = self._ends(delta_text, delta_token_ids)
        if is_last:
            events += answer.close()
        text = self._held + delta_text
        self._held = text[sum(len(event.raw) for event in events) :]
        message = self._message(answer.told_as_text(events, with_cut_off=True))
        if self._is_over or (is_last and not self.vllm.reads_on_at_once):
            return message
        if answer.end_of_reasoning(events) is not None:
            self._is_over, message = True, message or self.vllm.message()
            self._at_end = (message, *_parted(answer, events, text))
        return message

    def _new_answer(self, tools: ToolSet, arguments: Mapping[str, Json]) -> StreamAdapter:
        prompt = self._prompt
        return StreamAdapter(
            self._format,
            tools,
            generation_prompt=(
                generation_prompt(self.model_tokenizer, dict(arguments))
                if prompt is None
                else self._marks.generation_prompt(prompt)
            ),
            turn=uuid.uuid4().hex,
        )


def _parted(answer: StreamAdapter, events: list[Event], text: str) -> tuple[str, str]:
    """The reasoning that ``text`` begins with, and what follows it as written. ``events``: what the text is made of."""
    end = answer.end_of_reasoning(events)
    before = events if end is None else events[:end]
    reasoning = "".join(event.text for event in before if isinstance(event, ReasoningDelta))
    return reasoning, "" if end is None else text[sum(len(event.raw) for event in before) :].lstrip(SPACE)
