"""Measure how long a vLLM tool parser for the ``hermes`` format takes, by the size of the call."""

from __future__ import annotations

import json
import statistics
import time

from benchmarks.engines.serving_vllm import Serving
from benchmarks.engines.tokenizers import markers, steps, tokenizer

SIZES = (1_000, 10_000, 100_000)
TIMES = 15
TOOL = {"type": "function", "function": {"name": "write", "parameters": {"properties": {"text": {"type": "string"}}}}}


def of_parser(name: str, size: int) -> tuple[float, float, float]:
    marks = markers(())
    made = tokenizer(marks, generation_prompt=None, name="Qwen3")
    serving = Serving(name, None)
    request = serving.request([TOOL], stream=True, tokenizer=made)
    words = "word " * (size // 5)
    text = f'<tool_call>\n{{"name": "write", "arguments": {json.dumps({"text": words})}}}\n</tool_call>'
    outputs = steps(made, marks, text)
    deltas, firsts, wholes = [], [], []
    for _ in range(max(2, min(TIMES, 200_000 // size))):
        parser = serving.new_tool_parser(made, request)
        before, ids = "", list[int]()
        spent = []
        for piece, tokens in outputs:
            now, all_ids = before + piece, ids + tokens
            start = time.perf_counter()
            parser.extract_tool_calls_streaming(before, now, piece, ids, all_ids, tokens, request)
            spent.append(time.perf_counter() - start)
            before, ids = now, all_ids
        deltas.append(sum(spent[1:]) / len(spent[1:]))
        firsts.append(spent[0])
    for _ in range(TIMES):
        start = time.perf_counter()
        serving.new_tool_parser(made, request).extract_tool_calls(text, request)
        wholes.append(time.perf_counter() - start)
    delta, first, whole = (round(statistics.median(each) * 1e6, 1) for each in (deltas, firsts, wholes))
    return delta, first, whole
