"""Build the encoders of formats that differ only in the text around calls and results.

In that text, ``{name}`` is replaced with the tool's name and, around a result, ``{id}`` with the call's id.
"""

from __future__ import annotations

from collections.abc import Callable

from adapter.core.events import JsonObject
from adapter.core.json.encode import dump_json


def encode_json_arguments(_name: str, arguments: JsonObject) -> str:
    """Encode only the arguments, as a JSON object. The text around them contains the name."""
    return dump_json(arguments)


def encode_json_call(name: str, arguments: JsonObject) -> str:
    """Encode a call as ``{"name": NAME, "arguments": {...}}``."""
    return dump_json({"name": name, "arguments": arguments})


def encode_json_call_with_parameters(name: str, arguments: JsonObject) -> str:
    """Encode a call as ``{"name": NAME, "parameters": {...}}``."""
    return dump_json({"name": name, "parameters": arguments})


def build_calls_encoder(
    body: Callable[[str, JsonObject], str],
    before: str = "",
    after: str = "",
    *,
    between: str = "",
    opening: str = "",
    closing: str = "",
) -> Callable[[list[tuple[str, JsonObject]]], str]:
    """Return a function for `Format.encode_calls`.

    It writes each call as ``before``, the result of ``body(name, arguments)``, and ``after``. ``between`` separates
    calls, and ``opening`` and ``closing`` enclose all of them.
    """

    def encode_calls(calls: list[tuple[str, JsonObject]]) -> str:
        encoded = (before.replace("{name}", name) + body(name, arguments) + after for name, arguments in calls)
        return f"{opening}{between.join(encoded)}{closing}"

    return encode_calls


def build_list_encoder(opening: str = "", closing: str = "") -> Callable[[list[tuple[str, JsonObject]]], str]:
    """Return a function for `Format.encode_calls` that writes all calls as one JSON list."""
    return build_calls_encoder(encode_json_call, between=", ", opening=f"{opening}[", closing=f"]{closing}")


def build_result_encoder(before: str, after: str = "") -> Callable[[str, str, str], str]:
    """Return a function for `Format.encode_result` that writes a result's content between ``before`` and ``after``."""

    def encode_result(name: str, content: str, call_id: str) -> str:
        head = before.replace("{name}", name).replace("{id}", call_id)
        return f"{head}{content}{after}"

    return encode_result


def encode_content_alone(_name: str, content: str, _call_id: str) -> str:
    """Return a result's content unchanged. This is a function for `Format.encode_result`."""
    return content
