"""Anthropic's messages (``/v1/messages``) as OpenAI's chat completions.

Source: https://docs.anthropic.com/en/api/messages. Differences: the system prompt stands apart, a message is a list of
blocks, and results are blocks of the user.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from adapter.core.events import Json, JsonObject
from adapter.protocols.anthropic_client_tools import client_tool
from adapter.protocols.anthropic_tool_search import offered_tools, referenced_tools
from adapter.protocols.document_parts import decoded, document, unsupported_document
from adapter.protocols.dropped_fields import FieldHandling, dropped_fields
from adapter.protocols.guarded_exchange import EXTENSION
from adapter.protocols.openai_errors import RequestError, require_type

FIELDS: Mapping[str, FieldHandling] = {
    "model": "passed",
    "messages": "mapped",
    "system": "mapped",
    "max_tokens": "passed",
    "temperature": "passed",
    "top_p": "passed",
    "top_k": "passed",
    "stream": "taken",
    "stop_sequences": "mapped",
    "tools": "mapped",
    "tool_choice": "mapped",
    "thinking": "mapped",
    "output_config": "mapped",
    "output_format": "mapped",
    "thread": "refused",
    "metadata": "left out",
    "service_tier": "left out",
    "cache_control": "left out",
    "container": "left out",
    "context_management": "left out",
    "mcp_servers": "left out",
    "speed": "left out",
    "inference_geo": "left out",
    "diagnostics": "left out",
    "billing_policy": "left out",
    "compaction": "left out",
    "fallback_credit_token": "left out",
    "fallbacks": "left out",
    "user_profile_id": "left out",
    "workspace_id": "left out",
    EXTENSION: "taken",
}
"""What is not named here is left out as well."""

_PASSED = [name for name, fate in FIELDS.items() if fate == "passed"]

_EFFORTS = {"xhigh": "high", "max": "high"}
"""Anthropic's words for more than other servers know."""


def as_openai(body: JsonObject, left_out: list[str] | None = None) -> JsonObject:
    """The request as OpenAI's, and in ``left_out`` what is lost. Raises RequestError for messages that are none."""
    left_out = [] if left_out is None else left_out
    left_out += dropped_fields(body, [name for name in body if FIELDS.get(name, "left out") == "left out"])
    messages = require_type(list, body.get("messages"), "messages")
    request: JsonObject = {name: body[name] for name in (*_PASSED, "stream", EXTENSION) if name in body}
    reader = _ContentReader(left_out)
    request["messages"] = [made for index, each in enumerate(messages) for made in reader.messages(each, index)]
    if body.get("system"):
        request["messages"].insert(0, {"role": "system", "content": reader.text(body["system"])})
    if body.get("stop_sequences"):
        request["stop"] = body["stop_sequences"]
    if body.get("stream"):
        request["stream_options"] = {"include_usage": True}
    if tools := _tools(offered_tools(body.get("tools"), messages), left_out):
        request["tools"] = tools
        request |= _choice(require_type(dict, body.get("tool_choice"), "tool_choice"))
    request |= _thinking(require_type(dict, body.get("thinking"), "thinking"), left_out)
    output = require_type(dict, body.get("output_config"), "output_config")
    effort = output.get("effort")
    request |= {"reasoning_effort": _EFFORTS.get(effort, effort)} if isinstance(effort, str) else {}
    return request | _format(output.get("format") or body.get("output_format"))


def _tools(given: list[JsonObject], left_out: list[str]) -> list[JsonObject]:
    """Those that the client runs. Others (web search, code execution) are run by Anthropic's servers."""
    tools = []
    for tool in given:
        made = tool if tool.get("type", "custom") == "custom" else client_tool(tool)
        if made is None:
            left_out.append(f"tool {tool.get('type')}")
            continue
        function = {name: made[name] for name in ("name", "description", "strict") if made.get(name) is not None}
        tools.append({"type": "function", "function": {**function, "parameters": made.get("input_schema")}})
    return tools


def _thinking(thinking: JsonObject, left_out: list[str]) -> JsonObject:
    """How servers are told to think, or not."""
    left_out += [f"thinking.{name}" for name in dropped_fields(thinking, ("budget_tokens", "display"))]
    match thinking.get("type"):
        case "disabled" | "enabled" as said:
            return {"chat_template_kwargs": {"enable_thinking": said == "enabled"}}
    return {}


