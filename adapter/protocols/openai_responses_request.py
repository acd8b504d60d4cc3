"""OpenAI's responses (``/v1/responses``) as chat completions.

Source: https://platform.openai.com/docs/api-reference/responses. Differences: a conversation is a list of items, calls
and results among them (`adapter.protocols.openai_responses_items`); tools are flat, and of more kinds
(`adapter.protocols.openai_responses_tools`); what a request refers to must stand in it by now (`adapter.server.responses_request`).
"""

from __future__ import annotations

from collections.abc import Mapping

from adapter.core.events import Json, JsonObject
from adapter.protocols.dropped_fields import FieldHandling, dropped_fields
from adapter.protocols.openai_errors import RequestError, require_type
from adapter.protocols.openai_responses_items import messages_of, tools_in
from adapter.protocols.openai_responses_tools import ResponsesTools, parse_responses_tools

FIELDS: Mapping[str, FieldHandling] = {
    "model": "passed",
    "input": "mapped",
    "instructions": "mapped",
    "tools": "mapped",
    "tool_choice": "mapped",
    "parallel_tool_calls": "taken",
    "max_output_tokens": "mapped",
    "reasoning": "mapped",
    "text": "mapped",
    "stream": "taken",
    "temperature": "passed",
    "top_p": "passed",
    "user": "passed",
    "store": "taken",
    "previous_response_id": "taken",
    "conversation": "taken",
    "metadata": "taken",
    "prompt": "refused",
    "include": "left out",
    "top_logprobs": "left out",
    "truncation": "left out",
    "background": "left out",
    "background_options": "left out",
    "max_tool_calls": "left out",
    "stream_options": "left out",
    "service_tier": "left out",
    "safety_identifier": "left out",
    "prompt_cache_key": "left out",
    "prompt_cache_options": "left out",
    "prompt_cache_retention": "left out",
    "context_management": "left out",
    "client_metadata": "left out",
    "moderation": "left out",
    "image": "left out",
    "access_programs": "left out",
}
"""What is not named here goes on untouched."""

_LEFT_OUT = [name for name, fate in FIELDS.items() if fate == "left out"]


def as_openai(body: JsonObject, forms: ResponsesTools | None = None, left_out: list[str] | None = None) -> JsonObject:
    """The request as one for chat completions, and in ``left_out`` what is lost. ``forms``: of its tools.

    Raises RequestError for what is none.
    """
    left_out = [] if left_out is None else left_out
    forms = forms_in(body, left_out) if forms is None else forms
    if body.get("prompt"):
        raise RequestError("'prompt' names a template that OpenAI keeps: send its text as instructions", "prompt")
    left_out += dropped_fields(body, _LEFT_OUT)
    request: JsonObject = {key: body[key] for key in body if FIELDS.get(key, "passed") == "passed"}
    request |= {key: body[key] for key in ("stream", "parallel_tool_calls") if key in body}
    if body.get("max_output_tokens") is not None:
        request["max_tokens"] = body["max_output_tokens"]
    request["messages"] = list(messages_of(body.get("input"), left_out))
    if body.get("instructions"):
        instructions = require_type(str, body["instructions"], "instructions")
        request["messages"].insert(0, {"role": "system", "content": instructions})
    if body.get("stream"):
        request["stream_options"] = {"include_usage": True}
    request |= _thinking(require_type(dict, body.get("reasoning"), "reasoning"), left_out)
    if forms.functions:
        request["tools"] = forms.functions
        request["tool_choice"] = _choice(body.get("tool_choice"), forms)
    return request | _text(require_type(dict, body.get("text"), "text"), left_out)


def forms_in(body: JsonObject, left_out: list[str]) -> ResponsesTools:
    """The tools of a request, and those that came up in its conversation."""
    later = tools_in(body.get("input"))
    return parse_responses_tools(body.get("tools"), left_out, later)


def _thinking(reasoning: JsonObject, left_out: list[str]) -> JsonObject:
    left_out += [f"reasoning.{name}" for name in dropped_fields(reasoning, ("summary", "generate_summary"))]
    return {"reasoning_effort": reasoning["effort"]} if reasoning.get("effort") else {}


def _choice(choice: Json, forms: ResponsesTools) -> Json:
    match choice:
        case {"type": "allowed_tools", "tools": list(listed), **rest}:
            named = [_choice(each, forms) for each in listed]
            return {"type": "allowed_tools", "allowed_tools": {"mode": rest.get("mode"), "tools": named}}
        case {"type": "function" | "custom", "name": str(name)}:
            return {"type": "function", "function": {"name": forms.called(name)}}
        case {"type": "shell" | "local_shell" | "apply_patch" | "tool_search" as name}:
            return {"type": "function", "function": {"name": name}}
    return choice


def _text(text: JsonObject, left_out: list[str]) -> JsonObject:
    left_out += [f"text.{name}" for name in dropped_fields(text, ("verbosity",))]
    match text.get("format"):
        case {"type": "json_object"} as format:
            return {"response_format": format}
        case {"type": "json_schema", **rest}:
            return {"response_format": {"type": "json_schema", "json_schema": rest}}
    return {}
