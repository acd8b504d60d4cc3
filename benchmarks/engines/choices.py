"""Check forced calls, several calls and special tokens in vLLM's own serving code, with this program's parsers.

vLLM constrains a forced call to the arguments of a named function or to a list of calls, and parses it itself. Our
parsers must leave both unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from adapter.integrations.engines.engine_interfaces import VllmCompat
from benchmarks.engines.serving_vllm import Message, Serving
from benchmarks.engines.tokenizers import markers, steps, tokenizer

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]},
        },
    }
    for name, key in (("get_weather", "city"), ("search", "query"))
]
NAMED = {"type": "function", "function": {"name": "get_weather"}}
ROME, OSLO = {"city": "Rome"}, {"query": "hotels in Oslo"}
MARKED = {"city": "</think> <tool_call> é"}
PARSER = "adapter_hermes"
Calls = list[tuple[str, Any]]


@dataclass(frozen=True, slots=True)
class Case:
    """A request, the model's output, and the expected message."""

    tool_choice: Any
    text: str
    calls: Calls
    reasoning: str = ""
    content: str = ""
    parallel: bool = True


def _listed(*calls: tuple[str, Any]) -> str:
    return json.dumps([{"name": name, "parameters": arguments} for name, arguments in calls], ensure_ascii=False)


def _tagged(*calls: tuple[str, Any]) -> str:
    return "\n".join(
        f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>" for name, arguments in calls
    )


BOTH: Calls = [("get_weather", ROME), ("search", OSLO)]
THOUGHT = "<think>\nThey ask.\n</think>\n\n"
CASES = {
    "auto, two calls": Case("auto", "I look." + _tagged(*BOTH), BOTH, content="I look."),
    "auto, reasoning and two calls": Case("auto", THOUGHT + _tagged(*BOTH), BOTH, reasoning="They ask."),
    "auto, two calls where one may be": Case("auto", _tagged(*BOTH), BOTH[:1], parallel=False),
    "required, one call": Case("required", THOUGHT + _listed(BOTH[0]), BOTH[:1], reasoning="They ask."),
    "required, two calls": Case("required", THOUGHT + _listed(*BOTH), BOTH, reasoning="They ask."),
    "required, markers in an argument": Case(
        "required", THOUGHT + _listed(("get_weather", MARKED)), [("get_weather", MARKED)], reasoning="They ask."
    ),
    "named": Case(NAMED, THOUGHT + json.dumps(ROME), BOTH[:1], reasoning="They ask."),
    "named, markers in an argument": Case(
        NAMED, THOUGHT + json.dumps(MARKED, ensure_ascii=False), [("get_weather", MARKED)], reasoning="They ask."
    ),
    "none": Case("none", THOUGHT + "I look.", [], reasoning="They ask.", content="I look."),
}


def outcomes() -> Iterator[tuple[str, str]]:
    marks = markers(())
    for kind, special in (("markers are text", False), ("markers are special tokens", True)):
        made = tokenizer(marks, generation_prompt="<|im_start|>assistant\n", name="Qwen3", special=special)
        for name, case in CASES.items():
            for stream in (False, True):
                label = f"{name}, {kind}, {'streamed' if stream else 'whole'}"
                yield label, _wrong(case, made, marks, stream=stream)
    yield "the grammar of forced calls is vLLM's", "; ".join(_grammars(made))


def _wrong(case: Case, made: Any, marks: list[str], *, stream: bool) -> str:
    try:
        message = _answered(case, made, marks, stream=stream)
        calls = [
            (call["function"]["name"], json.loads(call["function"]["arguments"]))
            for call in message.get("tool_calls") or ()
        ]
    except Exception as error:  # noqa: BLE001  # whatever vLLM's code raises is what its client would be told
        return f"{type(error).__name__}: {error}"[:200]
    got = ((message.get("reasoning") or message.get("reasoning_content") or "").strip(), message.get("content") or "")
    if calls != case.calls:
        return f"calls {calls}"[:200]
    if got[0] != case.reasoning:
        return f"reasoning {got[0]!r}"[:200]
    return "" if got[1].strip() == case.content else f"content {got[1]!r}"[:200]


def _answered(case: Case, made: Any, marks: list[str], *, stream: bool) -> Message:
    serving = Serving(PARSER, PARSER)
    request = serving.request(
        TOOLS, tool_choice=case.tool_choice, stream=stream, tokenizer=made, parallel_tool_calls=case.parallel
    )
    outputs = steps(made, marks, case.text)
    if getattr(request, "skip_special_tokens", True):  # vLLM's detokenizer leaves them out
        outputs = [("" if set(ids) <= set(made.all_special_ids) else text, ids) for text, ids in outputs]
    prompt_ids = made.encode("-\n<|im_start|>assistant\n", add_special_tokens=False)
    end = ("", [made.eos_token_id])
    message, _ = serving.answer(made, request, [*outputs, end], prompt_ids=prompt_ids, finish_reason="stop")
    return message


def _grammars(made: Any) -> Iterator[str]:
    for choice in ("auto", "required", NAMED):
        serving = Serving(PARSER, PARSER)
        ours = serving.request(TOOLS, tool_choice=choice, stream=False, tokenizer=made)
        serving.tool_cls, serving.parser_cls = VllmCompat().tool_parser, None
        base = serving.request(TOOLS, tool_choice=choice, stream=False, tokenizer=made)
        for name in ("structured_outputs", "guided_json", "guided_decoding", "response_format"):
            if getattr(ours, name, None) != getattr(base, name, None):
                yield f"{choice}: {name} {getattr(ours, name)!r}, not {getattr(base, name)!r}"
