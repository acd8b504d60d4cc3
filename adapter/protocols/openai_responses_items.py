"""Convert the items of a Responses API conversation to chat messages.

Text and calls of an assistant turn become one message. Calls that OpenAI's servers made are included if both the call
and its result are text; otherwise they are dropped. Reasoning becomes a field of the turn, for chat templates that show
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from adapter.conversation.message_content import get_text
from adapter.core.events import Json, JsonObject
from adapter.protocols.media_parts import build_document, build_unfetched_error, decode_document
from adapter.protocols.openai_responses_tools import parse_call_item, parse_result_item
from adapter.protocols.request_errors import RequestError, require_objects, require_type

CALLS = ("function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "tool_search_call")
RESULTS = (*(f"{call}_output" for call in CALLS if call != "tool_search_call"), "tool_search_output")
UNSEEN = (
    "web_search_call", "file_search_call", "computer_call", "computer_call_output", "image_generation_call",
    "code_interpreter_call", "additional_tools", "mcp_list_tools", "agent_message",
    "mcp_approval_request", "mcp_approval_response", "compaction", "compaction_trigger", "context_compaction",
    "configuration_update", "program", "program_output",
)  # fmt: skip
"""Types of items that are not shown to the model: calls run by OpenAI's servers, encrypted summaries, approval
requests. If such an item introduces tools, `list_tools` returns them."""


_PART_FIELDS: Mapping[Json, JsonObject] = {"output_text": {"annotations": []}, "input_image": {"detail": "auto"}}


def complete_item(item: JsonObject) -> JsonObject:
    """Return a client's item with the fields that OpenAI's API adds when it lists the item."""
    status = "completed" if item.get("status") is None else item["status"]
    content = item.get("content")
    if isinstance(content, str):
        kind = "output_text" if item.get("role") == "assistant" else "input_text"
        content = [{"type": kind, "text": content}]
    if not isinstance(content, list):
        return {**item, "status": status}
    parts = [_PART_FIELDS.get(each.get("type"), {}) | each if isinstance(each, dict) else each for each in content]
    return {**item, "content": parts, "status": status}


def list_tools(items: Json) -> list[Json]:
    """Return the tools introduced by items of the conversation."""
    introduced: list[Json] = []
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and item.get("type") in ("additional_tools", "tool_search_output"):
            tools = item.get("tools")
            introduced += tools if isinstance(tools, list) else []
    return introduced


def convert_items(items: Json, dropped: list[str]) -> Iterator[JsonObject]:
    """Yield the chat messages for the items of a conversation, and append dropped types of items to ``dropped``.

    Raises RequestError if an item is invalid.
    """
    if isinstance(items, str):
        yield {"role": "user", "content": items}
        return
    turn: JsonObject | None = None
    reasoning: list[str] = []
    for message in _convert_item_list(require_objects(items, "input"), dropped):
        if message["role"] == "reasoning":
            reasoning.append(message["content"])
            continue
        # A call belongs to the text before it, and a text to calls that have no results yet.
        is_answer, has_calls = message["role"] == "assistant", "tool_calls" in message
        joined = turn if turn is not None and is_answer and (has_calls or turn["content"] is None) else None
        if is_answer and reasoning:
            target = message if joined is None else joined
            target["reasoning_content"] = "\n".join([*filter(None, [target.get("reasoning_content")]), *reasoning])
        reasoning = []
        if joined is not None and has_calls:
            joined.setdefault("tool_calls", []).extend(message["tool_calls"])
        elif joined is not None:
            joined["content"] = message["content"]
        if joined is not None:
            continue
        if turn is not None:
            yield turn
        turn = message if is_answer else None
        if turn is None:
            yield message
    if turn is not None:
        yield turn


def place_results(messages: list[JsonObject]) -> Iterator[JsonObject]:
    """Yield the messages, with each tool result moved directly after its call. Codex may put user messages between."""
    calling: dict[str, int] = {}
    results: dict[int, list[JsonObject]] = {}
    rest = []
    for index, message in enumerate(messages):
        calling |= {str(call["id"]): index for call in message.get("tool_calls", ())}
        caller = calling.get(str(message["tool_call_id"])) if message["role"] == "tool" else None
        if caller is None:
            rest.append((index, message))
        else:
            results.setdefault(caller, []).append(message)
    for index, message in rest:
        yield message
        yield from results.get(index, ())


def _convert_item_list(items: list[JsonObject], dropped: list[str]) -> Iterator[JsonObject]:
    calls = {item.get("id"): item.get("call_id") for item in items if item.get("type") == "local_shell_call"}
    for index, item in enumerate(items):
        path, kind = f"input[{index}]", item.get("type") or "message"
        match kind:
            case "message":
                yield {"role": item.get("role"), "content": _convert_content(item.get("content"), path)}
            case "tool_search_call" | "tool_search_output" if not item.get("call_id"):
                dropped.append(f"item {kind}")  # OpenAI's server searched, and added the results to the tools
            case _ if kind in CALLS:
                yield _build_calling_message(item.get("call_id"), parse_call_item(item))
            case _ if kind in RESULTS:
                call_id = item.get("call_id") or calls.get(item.get("id")) or item.get("id")
                name = {"name": item["name"]} if item.get("name") else {}
                content = _convert_content(parse_result_item(item), f"{path}.output")
                yield {"role": "tool", "tool_call_id": call_id, **name, "content": content}
            case "mcp_call":
                yield _build_calling_message(item.get("id"), parse_call_item(item))
                result = item.get("output") or item.get("error") or ""
                yield {"role": "tool", "tool_call_id": item.get("id"), "content": str(result)}
            case "agent_message" if text := get_text(item.get("content")):  # of another agent of codex
                sender = f"Message from {item.get('author')} to {item.get('recipient')}:"
                yield {"role": "user", "content": f"{sender}\n{text}"}
            case "reasoning":
                if text := get_text(item.get("content")) or get_text(item.get("summary")):
                    yield {"role": "reasoning", "content": text}
            case _ if kind in UNSEEN:
                dropped.append(f"item {kind}")
            case _:
                known = ", ".join(("message", *CALLS, *RESULTS, "reasoning", "item_reference"))
                raise RequestError(f"{path} has the unknown type {str(kind)[:80]!r}; expected one of {known}", path)


def _build_calling_message(call_id: Json, function: JsonObject) -> JsonObject:
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _convert_content(content: Json, path: str) -> Json:
    if content is None or isinstance(content, str):
        return content
    return [_convert_part(part, f"{path}.content") for part in require_objects(content, f"{path}.content")]


def _convert_part(part: JsonObject, path: str) -> JsonObject:
    match part:
        case {"text": str(text)} | {"refusal": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "input_image", "image_url": str(url)}:
            return {"type": "image_url", "image_url": {"url": url, "detail": part.get("detail") or "auto"}}
        case {"type": "input_image"}:
            raise build_unfetched_error("an uploaded image", path, "send its content as a data URL")
        case {"type": "input_file"}:
            return _convert_file(part, path)
    return part


def _convert_file(part: JsonObject, path: str) -> JsonObject:
    title, data_url = require_type(str, part.get("filename"), f"{path}.filename"), part.get("file_data")
    if not isinstance(data_url, str):
        raise build_unfetched_error("a file URL" if part.get("file_url") else "an uploaded file", path)
    head, _, data = data_url.rpartition(",")
    kind = head.removeprefix("data:").partition(";")[0] or ("text/plain" if title.endswith((".txt", ".md")) else "")
    return build_document(decode_document(kind, data, title, path), title)
