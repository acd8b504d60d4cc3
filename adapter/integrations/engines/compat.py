"""Where the engines' releases keep what a parser is made of, and how it is called there.

Read in the releases that docs/engines.md names. An interface that is none of these is an `InterfaceError`, which says
what was tried; nothing is guessed.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module, metadata
from types import ModuleType
from typing import Any

from adapter.core.errors import AdapterError


class InterfaceError(AdapterError):
    """A release of an engine has an interface that we do not know."""


@dataclass(frozen=True, slots=True)
class ModuleLocation:
    """A module by its path in a release and those after it."""

    since: str
    module: str


VLLM_TOOL_PARSERS = (
    ModuleLocation("0.13", "vllm.tool_parsers.abstract_tool_parser"),
    ModuleLocation("0.10", "vllm.entrypoints.openai.tool_parsers.abstract_tool_parser"),
)
VLLM_REASONING_PARSERS = (ModuleLocation("0.10", "vllm.reasoning.abs_reasoning_parsers"),)
VLLM_MESSAGES = (
    ModuleLocation("0.29", "vllm.entrypoints.generate.base.protocol"),
    ModuleLocation("0.15", "vllm.entrypoints.openai.engine.protocol"),
    ModuleLocation("0.10", "vllm.entrypoints.openai.protocol"),
)
VLLM_STREAMING = (
    "previous_text",
    "current_text",
    "delta_text",
    "previous_token_ids",
    "current_token_ids",
    "delta_token_ids",
)
"""What both kinds of parsers are given of a stream; a tool parser the request, too."""
VLLM_REASONING_METHODS = ("extract_reasoning", "extract_reasoning_content")
"""Whole, and with ``_streaming`` behind it: from 0.11.1 on, and before."""
VLLM_REASONING_FIELDS = ("reasoning", "reasoning_content")
"""Of a streamed message: from 0.11.1 on, and before."""

SGLANG_DETECTORS = (ModuleLocation("0.5.1", "sglang.srt.function_call.base_format_detector"),)
SGLANG_CALLS = (ModuleLocation("0.5.1", "sglang.srt.function_call.core_types"),)
SGLANG_TOOL_PARSERS = (ModuleLocation("0.5.1", "sglang.srt.function_call.function_call_parser"),)
SGLANG_REASONING_PARSERS = (
    ModuleLocation("0.5.3", "sglang.srt.parser.reasoning_parser"),
    ModuleLocation("0.5.1", "sglang.srt.reasoning_parser"),
)


class VllmCompat:
    """vLLM's interface as the installed release has it. Raises InterfaceError for one that is not known."""

    def __init__(self) -> None:
        tools = _found("vllm", VLLM_TOOL_PARSERS)
        reasoning = _found("vllm", VLLM_REASONING_PARSERS)
        self.tool_parser = _named(tools, "ToolParser")
        self.tool_parsers = _named(tools, "ToolParserManager")
        self.reasoning_parser = _named(reasoning, "ReasoningParser")
        self.reasoning_parsers = _named(reasoning, "ReasoningParserManager")
        messages = _found("vllm", VLLM_MESSAGES)
        self.message = _named(messages, "DeltaMessage")
        self.call_delta = _named(messages, "DeltaToolCall")
        self.function_delta = _named(messages, "DeltaFunctionCall")
        self.call = _named(messages, "ToolCall")
        self.function = _named(messages, "FunctionCall")
        self.extracted = _named(messages, "ExtractedToolCallInformation")
        self._check()

    def _check(self) -> None:
        _takes(self.tool_parser, "extract_tool_calls", ("model_output", "request"))
        _takes(self.tool_parser, "extract_tool_calls_streaming", (*VLLM_STREAMING, "request"))
        _takes(self.reasoning_parser, self.reasoning_method, ("model_output", "request"))
        _takes(self.reasoning_parser, f"{self.reasoning_method}_streaming", VLLM_STREAMING)
        for manager in (self.tool_parsers, self.reasoning_parsers):
            _takes(manager, "register_module", ("name", "force", "module"))

    @cached_property
    def reasoning_method(self) -> str:
        return _one_of(self.reasoning_parser, VLLM_REASONING_METHODS, dir(self.reasoning_parser))

    @cached_property
    def reasoning_field(self) -> str:
        return _one_of(self.message, VLLM_REASONING_FIELDS, self.message.model_fields)

    @cached_property
    def reads_on_at_once(self) -> bool:
        """Whether the tool parser reads on in the piece in which reasoning ends; before, with the next one, if any."""
        return bool(self.tool_parser.__module__ == VLLM_TOOL_PARSERS[0].module)

    @cached_property
    def ends_streams(self) -> bool:
        """Whether parsers are told of a stream's end (``finish_streaming``), and each reads one stream."""
        return hasattr(self.tool_parser, "engine_based_streaming")

    @cached_property
    def ends_arguments(self) -> bool:
        """Whether the parser is asked for arguments that were not streamed; before, the last message is made anew
        of its first call where that has arguments."""
        return hasattr(self.tool_parser, "get_remaining_unstreamed_args")


