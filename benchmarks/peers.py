"""Other parsers of tool calls, each behind one function, for comparison.

The extra ``bench`` installs them, except SGLang's detectors: their package, llm-router-utils, pins a version of openai
that is too old for this project. ``pip install llm-router-utils && pip install -U 'openai>=2.32'`` installs them (with
torch), despite pip's warning. Missing parsers are skipped.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

from adapter.core.events import Json, JsonObject
from adapter.tools.tool import Tool

OPEN, CLOSE = "<tool_call>\n", "\n</tool_call>"

SGLANG_NAMES = {
    "hermes": "hermes",
    "qwen3_coder": "qwen3_coder",
    "llama3_json": "llama3",
    "glm45": "glm45",
    "glm47": "glm47",
    "kimi_k2": "kimi_k2",
    "kimi_k3": "kimi_k3",
    "deepseek_v3": "deepseekv3",
    "deepseek_v31": "deepseekv31",
    "deepseek_v32": "deepseekv32",
    "deepseek_v4": "deepseekv4",
    "deepseek_v41": "deepseekv41",
    "mistral": "mistral",
    "harmony": "gpt-oss",
    "pythonic": "pythonic",
    "gemma4": "gemma4",
    "internlm": "interns1",
    "minimax_m2": "minimax-m2",
    "step3": "step3",
    "step3p5": "step3p5",
    "hunyuan_a13b": "hunyuan",
    "lfm2": "lfm2",
}
"""Maps our names of formats to SGLang's."""

Whole = Callable[[str], object]
Stream = Callable[[Iterable[str]], object]


def find_and(loads: Callable[[str], Json], text: str) -> list[Json]:
    """Decode the payloads between Hermes' tags with `str.find` and ``loads``. With orjson, this is the lower bound."""
    found = []
    start = text.find(OPEN)
    while start >= 0:
        end = text.find(CLOSE, start)
        found.append(loads(text[start + len(OPEN) : end]))
        start = text.find(OPEN, end)
    return found


def whole_readers(tools: Sequence[Tool]) -> dict[str, Whole]:
    readers: dict[str, Whole] = {"find + json.loads": partial(find_and, json.loads)}
    for name, loads in repairers().items():
        readers[f"find + {name}"] = partial(find_and, loads)
    if (sglang := _import("llm_router_utils.sglang.srt.function_call.hermes_detector")) is not None:
        offered = _sglang_tools(tools)
        readers["SGLang's hermes detector"] = lambda text: sglang.HermesDetector().detect_and_parse(text, offered)
    if (parser := _import("agent_tool_parser")) is not None:
        readers["agent-tool-parser"] = parser.try_parse_tool_calls
    return readers


def orjson_loads() -> Callable[[str], Json]:
    """Return orjson's decoder, or the standard library's if orjson is missing."""
    orjson = _import("orjson")
    return orjson.loads if orjson is not None else json.loads


def repairers() -> dict[str, Callable[[str], Json]]:
    """Return functions that repair and decode JSON text, by name."""
    found: dict[str, Callable[[str], Json]] = {}
    if (slow := _import("json_repair")) is not None:
        found["json_repair"] = slow.loads
    if (fast := _import("fast_json_repair")) is not None:
        found["fast_json_repair"] = fast.loads
    return found


def sglang_stream(format: str, tools: Sequence[Tool]) -> Stream | None:
    """Return a function that feeds SGLang's detector for ``format``, or None if it is missing."""
    parsers = _import("llm_router_utils.sglang.srt.function_call.function_call_parser")
    if parsers is None or format not in SGLANG_NAMES:
        return None
    detector = parsers.FunctionCallParser.ToolCallParserEnum[SGLANG_NAMES[format]]
    offered = _sglang_tools(tools)

    def stream(pieces: Iterable[str]) -> None:
        state = detector()
        for piece in pieces:
            state.parse_streaming_increment(piece, offered)

    return stream


def vllm_whole(name: str) -> Callable[[str, str], object] | None:
    """Return vLLM's parser ``name`` for a whole answer and JSON tools, or None if vLLM (0.33) is not installed."""
    parsers = _import("vllm.tool_parsers")
    if parsers is None:
        return None
    protocol = importlib.import_module("vllm.entrypoints.openai.chat_completion.protocol")
    kind = parsers.ToolParserManager.get_tool_parser(name)
    tokenizer = SimpleNamespace(get_vocab=dict)  # not used by hermes' parser for a whole answer

    @cache
    def request_with(tools: str) -> Any:
        return protocol.ChatCompletionRequest(model="m", messages=[], tools=json.loads(tools) or None)

    def read(text: str, tools: str) -> object:
        request = request_with(tools)
        return kind(tokenizer, request.tools).extract_tool_calls(text, request)

    return read


def jiter_stream() -> Stream | None:
    """Return a function that decodes all text so far as partial JSON at every chunk, as many clients do."""
    jiter = _import("jiter")
    if jiter is None:
        return None

    def stream(pieces: Iterable[str]) -> None:
        text = ""
        for piece in pieces:
            text += piece
            payload = text.partition(OPEN)[2].partition(CLOSE)[0]
            if payload:
                jiter.from_json(payload.encode(), partial_mode=True)

    return stream


def _sglang_tools(tools: Sequence[Tool]) -> list[Any]:
    protocol = importlib.import_module("llm_router_utils.sglang.srt.entrypoints.openai.protocol")
    definitions: list[JsonObject] = [tool.to_openai() for tool in tools]
    return [protocol.Tool(**definition) for definition in definitions]


@cache
def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
