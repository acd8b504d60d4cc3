"""Assistance for very small models: the decision to call, the tool, and its values."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.errors import UsageError
from adapter.core.text.word_stems import stem_word
from adapter.grammars.gbnf import build_gbnf
from adapter.parsing.parser import parse
from adapter.prompting.intent.candidate_values import match_by_proximity
from adapter.prompting.intent.guided_choice import GuidedChoice, GuidedChoiceSettings, plan_guided_choice
from adapter.prompting.intent.tool_ranking import ToolRanking, list_request_terms
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet
from tests.grammars.test_gbnf import sample


def tool(name: str, description: str, *required: str, **properties: Any) -> Tool:
    return Tool(name, description, {"type": "object", "properties": properties, "required": [*required]})


TEXT: Any = {"type": "string"}
WHOLE: Any = {"type": "integer"}
OPEN = tool("open_file", "Show a file.", "file_path", file_path=TEXT)
SWAP = tool("swap_text", "Change a file.", "file", "old", "new", file=TEXT, old=TEXT, new=TEXT)
PUT = tool("save_file", "Make a file.", "path", "text", path=TEXT, text=TEXT)
MOVE = tool(
    "move_file", "Move a file.", "source", "target_path", source={**TEXT, "description": "Its path."}, target_path=TEXT
)
LAMP = tool("set_lamp", "Switch a lamp.", "room", "state", room=TEXT, state={"enum": ["on", "off"]}, percent=WHOLE)
ROUTE = tool("find_route", "Plan a route.", "start", "end", start=TEXT, end=TEXT)
TRAINS = tool("train_times", "Departures of trains.", "station", station=TEXT)
ADD = tool("add_up", "Add numbers.", "numbers", numbers={"type": "array", "items": {"type": "number"}})
MAIL = tool("write_mail", "Send a mail.", "email", "body", email=TEXT, body=TEXT)
TOOLS = ToolSet([OPEN, SWAP, PUT, MOVE, LAMP, ROUTE, TRAINS, ADD, MAIL])


def plan(request: str, tools: ToolSet = TOOLS, **settings: Any) -> GuidedChoice:
    return plan_guided_choice(request, tools, GuidedChoiceSettings(**settings))


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        ("Show src/a.py", "open_file"),
        ("Swap 'x = 1' for 'x = 2' in a.py", "swap_text"),
        ("Save 'hello' as b.txt", "save_file"),
        ("Move a.py to lib/a.py", "move_file"),
        ("Switch the lamp in the hall off", "set_lamp"),
        ("Plan a route from Bern to Basel", "find_route"),
        ("When do trains leave at Olten?", "train_times"),
        ("Add the numbers 4 and 5.5", "add_up"),
        ("Send a mail to a@b.org saying 'see you'", "write_mail"),
    ],
)
def test_words_of_the_request_select_the_tool(request_, name):
    assert list(plan(request_).tools) == [name]


@pytest.mark.parametrize(
    "request_",
    [
        "Hello!",
        "Thanks a lot.",
        "Who wrote Faust?",
        "What is 2 + 2? Do not use any tool.",
        "Show a.py without any tool",
    ],
)
def test_request_below_the_threshold_is_answered_in_words(request_):
    assert plan(request_).tools == ToolSet()
    assert plan_guided_choice(request_, TOOLS, GuidedChoiceSettings(), must_call=True).tools, (
        "unless a call is demanded"
    )
    assert plan(request_, threshold=False).tools


def test_named_tool_is_called():
    assert list(plan("Do it with the set_lamp tool").tools) == ["set_lamp"]
    assert plan("Tell me something. Use the tool.").tools


def test_risky_tool_is_selected_only_by_its_words():
    """A path alone chooses a tool that reads."""
    delete = tool("delete_file", "Delete a file.", "file_path", file_path=TEXT)
    tools = ToolSet([delete, OPEN])
    assert list(plan("What is written in docs/a.md?", tools).tools) == ["open_file"]
    assert list(plan("Delete docs/a.md", tools).tools) == ["delete_file"]


def test_candidates_are_values_of_the_request():
    """Paths and quoted strings in order, enum values, numbers, names; optional parameters only if mentioned."""
    assert plan("Swap 'x = 1' for 'x = 2' in a.py").choices == {
        ("swap_text", "file"): ["a.py"],
        ("swap_text", "old"): ["x = 1"],
        ("swap_text", "new"): ["x = 2"],
    }
    moved = plan("Move a.py to lib/a.py").choices
    assert (moved["move_file", "source"], moved["move_file", "target_path"]) == (["a.py"], ["lib/a.py"])
    lamp = plan("Switch the lamp in the hall off").tools["set_lamp"]
    assert lamp.properties["state"]["enum"] == ["off"]
    assert "percent" not in lamp.properties
    dimmed = plan("Switch the lamp in the hall on, at 40 percent").tools["set_lamp"]
    assert dimmed.properties["percent"]["enum"] == [40]
    assert plan("Plan a route from Bern to Basel").choices == {
        ("find_route", "start"): ["Bern"],
        ("find_route", "end"): ["Basel"],
    }
    numbers = plan("Add the numbers 4 and 5.5").tools["add_up"].properties["numbers"]
    assert numbers["enum"] == [[4, 5.5]]
    mail = plan("Send a mail to a@b.org saying 'see you'").choices
    assert mail == {("write_mail", "email"): ["a@b.org"], ("write_mail", "body"): ["see you"]}


def test_known_file_is_a_path_candidate():
    assert plan("Show the readme file", known_paths=["README.md", "a.py"]).choices == {
        ("open_file", "file_path"): ["README.md"]
    }


@pytest.mark.parametrize(
    ("request_text", "source", "target"),
    [
        ("Move draft.txt to archive/draft.txt", ["draft.txt"], ["archive/draft.txt"]),
        ("Move notes/old.md to new.md", ["notes/old.md"], ["new.md"]),
        ("Move old.md to new.md", ["notes/old.md"], ["new.md"]),
    ],
)
def test_known_file_does_not_replace_another_path(request_text, source, target):
    moved = plan(request_text, known_paths=["draft.txt", "notes/old.md"]).choices
    assert (moved["move_file", "source"], moved["move_file", "target_path"]) == (source, target)


def test_value_is_matched_to_the_nearest_parameter():
    """After its name, or before its unit; not across the end of a clause."""
    sides = {"base": WHOLE, "height": WHOLE}
    candidates = {"base": [10, 5], "height": [10, 5]}
    assert match_by_proximity("a height of 5 and a base of 10", sides, candidates) == {"base": [10], "height": [5]}
    units = {"distance": {"description": "in meters"}, "time": {"description": "in seconds"}}
    assert match_by_proximity("450 meters in 20 seconds", units, {"distance": [450, 20], "time": [450, 20]}) == {
        "distance": [450],
        "time": [20],
    }
    assert match_by_proximity("the base, then 10", sides, {"base": [10]}) == {}
    assert match_by_proximity("base of 10 " * 500, sides, {"base": [10]}) == {}


def test_planned_call_can_be_written(random_chat):
    """A call by random weights: the right tool and the values of the request."""
    assist = plan("Swap 'x = 1' for 'x = 2' in a.py")
    text = sample(random_chat, build_gbnf(assist.tools, choices=assist.choices))
    (call,) = parse(text, assist.tools, "hermes").calls
    assert (call.name, call.arguments) == ("swap_text", {"file": "a.py", "old": "x = 1", "new": "x = 2"})


def test_tokens_are_stems_and_kinds_of_values():
    assert stem_word("prices") == stem_word("price")
    assert list_request_terms("Please convert the prices in a/b.txt") == ["_path_", "convert", stem_word("prices")]
    assert list_request_terms("on 2026-01-02 at 07:30 to x@y.org for ORD-7, 12.5") == [
        "_mail_",
        "_date_",
        "_time_",
        "_code_",
        "_number_",
    ]
    scores = ToolRanking(ToolSet([MOVE, PUT])).score_tools("Rename a file")
    assert set(scores) == {"move_file", "save_file"}


def test_plan_selects_among_fifty_tools():
    """Each is requested in words of its description."""
    things = ["lamp", "door", "oven", "pump", "fan"]
    verbs = ["open", "close", "clean", "repair", "paint", "sell", "measure", "insure", "photograph", "move"]
    many = ToolSet(tool(f"{verb}_{thing}", f"{verb} the {thing}", "id", id=TEXT) for verb in verbs for thing in things)
    assert [
        next(iter(plan(f"Please {verb} our {thing} K-7", many).tools)) for verb in verbs for thing in things
    ] == list(many)


@given(
    st.text(max_size=60),
    st.recursive(
        st.sampled_from([{}, {"type": "string"}, {"type": "number"}, {"enum": [1, "a"]}, {"type": ["null", "string"]}]),
        lambda inner: (
            st.fixed_dictionaries({"type": st.just("array"), "items": inner})
            | st.dictionaries(st.sampled_from("ab"), inner).map(lambda each: {"type": "object", "properties": each})
        ),
        max_leaves=4,
    ),
    st.text(max_size=12),
)
def test_any_request_and_definition_give_a_plan(request_, schema, name):
    """The plan is deterministic."""
    tools = ToolSet([Tool(name, name, {"properties": {"p": schema}, "required": ["p"]}), OPEN])
    assist = plan(request_, tools, threshold=False)
    assert assist == plan(request_, tools, threshold=False)
    assert assist.tools
    plan(request_, tools)
    with suppress(UsageError):  # nothing left to choose
        build_gbnf(assist.tools, choices=assist.choices)
