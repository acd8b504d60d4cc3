"""Our parsers in vLLM, by doubles of the interfaces of its releases; `benchmarks.bench_engines` uses real ones."""

from __future__ import annotations

import importlib.util
import json
import logging
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from adapter.integrations.engines import engine_interfaces, vllm
from adapter.integrations.engines.engine_interfaces import InterfaceError, VllmCompat
from tests.integrations.engines.doubles import MIDDLE, NEWEST, OLDEST, Tokenizer, install_vllm

RELEASES = {"newest": NEWEST, "middle": MIDDLE, "oldest": OLDEST}
CALL = '{"name": "get_weather", "arguments": {"city": "Rome"}}'
PIECES = ["<think>", "Rome, ", "they say", "</think>", "I look.", "<tool_call>", CALL, "</tool_call>"]
TEXT = "".join(PIECES)


class _Tool:
    def model_dump_json(self) -> str:
        properties = {"city": {"type": "string"}}
        function = {"name": "get_weather", "parameters": {"type": "object", "properties": properties}}
        return json.dumps({"type": "function", "function": function})


@pytest.fixture(params=RELEASES)
def release(request, monkeypatch):
    """A vLLM with each interface, in which our parsers are registered."""
    install_vllm(monkeypatch, RELEASES[request.param])
    monkeypatch.setattr(vllm.VllmReasoningParser, "is_in_use", False)
    vllm.register()
    return VllmCompat()


def _request() -> Any:
    return SimpleNamespace(tools=[_Tool()], tool_choice="auto", skip_special_tokens=True, chat_template_kwargs=None)


def _parsers(release: VllmCompat, name: str = "adapter_hermes") -> tuple[Any, Any]:
    tokenizer = Tokenizer()
    return release.tool_parsers.parsers[name](tokenizer), release.reasoning_parsers.parsers[name](tokenizer)


def test_every_format_is_registered(release):
    """By its name, and ``adapter`` for auto-detection."""
    assert {"adapter", "adapter_hermes", "adapter_glm45"} <= set(release.tool_parsers.parsers)
    assert set(release.reasoning_parsers.parsers) == set(release.tool_parsers.parsers)


def test_complete_response_is_split_and_parsed(release):
    """Reasoning first, then the rest."""
    tool, reasoning = _parsers(release)
    request = tool.adjust_request(_request())
    assert request.skip_special_tokens is False
    reasoned, rest = getattr(reasoning, release.reasoning_method)(TEXT, request)
    found = tool.extract_tool_calls(rest, request)
    assert (reasoned, found.content, found.tools_called) == ("Rome, they say", "I look.", True)
    assert [(call.function.name, json.loads(call.function.arguments)) for call in found.tool_calls] == [
        ("get_weather", {"city": "Rome"})
    ]
    plain = str(rest)  # a release that copies the text on its way
    assert tool.extract_tool_calls(plain, request).content == "I look."


def test_without_our_reasoning_parser_reasoning_is_content(release):
    """As it was written: nothing is lost."""
    (tool,) = (release.tool_parsers.parsers["adapter_hermes"](Tokenizer()),)
    found = tool.extract_tool_calls(TEXT, _request())
    assert found.content == "<think>Rome, they say</think>I look."
    assert len(found.tool_calls) == 1


def _streamed(release: VllmCompat, pieces: list[str]) -> tuple[str, str, list[tuple[str, str]]]:
    """Return reasoning, content and calls of a stream as in vLLM: its deltas go to the reasoning parser until reasoning
    ends, the rest to the tool parser, with the same delta or (0.10 to 0.12) the next one."""
    tool, reasoning = _parsers(release)
    request, tokenizer = _request(), Tokenizer()
    streaming = getattr(reasoning, f"{release.reasoning_method}_streaming")
    reasoned = content = previous = rest = ""
    calls: list[tuple[str, str]] = []

    def take(message: Any) -> None:
        nonlocal reasoned, content
        reasoned += getattr(message, release.reasoning_field, None) or ""
        content += getattr(message, "content", None) or ""
        for call in message.tool_calls if message else ():
            name, arguments = calls.pop() if call.index < len(calls) else ("", "")
            calls.append((name + (call.function.name or ""), arguments + (call.function.arguments or "")))

    is_over = False
    for piece in [*pieces, "<|im_end|>"]:
        ids = tokenizer.encode(piece)
        text = "" if piece == "<|im_end|>" else piece  # the token that ends an answer is not in its text
        reasoned_now = None
        if not is_over:
            message = streaming(previous, previous + text, text, [], ids, ids)
            previous += text
            is_over = reasoning.is_reasoning_end(ids)
            if not is_over:
                take(message)
                continue
            previous, text, message.content = "", message.content or "", None
            reasoned_now = message if release.ends_streams else None
            if not release.continues_in_same_delta:
                rest, previous = text, ""
                take(message)
                continue
        text, rest = rest + text if rest else text, ""
        made = tool.extract_tool_calls_streaming(previous, previous + text, text, [], ids, ids, request)
        previous += text
        if reasoned_now is not None and not getattr(made, release.reasoning_field, None):
            take(reasoned_now)
        take(made)
    if release.ends_streams and is_over:
        take(tool.finish_streaming())
    return reasoned, content, calls


def _look_up(city: str) -> list[tuple[str, str]]:
    return [("get_weather", json.dumps({"city": city}))]


def test_stream_is_passed_from_reasoning_to_tool_parser(release):
    """Nothing is lost on the way, and nothing comes twice."""
    assert _streamed(release, PIECES) == ("Rome, they say", "I look.", _look_up("Rome"))


