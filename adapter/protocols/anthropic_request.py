"""Translate requests to Anthropic's Messages API (``/v1/messages``) to OpenAI's chat completions.

Source: https://docs.anthropic.com/en/api/messages. Differences: the system prompt is a separate field, a message is a
list of blocks, and tool results are blocks in user messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from adapter.core.events import Json, JsonObject
from adapter.protocols.anthropic_tools import define_client_tool, describe_tool_change, list_available_tools
from adapter.protocols.dropped_fields import build_field_table, list_dropped_fields, list_unknown_fields
from adapter.protocols.exchange_guardrails import EXTENSION
from adapter.protocols.media_parts import build_document, build_unfetched_error, decode_document
from adapter.protocols.reasoning_budget import BUDGET_FIELD
from adapter.protocols.request_errors import RequestError, require_type
from adapter.protocols.request_list_cache import convert_once

FIELDS = build_field_table(
    {
        "passed": "model max_tokens temperature top_p top_k",
        "mapped": "messages system stop_sequences tools tool_choice thinking output_config output_format",
        "taken": f"stream {EXTENSION}",
        "left out": (
            "metadata service_tier cache_control container context_management mcp_servers speed "
            "inference_geo diagnostics billing_policy compaction fallback_credit_token fallbacks "
            "user_profile_id workspace_id"
        ),
        "refused": "thread",
    }
)
"""Handling of each request field. Fields that are not listed are dropped."""

_PASSED = [name for name, handling in FIELDS.items() if handling == "passed"]

_EFFORTS = {"xhigh": "high", "max": "high"}
"""Anthropic's effort levels that other servers do not support, and their replacements."""

_BILLING = "x-anthropic-billing-header:"
"""Beginning of the first line of Claude Code's system prompt. The line changes with each request, which would keep the
model server from reusing its prompt cache, so it is removed."""


def convert_to_openai(body: JsonObject, dropped: list[str] | None = None) -> JsonObject:
    """Return the OpenAI chat request, and append the names of dropped fields to ``dropped``.

    Raises RequestError if the request is invalid.
    """
    dropped = [] if dropped is None else dropped
    dropped += list_unknown_fields(body, FIELDS)
    messages = require_type(list, body.get("messages"), "messages")
    request: JsonObject = {name: body[name] for name in (*_PASSED, "stream", EXTENSION) if name in body}
    reader = _ContentReader(dropped)
    request["messages"] = [
        message for index, each in enumerate(messages) for message in reader.convert_message(each, index)
    ]
    if body.get("system"):
        request["messages"].insert(0, {"role": "system", "content": reader.convert_system_text(body["system"])})
    if body.get("stop_sequences"):
        request["stop"] = body["stop_sequences"]
    if body.get("stream"):
        request["stream_options"] = {"include_usage": True}
    definitions = body.get("tools")
    available = list_available_tools(definitions, messages)
    is_whole = available == definitions  # messages may add and remove tools
    convert = partial(_convert_tools, available)
    if tools := convert_once(definitions if is_whole else available, "anthropic", dropped, convert):
        request["tools"] = tools
        request |= _convert_choice(require_type(dict, body.get("tool_choice"), "tool_choice"))
    request |= _convert_thinking(require_type(dict, body.get("thinking"), "thinking"), dropped)
    output = require_type(dict, body.get("output_config"), "output_config")
    thinks = request.get("chat_template_kwargs", {}).get("enable_thinking", True)
    if thinks and isinstance(effort := output.get("effort"), str):
        request["reasoning_effort"] = _EFFORTS.get(effort, effort)
    return request | _format(output.get("format") or body.get("output_format"))


def _convert_tools(definitions: list[JsonObject], dropped: list[str]) -> tuple[list[JsonObject], list[JsonObject]]:
    """Convert tools, and return them twice, as `convert_once` expects. Tools that Anthropic's servers run, such as web
    search, are dropped: their types are appended to ``dropped``."""
    tools = []
    for tool in definitions:
        definition = tool if tool.get("type", "custom") == "custom" else define_client_tool(tool)
        if definition is None:
            dropped.append(f"tool {tool.get('type')}")
            continue
        function = {
            name: definition[name] for name in ("name", "description", "strict") if definition.get(name) is not None
        }
        tools.append({"type": "function", "function": {**function, "parameters": definition.get("input_schema")}})
    return tools, tools


def _convert_thinking(thinking: JsonObject, dropped: list[str]) -> JsonObject:
    """Convert Anthropic's thinking settings to the chat template's switch, and append dropped ones to ``dropped``."""
    dropped += [f"thinking.{name}" for name in list_dropped_fields(thinking, ("display",))]
    match thinking.get("type"):
        case "disabled" | "enabled" as mode:
            limit = {BUDGET_FIELD: thinking["budget_tokens"]} if thinking.get("budget_tokens") is not None else {}
            return {"chat_template_kwargs": {"enable_thinking": mode == "enabled"}, **limit}
    return {}


def _format(format: Json) -> JsonObject:
    match format:
        case {"type": "json_schema", "schema": dict(schema)}:
            return {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}}
    return {}


