"""Conversations with tools in OpenAI's format, and the words that a prompt of each must contain.

This module imports nothing, because `benchmarks.reference_prompts` runs where this project is not installed.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any


def tool(name: str, description: str, required: list[str], **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


WEATHER = tool(
    "get_weather",
    "The weather of a city now.\nIn °C, <b>never</b> in °F & always with 'wind'.",
    ["city"],
    city={"type": "string", "description": 'As in "Århus" or Zürich'},
    unit={"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
)
MANY = [
    WEATHER,
    tool(
        "create_event",
        "Put an event into the calendar.",
        ["title", "start"],
        title={"type": "string"},
        start={
            "type": "object",
            "properties": {"date": {"type": "string"}, "hour": {"type": "integer", "minimum": 0, "maximum": 23}},
            "required": ["date"],
        },
        guests={"type": "array", "items": {"type": "string"}, "description": "Names."},
        private={"type": "boolean", "description": "Whether others see it."},
    ),
    tool("list_rooms", "All rooms.", []),
    tool("read_file", "Read a text file.", ["path"], path={"type": "string"}, lines={"type": ["integer", "null"]}),
]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def calls(*made: tuple[str, str, str], content: str | None = None, **more: Any) -> dict[str, Any]:
    """Return an answer with calls. Each call is an (id, name, arguments)."""
    listed = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in made
    ]
    return {"role": "assistant", "content": content, "tool_calls": listed, **more}


def result(call_id: str, name: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "name": name, "content": content}


# Ids of nine letters and digits: the only ones that Mistral's templates accept. Other templates accept any.
OSLO = ("callOslo1", "get_weather", '{"city": "Oslo kommune", "unit": "celsius"}')
ROME = ("callRome2", "get_weather", '{"city": "Roma Capitale"}')
EVENT = (
    "callDate3",
    "create_event",
    '{"title": "Zahnarzt Weiss", "start": {"date": "2026-03-14", "hour": 9}, "guests": ["Ann"], "private": true}',
)
COLD = result("callOslo1", "get_weather", '{"temperature": -4, "wind": "NW"}')
WARM = result("callRome2", "get_weather", "18 degrees,\nno wind")
SYSTEM = {"role": "system", "content": "You are terse.\nAnswer in metric units."}
ASKED = user("How cold is it in Oslo?")

CONVERSATIONS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "one tool": ([ASKED], [WEATHER]),
    "many tools": ([user("Put 'Zahnarzt' into my calendar.")], MANY),
    "call and result": ([ASKED, calls(OSLO), COLD], [WEATHER]),
    "two calls, two results": ([user("And in Roma?"), calls(OSLO, ROME), COLD, WARM], [WEATHER]),
    "reasoning, then a call": (
        [user("A date for the dentist"), calls(EVENT, reasoning_content="They want an event.\nI make one.")],
        MANY,
    ),
    "a system prompt": ([SYSTEM, ASKED, calls(OSLO), COLD], [WEATHER]),
    "no system prompt": ([ASKED, {"role": "assistant", "content": "Where exactly?"}, user("In the centre")], [WEATHER]),
    "a question after results": (
        [
            ASKED,
            calls(OSLO),
            COLD,
            {"role": "assistant", "content": "It is -4 degrees."},
            user("And in Roma?"),
            calls(ROME),
            WARM,
            {"role": "assistant", "content": "18 degrees."},
            user("Which one is warmer?"),
        ],
        [WEATHER],
    ),
}
"""The messages and tools of each conversation, by name."""
CONVERSATIONS["reasoning, then a call"][0].append(result("callDate3", "create_event", "done"))

SAID_IN_CALLS = ("Oslo kommune", "Roma Capitale", "Zahnarzt Weiss", "Ann")
"""Words that occur only in arguments of calls, because some templates omit calls."""

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
"""The tokenizer's tokens, which templates use."""


def is_held_out(name: str) -> bool:
    return int(sha256(name.encode()).hexdigest(), 16) % 3 == 0


def must_show(name: str) -> list[str]:
    """Return the words that a complete prompt contains."""
    messages, tools = CONVERSATIONS[name]
    words = [each["function"]["name"] for each in tools]
    words += [word for each in tools for word in each["function"]["parameters"]["properties"]]
    for message in messages:
        words += [line for line in (message["content"] or "").split("\n") if message["role"] in ("user", "tool")]
        for call in message.get("tool_calls") or ():
            words += [word for word in SAID_IN_CALLS if word in call["function"]["arguments"]]
    return words