class SglangCompat:
    """SGLang's interface as the installed release has it. Raises InterfaceError for one that is not known."""

    def __init__(self) -> None:
        calls = _found("sglang", SGLANG_CALLS)
        reasoning = _found("sglang", SGLANG_REASONING_PARSERS)
        self.detector = _named(_found("sglang", SGLANG_DETECTORS), "BaseFormatDetector")
        self.call = _named(calls, "ToolCallItem")
        self.result = _named(calls, "StreamingParseResult")
        self.tool_parser = _named(_found("sglang", SGLANG_TOOL_PARSERS), "FunctionCallParser")
        self.reasoning_detector = _named(reasoning, "BaseReasoningFormatDetector")
        self.reasoning_result = _named(reasoning, "StreamingParseResult")
        self.reasoning_parser = _named(reasoning, "ReasoningParser")
        _takes(self.detector, "detect_and_parse", ("text", "tools"))
        _takes(self.detector, "parse_streaming_increment", ("new_text", "tools"))
        _takes(self.reasoning_detector, "detect_and_parse", ("text",))
        _takes(self.reasoning_detector, "parse_streaming_increment", ("new_text",))
        _one_of(self.tool_parser, ("ToolCallParserEnum",), dir(self.tool_parser))
        _one_of(self.reasoning_parser, ("DetectorMap",), dir(self.reasoning_parser))


def _found(engine: str, places: tuple[ModuleLocation, ...]) -> ModuleType:
    """The first of ``places`` that this release has."""
    for place in places:
        try:
            return import_module(place.module)
        except ModuleNotFoundError as error:
            if error.name is None or not place.module.startswith(error.name):
                raise InterfaceError(f"{_release(engine)} does not import: {error}") from error
    tried = ", ".join(f"{place.module} ({place.since} and later)" for place in places)
    raise InterfaceError(f"{_release(engine)} has none of {tried}. {_ADVICE}")


def _named(module: ModuleType, name: str) -> Any:
    if not hasattr(module, name):
        raise InterfaceError(f"{_release(module.__name__)} has no {name} in {module.__name__}. {_ADVICE}")
    return getattr(module, name)


def _one_of(owner: Any, names: tuple[str, ...], has: Any) -> str:
    for name in names:
        if name in has:
            return name
    raise InterfaceError(f"{_release(owner.__module__)}: {owner.__name__} has none of {', '.join(names)}. {_ADVICE}")


def _takes(owner: Any, method: str, wanted: tuple[str, ...]) -> None:
    """Check that ``method`` is called with what we know it to be called with."""
    given = tuple(inspect.signature(getattr(owner, method, lambda: None)).parameters)
    if [name for name in given if name in wanted] != list(wanted):
        raise InterfaceError(
            f"{_release(owner.__module__)}: {owner.__name__}.{method} takes ({', '.join(given)}), "
            f"expected {', '.join(wanted)}. {_ADVICE}"
        )


_ADVICE = "Releases that were tried stand in docs/engines.md; `adapter serve` in front of the engine works with any"


def _release(module: str) -> str:
    """The engine and its version, for messages."""
    engine = module.partition(".")[0]
    try:
        return f"{engine} {metadata.version(engine)}"
    except metadata.PackageNotFoundError:
        return f"{engine} (no version told)"