def _convert_choice(choice: Mapping[str, Json]) -> JsonObject:
    fields: JsonObject = {"parallel_tool_calls": False} if choice.get("disable_parallel_tool_use") else {}
    match choice.get("type", "auto"):
        case "auto":
            pass
        case "any":
            fields["tool_choice"] = "required"
        case "none":
            fields["tool_choice"] = "none"
        case "tool":
            fields["tool_choice"] = {"type": "function", "function": {"name": str(choice.get("name"))}}
        case kind:
            message = f"tool_choice.type must be auto, any, tool or none, got {str(kind)[:80]!r}"
            raise RequestError(message, "tool_choice")
    return fields


def _remove_billing(text: str) -> str:
    return text.partition("\n")[2] if text.startswith(_BILLING) else text


class _ContentReader:
    """Converts messages and their content blocks. Types of blocks that are dropped are appended to ``dropped``."""

    def __init__(self, dropped: list[str]) -> None:
        self._dropped = dropped

    def convert_message(self, message: Json, index: int) -> Iterator[JsonObject]:
        """Convert one message. Each tool result becomes a separate message before the user's text."""
        if not isinstance(message, dict) or not isinstance(message.get("content"), str | list):
            raise RequestError(f"a message must have a role and content, got {str(message)[:80]!r}", "messages")
        role, content = message.get("role"), message["content"]
        if role == "system":
            if text := self.convert_system_text(content):
                yield {"role": role, "content": text}
            return
        if isinstance(content, str):
            yield {"role": role, "content": content}
            return
        path = f"messages[{index}].content"
        blocks = [block for block in content if isinstance(block, dict)]
        for block in blocks:
            if block.get("type") == "tool_result":
                yield {
                    "role": "tool",
                    "tool_call_id": block.get("tool_use_id"),
                    "content": self._convert_result(block, path),
                }
        calls = [
            {
                "id": block.get("id"),
                "type": "function",
                "function": {"name": block.get("name"), "arguments": block.get("input")},
            }
            for block in blocks
            if block.get("type") == "tool_use"
        ]
        rest = [part for block in blocks for part in self._convert_block(block, path)]
        reasoning = "\n".join(block["thinking"] for block in blocks if isinstance(block.get("thinking"), str))
        if rest or calls or role == "assistant":  # without an empty answer, two user messages would be consecutive
            yield {
                "role": role,
                "content": rest or "",
                **({"tool_calls": calls} if calls else {}),
                **({"reasoning_content": reasoning} if reasoning else {}),
            }

    def convert_system_text(self, content: Json) -> str:
        """Return the text of the system prompt, without Claude Code's billing line."""
        if isinstance(content, str):
            return _remove_billing(content)
        parts = [
            part for block in require_type(list, content, "system") for part in self._convert_block(block, "system")
        ]
        texts = [_remove_billing(part["text"]) for part in parts if "text" in part]
        return "\n".join(text for text in texts if text)

    def _convert_result(self, block: JsonObject, path: str) -> Json:
        failed = "Error: " if block.get("is_error") else ""
        result = block.get("content") or ""
        if isinstance(result, str):
            return failed + result
        parts = [
            part for each in require_type(list, result, f"{path}.content") for part in self._convert_block(each, path)
        ]
        return [{"type": "text", "text": failed}, *parts] if failed else parts

    def _convert_block(self, block: Json, path: str) -> list[JsonObject]:
        """Convert a block to message parts. Calls, results and thinking are not part of the content."""
        match block:
            case {"type": "text", "text": str(text)}:
                return [{"type": "text", "text": text}] if text else []
            case {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}:
                return [{"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}]
            case {"type": "image", "source": {"type": "url", "url": url}}:
                return [{"type": "image_url", "image_url": {"url": url}}]
            case {"type": "image", "source": {"type": "file"}}:
                raise build_unfetched_error("an uploaded image", path, "send it in base64")
            case {"type": "document", "source": dict(source)}:
                return self._convert_document(block, source, path)
            case {"type": "search_result", "source": source, "title": title, "content": list(content)}:
                parts = [part for each in content for part in self._convert_block(each, path)]
                return [
                    build_document("\n".join(part.get("text", "") for part in parts), str(title), f"Source: {source}")
                ]
            case {"type": "tool_use" | "tool_result" | "thinking" | "redacted_thinking"} | {"type": "text"}:
                return []
            case {"type": str(kind)}:
                if note := describe_tool_change(block):
                    return [{"type": "text", "text": note}]
                self._dropped.append(f"block {kind}")
        return []

    def _convert_document(self, block: JsonObject, source: JsonObject, path: str) -> list[JsonObject]:
        title, context = str(block.get("title") or ""), str(block.get("context") or "")
        match source:
            case {"type": "text", "data": str(text)}:
                return [build_document(text, title, context)]
            case {"type": "base64", "media_type": str(kind), "data": str(data)}:
                return [build_document(decode_document(kind, data, title, path), title, context)]
            case {"type": "content", "content": str(text)}:
                return [build_document(text, title, context)]
            case {"type": "content", "content": list(content)}:
                parts = [part for each in content for part in self._convert_block(each, path)]
                return [build_document("", title, context), *parts] if title or context else parts
        raise build_unfetched_error("a document URL or an uploaded document", path)
