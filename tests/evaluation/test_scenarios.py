"""Each built-in scenario is passed by its oracle, and by nothing that only looks like it."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from adapter.core.errors import UsageError
from adapter.evaluation.scenario import KINDS, ExecutedCall, ExpectedCall, NextStep, missing_fact, next_step, perform
from adapter.evaluation.suite_loader import built_in, load_suite, select_scenarios
from adapter.evaluation.toml_scenarios import scenarios_of

SCENARIOS = built_in()
STEPS = [each for each in SCENARIOS if each.solution[0]]


def name_of(scenario):
    return scenario.name


def played(scenario, spoil=None, until=99):
    """Follow the oracle for ``until`` calls in a new world. ``spoil(number, call)``: another call in its place."""
    world, made = scenario.world(), list[ExecutedCall]()
    for _ in range(30):
        step = next_step(scenario, made)
        if isinstance(step, str) or len(made) >= until:
            break
        for call in step.calls:
            other = spoil(len(made), call) if spoil else None
            if other is not None:
                perform(scenario, world, other.name, other.arguments)
            made.append(perform(scenario, world, call.name, call.arguments))
    return world, made


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_its_oracle_solves_it(scenario):
    """With the oracle's calls and answer it is done, with each call once."""
    world, made = played(scenario)
    answer = scenario.solution[1]
    assert scenario.check(world, made, answer) == ""
    assert made == list(scenario.solution[0])
    assert len(made) <= 10
    assert set(scenario.required_tools) <= {one.name for one in made}


@pytest.mark.parametrize("scenario", STEPS, ids=name_of)
def test_an_answer_without_the_calls_is_none(scenario):
    """Not even the right one, after any part of the way; nor the calls without it."""
    for until in range(len(scenario.solution[0])):
        world, made = played(scenario, until=until)
        if len(made) < len(scenario.solution[0]):
            assert scenario.check(world, made, scenario.solution[1]) != "", until
    world, made = played(scenario)
    assert scenario.check(world, made, "Done, everything is as you asked.") != ""
    assert scenario.check(world, made, "") != ""


@pytest.mark.parametrize("scenario", STEPS, ids=name_of)
def test_what_is_asked_does_not_hold_the_answer(scenario):
    """All of what the answer has to hold comes from results: who reads the task alone cannot say it."""
    world, made = played(scenario)
    asked = json.dumps([scenario.messages, scenario.tools], ensure_ascii=False)
    assert scenario.check(world, made, scenario.user) != "", "the question is no answer"
    assert scenario.check(world, made, asked) != ""


@pytest.mark.parametrize("scenario", [each for each in SCENARIOS if not each.solution[0]], ids=name_of)
def test_where_no_tool_fits_a_call_is_wrong(scenario):
    """And so is to pretend that it was done."""
    assert scenario.check(scenario.world(), [], "Done! It was booked, switched off, deleted; it was sunny.") != ""
    name = scenario.tools[0]["function"]["name"]
    assert scenario.check(scenario.world(), [ExecutedCall(name, {}, "x")], scenario.solution[1]) != ""


@pytest.mark.parametrize("scenario", [each for each in SCENARIOS if each.kind == "stateful"], ids=name_of)
def test_a_wrong_argument_has_consequences(scenario):
    """One call with another value, carried out before the right one, and the end is not what it should be."""
    wrong = {"slot": "B", "cents": 9_300, "bar": 96, "folder": "notes", "name": "Dan Kral"}
    name = next(name for made in scenario.solution[0] for name in made.arguments if name in wrong)

    def spoil(_number, call):
        return ExpectedCall(call.name, {**call.arguments, name: wrong[name]}) if name in call.arguments else None

    world, made = played(scenario, spoil)
    assert scenario.check(world, made, scenario.solution[1]) != "" or not all(one.ok for one in made)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_calls_that_cannot_be_made_are_refused_in_words(scenario):
    """Whatever a model sends, and the world is as before: the oracle still solves it."""
    world = scenario.world()
    name = scenario.tools[0]["function"]["name"]
    for tool, arguments in [("nothing", "{}"), (name, "{"), (name, "[]"), (name, '{"odd": 1}'), (name, "\ud800")]:
        made = perform(scenario, world, tool, arguments)
        assert not made.ok
        assert made.result.startswith("error: ")
    calls = [perform(scenario, world, one.name, one.arguments) for one in scenario.solution[0]]
    assert scenario.check(world, calls, scenario.solution[1]) == ""


