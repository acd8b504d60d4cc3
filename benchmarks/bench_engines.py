"""Our parsers inside the vLLM that is installed, beside its own, in its own chat serving code.

python -m benchmarks.bench_engines suite    canitoolcall's outputs, whole and streamed: right of all
python -m benchmarks.bench_engines speed    microseconds a delta and a whole call, by the size of the call

In an environment with a release of vLLM, canitoolcall and CPU torch (``--no-deps`` and a path to the unpacked wheel
will do); vLLM's compiled parts are not needed. An output for which a release has no parser counts as wrong.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections import Counter
from importlib import metadata
from typing import Any

from canitoolcall.adapters.vllm import resolve_parsers
from canitoolcall.fixtures import Fixture, load_fixtures
from canitoolcall.pytest_plugin import assert_conforms
from canitoolcall.results import ParsedToolCall, ParseResult

from adapter.engines import vllm
from adapter.formats import guess
from benchmarks.engines.serving_vllm import Message, Serving, sources
from benchmarks.engines.tokenizers import markers, steps, tokenizer

TOLD = {"qwen3-hermes": "hermes", "qwen3-xml": "qwen3_coder"}
SIZES = (1_000, 10_000, 100_000)
TOOL = {"type": "function", "function": {"name": "write", "parameters": {"properties": {"text": {"type": "string"}}}}}


def pair_of(fixture: Fixture, whose: str) -> tuple[str, str | None]:
    """The names of the tool parser and the reasoning parser for a fixture."""
    if whose == "ours":
        name = f"adapter_{TOLD.get(fixture.family) or guess(fixture.models[0])}"
        return name, name
    rule = resolve_parsers(fixture.family, fixture.models[0])
    assert rule is not None
    assert rule.choice is not None
    return rule.choice.tool_parser, rule.choice.reasoning_parser


def suite(whose: str) -> dict[str, Counter[str]]:
    """The outcomes of all fixtures, ``whole`` and ``streamed``."""
    marks = markers(sources())
    made: dict[tuple[str, str | None], Any] = {}
    found = {"whole": Counter[str](), "streamed": Counter[str]()}
    for fixture in load_fixtures():
        key = (fixture.models[0], fixture.generation_prompt)
        if key not in made:
            made[key] = tokenizer(marks, generation_prompt=fixture.generation_prompt, name=fixture.models[0])
        for way, counts in found.items():
            try:
                message = _answered(fixture, whose, made[key], marks, stream=way == "streamed")
            except Exception as error:  # noqa: BLE001  # whatever vLLM's code raises is what its client would be told
                counts[f"error {type(error).__name__}"] += 1
            else:
                counts["right" if _is_right(fixture, message) else "wrong"] += 1
    return found


def _answered(fixture: Fixture, whose: str, made: Any, marks: list[str], *, stream: bool) -> Message:
    serving = Serving(*pair_of(fixture, whose))  # anew: 0.20 keeps the last pair that was asked for in one class
    request = serving.request(fixture.tools, stream=stream, tokenizer=made)
    is_cut = "truncated" in fixture.tags
    outputs = steps(made, marks, fixture.raw_output) + ([] if is_cut else [("", [made.eos_token_id])])
    prompt = fixture.generation_prompt
    prompt_ids = [] if prompt is None else made.encode(f"-\n{prompt}", add_special_tokens=False)
    message, _ = serving.answer(
        made, request, outputs or [("", [])], prompt_ids=prompt_ids, finish_reason="length" if is_cut else "stop"
    )
    return message


def _is_right(fixture: Fixture, message: Message) -> bool:
    calls = tuple(
        ParsedToolCall(call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls") or ()
    )
    reasoning = message.get("reasoning") or message.get("reasoning_content") or None
    try:
        assert_conforms(fixture, ParseResult(message.get("content") or None, reasoning, calls))
    except AssertionError:
        return False
    return True


def speed(name: str, size: int) -> tuple[float, float]:
    """Microseconds a delta, and of a whole call with a string of ``size`` characters, of the tool parser ``name``."""
    marks = markers(())
    made = tokenizer(marks, generation_prompt=None, name="Qwen3")
    serving = Serving(name, None)
    request = serving.request([TOOL], stream=True, tokenizer=made)
    words = "word " * (size // 5)
    text = f'<tool_call>\n{{"name": "write", "arguments": {json.dumps({"text": words})}}}\n</tool_call>'
    outputs = steps(made, marks, text)
    parser = serving.new_tool_parser(made, request)
    before, ids = "", list[int]()
    spent = 0.0
    for piece, tokens in outputs:
        now, all_ids = before + piece, ids + tokens
        start = time.perf_counter()
        parser.extract_tool_calls_streaming(before, now, piece, ids, all_ids, tokens, request)
        spent += time.perf_counter() - start
        before, ids = now, all_ids
    start = time.perf_counter()
    serving.new_tool_parser(made, request).extract_tool_calls(text, request)
    return spent / len(outputs) * 1e6, (time.perf_counter() - start) * 1e6


def main() -> None:
    logging.disable(logging.WARNING)
    vllm.register()
    print("vLLM", metadata.version("vllm"))
    if "speed" in sys.argv[1:]:
        print("| characters | ours, a delta | vLLM's, a delta | ours, whole | vLLM's, whole |\n|--:|--:|--:|--:|--:|")
        for size in SIZES:
            (delta, whole), (own_delta, own_whole) = speed("adapter_hermes", size), speed("hermes", size)
            print(f"| {size} | {delta:.0f} | {own_delta:.0f} | {whole:.0f} | {own_whole:.0f} |", flush=True)
        return
    for whose in ("ours", "vLLM's"):
        for way, counts in suite(whose).items():
            print(f"{whose}, {way}: {counts['right']} of {counts.total()}  {dict(counts)}", flush=True)


if __name__ == "__main__":
    main()
