"""The tasks of a probe: short requests over fixed tool sets, with their correct calls.

They are deliberately general, and not from any benchmark: requests with and without a call, numbers, enums, nested
values, lists, edits, parallel calls, and continuing after a result or an error. Most tasks share their tools, so that a
server can cache this part of the prompt. Some have the tools of a shop or a smart home, because a setup that suits one
tool set may make needless calls with another. Consecutive tasks differ in kind, because weak setups get only the first
few tasks.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from jsonschema import Draft202012Validator

from adapter.core.events import Json, JsonObject


def _define_tool(name: str, description: str, required: Sequence[str], **properties: Json) -> JsonObject:
    parameters = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _define_text(description: str, **more: Json) -> JsonObject:
    return {"type": "string", "description": description, **more}


TOOLS: list[JsonObject] = [
    _define_tool("get_weather", "Get the weather of a city now.", ["city"], city=_define_text("The city."),
          unit=_define_text("Of the temperature.", enum=["celsius", "fahrenheit"])),
    _define_tool("read_file", "Read a text file.", ["path"], path=_define_text("Relative to the project."),
          max_lines={"type": "integer", "description": "Read no more than this."}),
    _define_tool("search_files", "Find the lines that contain a text, in all files.", ["text"],
          text=_define_text("The text to find."),
          ignore_case={"type": "boolean", "description": "Whether case does not matter."}),
    _define_tool("edit_file", "Replace texts in a file.", ["path", "edits"],
          path=_define_text("Relative to the project."),
          edits={"type": "array", "items": {"type": "object", "required": ["old_text", "new_text"], "properties": {
              "old_text": _define_text("The current text."), "new_text": _define_text("The new text.")}}}),
    _define_tool("create_event", "Put an event into the calendar.", ["title", "start"],
          title=_define_text("The title."), start={"type": "object", "required": ["date", "time"], "properties": {
              "date": _define_text("As YYYY-MM-DD."), "time": _define_text("As HH:MM.")}},
          guests={"type": "array", "items": {"type": "string"}, "description": "Names."}),
    _define_tool("send_message", "Send a message to a person.", ["to", "text"], to=_define_text("The name."),
          text=_define_text("The message.")),
]  # fmt: skip


SHOP: list[JsonObject] = [
    _define_tool("find_order", "Look up an order.", ["order_number"], order_number={"type": "integer"}),
    _define_tool("refund_order", "Pay an order back.", ["order_number", "amount"], order_number={"type": "integer"},
          amount={"type": "number", "description": "In euros."}),
    _define_tool("change_address", "Change where a customer's orders go.", ["customer", "street", "city"],
          customer=_define_text("The name."), street=_define_text("With the number."), city=_define_text("The city.")),
]  # fmt: skip
HOUSE: list[JsonObject] = [
    _define_tool("switch_light", "Switch a light on or off.", ["room", "on"], room=_define_text("The room."),
          on={"type": "boolean"}),
    _define_tool("set_temperature", "Set the heating of a room.", ["room", "degrees"], room=_define_text("The room."),
          degrees={"type": "number", "description": "In degrees Celsius."}),
    _define_tool("play_music", "Play music.", ["artist"], artist=_define_text("The artist."),
          room=_define_text("The room; all rooms if omitted.")),
]  # fmt: skip
TOOL_SETS = (TOOLS, SHOP, HOUSE)


TaskKind: TypeAlias = Literal["one call", "nested values", "several calls", "after a result", "no call"]


@dataclass(frozen=True, slots=True)
class ProbeCall:
    """A call. If it is an expected call, ``arguments`` are those that a correct call must contain."""

    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class ProbeTask:
    """A task. ``expected``: the correct calls, in any order; empty if the task needs an answer in words."""

    name: str
    messages: tuple[JsonObject, ...]
    expected: tuple[ProbeCall, ...] = ()
    tools: Sequence[JsonObject] = tuple(TOOLS)

    @property
    def kind(self) -> TaskKind:
        """The kind of task, for scores by kind."""
        if not self.expected:
            return "no call"
        if len(self.messages) > 1:
            return "after a result"
        if len(self.expected) > 1:
            return "several calls"
        has_nested_value = any(isinstance(value, dict | list) for value in self.expected[0].arguments.values())
        return "nested values" if has_nested_value else "one call"

    def is_right(self, calls: Sequence[ProbeCall], content: str) -> bool:
        if not self.expected:
            return not calls and bool(content.strip())
        remaining = list(calls)
        for expected in self.expected:
            found = next((call for call in remaining if _matches(call, expected)), None)
            if found is None:
                return False
            remaining.remove(found)
        return not remaining

    def is_named(self, calls: Sequence[ProbeCall]) -> bool:
        """Return whether the expected tools were called, with any arguments."""
        return sorted(call.name for call in calls) == sorted(call.name for call in self.expected)


@dataclass(frozen=True, slots=True)
class OneOf:
    """An expected value that matches any of several values."""

    values: tuple[Json, ...]


def is_valid(call: ProbeCall, tools: Sequence[JsonObject]) -> bool:
    """Return whether the called tool exists and accepts the arguments."""
    schema = next((each["function"]["parameters"] for each in tools if each["function"]["name"] == call.name), None)
    return schema is not None and Draft202012Validator(schema).is_valid(call.arguments)


def _matches(call: ProbeCall, expected: ProbeCall) -> bool:
    return call.name == expected.name and _are_equal(call.arguments, expected.arguments)


def _are_equal(value: Json, expected: Json) -> bool:
    """Compare JSON values. In strings, letter case, outer whitespace and a final full stop are ignored. ``value`` may
    have additional keys."""
    if isinstance(expected, OneOf):
        return any(_are_equal(value, each) for each in expected.values)
    if isinstance(expected, dict):
        return isinstance(value, dict) and all(
            key in value and _are_equal(value[key], expected[key]) for key in expected
        )
    if isinstance(expected, list):
        if not isinstance(value, list) or len(value) != len(expected):
            return False
        return all(_are_equal(one, other) for one, other in zip(value, expected, strict=True))
    if isinstance(expected, str):
        return isinstance(value, str) and value.strip(" \n.").casefold() == expected.casefold()
    return type(value) is type(expected) and bool(value == expected)


def _build_user_message(text: str) -> JsonObject:
    return {"role": "user", "content": text}


def _build_earlier_call(result: str, name: str, **arguments: Json) -> tuple[JsonObject, JsonObject]:
    """Return the two messages of an earlier call and its result."""
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return (
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": result},
    )


TASKS: tuple[ProbeTask, ...] = (
    ProbeTask(
        "one call",
        (_build_user_message("Read the file docs/setup.md"),),
        (ProbeCall("read_file", {"path": "docs/setup.md"}),),
    ),
    ProbeTask("no call: a greeting", (_build_user_message("Hello! How are you today?"),)),
    ProbeTask(
        "nested values",
        (_build_user_message("Put 'Dentist' into my calendar for 2026-03-14 at 09:30."),),
        (ProbeCall("create_event", {"title": "Dentist", "start": {"date": "2026-03-14", "time": "09:30"}}),),
    ),
    ProbeTask(
        "an answer after a result",
        (
            _build_user_message("What is the weather in Oslo?"),
            *_build_earlier_call("4 degrees, rain", "get_weather", city="Oslo"),
        ),
    ),
    ProbeTask(
        "a shop: a number",
        (_build_user_message("Pay 12.5 euros of order 40718 back."),),
        (ProbeCall("refund_order", {"order_number": 40718, "amount": 12.5}),),
        SHOP,
    ),
    ProbeTask("a shop: no call for thanks", (_build_user_message("Thank you, that was all for today."),), (), SHOP),
    ProbeTask(
        "one of several values",
        (_build_user_message("How warm is it in Chicago, in fahrenheit?"),),
        (ProbeCall("get_weather", {"city": "Chicago", "unit": "fahrenheit"}),),
    ),
    ProbeTask(
        "an edit",
        (_build_user_message("In config.ini replace 'debug = true' with 'debug = false'"),),
        (ProbeCall("edit_file", {"path": "config.ini",
                            "edits": [{"old_text": "debug = true", "new_text": "debug = false"}]}),),
    ),
    ProbeTask(
        "two calls at once",
        (_build_user_message("Read both a.txt and b.txt."),),
        (ProbeCall("read_file", {"path": "a.txt"}), ProbeCall("read_file", {"path": "b.txt"})),
    ),
    ProbeTask(
        "a house: true or false",
        (_build_user_message("Switch the light in the kitchen off."),),
        (ProbeCall("switch_light", {"room": "kitchen", "on": False}),),
        HOUSE,
    ),
    ProbeTask("a house: no call for a question", (_build_user_message("What is 12 times 12?"),), (), HOUSE),
    ProbeTask(
        "no call: common knowledge",
        (_build_user_message("What is the capital of France? Just answer, use no tool."),),
    ),
    ProbeTask(
        "a number",
        (_build_user_message("Show me the first 20 lines of src/main.c"),),
        (ProbeCall("read_file", {"path": "src/main.c", "max_lines": 20}),),
    ),
    ProbeTask(
        "a call after a result",
        (
            _build_user_message("Find the file that mentions 'retry_limit', then read that file."),
            *_build_earlier_call("net/client.py:14: retry_limit = 3", "search_files", text="retry_limit"),
        ),
        (ProbeCall("read_file", {"path": "net/client.py"}),),
    ),
    ProbeTask(
        "true or false",
        (_build_user_message("Search for 'todo' in all files and ignore case."),),
        (ProbeCall("search_files", {"text": "todo", "ignore_case": True}),),
    ),
    ProbeTask("no call: no such tool", (_build_user_message("Please switch off the lights in the kitchen."),)),
    ProbeTask(
        "two edits in one call",
        (_build_user_message("In page.html change 'Helo' to 'Hello' and 'wrold' to 'world', in one call."),),
        (ProbeCall("edit_file", {"path": "page.html", "edits": [{"old_text": "Helo", "new_text": "Hello"},
                                                           {"old_text": "wrold", "new_text": "world"}]}),),
    ),
    ProbeTask(
        "a list",
        (_build_user_message("Make a calendar event 'Review' on 2026-05-02 at 14:00 with Ann and Bob."),),
        (ProbeCall("create_event", {"title": "Review", "start": {"date": "2026-05-02", "time": "14:00"},
                               "guests": ["Ann", "Bob"]}),),
    ),
    ProbeTask(
        "another try after an error",
        (
            _build_user_message("Read notes.txt. If it is not there, read NOTES.md."),
            *_build_earlier_call("Error: no such file: notes.txt", "read_file", path="notes.txt"),
        ),
        (ProbeCall("read_file", {"path": "NOTES.md"}),),
    ),
    ProbeTask(
        "a shop: several texts",
        (_build_user_message("Mia Holm has moved to Storgata 5 in Oslo. Change her address."),),
        (ProbeCall("change_address", {"customer": "Mia Holm", "street": "Storgata 5", "city": "Oslo"}),),
        SHOP,
    ),
    ProbeTask(
        "a shop: no call for advice",
        (_build_user_message("How do I write a good complaint letter? Just advice."),), (), SHOP,
    ),
    ProbeTask(
        "a house: one value of two",
        (_build_user_message("Play something by Nina Simone."),),
        (ProbeCall("play_music", {"artist": "Nina Simone"}),),
        HOUSE,
    ),
    ProbeTask("a house: no call for a greeting", (_build_user_message("Good morning!"),), (), HOUSE),
    ProbeTask(
        "quotes and line ends",
        (_build_user_message('Send Eve this message, in two lines: first "Ready?", then "Go!"'),),
        (ProbeCall("send_message", {"to": "Eve", "text": OneOf(("Ready?\nGo!", '"Ready?"\n"Go!"'))}),),
    ),
)  # fmt: skip