def test_reasoning_in_its_final_delta_is_not_lost(release):
    """vLLM 0.13 to 0.20 forget that piece's message where the tool parser reads on."""
    assert _streamed(release, ["<think>", "Rome</think>I look.", TEXT.partition("I look.")[2]]) == (
        "Rome",
        "I look.",
        _look_up("Rome"),
    )


def test_reasoning_that_is_known_when_it_ends_is_not_lost(release):
    """A marker in it is buffered until the end; the last delta has nothing else."""
    pieces = ["<think>", "Rome ", "<tool_call>", " is a marker.", "</think>", "\n\n", "I look."]
    assert _streamed(release, pieces) == ("Rome <tool_call> is a marker.", "I look.", [])


def test_call_in_unclosed_reasoning_is_emitted(release):
    """It is known at the answer's end; releases that read on with the next piece have none, and it stays as written."""
    call = f"<tool_call>{CALL}</tool_call>"
    expected = ("Rome.", "", _look_up("Rome")) if release.continues_in_same_delta else ("Rome.", call, [])
    assert _streamed(release, ["<think>", "Rome.", call]) == expected


def test_missed_delta_is_taken_from_the_previous_text(release):
    """And an instance that is given another stream begins anew."""
    (tool,) = (release.tool_parsers.parsers["adapter_hermes"](Tokenizer()),)
    request = _request()
    tool.extract_tool_calls_streaming("", "I look.", "I look.", [], [], [], request)
    before = f"I look.<tool_call>{CALL}"
    message = tool.extract_tool_calls_streaming(before, "", "</tool_call>", [], [], [], request)
    assert message.tool_calls[0].function.name == "get_weather"


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_weather"}}])
def test_forced_call_text_stays_verbatim(release, choice):
    """vLLM holds the model to JSON then, and reads that itself: markers in it are only text."""
    _, reasoning = _parsers(release)
    request = _request()
    request.tool_choice = choice
    written = '{"city": "</think> <tool_call>Rome"}'
    whole = getattr(reasoning, release.reasoning_method)(f"<think>Rome.</think>\n\n{written}", request)
    assert whole == ("Rome.", written)
    _, reasoning = _parsers(release)
    streaming = getattr(reasoning, f"{release.reasoning_method}_streaming")
    rest = ""
    for piece in ("<think>", "Rome.", f"</think>\n\n{written}"):
        message = streaming(rest, rest + piece, piece, [], [1], Tokenizer().encode(piece))
        rest += piece
    assert reasoning.is_reasoning_end(Tokenizer().encode(piece))
    assert message.content == written


def test_marker_missing_from_the_text_does_not_end_the_response(release):
    """For a request that skips special tokens; the text after it is parsed."""
    _, reasoning = _parsers(release)
    reasoning.model_tokenizer.all_special_ids = tuple(range(1, len(Tokenizer.MARKS) + 1))
    streaming = getattr(reasoning, f"{release.reasoning_method}_streaming")
    told = [streaming("", "", "", [], [], Tokenizer().encode("<think>"))]
    told.append(streaming("", "I look.", "I look.", [], [], Tokenizer().encode("I look.")))
    assert "".join(message.content or "" for message in told if message) == "I look."


def test_text_after_an_apparent_end_is_content(release):
    """An answer may continue after a token that ends others."""
    (tool,) = (release.tool_parsers.parsers["adapter_hermes"](Tokenizer()),)
    request, end = _request(), Tokenizer().encode("<|im_end|>")
    tool.extract_tool_calls_streaming("", "", "", [], [], end, request)
    assert tool.extract_tool_calls_streaming("", "More.", "More.", [], [], [77], request).content == "More."


def test_special_tokens_are_skipped_without_tools(release):
    """With ``tool_choice: "none"`` the text goes to the client as it is."""
    tool, _ = _parsers(release)
    request = _request()
    request.tool_choice = "none"
    assert tool.adjust_request(request).skip_special_tokens is True


def test_reasoning_end_is_detected_by_tokens(release):
    """The engine asks with the tokens of a prompt, and of an answer so far."""
    _, reasoning = _parsers(release)
    tokens = Tokenizer().get_vocab()
    opened, closed = tokens["<think>"], tokens["</think>"]
    assert not reasoning.is_reasoning_end([opened, 65])
    assert reasoning.is_reasoning_end([opened, 65, closed, 66])
    assert reasoning.extract_content_ids([opened, 65, closed, 66]) == [66]
    assert reasoning.is_reasoning_end_streaming([opened, 65, closed], [closed])


def test_unknown_interface_is_logged_without_failing(monkeypatch, caplog):
    """The message lists the alternatives tried, and the next step."""
    install_vllm(monkeypatch, NEWEST | {"tools": "vllm.somewhere.else"})
    with caplog.at_level(logging.WARNING):
        vllm.register()
    (record,) = caplog.records
    assert engine_interfaces.VLLM_TOOL_PARSERS[0].module in record.message
    assert "adapter serve" in record.message


def test_changed_signature_is_an_interface_error(monkeypatch):
    """It is an error that names both."""
    install_vllm(monkeypatch, NEWEST)
    parser = sys.modules[str(NEWEST["tools"])].ToolParser
    monkeypatch.setattr(parser, "extract_tool_calls", lambda self, output, context: None)
    with pytest.raises(InterfaceError, match=r"takes \(self, output, context\), expected model_output, request"):
        VllmCompat()


def test_engine_is_not_imported_early(tmp_path):
    """Importing our modules imports neither vLLM nor SGLang."""
    code = (
        "import sys, adapter.integrations.engines.vllm, adapter.integrations.engines.sglang; "
        "print([name for name in sys.modules if name in ('vllm', 'sglang', 'torch')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed here")
def test_the_real_vllm_has_a_known_interface():
    """If it is installed, every check passes."""
    assert VllmCompat().tool_parser.__name__ == "ToolParser"
