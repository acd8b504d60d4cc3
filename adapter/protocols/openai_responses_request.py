"""Translate requests to OpenAI's Responses API (``/v1/responses``) to chat completions.

Source: https://platform.openai.com/docs/api-reference/responses. Differences: a conversation is a list of items, with
calls and results among them (`adapter.protocols.openai_responses_items`); tools are flat and have more types
(`adapter.protocols.openai_responses_tools`); references to stored items must have been resolved
(`adapter.server.responses_request`).
"""

from __future__ import annotations

from adapter.core.events import Json, JsonObject
from adapter.protocols.dropped_fields import build_field_table, list_dropped_fields
from adapter.protocols.openai_responses_items import convert_items, list_tools, place_results
from adapter.protocols.openai_responses_tools import IDS, ResponsesTools, parse_responses_tools
from adapter.protocols.request_errors import RequestError, require_type
from adapter.protocols.usage import get_object

FIELDS = build_field_table(
    {
        "passed": "model temperature top_p user",
        "mapped": "input instructions tools tool_choice max_output_tokens reasoning text",
        "taken": "parallel_tool_calls stream store previous_response_id conversation metadata",
        "left out": (
            "include top_logprobs truncation background background_options max_tool_calls stream_options "
            "service_tier safety_identifier prompt_cache_key prompt_cache_options prompt_cache_retention "
            "context_management client_metadata moderation image access_programs"
        ),
        "refused": "prompt",
    }
)
"""Handling of each request field. Fields that are not listed are forwarded unchanged."""

_LEFT_OUT = [name for name, handling in FIELDS.items() if handling == "left out"]


def convert_to_openai(
    body: JsonObject, tools: ResponsesTools | None = None, dropped: list[str] | None = None
) -> JsonObject:
    """Return the chat completion request, and append the names of dropped fields to ``dropped``.

    ``tools`` are the request's tools, if they have been parsed. Raises RequestError if the request is invalid.
    """
    dropped = [] if dropped is None else dropped
    tools = parse_tools(body, dropped) if tools is None else tools
    if body.get("prompt"):
        raise RequestError("'prompt' names a template stored at OpenAI; send its text as 'instructions'", "prompt")
    dropped += list_dropped_fields(body, _LEFT_OUT)
    request: JsonObject = {key: body[key] for key in body if FIELDS.get(key, "passed") == "passed"}
    request |= {key: body[key] for key in ("stream", "parallel_tool_calls") if key in body}
    if body.get("max_output_tokens") is not None:
        request["max_tokens"] = body["max_output_tokens"]
    request["messages"] = list(place_results(list(convert_items(body.get("input"), dropped))))
    if not request["messages"] and not body.get("instructions"):
        raise RequestError("'input' must be text, or a list with at least one item", "input")
    if body.get("instructions"):
        instructions = require_type(str, body["instructions"], "instructions")
        request["messages"].insert(0, {"role": "system", "content": instructions})
    if body.get("stream"):
        request["stream_options"] = {"include_usage": True}
    request |= _convert_thinking(require_type(dict, body.get("reasoning"), "reasoning"), dropped)
    if tools.functions:
        request["tools"] = tools.functions
        request["tool_choice"] = _convert_choice(body.get("tool_choice"), tools)
    return request | _convert_text(require_type(dict, body.get("text"), "text"), dropped)


def parse_tools(body: JsonObject, dropped: list[str]) -> ResponsesTools:
    """Return a request's tools, including tools introduced by its input, and append the types of dropped tools to
    ``dropped``."""
    later = list_tools(body.get("input"))
    return parse_responses_tools(body.get("tools"), dropped, later)


def _convert_thinking(reasoning: JsonObject, dropped: list[str]) -> JsonObject:
    dropped += [f"reasoning.{name}" for name in list_dropped_fields(reasoning, ("summary", "generate_summary"))]
    return {"reasoning_effort": reasoning["effort"]} if reasoning.get("effort") else {}


def _convert_choice(choice: Json, known: ResponsesTools) -> Json:
    match choice:
        case {"type": "allowed_tools", "tools": list(tools), **rest}:
            named = [_convert_choice(each, known) for each in tools if get_object(each).get("type") in IDS]
            allowed = {"mode": rest.get("mode"), "tools": named}
            return {"type": "allowed_tools", "allowed_tools": allowed} if named else "none"
        case {"type": "function" | "custom", "name": str(name)}:
            return {"type": "function", "function": {"name": known.find_model_name(name)}}
        case {"type": "shell" | "local_shell" | "apply_patch" | "tool_search" as name}:
            return {"type": "function", "function": {"name": name}}
    return choice


def _convert_text(text: JsonObject, dropped: list[str]) -> JsonObject:
    dropped += [f"text.{name}" for name in list_dropped_fields(text, ("verbosity",))]
    match text.get("format"):
        case {"type": "json_object"} as format:
            return {"response_format": format}
        case {"type": "json_schema", **rest}:
            return {"response_format": {"type": "json_schema", "json_schema": rest}}
    return {}
