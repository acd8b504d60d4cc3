"""Find the modules, classes and methods of the installed vLLM or SGLang, whose names differ between releases.

The releases listed in docs/engines.md are supported. For others, `InterfaceError` lists the names that were tried.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from importlib import import_module, metadata
from types import ModuleType
from typing import Any

from adapter.core.errors import AdapterError


class InterfaceError(AdapterError):
    """The installed release of an engine has an unknown interface."""


def warn_on_failure(log: logging.Logger) -> Callable[[Callable[[], None]], Callable[[], bool]]:
    """Decorate a function that registers parsers: if it fails for any reason, log one warning and return False.

    An engine calls the entry points of all installed packages in each of its processes. An exception would end even a
    process that does not use this package's parsers.
    """

    def decorate(register: Callable[[], None]) -> Callable[[], bool]:
        warned: set[str] = set()

        @wraps(register)
        def register_guarded() -> bool:
            try:
                register()
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - also SystemExit, and panics of extension modules
                text = describe_failure(error)
                if text not in warned:
                    warned.add(text)
                    log.warning("toolcall-adapter: parsers for --tool-call-parser are not available: %s", text)
                return False
            return True

        return register_guarded

    return decorate


def describe_failure(error: BaseException) -> str:
    """Return the message of an error, or only its type if it has no message or the message cannot be formatted."""
    try:
        return str(error) if isinstance(error, InterfaceError) else f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - of any type
        return type(error).__name__


@dataclass(frozen=True, slots=True)
class ModuleLocation:
    """The name of a module in the release ``since`` and later ones."""

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
"""Parameters of both parsers' streaming methods. A tool parser also gets the request."""
VLLM_REASONING_METHODS = ("extract_reasoning", "extract_reasoning_content")
"""Names of the method that parses reasoning: since vLLM 0.11.1, and before. Streaming adds ``_streaming``."""
VLLM_REASONING_FIELDS = ("reasoning", "reasoning_content")
"""Names of a streamed message's reasoning field: since vLLM 0.11.1, and before."""

SGLANG_DETECTORS = (ModuleLocation("0.5.1", "sglang.srt.function_call.base_format_detector"),)
SGLANG_CALLS = (ModuleLocation("0.5.1", "sglang.srt.function_call.core_types"),)
SGLANG_TOOL_PARSERS = (ModuleLocation("0.5.1", "sglang.srt.function_call.function_call_parser"),)
SGLANG_REASONING_PARSERS = (
    ModuleLocation("0.5.3", "sglang.srt.parser.reasoning_parser"),
    ModuleLocation("0.5.1", "sglang.srt.reasoning_parser"),
)


class VllmCompat:
    """The classes and methods of the installed vLLM that the plugin uses. Raises InterfaceError if one is missing."""

    def __init__(self) -> None:
        tools = _import_first("vllm", VLLM_TOOL_PARSERS)
        reasoning = _import_first("vllm", VLLM_REASONING_PARSERS)
        self.tool_parser = _get_member(tools, "ToolParser")
        self.tool_parsers = _get_member(tools, "ToolParserManager")
        self.reasoning_parser = _get_member(reasoning, "ReasoningParser")
        self.reasoning_parsers = _get_member(reasoning, "ReasoningParserManager")
        messages = _import_first("vllm", VLLM_MESSAGES)
        self.message = _get_member(messages, "DeltaMessage")
        self.call_delta = _get_member(messages, "DeltaToolCall")
        self.function_delta = _get_member(messages, "DeltaFunctionCall")
        self.call = _get_member(messages, "ToolCall")
        self.function = _get_member(messages, "FunctionCall")
        self.extracted = _get_member(messages, "ExtractedToolCallInformation")
        self._check()

    def _check(self) -> None:
        _check_parameters(self.tool_parser, "extract_tool_calls", ("model_output", "request"))
        _check_parameters(self.tool_parser, "extract_tool_calls_streaming", (*VLLM_STREAMING, "request"))
        _check_parameters(self.reasoning_parser, self.reasoning_method, ("model_output", "request"))
        _check_parameters(self.reasoning_parser, f"{self.reasoning_method}_streaming", VLLM_STREAMING)
        for manager in (self.tool_parsers, self.reasoning_parsers):
            _check_parameters(manager, "register_module", ("name", "force", "module"))

    @cached_property
    def reasoning_method(self) -> str:
        return _find_first_present(self.reasoning_parser, VLLM_REASONING_METHODS, dir(self.reasoning_parser))

    @cached_property
    def reasoning_field(self) -> str:
        return _find_first_present(self.message, VLLM_REASONING_FIELDS, self.message.model_fields)

    @cached_property
    def continues_in_same_delta(self) -> bool:
        """True if vLLM passes the tool parser the rest of the delta in which reasoning ends. In older releases, the
        tool parser starts with the next delta."""
        return bool(self.tool_parser.__module__ == VLLM_TOOL_PARSERS[0].module)

    @cached_property
    def ends_streams(self) -> bool:
        """True if vLLM calls ``finish_streaming`` at the end of a stream, and creates a parser for each stream."""
        return hasattr(self.tool_parser, "engine_based_streaming")

    @cached_property
    def ends_arguments(self) -> bool:
        """True if the installed release asks the parser for arguments that have not been streamed yet.

        Older releases rebuild the last message from its first call delta if that delta has arguments.
        """
        return hasattr(self.tool_parser, "get_remaining_unstreamed_args")


