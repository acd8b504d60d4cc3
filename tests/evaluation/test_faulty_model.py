"""The simulated model makes the requested mistakes reproducibly, and corrects them after a message."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from random import Random

import pytest
from openai import OpenAI

import adapter
from adapter.backends.endpoint_discovery import Endpoint
from adapter.core.events import JsonObject
from adapter.evaluation.scenario import ExecutedCall, ExpectedCall, perform
from adapter.evaluation.scenario_runner import AgentHarness, Harness, SdkHarness
from adapter.evaluation.suite_loader import load_built_in, select_scenarios
from adapter.parsing.formats.hermes import encode_calls
from benchmarks import guardrails
from benchmarks.faulty_model import CorrectionRates, FaultyServer, Model, model_name, parse_strictly, read_conversation
from benchmarks.mistakes import MISTAKES, NAMED, Situation

SCENARIOS = load_built_in()
(ORDER,) = select_scenarios(SCENARIOS, [], ["when a parcel comes"], easy=False)
RESULT = "<tool_response>\na\n</tool_response>"
ASKED = {"messages": ORDER.messages, "tools": list(ORDER.tools)}


def situation(calls=True, responds=False, seed=1):
    made, answer = ORDER.solution
    step = (ExpectedCall(made[1].name, made[1].arguments),) if calls else ()
    return Situation(ORDER, step, "" if calls else answer, made[:1] if calls else made, Random(seed), responds)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_every_mistake_breaks_strict_parsing(mistake):
    right = parse_strictly(situation().right())["tool_calls"][0]["function"]
    for seed in range(30):
        message = parse_strictly(MISTAKES[mistake](situation(seed=seed)))
        calls = [call["function"] for call in message.get("tool_calls") or ()]
        if mistake == "invented_result":
            assert calls == [right]
        elif mistake == "going_on":
            assert len(calls) == 2
        else:
            assert calls != [right]
            world = ORDER.world()
            assert not calls or mistake == "same_again" or not perform(ORDER, world, **calls[0]).ok
    assert mistake in NAMED


def test_faulty_model_is_deterministic():
    assert parse_strictly(Model(SCENARIOS).write({"model": "qwen3-simulated", **ASKED}))["tool_calls"]
    written = [
        [Model(SCENARIOS).write({"model": model_name(0.3, 1, number, who), **ASKED}) for number in range(300)]
        for who in ("a", "b")
    ]
    assert written[0] == written[1]
    first = encode_calls([(ORDER.solution[0][0].name, dict(ORDER.solution[0][0].arguments))])
    assert 0.22 < sum(text != first for text in written[0]) / 300 < 0.38
    only = [Model(SCENARIOS).write({"model": model_name(1, 1, n, "x", "refusal"), **ASKED}) for n in range(5)]
    assert all(re.search("sorry|cannot|unable|as an ai", text.lower()) for text in only)


@pytest.mark.parametrize(
    ("said", "share"),
    [
        ([{"role": "user", "content": "There was no tool call. Make the call."}], 0.9),
        ([{"role": "user", "content": "Hm."}], 0.5),
        ([], 0.1),
        ([{"role": "assistant", "content": "I'll use find order to find out."}], 0.1),
    ],
)
def test_faulty_model_repairs_by_feedback(said, share):
    mended = 0
    for number in range(300):
        model = Model([ORDER], CorrectionRates(0.9, 0.5, 0.1))
        name = model_name(1, 2, number, "x", "announced")
        assert "<tool_call>" not in model.write({"model": name, **ASKED})
        body = {"model": name, "tools": ASKED["tools"], "messages": [*ORDER.messages, *said]}
        mended += "<tool_call>" in model.write(body)
    assert abs(mended / 300 - share) < 0.09


def test_faulty_model_reads_every_conversation_format():
    """Native calls, and ours in text with several results in one message."""
    made = [ExecutedCall("find_order", {"number": 1}, "a"), ExecutedCall("find_order", {"number": 2}, "b")]
    calls = [
        {"id": str(n), "type": "function", "function": {"name": each.name, "arguments": json.dumps(each.arguments)}}
        for n, each in enumerate(made)
    ]
    native: list[JsonObject] = [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "1", "content": "b"},
        {"role": "tool", "tool_call_id": "0", "content": "a"},
    ]
    text: list[JsonObject] = [
        {"role": "assistant", "content": "So:\n" + encode_calls([(each.name, each.arguments) for each in made])},
        {
            "role": "user",
            "content": "<tool_response>\na\n</tool_response>\n<tool_response>\nb\n</tool_response>",
        },
    ]
    assert read_conversation(native, ORDER) == made[::-1]
    assert read_conversation(text, ORDER) == made
    for seed in range(20):
        at = situation(seed=seed)
        other = [{"role": "assistant", "content": MISTAKES["wrong_markup"](at)}, {"role": "user", "content": RESULT}]
        assert read_conversation(other, ORDER) == [ExecutedCall(at.calls[0].name, at.calls[0].arguments, "a")]


@pytest.mark.parametrize(("result", "left"), [("a", {"number": 1}), ("error: no", {"number": 1, "input": "x"})])
def test_missing_optional_argument_is_not_a_mistake(result, left):
    written = encode_calls([("find_order", {"number": 1, "input": "x"})])
    shown = f"<tool_response>\n{result}\n</tool_response>"
    said = [{"role": "assistant", "content": written}, {"role": "user", "content": shown}]
    assert read_conversation(said, ORDER) == [ExecutedCall("find_order", left, result)]


def test_every_harness_completes_with_a_perfect_model():
    """Without mistakes each is done with as many answers as it needs."""
    some = select_scenarios(
        SCENARIOS, [], ["one order", "when a parcel comes", "two cities", "seal at 64 bar"], easy=False
    )
    with FaultyServer(some) as server, OpenAI(base_url=f"{server.url}/v1", api_key="none") as client:

        def model(scenario, number):
            return model_name(0.0, 1, number, scenario.name.replace(" ", "_"))

        ways: list[Harness] = [
            SdkHarness("bare", client, model),
            SdkHarness("ours", adapter.wrap(client), model),
            AgentHarness("agent", Endpoint(f"{server.url}/v1"), model),
        ]
        for way in ways:
            for scenario in some:
                run = way.run(scenario, 0, lambda: None)
                assert run.done, (way.name, run)
                assert run.turns == guardrails.count_needed_answers(scenario)


def test_guardrail_benchmark_runs(capsys):
    some = select_scenarios(SCENARIOS, ["parallel calls"], [], easy=False)
    with FaultyServer(some) as server, ExitStack() as stack:
        bench = guardrails.Bench(server, None, stack=stack)
        settings = [guardrails.Setting(0.0), guardrails.Setting(1.0, "wrong_markup")]
        guardrails.compare(bench, ["bare", "ours agent"], settings, some, 1, None)
        guardrails.by_mistake(bench, ["bare"], guardrails.Setting(0.0), some[:1], 1, None)
    said = capsys.readouterr().out
    assert said.count(": 0 of ") == 2
    assert "100 % (51-100)" in said
    assert "100 %, bare" in said
    assert "going on" in said
