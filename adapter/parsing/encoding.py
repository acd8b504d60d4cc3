"""Encoders for formats that differ in nothing but the text around calls and results.

``{name}`` in that text stands for the tool's name, and ``{id}`` in a result's for the call's id.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from adapter.core.events import JsonObject


def json_arguments(_name: str, arguments: JsonObject) -> str:
    """Write ``{"ARGUMENT": ...}``."""
    return json.dumps(arguments, ensure_ascii=False)


def json_call(name: str, arguments: JsonObject) -> str:
    """Write ``{"name": NAME, "arguments": {...}}``."""
    return json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)


def json_call_with_parameters(name: str, arguments: JsonObject) -> str:
    """Write ``{"name": NAME, "parameters": {...}}``."""
    return json.dumps({"name": name, "parameters": arguments}, ensure_ascii=False)


def calls_encoder(
    body: Callable[[str, JsonObject], str],
    before: str = "",
    after: str = "",
    *,
    between: str = "",
    opening: str = "",
    closing: str = "",
) -> Callable[[list[tuple[str, JsonObject]]], str]:
    """Return an ``encode_calls``: each call is ``before``, its ``body`` and ``after``."""

    def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
        written = (before.replace("{name}", name) + body(name, arguments) + after for name, arguments in calls)
        return f"{opening}{between.join(written)}{closing}"

    return encode_calls


def list_encoder(opening: str = "", closing: str = "") -> Callable[[list[tuple[str, JsonObject]]], str]:
    """Return an ``encode_calls``: all calls as one JSON list."""
    return calls_encoder(json_call, between=", ", opening=f"{opening}[", closing=f"]{closing}")


def result_encoder(before: str, after: str = "") -> Callable[[str, str, str], str]:
    """Return an ``encode_result``: the content between ``before`` and ``after``."""

    def encode_result(name: str, content: str, call_id: str) -> str:
        head = before.replace("{name}", name).replace("{id}", call_id)
        return f"{head}{content}{after}"

    return encode_result


def content_alone(_name: str, content: str, _call_id: str) -> str:
    """An ``encode_result``: the content as it is."""
    return content