def _format(format: Json) -> JsonObject:
    match format:
        case {"type": "json_schema", "schema": dict(schema)}:
            return {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}}
    return {}


def _choice(choice: Mapping[str, Json]) -> JsonObject:
    made: JsonObject = {"parallel_tool_calls": False} if choice.get("disable_parallel_tool_use") else {}
    match choice.get("type"):
        case "any":
            made["tool_choice"] = "required"
        case "none":
            made["tool_choice"] = "none"
        case "tool":
            made["tool_choice"] = {"type": "function", "function": {"name": str(choice.get("name"))}}
    return made


class _ContentReader:
    """Reads messages and their blocks. ``left_out``: names of what says nothing to a model here."""

    def __init__(self, left_out: list[str]) -> None:
        self._left_out = left_out

    def messages(self, message: Json, index: int) -> Iterator[JsonObject]:
        """One message as OpenAI's: results each stand alone, before what else the user says."""
        if not isinstance(message, dict) or not isinstance(message.get("content"), str | list):
            raise RequestError(f"a message needs a role and content, got {str(message)[:80]!r}", "messages")
        role, content = message.get("role"), message["content"]
        if isinstance(content, str):
            yield {"role": role, "content": content}
            return
        place = f"messages[{index}].content"
        blocks = [block for block in content if isinstance(block, dict)]
        for block in blocks:
            if block.get("type") == "tool_result":
                yield {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": self._result(block, place)}
        calls = [
            {
                "id": block.get("id"),
                "type": "function",
                "function": {"name": block.get("name"), "arguments": block.get("input")},
            }
            for block in blocks
            if block.get("type") == "tool_use"
        ]
        rest = [part for block in blocks for part in self._parts(block, place)]
        if rest or calls:
            yield {"role": role, "content": rest, **({"tool_calls": calls} if calls else {})}

    def text(self, content: Json) -> str:
        """Of the system."""
        if isinstance(content, str):
            return content
        parts = [part for block in require_type(list, content, "system") for part in self._parts(block, "system")]
        return "\n".join(part["text"] for part in parts if "text" in part)

    def _result(self, block: JsonObject, place: str) -> Json:
        failed = "Error: " if block.get("is_error") else ""
        result = block.get("content") or ""
        if isinstance(result, str):
            return failed + result
        parts = [part for each in require_type(list, result, f"{place}.content") for part in self._parts(each, place)]
        return [{"type": "text", "text": failed}, *parts] if failed else parts

    def _parts(self, block: Json, place: str) -> list[JsonObject]:
        """A block as OpenAI's parts; none for thinking, which is not shown to a model again."""
        match block:
            case {"type": "text", "text": str(text)}:
                return [{"type": "text", "text": text}] if text else []
            case {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}:
                return [{"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}]
            case {"type": "image", "source": {"type": "url", "url": url}}:
                return [{"type": "image_url", "image_url": {"url": url}}]
            case {"type": "image", "source": {"type": "file"}}:
                raise unsupported_document("an image among the files of an account", place)
            case {"type": "document", "source": dict(source)}:
                return self._document(block, source, place)
            case {"type": "search_result", "source": source, "title": title, "content": list(content)}:
                parts = [part for each in content for part in self._parts(each, place)]
                return [document("\n".join(part.get("text", "") for part in parts), str(title), f"Source: {source}")]
            case {"type": "tool_use" | "tool_result" | "thinking" | "redacted_thinking"} | {"type": "text"}:
                return []
            case {"type": str(kind)}:
                if said := referenced_tools(block):
                    return [{"type": "text", "text": said}]
                self._left_out.append(f"block {kind}")
        return []

    def _document(self, block: JsonObject, source: JsonObject, place: str) -> list[JsonObject]:
        title, context = str(block.get("title") or ""), str(block.get("context") or "")
        match source:
            case {"type": "text", "data": str(text)}:
                return [document(text, title, context)]
            case {"type": "base64", "media_type": str(kind), "data": str(data)}:
                return [document(decoded(kind, data, title, place), title, context)]
            case {"type": "content", "content": str(text)}:
                return [document(text, title, context)]
            case {"type": "content", "content": list(content)}:
                parts = [part for each in content for part in self._parts(each, place)]
                return [document("", title, context), *parts] if title or context else parts
        raise unsupported_document("a document at an address, or among the files of an account", place)