def test_the_next_step_is_known_in_any_conversation():
    """Needless calls make no difference, a result that was lost is asked for again, of calls at once the rest."""
    (scenario,) = select_scenarios(SCENARIOS, [], ["stock, then reserve"], easy=False)
    first = next_step(scenario, [])
    assert isinstance(first, NextStep)
    assert [call.arguments["store"] for call in first.calls] == ["Umeå", "Luleå", "Kiruna"]
    made = [ExecutedCall(call.name, call.arguments, "1") for call in first.calls]
    rest = next_step(scenario, [ExecutedCall("reserve", {}, "error"), made[1]])
    assert isinstance(rest, NextStep)
    assert (rest.number, [call.arguments["store"] for call in rest.calls]) == (0, ["Umeå", "Kiruna"])
    (paper,) = select_scenarios(SCENARIOS, [], ["the machine that stopped"], easy=False)
    lost = next_step(paper, [ExecutedCall("journal", {"day": "Monday"}, "[shortened]")])
    assert isinstance(lost, NextStep)
    assert lost.calls == (ExpectedCall("journal", {"day": "Monday"}),)


def test_there_are_enough_of_each_kind():
    """At least forty, of every kind four, with 5, 20 and 80 tools, and names that tell them apart."""
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
def test_facts_are_found_as_people_write_them(answer, facts, lacking):
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


def test_a_suite_of_ones_own(tmp_path):
    """TOML, or Python; what is wrong with it is said with the file and the place."""
    (scenario,) = scenarios_of(TOML, "mine.toml")
    world, made = played(scenario)
    assert scenario.check(world, made, "Q7") == ""
    for old, new, said in [
        ('tools = ["look"]', 'tools = ["see"]', "names the tool 'see'; there are: look"),
        ('kind = "mine"', "", r"scenario\.0\.kind"),
        ('result = "Q7"', 'error = "no", result = "Q7"', "either a result or an error"),
        ("[[tool]]", "[[tool", "is no TOML"),
        ("holds", "hold", r"scenario\.0\.hold"),
    ]:
        with pytest.raises(UsageError, match=said):
            scenarios_of(TOML.replace(old, new, 1), "mine.toml")
    (tmp_path / "mine.py").write_text(
        f"from adapter.evaluation.toml_scenarios import scenarios_of\nSCENARIOS = scenarios_of('''{TOML}''', 'here')"
    )
    assert [each.name for each in load_suite(str(tmp_path / "mine.py"))] == ["s"]
    (tmp_path / "twice.toml").write_text(TOML + TOML.partition('parameters = { at = "string" }')[2])
    (tmp_path / "raises.py").write_text("1 / 0")
    (tmp_path / "empty.py").write_text("")
    for file, said in [("twice.toml", "two scenarios 's'"), ("raises.py", "ZeroDivisionError"), ("empty.py", "no list"),
                       ("none.toml", "cannot read"), ("none.py", "cannot read"), ("what", "is no suite")]:  # fmt: skip
        with pytest.raises(UsageError, match=said):
            load_suite(str(tmp_path / file))


def test_a_choice_of_nothing_is_refused():
    """With the names that there are."""
    with pytest.raises(UsageError, match="stateful"):
        select_scenarios(SCENARIOS, ["states"], [], easy=False)
    with pytest.raises(UsageError, match="no scenario is left"):
        select_scenarios(SCENARIOS, ["stateful"], [], easy=True)
