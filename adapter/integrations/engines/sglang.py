"""Our reader as SGLang's tool call parsers and reasoning parsers: ``--tool-call-parser adapter``.

Releases that know plugins call `register` through their entry points (``sglang.srt.plugins``); before them
``python -m adapter.integrations.engines.sglang ARGS...`` registers and then starts SGLang's server with ``ARGS``. Nothing of SGLang
is imported before.

SGLang hands all of an answer to the reasoning parser, and what that gives back as normal text to the tool parser. It
tells neither the prompt; newer releases give both the tokenizer, whose template says what the prompt ended with.
"""

from __future__ import annotations

import inspect
import json
import logging
import sys
import uuid
from typing import Any, ClassVar

from adapter.core.events import Event, InvalidToolCall, ReasoningDelta, ToolCall
from adapter.integrations.engines.compat import InterfaceError, SglangCompat
from adapter.integrations.engines.request_tools import parser_names, tools_from_request
from adapter.integrations.engines.stream_adapter import EngineDelta, StreamAdapter
from adapter.integrations.engines.tokenizer_detection import detect_engine_format, generation_prompt
from adapter.parsing.format import CUT_OFF, Format
from adapter.parsing.formats import get_format
from adapter.parsing.marker_tables import REASONING
from adapter.tools.tool import ToolSet

REASONING_ARGUMENTS = ("enable_thinking", "thinking")
"""Of chat templates: by one of them reasoning is turned on and off."""

_log = logging.getLogger("sglang.adapter")


def register() -> bool:
    """Make our parsers known to the SGLang that is installed; a message in its log, and False, where its interface is
    not known. May be called any number of times, in each of SGLang's processes."""
    try:
        sglang = SglangCompat()
    except InterfaceError as error:
        _log.warning("toolcall-adapter: its parsers are not there for --tool-call-parser: %s", error)
        return False
    for name, format in parser_names().items():
        tool, reasoning = parsers(sglang, format)
        sglang.tool_parser.ToolCallParserEnum[name] = tool
        sglang.reasoning_parser.DetectorMap[name] = reasoning
    return True


def parsers(sglang: SglangCompat, format: str | None) -> tuple[type[Any], type[Any]]:
    """The tool parser and the reasoning parser of one format; of the model's for None."""
    given = {"sglang": sglang, "format_name": format}
    return type("ToolDetector", (SglangToolParser, sglang.detector), given), type(
        "ReasoningDetector", (SglangReasoningParser, sglang.reasoning_detector), given
    )


def _format(name: str | None, tokenizer: object) -> Format | None:
    return get_format(name) if name else detect_engine_format(tokenizer)


class ContentText(str):
    """The content of a whole answer, and all that is not reasoning in it as it was ``written``: that is what our tool
    parser reads, and SGLang shows the content where it finds no call."""

    __slots__ = ("written",)
    written: str

    @classmethod
    def of(cls, content: str, written: str) -> ContentText:
        normal = cls(content)
        normal.written = written
        return normal


class SglangToolParser:
    """A tool parser: goes before SGLang's own base class. One reads one answer."""

    sglang: ClassVar[SglangCompat]
    format_name: ClassVar[str | None]
    prev_tool_call_arr: list[dict[str, Any]]
    streamed_args_for_tool: list[str]
    current_tool_id: int

    def __init__(self, tokenizer: Any = None) -> None:
        super().__init__()
        self._format = _format(self.format_name, tokenizer)
        self._prompt = generation_prompt(tokenizer, {})
        self._answer: StreamAdapter | None = None

    def has_tool_call(self, text: str) -> bool:
        """Whether there is something in the text that its content is without: a call, or one that was cut off."""
        return any(map(_is_left_out, _read(self._new_answer([]), text)))

    def detect_and_parse(self, text: str, tools: list[Any]) -> Any:
        """The calls of a whole answer, and its content."""
        answer = self._new_answer(tools)
        piece = answer.emitted_calls(_read(answer, text))
        places = {tool.function.name: at for at, tool in enumerate(tools)}
        calls = [
            self.sglang.call(
                tool_index=places.get(call.name, -1),
                name=call.name,
                parameters=json.dumps(call.arguments, ensure_ascii=False),
            )
            for call in piece.made
        ]
        return self.sglang.result(normal_text=piece.content, calls=calls)

    def parse_streaming_increment(self, new_text: str, tools: list[Any]) -> Any:
        """What ``new_text`` adds to the answer."""
        if self._answer is None:
            self._answer = self._new_answer(tools)
        return self._told(self._answer, self._answer.feed(new_text))

    def finish(self, tools: list[Any]) -> Any:  # noqa: ARG002
        """What the answer's end tells, for releases that ask for it."""
        return self.sglang.result() if self._answer is None else self._told(self._answer, self._answer.close())

    def supports_structural_tag(self) -> bool:
        """Forced calls are held to JSON, which SGLang reads itself."""
        return False

    def structure_info(self) -> Any:
        raise NotImplementedError("calls of this parser are not held to a structure")

    def build_ebnf(self, tools: list[Any]) -> Any:
        raise NotImplementedError("calls of this parser are not held to a grammar")

    def _told(self, answer: StreamAdapter, events: list[Event]) -> Any:
        """The events as SGLang streams them; it looks at its parser for what was called."""
        piece: EngineDelta = answer.emitted_calls(events)
        calls = []
        for call in piece.calls:
            if call.name is not None:
                calls.append(self.sglang.call(tool_index=call.index, name=call.name, parameters=""))
                self.prev_tool_call_arr.append({"name": call.name, "arguments": {}})
                self.streamed_args_for_tool.append("")
                self.current_tool_id = call.index
            calls.append(self.sglang.call(tool_index=call.index, parameters=call.arguments))
            self.streamed_args_for_tool[call.index] += call.arguments
        for made in piece.made:
            self.prev_tool_call_arr[answer.index_of(made)]["arguments"] = made.arguments
        return self.sglang.result(normal_text=piece.content, calls=calls)

    def _new_answer(self, tools: list[Any]) -> StreamAdapter:
        splits = SglangReasoningParser.is_asked_for
        return StreamAdapter(
            self._format,
            tools_from_request(tools),
            generation_prompt="" if splits else self._prompt,
            turn=uuid.uuid4().hex,
            splits=splits,
        )


