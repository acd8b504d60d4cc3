"""Run this program's parsers and the engine's own inside the installed vLLM or SGLang.

    python -m benchmarks.bench_engines suite      canitoolcall's outputs, whole and streamed
    python -m benchmarks.bench_engines choices    forced calls, parallel calls, special tokens (vLLM)
    python -m benchmarks.bench_engines speed      microseconds per delta and per call, by the size of the call (vLLM)

``--write`` writes the results to benchmarks/engines.json, from which ``python -m tests.generate`` makes the tables of
docs/performance.md. ``--ours`` skips the engine's own parsers.

The environment needs a release of the engine, canitoolcall and CPU torch (``--no-deps`` and a path to the unpacked
wheel are enough), but not the engine's compiled parts. An output for which a release has no parser counts as wrong.
"""

from __future__ import annotations

import json
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from canitoolcall.fixtures import Fixture, load_fixtures
from canitoolcall.pytest_plugin import assert_conforms
from canitoolcall.results import ParsedToolCall, ParseResult

from adapter.integrations.engines import sglang, vllm
from adapter.parsing.formats import FORMATS, guess_format
from adapter.parsing.marker_tables import map_reasoning_markers
from benchmarks.engines.tokenizers import markers, steps, tokenizer

FOUND = Path(__file__).parent / "engines.json"
ENGINE = "vllm" if find_spec("vllm") else "sglang"
TOLD = {"qwen3-hermes": "hermes", "qwen3-xml": "qwen3_coder"}
OUTCOMES = ("right", "right but for blanks", "wrong")
Outcomes = dict[str, Counter[str]]


def pair_of(fixture: Fixture, whose: str) -> tuple[str, str | None]:
    """Return the names of a fixture's tool parser and reasoning parser. Raises LookupError if there are none."""
    if whose == "ours":
        name = f"adapter_{TOLD.get(fixture.family) or guess_format(fixture.models[0])}"
        return name, name
    resolve = import_module(f"canitoolcall.adapters.{ENGINE}").resolve_parsers
    rule = resolve(fixture.family, fixture.models[0])
    choice = getattr(rule, "choice", None) or rule
    tool_parser = getattr(choice, "tool_parser", None) or getattr(choice, "tool_call_parser", None)
    if tool_parser is None:
        raise LookupError(fixture.family)
    return tool_parser, choice.reasoning_parser


def suite(whose: str) -> Outcomes:
    answered = _answered_by_vllm if ENGINE == "vllm" else _answered_by_sglang
    marks = markers(_sources())
    made: dict[tuple[str, str | None], Any] = {}
    found = {"whole": Counter[str](), "streamed": Counter[str]()}
    for fixture in load_fixtures():
        key = (fixture.models[0], fixture.generation_prompt)
        if key not in made:
            made[key] = tokenizer(marks, generation_prompt=fixture.generation_prompt, name=fixture.models[0])
        for way, counts in found.items():
            outcome, got = "wrong", None
            try:
                got = answered(fixture, whose, made[key], marks, stream=way == "streamed")
                outcome = _outcome(fixture, got)
            except Exception as error:  # noqa: BLE001  # whatever the engine raises is what its client would be told
                got = error
            counts[outcome] += 1
            if outcome != "right" and "-v" in sys.argv:
                print(f"{whose}, {way}: {fixture.id} {outcome}: {got!r}")
    return found


def _answered_by_vllm(fixture: Fixture, whose: str, made: Any, marks: list[str], *, stream: bool) -> Any:
    from benchmarks.engines.serving_vllm import Serving

    serving = Serving(*pair_of(fixture, whose))  # new each time: vLLM 0.20 keeps the last requested pair in a class
    request = serving.request(fixture.tools, stream=stream, tokenizer=made)
    outputs = steps(made, marks, fixture.raw_output) + ([] if fixture.truncated else [("", [made.eos_token_id])])
    prompt = fixture.generation_prompt
    prompt_ids = [] if prompt is None else made.encode(f"-\n{prompt}", add_special_tokens=False)
    finish_reason = "length" if fixture.truncated else "stop"
    message, _ = serving.answer(
        made, request, outputs or [("", [])], prompt_ids=prompt_ids, finish_reason=finish_reason
    )
    return message


def _answered_by_sglang(fixture: Fixture, whose: str, made: Any, marks: list[str], *, stream: bool) -> Any:
    from benchmarks.engines.serving_sglang import Serving

    return Serving(*pair_of(fixture, whose)).answer(
        made,
        fixture.tools,
        [text for text, _ in steps(made, marks, fixture.raw_output)] or [""],
        stream=stream,
        is_on=_reasons(fixture),
        ends=not fixture.truncated,
    )


def _reasons(fixture: Fixture) -> bool:
    prompt = fixture.generation_prompt
    if prompt is None:
        return "reasoning" in fixture.tags
    return any(prompt.rfind(mark) > prompt.rfind(end) for mark, end in map_reasoning_markers(FORMATS.all).items())


def _outcome(fixture: Fixture, message: Any) -> str:
    calls = tuple(
        ParsedToolCall(call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls") or ()
    )
    reasoning = message.get("reasoning") or message.get("reasoning_content") or None
    result = ParseResult(message.get("content") or None, reasoning, calls)
    for outcome, soft in (("right", False), ("right but for blanks", True)):
        try:
            assert_conforms(fixture, result, soft=soft)
        except AssertionError:
            continue
        return outcome
    return "wrong"


def _sources() -> list[Path]:
    root = Path(str(import_module(ENGINE).__file__)).parent
    vllms = ("tool_parsers", "entrypoints/openai/tool_parsers", "reasoning", "parser")
    folders = vllms if ENGINE == "vllm" else ("srt/function_call", "srt/parser")
    return [path for folder in folders for path in sorted((root / folder).rglob("*.py"))]


def of_suite() -> Iterator[tuple[str, Any]]:
    for whose in ("ours",) if "--ours" in sys.argv else ("ours", "its own"):
        yield whose, {way: [counts[each] for each in OUTCOMES] for way, counts in suite(whose).items()}


def of_choices() -> Iterator[tuple[str, Any]]:
    from benchmarks.engines.choices import outcomes

    yield from outcomes()


def of_speed() -> Iterator[tuple[str, Any]]:
    from benchmarks.engines.speed import SIZES, of_parser

    for size in SIZES:
        for whose, name in (("ours", "adapter_hermes"), ("its own", "hermes")):
            yield f"{whose}, {size}", of_parser(name, size)


PARTS: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {
    "suite": of_suite,
    "choices": of_choices,
    "speed": of_speed,
}


def main() -> None:
    logging.disable(logging.CRITICAL)
    (vllm if ENGINE == "vllm" else sglang).register()
    release = f"{ENGINE} {metadata.version(ENGINE)}"
    print(release)
    for part in [name for name in PARTS if name in sys.argv[1:]]:
        for name, found in PARTS[part]():
            print(f"{name}: {found}", flush=True)
            if "--write" in sys.argv:
                _keep(part, release, name, found)


def _keep(part: str, release: str, name: str, found: Any) -> None:
    kept = json.loads(FOUND.read_text(encoding="utf-8")) if FOUND.exists() else {}
    kept.setdefault(part, {}).setdefault(release, {})[name] = found
    FOUND.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
