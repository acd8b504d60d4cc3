"""Parse a model's raw text for the playground. A browser can run this module, which needs only the standard library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapter.core.bounded_parsing import parse_json
from adapter.core.errors import AdapterError
from adapter.core.events import JsonObject, ToolCall
from adapter.core.turn import Turn
from adapter.parsing.call_format_detection import detect_call_format
from adapter.parsing.fixture_writer import format_case
from adapter.parsing.format import Format
from adapter.parsing.formats import FORMATS, FROM_TEMPLATE, get_format
from adapter.parsing.parser import Parser
from adapter.recording.view.exchange_page_data import build_spans, format_pretty_json, list_turn_badges
from adapter.tools.tool_set import ToolSet

MAX_TEXT = 1_000_000
"""Maximum length of each text in a request, in characters."""


def read_for_page(body: str | bytes) -> JsonObject:
    """Parse the text in a request from the page, and return the data to show, or ``error``.

    The request is an object in JSON: ``text``, ``tools`` (JSON text), ``format`` ("" to detect it), ``template`` (for
    ``from-template``), ``policy``, ``finish_reason``, and ``received``, the number of characters that have arrived.
    """
    try:
        return _read(parse_json(body))
    except (AdapterError, ValueError) as error:
        return {"error": str(error)}


def _read(request: object) -> JsonObject:
    values: Mapping[str, Any] = request if isinstance(request, dict) else {}
    text, tools, template, name = (_get_text(values, key) for key in ("text", "tools", "template", "format"))
    known = ToolSet(parse_json(tools) if tools.strip() else ())
    format = _format(name, template)
    received = values.get("received")
    arrived = text[:received] if isinstance(received, int) else text
    reason = _get_text(values, "finish_reason") or "stop"
    parser = Parser(format, known, policy=_get_text(values, "policy") or "safe")
    events = parser.feed(arrived)
    if arrived == text:
        events += parser.close(reason)
    turn = Turn.from_events(events)
    held = arrived[len("".join(event.raw for event in turn.events)) :]
    return {
        "format": detect_call_format(turn, tuple(known), format), "badges": list_turn_badges([turn]),
        "spans": build_spans(turn), "calls": format_pretty_json([_to_json(call) for call in turn.calls]), "held": held,
        "case": format_case(text, turn, reason, "reported from the playground"),
    }  # fmt: skip


def _get_text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key, "")
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise ValueError(f"{key} must be a string of at most {MAX_TEXT:,} characters")
    return value


def _format(name: str, template: str) -> Format | None:
    if not name:
        return None
    if name != FROM_TEMPLATE:
        if name not in FORMATS:  # the path of a format file must not make the server read it
            raise ValueError(f"unknown format {name[:60]!r}; leave it empty to detect the format")
        return get_format(name)
    from adapter.backends.format_derivation import derive

    return derive(template)


def _to_json(call: ToolCall) -> JsonObject:
    return {"name": call.name, "arguments": call.arguments, "fixes": list(call.fixes)}