class SglangReasoningParser:
    """A reasoning parser: goes before SGLang's own base class. One reads one answer."""

    sglang: ClassVar[SglangCompat]
    format_name: ClassVar[str | None]
    is_asked_for: ClassVar[bool] = False
    """Whether this process has made one: it then stands before the tool parser of each answer."""

    def __init__(
        self,
        stream_reasoning: bool = True,
        force_reasoning: bool | None = None,
        tokenizer: Any = None,
        tool_call_parser_active: bool | None = None,
        **options: Any,
    ) -> None:
        """``force_reasoning``: the request has it turned on, or off; None where SGLang does not know.
        ``tool_call_parser_active``: a tool parser reads the normal text, None where the release does not say so."""
        self._format = _format(self.format_name, tokenizer)
        marks = {"<think>": "</think>"} if self._format is None else self._format.reasoning
        self._opening, closing = next(iter(marks.items()), ("<think>", "</think>"))
        takes = inspect.signature(self.sglang.reasoning_detector.__init__).parameters
        is_always_on = self._format is not None and self._format.starts_in_reasoning
        given = options | {"reasoning_default": "always" if is_always_on else None}
        initialise: Any = super().__init__
        initialise(
            self._opening,
            closing,
            force_reasoning=bool(force_reasoning),
            stream_reasoning=stream_reasoning,
            **{name: value for name, value in given.items() if name in takes},
        )
        SglangReasoningParser.is_asked_for = True
        self._prompt = self._generation_prompt(force_reasoning, tokenizer)
        self._is_read_on = tool_call_parser_active is not False
        self._answer: StreamAdapter | None = None

    def _generation_prompt(self, is_on: bool | None, tokenizer: Any) -> str | None:
        """What the template puts before an answer; where there is none, what templates do: those that have ``<think>``
        open it where reasoning is on, of others the format tells."""
        found = generation_prompt(tokenizer, {} if is_on is None else dict.fromkeys(REASONING_ARGUMENTS, is_on))
        if found is not None or is_on is None:
            return found
        if not is_on:
            return ""
        return self._opening if self._format and self._opening in REASONING.keys() & self._format.reasoning else None

    def detect_and_parse(self, text: str) -> Any:
        """The reasoning of a whole answer, and all else."""
        answer = self._new_answer()
        events = _read(answer, text)
        piece = answer.told_as_text(events, with_cut_off=True)
        content = ContentText.of(piece.content, _written(events)) if self._is_read_on else piece.content
        return self.sglang.reasoning_result(normal_text=content, reasoning_text=piece.reasoning)

    def parse_streaming_increment(self, new_text: str) -> Any:
        """What ``new_text`` adds to the reasoning, and to all else."""
        if self._answer is None:
            self._answer = self._new_answer()
        return self._result(self._answer, self._answer.feed(new_text))

    def finish(self) -> Any:
        """What the answer's end tells, for releases that ask for it."""
        if self._answer is None:
            return self.sglang.reasoning_result()
        return self._result(self._answer, self._answer.close())

    def _result(self, answer: StreamAdapter, events: list[Event]) -> Any:
        piece = answer.told_as_text(events, with_cut_off=True)
        content = _written(events) if self._is_read_on else piece.content
        return self.sglang.reasoning_result(normal_text=content, reasoning_text=piece.reasoning)

    def _new_answer(self) -> StreamAdapter:
        return StreamAdapter(self._format, ToolSet(), generation_prompt=self._prompt, turn="")


def _read(answer: StreamAdapter, text: str) -> list[Event]:
    """All events of a whole answer."""
    return [*answer.feed(getattr(text, "written", text)), *answer.close()]


def _written(events: list[Event]) -> str:
    return "".join(event.raw for event in events if not isinstance(event, ReasoningDelta))


def _is_left_out(event: Event) -> bool:
    return isinstance(event, ToolCall) or (isinstance(event, InvalidToolCall) and event.error == CUT_OFF)


def main() -> None:
    """Start SGLang's server with the arguments of this process."""
    from runpy import run_module

    run_module("sglang.launch_server", run_name="__main__", alter_sys=True)


if __name__ in ("__main__", "__mp_main__"):  # SGLang's other processes import what was started, and need it as well
    if not register() and __name__ == "__main__":
        sys.exit(1)
    if __name__ == "__main__":
        main()
