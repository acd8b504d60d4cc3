"""Each built-in scenario is passed by its oracle, and by nothing that only looks like it."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from adapter.core.errors import UsageError
from adapter.evaluation.scenario import (
    KINDS,
    ExecutedCall,
    ExpectedCall,
    NextStep,
    find_next_step,
    missing_fact,
    perform,
)
from adapter.evaluation.suite_loader import load_built_in, load_suite, select_scenarios
from adapter.evaluation.toml_scenarios import parse_scenarios

SCENARIOS = load_built_in()
STEPS = [each for each in SCENARIOS if each.solution[0]]


def name_of(scenario):
    return scenario.name


def played(scenario, spoil=None, until=99):
    """Follow the oracle for ``until`` calls in a new world. ``spoil(number, call)``: another call in its place."""
    world, made = scenario.world(), list[ExecutedCall]()
    for _ in range(30):
        step = find_next_step(scenario, made)
        if isinstance(step, str) or len(made) >= until:
            break
        for call in step.calls:
            other = spoil(len(made), call) if spoil else None
            if other is not None:
                perform(scenario, world, other.name, other.arguments)
            made.append(perform(scenario, world, call.name, call.arguments))
    return world, made


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_oracle_solves_its_scenario(scenario):
    world, made = played(scenario)
    answer = scenario.solution[1]
    assert scenario.check(world, made, answer) == ""
    assert made == list(scenario.solution[0])
    assert len(made) <= 10
    assert set(scenario.required_tools) <= {one.name for one in made}


@pytest.mark.parametrize("scenario", STEPS, ids=name_of)
def test_check_requires_the_calls(scenario):
    for until in range(len(scenario.solution[0])):
        world, made = played(scenario, until=until)
        if len(made) < len(scenario.solution[0]):
            assert scenario.check(world, made, scenario.solution[1]) != "", until
    world, made = played(scenario)
    assert scenario.check(world, made, "Done, everything is as you asked.") != ""
    assert scenario.check(world, made, "") != ""


@pytest.mark.parametrize("scenario", STEPS, ids=name_of)
def test_task_does_not_contain_the_answer(scenario):
    world, made = played(scenario)
    asked = json.dumps([scenario.messages, scenario.tools], ensure_ascii=False)
    assert scenario.check(world, made, scenario.user) != "", "the question is no answer"
    assert scenario.check(world, made, asked) != ""


@pytest.mark.parametrize("scenario", [each for each in SCENARIOS if not each.solution[0]], ids=name_of)
def test_declining_scenario_forbids_calls(scenario):
    assert scenario.check(scenario.world(), [], "Done! It was booked, switched off, deleted; it was sunny.") != ""
    name = scenario.tools[0]["function"]["name"]
    assert scenario.check(scenario.world(), [ExecutedCall(name, {}, "x")], scenario.solution[1]) != ""


@pytest.mark.parametrize("scenario", [each for each in SCENARIOS if each.kind == "stateful"], ids=name_of)
def test_wrong_argument_fails_a_stateful_scenario(scenario):
    wrong = {"slot": "B", "cents": 9_300, "bar": 96, "folder": "notes", "name": "Dan Kral"}
    name = next(name for made in scenario.solution[0] for name in made.arguments if name in wrong)

    def spoil(_number, call):
        return ExpectedCall(call.name, {**call.arguments, name: wrong[name]}) if name in call.arguments else None

    world, made = played(scenario, spoil)
    assert scenario.check(world, made, scenario.solution[1]) != "" or not all(one.ok for one in made)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_invalid_calls_are_refused_with_a_message(scenario):
    world = scenario.world()
    name = scenario.tools[0]["function"]["name"]
    for tool, arguments in [("nothing", "{}"), (name, "{"), (name, "[]"), (name, '{"odd": 1}'), (name, "\ud800")]:
        made = perform(scenario, world, tool, arguments)
        assert not made.ok
        assert made.result.startswith("error: ")
    calls = [perform(scenario, world, one.name, one.arguments) for one in scenario.solution[0]]
    assert scenario.check(world, calls, scenario.solution[1]) == ""


def test_next_step_is_found_in_any_conversation():
    (scenario,) = select_scenarios(SCENARIOS, [], ["stock, then reserve"], easy=False)
    first = find_next_step(scenario, [])
    assert isinstance(first, NextStep)
    assert [call.arguments["store"] for call in first.calls] == ["Umeå", "Luleå", "Kiruna"]
    made = [ExecutedCall(call.name, call.arguments, "1") for call in first.calls]
    rest = find_next_step(scenario, [ExecutedCall("reserve", {}, "error"), made[1]])
    assert isinstance(rest, NextStep)
    assert (rest.number, [call.arguments["store"] for call in rest.calls]) == (0, ["Umeå", "Kiruna"])
    (paper,) = select_scenarios(SCENARIOS, [], ["the machine that stopped"], easy=False)
    lost = find_next_step(paper, [ExecutedCall("journal", {"day": "Monday"}, "[shortened]")])
    assert isinstance(lost, NextStep)
    assert lost.calls == (ExpectedCall("journal", {"day": "Monday"}),)


def test_suite_covers_every_kind():
    kinds = Counter(each.kind for each in SCENARIOS)
    assert set(kinds) == set(KINDS)
    assert min(kinds.values()) >= 4
    assert sum(kinds.values()) >= 40
    assert len({each.name for each in SCENARIOS}) == len(SCENARIOS)
    of_many = [each for each in SCENARIOS if each.kind == "tool selection"]
    assert [f"{len(each.tools)} tools" for each in of_many] == [each.name.rpartition(", ")[2] for each in of_many]
    assert {len(each.tools) for each in of_many} == {5, 20, 80}
    assert 3 <= sum(each.easy for each in SCENARIOS) <= 10
    assert max(len(each.user) for each in SCENARIOS) > 5_000
    assert len({each.user for each in SCENARIOS if "tools" not in each.name}) == sum(
        "tools" not in each.name for each in SCENARIOS
    )


@pytest.mark.parametrize(
    ("answer", "facts", "lacking"),
    [
        ("It is 12,049 g.", ["12049"], False),
        ("It is 120 g.", ["12"], True),
        ("it is pX-80", ["PX-80"], False),
        ("PX-801", ["PX-80"], True),
        ("1, 2, and 3", ["1", "2", "3"], False),
        ("", ["x"], True),
    ],
)
def test_missing_fact_ignores_case_and_commas(answer, facts, lacking):
    """Case and commas in numbers make no difference, a longer number does."""
    assert bool(missing_fact(answer, facts)) == lacking


TOML = """
[[tool]]
name = "look"
parameters = { at = "string" }
[[scenario]]
name = "s"
kind = "mine"
user = "Look at x."
tools = ["look"]
answer = "It is Q7."
holds = ["Q7"]
step = [{ calls = [{ name = "look", arguments = { at = "x" }, result = "Q7" }] }]
"""


def test_user_suite_is_loaded(tmp_path):
    (scenario,) = parse_scenarios(TOML, "mine.toml")
    world, made = played(scenario)
    assert scenario.check(world, made, "Q7") == ""
    for old, new, output in [
        ('tools = ["look"]', 'tools = ["see"]', "names the unknown tool 'see'; expected look"),
        ('kind = "mine"', "", r"scenario\.0\.kind"),
        ('result = "Q7"', 'error = "no", result = "Q7"', "either a result or an error"),
        ("[[tool]]", "[[tool", "is not valid TOML"),
        ("holds", "hold", r"scenario\.0\.hold"),
    ]:
        with pytest.raises(UsageError, match=output):
            parse_scenarios(TOML.replace(old, new, 1), "mine.toml")
    (tmp_path / "mine.py").write_text(
        "from adapter.evaluation.toml_scenarios import parse_scenarios\n"
        f"SCENARIOS = parse_scenarios('''{TOML}''', 'here')"
    )
    assert [each.name for each in load_suite(str(tmp_path / "mine.py"))] == ["s"]
    (tmp_path / "twice.toml").write_text(TOML + TOML.partition('parameters = { at = "string" }')[2])
    (tmp_path / "raises.py").write_text("1 / 0")
    (tmp_path / "empty.py").write_text("")
    for file, message in [
        ("twice.toml", "two scenarios are called 's'"),
        ("raises.py", "ZeroDivisionError"),
        ("empty.py", "must define SCENARIOS"),
        ("none.toml", "cannot read"),
        ("none.py", "cannot read"),
        ("what", "unknown suite"),
    ]:
        with pytest.raises(UsageError, match=message):
            load_suite(str(tmp_path / file))


def test_empty_selection_is_refused():
    with pytest.raises(UsageError, match="stateful"):
        select_scenarios(SCENARIOS, ["states"], [], easy=False)
    with pytest.raises(UsageError, match="no scenario matches"):
        select_scenarios(SCENARIOS, ["stateful"], [], easy=True)
