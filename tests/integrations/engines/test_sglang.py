"""Our parsers in SGLang, by doubles of the interfaces of its releases; `benchmarks.bench_engines` uses real ones."""

from __future__ import annotations

import json
import logging
import runpy
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from adapter.integrations.engines import sglang
from adapter.integrations.engines.engine_interfaces import SglangCompat
from tests.integrations.engines.doubles import TemplateTokenizer, install_sglang

CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Rome"}}</tool_call>'


class _Tool:
    function = SimpleNamespace(name="get_weather")

    def model_dump_json(self) -> str:
        properties = {"city": {"type": "string"}}
        function = {"name": "get_weather", "parameters": {"type": "object", "properties": properties}}
        return json.dumps({"type": "function", "function": function})


@pytest.fixture(params=["newer", "older"])
def tells_more(request, monkeypatch):
    """An SGLang with each interface, in which our parsers are registered."""
    install_sglang(monkeypatch, tells_more=request.param == "newer")
    monkeypatch.setattr(sglang.SglangReasoningParser, "is_in_use", False)
    assert sglang.register()
    return request.param == "newer"


def _parsers(tells_more: bool, *, name: str = "adapter_hermes", is_on: bool, tokenizer: Any = None) -> tuple[Any, Any]:
    known = SglangCompat()
    given = {"tokenizer": tokenizer, "tool_call_parser_active": True} if tells_more else {}
    reasoning = known.reasoning_parser.DetectorMap[name](force_reasoning=is_on, **given)
    return known.tool_parser.ToolCallParserEnum[name](), reasoning


def _whole(tool: Any, reasoning: Any, text: str) -> tuple[str, str, list[tuple[str, str]]]:
    """Imitate SGLang: the tool parser is used only if it detects a call."""
    read = reasoning.detect_and_parse(text)
    content, calls = read.normal_text, []
    if tool.has_tool_call(content):
        result = tool.detect_and_parse(content, [_Tool()])
        content, calls = result.normal_text, [(call.name, call.parameters) for call in result.calls]
    return read.reasoning_text, str(content), calls


def _streamed(tool: Any, reasoning: Any, pieces: list[str]) -> tuple[str, str, list[tuple[str, str]]]:
    reasoned, content, calls = "", "", list[tuple[str, str]]()

    def take(result: Any) -> None:
        nonlocal content
        content += result.normal_text
        for call in result.calls:
            name, arguments = calls.pop() if call.tool_index < len(calls) else ("", "")
            calls.append((name + (call.name or ""), arguments + call.parameters))

    for piece in pieces:
        read = reasoning.parse_streaming_increment(piece)
        reasoned += read.reasoning_text
        if read.normal_text:
            take(tool.parse_streaming_increment(read.normal_text, [_Tool()]))
    read = reasoning.finish()
    reasoned += read.reasoning_text
    if read.normal_text:
        take(tool.parse_streaming_increment(read.normal_text, [_Tool()]))
    take(tool.finish([_Tool()]))
    return reasoned, content, calls


ANSWERS = {
    "a call": (["<think>", "They ask.", "</think>", "I look.", CALL], True),
    "no call": (["<think>", "They ask.", "</think>", "I look."], True),
    "reasoning is off": (["I look.", CALL], False),
    "cut in reasoning": (["<think>", "They ask."], True),
    "cut in a call": (["<think>", "They ask.", "</think>", "I look.", "<tool_call>", '{"name": "ge'], True),
}
EXPECTED = {
    "a call": ("They ask.", "I look.", [("get_weather", json.dumps({"city": "Rome"}))]),
    "no call": ("They ask.", "I look.", []),
    "reasoning is off": ("", "I look.", [("get_weather", json.dumps({"city": "Rome"}))]),
    "cut in reasoning": ("They ask.", "", []),
    "cut in a call": ("They ask.", "I look.", []),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_response_is_split_and_parsed(tells_more, name):
    """Whole and streamed come to the same."""
    pieces, is_on = ANSWERS[name]
    assert _whole(*_parsers(tells_more, is_on=is_on), "".join(pieces)) == EXPECTED[name]
    assert _streamed(*_parsers(tells_more, is_on=is_on), pieces) == EXPECTED[name]


def test_disabled_reasoning_is_not_assumed_in_always_reasoning_formats(tells_more):
    """GLM 4.7's prompt ends in ``</think>`` if reasoning is off, which only that flag indicates."""
    answer = "Checking.<tool_call>get_weather</tool_call>"
    parsers = _parsers(tells_more, name="adapter_glm47", is_on=False)
    assert _whole(*parsers, answer) == ("", "Checking.", [("get_weather", "{}")])


def test_tokenizer_determines_whether_the_prompt_opens_reasoning(monkeypatch):
    """A template that opens reasoning, and closes it at once where the request turned it off."""
    install_sglang(monkeypatch, tells_more=True)
    sglang.register()
    parsers = _parsers(True, is_on=True, tokenizer=TemplateTokenizer())
    assert _whole(*parsers, "Rome.</think>I look.") == ("Rome.", "I look.", [])
    parsers = _parsers(True, is_on=False, tokenizer=TemplateTokenizer())
    assert _whole(*parsers, "Rome.I look.") == ("", "Rome.I look.", [])


def test_reasoning_that_is_on_is_opened_by_the_model_in_gpt_oss(tells_more):
    """Its template opens no channel: an answer may begin with its last one."""
    parsers = _parsers(tells_more, name="adapter_harmony", is_on=True)
    assert _whole(*parsers, "<|channel|>final<|message|>Sunny.") == ("", "Sunny.", [])


def test_json_content_is_not_a_call(tells_more):
    """gpt-oss marks it by its channel; without the channel its text looks like a call."""
    content = '{"name": "get_weather", "arguments": {}}'
    text = f"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>{content}"
    assert _whole(*_parsers(tells_more, name="adapter_harmony", is_on=False), text) == ("Hm.", content, [])


@pytest.mark.usefixtures("tells_more")
def test_the_command_registers_before_the_server_starts(monkeypatch):
    """``python -m adapter.integrations.engines.sglang ARGS...`` registers first: SGLang validates names."""
    seen: list[Any] = []
    parser = sys.modules["sglang.srt.function_call.function_call_parser"]

    def run_module(name: str, **_: Any) -> None:
        seen.append((name, "adapter_hermes" in parser.FunctionCallParser.ToolCallParserEnum))

    parser.FunctionCallParser.ToolCallParserEnum.clear()
    monkeypatch.setattr(runpy, "run_module", run_module)
    runpy.run_path(sglang.__file__, run_name="__main__")
    assert seen == [("sglang.launch_server", True)]


def test_unknown_interface_is_logged(monkeypatch, caplog):
    """And the command ends, instead of a server that knows none of the names."""
    install_sglang(monkeypatch, tells_more=True)
    monkeypatch.delattr(sys.modules["sglang.srt.function_call.function_call_parser"], "FunctionCallParser")
    with caplog.at_level(logging.WARNING):
        assert not sglang.register()
    assert "has no FunctionCallParser" in caplog.text