class SglangCompat:
    """The classes of the installed SGLang that the plugin uses. Raises InterfaceError if one is missing."""

    def __init__(self) -> None:
        calls = _import_first("sglang", SGLANG_CALLS)
        reasoning = _import_first("sglang", SGLANG_REASONING_PARSERS)
        self.detector = _get_member(_import_first("sglang", SGLANG_DETECTORS), "BaseFormatDetector")
        self.call = _get_member(calls, "ToolCallItem")
        self.result = _get_member(calls, "StreamingParseResult")
        self.tool_parser = _get_member(_import_first("sglang", SGLANG_TOOL_PARSERS), "FunctionCallParser")
        self.reasoning_detector = _get_member(reasoning, "BaseReasoningFormatDetector")
        self.reasoning_result = _get_member(reasoning, "StreamingParseResult")
        self.reasoning_parser = _get_member(reasoning, "ReasoningParser")
        _check_parameters(self.detector, "detect_and_parse", ("text", "tools"))
        _check_parameters(self.detector, "parse_streaming_increment", ("new_text", "tools"))
        _check_parameters(self.reasoning_detector, "detect_and_parse", ("text",))
        _check_parameters(self.reasoning_detector, "parse_streaming_increment", ("new_text",))
        _find_first_present(self.tool_parser, ("ToolCallParserEnum",), dir(self.tool_parser))
        _find_first_present(self.reasoning_parser, ("DetectorMap",), dir(self.reasoning_parser))


def _import_first(engine: str, locations: tuple[ModuleLocation, ...]) -> ModuleType:
    """Import the module at the first of ``locations`` that exists in the installed release."""
    for location in locations:
        try:
            return import_module(location.module)
        except ModuleNotFoundError as error:
            if error.name is None or not location.module.startswith(error.name):
                raise InterfaceError(f"{_find_release(engine)} cannot be imported: {error}. {_ADVICE}") from error
    tried = ", ".join(f"{location.module} ({location.since} and later)" for location in locations)
    raise InterfaceError(f"{_find_release(engine)} provides none of these modules: {tried}. {_ADVICE}")


def _get_member(module: ModuleType, name: str) -> Any:
    if not hasattr(module, name):
        raise InterfaceError(f"{_find_release(module.__name__)} has no {name} in {module.__name__}. {_ADVICE}")
    return getattr(module, name)


def _find_first_present(owner: Any, names: tuple[str, ...], has: Any) -> str:
    for name in names:
        if name in has:
            return name
    raise InterfaceError(
        f"{_find_release(owner.__module__)}: {owner.__name__} has none of the expected names {', '.join(names)}. "
        f"{_ADVICE}"
    )


def _check_parameters(owner: Any, method: str, expected: tuple[str, ...]) -> None:
    """Raise InterfaceError unless ``method`` has the expected parameters in this order."""
    actual = tuple(inspect.signature(getattr(owner, method, lambda: None)).parameters)
    if [name for name in actual if name in expected] != list(expected):
        raise InterfaceError(
            f"{_find_release(owner.__module__)}: {owner.__name__}.{method} takes ({', '.join(actual)}), "
            f"expected {', '.join(expected)}. {_ADVICE}"
        )


_ADVICE = "Tested releases are listed in docs/engines.md; `adapter serve` in front of the engine works with any release"


def _find_release(module: str) -> str:
    """Return the engine and its version, for error messages."""
    engine = module.partition(".")[0]
    try:
        return f"{engine} {metadata.version(engine)}"
    except metadata.PackageNotFoundError:
        return f"{engine} (unknown version)"
