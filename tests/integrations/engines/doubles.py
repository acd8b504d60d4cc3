"""The engines' interfaces, as small as a parser needs them, written here after the releases in docs/engines.md."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, ClassVar

from pydantic import BaseModel

NEWEST = {
    "tools": "vllm.tool_parsers.abstract_tool_parser",
    "messages": "vllm.entrypoints.generate.base.protocol",
    "method": "extract_reasoning",
    "field": "reasoning",
    "ends": True,
}
MIDDLE = NEWEST | {"messages": "vllm.entrypoints.openai.engine.protocol", "ends": False}
OLDEST = {
    "tools": "vllm.entrypoints.openai.tool_parsers.abstract_tool_parser",
    "messages": "vllm.entrypoints.openai.protocol",
    "method": "extract_reasoning_content",
    "field": "reasoning_content",
    "ends": False,
}


def install_vllm(patch: Any, release: dict[str, Any]) -> None:
    """Put a vLLM with the interface ``release`` where imports find it, for one test."""
    registered: dict[str, dict[str, type]] = {"ToolParserManager": {}, "ReasoningParserManager": {}}

    def manager(name: str) -> type:
        class Manager:
            parsers = registered[name]

            @classmethod
            def register_module(cls, name: Any = None, force: bool = True, module: Any = None) -> None:
                cls.parsers[name] = module

        return Manager

    class ToolParser:
        def __init__(self, tokenizer: Any, tools: Any = None) -> None:
            self.model_tokenizer = tokenizer
            self.prev_tool_call_arr: list[Any] = []
            self.streamed_args_for_tool: list[str] = []

        def adjust_request(self, request: Any) -> Any:
            return request

        def extract_tool_calls(self, model_output: str, request: Any) -> Any: ...

        def extract_tool_calls_streaming(
            self,
            previous_text: str,
            current_text: str,
            delta_text: str,
            previous_token_ids: Any,
            current_token_ids: Any,
            delta_token_ids: Any,
            request: Any,
        ) -> Any: ...

    class ReasoningParser:
        def __init__(self, tokenizer: Any, *args: Any, **options: Any) -> None:
            self.model_tokenizer = tokenizer

    def whole(self: Any, model_output: str, request: Any) -> Any: ...

    def streaming(
        self: Any,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Any,
        current_token_ids: Any,
        delta_token_ids: Any,
    ) -> Any: ...

    setattr(ReasoningParser, release["method"], whole)
    setattr(ReasoningParser, f"{release['method']}_streaming", streaming)
    if release["ends"]:
        setattr(ToolParser, "engine_based_streaming", False)  # noqa: B010  # vLLM's class has it, mypy's has not
        setattr(ToolParser, "get_remaining_unstreamed_args", lambda self: "")  # noqa: B010

    class Function(BaseModel):
        name: str | None = None
        arguments: str | None = None

    class Call(BaseModel):
        index: int = 0
        id: str | None = None
        type: str | None = None
        function: Function | None = None

    class Message(BaseModel):
        content: str | None = None
        tool_calls: list[Call] = []

    field: Any = {"__annotations__": {release["field"]: "str | None"}, release["field"]: None, "__module__": __name__}
    delta = type("DeltaMessage", (Message,), field)

    class Extracted(BaseModel):
        tools_called: bool
        tool_calls: list[Call]
        content: str | None = None

    modules: dict[str, dict[str, Any]] = {
        release["tools"]: {"ToolParser": ToolParser, "ToolParserManager": manager("ToolParserManager")},
        "vllm.reasoning.abs_reasoning_parsers": {
            "ReasoningParser": ReasoningParser,
            "ReasoningParserManager": manager("ReasoningParserManager"),
        },
        release["messages"]: {
            "DeltaMessage": delta,
            "DeltaToolCall": Call,
            "DeltaFunctionCall": Function,
            "ToolCall": Call,
            "FunctionCall": Function,
            "ExtractedToolCallInformation": Extracted,
        },
    }
    _install(patch, modules)


def install_sglang(patch: Any, *, tells_more: bool) -> None:
    """Put an SGLang where imports find it. ``tells_more``: it is one that gives parsers what newer ones do: the
    tokenizer, whether a tool parser reads on, and the end of a stream."""

    class ToolCallItem(BaseModel):
        tool_index: int
        name: str | None = None
        parameters: str = ""

    class StreamingParseResult(BaseModel):
        normal_text: str = ""
        calls: list[ToolCallItem] = []

    class BaseFormatDetector:
        def __init__(self) -> None:
            self.prev_tool_call_arr: list[dict[str, Any]] = []
            self.streamed_args_for_tool: list[str] = []
            self.current_tool_id = -1

        def detect_and_parse(self, text: str, tools: list[Any]) -> Any: ...

        def parse_streaming_increment(self, new_text: str, tools: list[Any]) -> Any: ...

    class FunctionCallParser:
        ToolCallParserEnum: ClassVar[dict[str, type]] = {}

    class ReasoningResult:
        def __init__(self, normal_text: str | None = None, reasoning_text: str | None = None) -> None:
            self.normal_text, self.reasoning_text = normal_text or "", reasoning_text or ""

    class BaseReasoningFormatDetector:
        reasoning_default: str | None = "always"

        def __init__(
            self, think_start_token: str, think_end_token: str, force_reasoning: bool, stream_reasoning: bool
        ) -> None: ...

        def detect_and_parse(self, text: str) -> Any: ...

        def parse_streaming_increment(self, new_text: str) -> Any: ...

    if tells_more:

        def telling(
            self: Any,
            think_start_token: str,
            think_end_token: str,
            force_reasoning: bool,
            stream_reasoning: bool,
            reasoning_default: str | None = "always",
        ) -> None:
            self.reasoning_default = reasoning_default

        setattr(BaseReasoningFormatDetector, "__init__", telling)  # noqa: B010

    class ReasoningParser:
        DetectorMap: ClassVar[dict[str, type]] = {}

    _install(
        patch,
        {
            "sglang.srt.function_call.base_format_detector": {"BaseFormatDetector": BaseFormatDetector},
            "sglang.srt.function_call.core_types": {
                "ToolCallItem": ToolCallItem,
                "StreamingParseResult": StreamingParseResult,
            },
            "sglang.srt.function_call.function_call_parser": {"FunctionCallParser": FunctionCallParser},
            "sglang.srt.parser.reasoning_parser": {
                "BaseReasoningFormatDetector": BaseReasoningFormatDetector,
                "StreamingParseResult": ReasoningResult,
                "ReasoningParser": ReasoningParser,
            },
        },
    )


def _install(patch: Any, modules: dict[str, dict[str, Any]]) -> None:
    for path in list(modules):
        parts = path.split(".")
        for end in range(1, len(parts)):
            modules.setdefault(".".join(parts[:end]), {})
    for path, names in modules.items():
        module = ModuleType(path)
        module.__path__ = []
        for name, value in names.items():
            if isinstance(value, type):
                value.__module__ = path
            setattr(module, name, value)
        patch.setitem(sys.modules, path, module)


class Tokenizer:
    """A character a token, but for the markers: each is one."""

    MARKS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_end|>")
    chat_template: str | None = None
    name_or_path = "Qwen3"
    all_special_ids = (len(MARKS),)

    def get_vocab(self) -> dict[str, int]:
        return {mark: at + 1 for at, mark in enumerate(self.MARKS)}

    def decode(self, token_ids: Any, *, skip_special_tokens: bool) -> str:
        return "".join(self.MARKS[at - 1] if at <= len(self.MARKS) else chr(at) for at in token_ids)

    def encode(self, text: str) -> list[int]:
        return [self.get_vocab()[text]] if text in self.MARKS else [ord(letter) for letter in text]


class TemplateTokenizer(Tokenizer):
    """One whose chat template opens reasoning, or closes it where it is turned off."""

    chat_template = "{{ messages }}"

    def apply_chat_template(self, messages: Any, **arguments: Any) -> str:
        opened = "<think>\n" if arguments.get("enable_thinking", True) else "<think></think>"
        return "-" + (f"<|im_start|>assistant\n{opened}" if arguments["add_generation_prompt"] else "")
