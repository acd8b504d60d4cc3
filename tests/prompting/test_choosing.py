"""What words decide for a model that is too small: whether to call, which tool, and which values it may write."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.constraints.grammar import gbnf
from adapter.formats.parser import parse
from adapter.prompting.choosing import Parts, choose
from adapter.prompting.ranking import Ranking, stem, words
from adapter.prompting.roles import role_of
from adapter.tools.definition import Tool, ToolSet
from adapter.values.errors import UsageError
from tests.constraints.test_grammar import sample


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
        ("Send a mail to a@b.org: see you", "write_mail"),
    ],
)
def test_the_words_of_a_request_choose_the_tool(request_, name):
    assert list(choose(request_, TOOLS).tools) == [name]


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
def test_where_words_fit_no_tool_the_answer_is_words(request_):
    assert choose(request_, TOOLS).tools == ToolSet()
    assert choose(request_, TOOLS, must_call=True).tools, "unless a call is demanded"


def test_a_tool_that_is_named_is_called():
    assert list(choose("Do it with the set_lamp tool", TOOLS).tools) == ["set_lamp"]
    assert choose("Tell me something. Use the tool.", TOOLS).tools


def test_values_are_those_of_the_request():
    """Paths and quotations in their order; choices that it names; numbers; names; what it did not mean is left out."""
    assert choose("Swap 'x = 1' for 'x = 2' in a.py", TOOLS).choices == {
        ("swap_text", "file"): ["a.py"],
        ("swap_text", "old"): ["x = 1"],
        ("swap_text", "new"): ["x = 2"],
    }
    moved = choose("Move a.py to lib/a.py", TOOLS).choices
    assert (moved["move_file", "source"], moved["move_file", "target_path"]) == (["a.py"], ["lib/a.py"])
    lamp = choose("Switch the lamp in the hall off", TOOLS).tools["set_lamp"]
    assert lamp.properties["state"]["enum"] == ["off"]
    assert "percent" not in lamp.properties
    dimmed = choose("Switch the lamp in the hall on, at 40 percent", TOOLS).tools["set_lamp"]
    assert dimmed.properties["percent"]["enum"] == [40]
    assert choose("Plan a route from Bern to Basel", TOOLS).choices == {
        ("find_route", "start"): ["Bern"],
        ("find_route", "end"): ["Basel"],
    }
    numbers = choose("Add the numbers 4 and 5.5", TOOLS).tools["add_up"].properties["numbers"]
    assert numbers["enum"] == [[4, 5.5]]
    mail = choose("Send a mail to a@b.org: see you", TOOLS).choices
    assert mail == {("write_mail", "email"): ["a@b.org"], ("write_mail", "body"): ["see you"]}


def test_several_values_of_the_one_parameter_are_several_calls():
    """A call for each, with that value."""
    chosen = choose("When do trains leave at Olten, Bern and Basel?", TOOLS)
    named = [each["train_times"].properties["station"]["enum"] for each in chosen.each]
    assert named == [["Olten"], ["Bern"], ["Basel"]]
    assert choose("Show a.py and b.py", TOOLS).each[1]["open_file"].properties["file_path"]["enum"] == ["b.py"]
    assert choose("When do trains leave at Olten?", TOOLS).each == ()
    assert choose("Show a.py and b.py", TOOLS, parts=Parts(counts=False)).each == ()


@pytest.mark.parametrize("format", ["hermes", "qwen3_coder"])
def test_several_calls_are_written_one_for_each(random_engine, format):
    """By a real llama.cpp; each has its own value, and after the last nothing follows."""
    chosen = choose("Show a.py and b.py", TOOLS)
    grammar = gbnf(chosen.tools, format=format, choices=chosen.choices, each=chosen.each)
    calls = parse(sample(random_engine, grammar), chosen.tools, format).calls
    assert [call.arguments for call in calls] == [{"file_path": "a.py"}, {"file_path": "b.py"}]


def test_what_was_chosen_can_be_written(random_engine):
    """A call of a shortlist, by random weights: the right tool and the values of the request."""
    chosen = choose("Swap 'x = 1' for 'x = 2' in a.py", TOOLS)
    text = sample(random_engine, gbnf(chosen.tools, choices=chosen.choices))
    (call,) = parse(text, chosen.tools, "hermes").calls
    assert (call.name, call.arguments) == ("swap_text", {"file": "a.py", "old": "x = 1", "new": "x = 2"})


def test_roles_are_known_by_names_and_never_guessed_for_what_destroys():
    assert [role[0] if (role := role_of(each)) else None for each in (OPEN, SWAP, PUT, MOVE, LAMP)] == [
        "read_file", "apply_edit", "write_file", None, None,
    ]  # fmt: skip
    assert role_of(tool("delete_file", "Delete.", "path", path=TEXT)) is None
    assert role_of(
        tool("Edit", "", "filePath", "oldString", "newString", filePath=TEXT, oldString=TEXT, newString=TEXT)
    )


def test_words_are_compared_without_endings_and_values_by_their_kind():
    assert stem("prices") == stem("price")
    assert words("Please convert the prices in a/b.txt") == ["_path_", "convert", stem("prices")]
    assert words("on 2026-01-02 at 07:30 to x@y.org for ORD-7, 12.5") == [
        "_mail_",
        "_date_",
        "_time_",
        "_code_",
        "_number_",
    ]
    scores = Ranking(ToolSet([MOVE, PUT])).scores("Rename a file")
    assert set(scores) == {"move_file", "save_file"}


def test_one_of_many_tools_is_found():
    """Among fifty, each asked for in words of its own description."""
    things = ["lamp", "door", "oven", "pump", "fan"]
    verbs = ["open", "close", "clean", "repair", "paint", "sell", "measure", "insure", "photograph", "move"]
    many = ToolSet(tool(f"{verb}_{thing}", f"{verb} the {thing}", "id", id=TEXT) for verb in verbs for thing in things)
    assert [
        next(iter(choose(f"Please {verb} our {thing} K-7", many).tools)) for verb in verbs for thing in things
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
def test_no_request_and_no_definition_is_too_odd(request_, schema, name):
    """Whatever they hold, there is an answer, and from the same words the same."""
    tools = ToolSet([Tool(name, name, {"properties": {"p": schema}, "required": ["p"]}), OPEN])
    chosen = choose(request_, tools, must_call=True)
    assert chosen == choose(request_, tools, must_call=True)
    assert chosen.tools
    with suppress(UsageError):  # nothing left to choose
        gbnf(chosen.tools, choices=chosen.choices, each=chosen.each)
