"""The playground: a page that parses a model's raw text while it is typed, and the function behind the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from adapter.core.bounded_parsing import parse_json
from adapter.core.errors import AdapterError
from adapter.core.events import JsonObject, ToolCall
from adapter.core.turn import Turn
from adapter.core.version import __version__
from adapter.parsing.call_format_detection import detect_call_format
from adapter.parsing.case_file import format_case
from adapter.parsing.format import Format
from adapter.parsing.formats import FORMATS, FROM_TEMPLATE, get_format
from adapter.parsing.parse_policy import POLICIES
from adapter.parsing.parser import Parser
from adapter.recording.html import page_asset, render_page
from adapter.recording.view.answer_rows import pretty_json, spans_of, turn_badges
from adapter.tools.tool import ToolSet

MAX_TEXT = 1_000_000
"""Maximum length of each text of a request, in characters."""
FINISH_REASONS = ("stop", "length", "tool_calls")

TOOLS: list[JsonObject] = [
    {
        "name": "get_weather",
        "description": "Get the weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
    {
        "name": "write_file",
        "description": "Write a file.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            "required": ["path", "content"],
        },
    },
]
"""The tools with which the page begins."""

_CALLS: list[tuple[str, JsonObject]] = [
    ("get_weather", {"city": "Oslo", "days": 3}),
    ("write_file", {"path": "notes.md", "content": 'Pack a "warm" coat.\n'}),
]
_ENCODED = ("hermes", "qwen3_coder", "mistral", "harmony", "glm45", "pythonic")
_DAMAGED = {
    "a missing bracket and a trailing comma": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo",}\n'
    "</tool_call>",
    "reasoning that drafts a call": '<think>Maybe <tool_call>{"name": "get_weather"}</tool_call>?</think>\n'
    "Which city do you mean?",
    "a call in a code block": 'I will write it.\n```json\n{"tool": "write_file", "args": {"file": "notes.md", '
    '"content": "warm coat"}}\n```',
    "one broken call between two good ones": "\n".join(
        f"<tool_call>{call}</tool_call>"
        for call in (
            '{"name": "get_weather", "arguments": {"city": "Oslo"}}',
            '{"name": "get_weather", "arguments": {"city": Bergen"}}',
            '{"name": "get_weather", "arguments": {"city": "Bodø"}}',
        )
    ),
}


def playground_page() -> str:
    """Render the page."""
    data: JsonObject = {"examples": list(map(list, _examples())), "tools": pretty_json(list(TOOLS)), "bad": []}
    return render_page(
        "playground.html", connects=True, data=data, formats=sorted(FORMATS), policies=sorted(POLICIES),
        reasons=FINISH_REASONS, style=page_asset("view.css") + page_asset("playground.css"),
        script=page_asset("spans.js") + page_asset("playground.js"), version=__version__,
    )  # fmt: skip


def _examples() -> Iterator[tuple[str, str]]:
    for name in _ENCODED:
        yield name, f"Let me look.\n{get_format(name).encode_calls(_CALLS)}"
    yield from _DAMAGED.items()


def read_for_page(body: str | bytes) -> JsonObject:
    """Parse the text in a request from the page, and return what the page shows, or ``error``.

    The request is an object in JSON: ``text``, ``tools`` (JSON text), ``format`` ("" to detect it), ``template`` (for
    ``from-template``), ``policy``, ``finish_reason``, and ``received``, the number of characters that have arrived.
    """
    try:
        return _read(parse_json(body))
    except (AdapterError, ValueError) as error:
        return {"error": str(error)}


def _read(request: object) -> JsonObject:
    values: Mapping[str, Any] = request if isinstance(request, dict) else {}
    text, tools, template, name = (_text(values, key) for key in ("text", "tools", "template", "format"))
    known = ToolSet(parse_json(tools) if tools.strip() else ())
    format = _format(name, template)
    received = values.get("received")
    arrived = text[:received] if isinstance(received, int) else text
    reason = _text(values, "finish_reason") or "stop"
    parser = Parser(format, known, policy=_text(values, "policy") or "safe")
    events = parser.feed(arrived)
    if arrived == text:
        events += parser.close(reason)
    turn = Turn.from_events(events)
    held = arrived[len("".join(event.raw for event in turn.events)) :]
    return {
        "format": detect_call_format(turn, tuple(known), format), "badges": turn_badges([turn]),
        "spans": spans_of(turn), "calls": pretty_json([_to_json(call) for call in turn.calls]), "held": held,
        "case": format_case(text, turn, reason, "reported from the playground"),
    }  # fmt: skip


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key, "")
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise ValueError(f"{key}: expected a string of at most {MAX_TEXT:,} characters")
    return value


def _format(name: str, template: str) -> Format | None:
    if not name:
        return None
    if name != FROM_TEMPLATE:
        if name not in FORMATS:  # the path of a format file must not make the server read it
            raise ValueError(f"unknown format {name[:60]!r}")
        return get_format(name)
    from adapter.backends.template_detection import derive

    return derive(template)


def _to_json(call: ToolCall) -> JsonObject:
    return {"name": call.name, "arguments": call.arguments, "fixes": list(call.fixes)}
