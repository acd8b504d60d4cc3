"""The items of a conversation, as OpenAI's responses have it, as the messages of a chat.

What the assistant says and calls in one go is one message. Calls that OpenAI's own servers made are shown with their
results where both are text; of the others nothing is known here, so they are left out. Reasoning is not shown again.
"""

from __future__ import annotations

from collections.abc import Iterator

from adapter.core.events import Json, JsonObject
from adapter.protocols.document_parts import decoded, document, unsupported_document
from adapter.protocols.openai_errors import RequestError, objects_in, require_type
from adapter.protocols.openai_responses_tools import call_from_item, result_from_item

CALLS = ("function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "tool_search_call")
RESULTS = (*(f"{call}_output" for call in CALLS if call != "tool_search_call"), "tool_search_output")
UNSEEN = (
    "web_search_call", "file_search_call", "computer_call", "computer_call_output", "image_generation_call",
    "code_interpreter_call", "additional_tools", "mcp_list_tools",
    "mcp_approval_request", "mcp_approval_response", "compaction", "compaction_trigger", "context_compaction",
    "configuration_update", "program", "program_output",
)  # fmt: skip
"""Items that say nothing to a model here: what somebody else's server did, sealed summaries, questions to its user.
The tools in some of them are taken (`tools_in`)."""


def tools_in(items: Json) -> list[Json]:
    """The tools that came up in the middle of a conversation."""
    found: list[Json] = []
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and item.get("type") in ("additional_tools", "tool_search_output"):
            tools = item.get("tools")
            found += tools if isinstance(tools, list) else []
    return found


def messages_of(given: Json, left_out: list[str]) -> Iterator[JsonObject]:
    """The messages. Raises RequestError for what is no item."""
    if isinstance(given, str):
        yield {"role": "user", "content": given}
        return
    said: JsonObject | None = None
    for message in _messages(objects_in(given, "input"), left_out):
        if message["role"] == "assistant" and said is not None and "tool_calls" in message:
            said.setdefault("tool_calls", []).extend(message["tool_calls"])
            continue
        if said is not None:
            yield said
        said = message if message["role"] == "assistant" else None
        if said is None:
            yield message
    if said is not None:
        yield said


def _messages(items: list[JsonObject], left_out: list[str]) -> Iterator[JsonObject]:
    calls = {item.get("id"): item.get("call_id") for item in items if item.get("type") == "local_shell_call"}
    for index, item in enumerate(items):
        place, kind = f"input[{index}]", item.get("type") or "message"
        match kind:
            case "message":
                yield {"role": item.get("role"), "content": _content(item.get("content"), place)}
            case "tool_search_call" | "tool_search_output" if not item.get("call_id"):
                left_out.append(f"item {kind}")  # OpenAI's server searched; what it found is among the tools
            case _ if kind in CALLS:
                yield _calling(item.get("call_id"), call_from_item(item))
            case _ if kind in RESULTS:
                call_id = item.get("call_id") or calls.get(item.get("id")) or item.get("id")
                name = {"name": item["name"]} if item.get("name") else {}
                content = _content(result_from_item(item), f"{place}.output")
                yield {"role": "tool", "tool_call_id": call_id, **name, "content": content}
            case "mcp_call":
                yield _calling(item.get("id"), call_from_item(item))
                result = item.get("output") or item.get("error") or ""
                yield {"role": "tool", "tool_call_id": item.get("id"), "content": _text(result)}
            case "reasoning":
                pass
            case _ if kind in UNSEEN:
                left_out.append(f"item {kind}")
            case _:
                known = ", ".join(("message", *CALLS, *RESULTS, "reasoning", "item_reference"))
                raise RequestError(f"{place} is of the type {str(kind)[:80]!r}; expected one of {known}", place)


def _calling(call_id: Json, function: JsonObject) -> JsonObject:
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else str(value)


def _content(content: Json, place: str) -> Json:
    if content is None or isinstance(content, str):
        return content
    return [_part(part, f"{place}.content") for part in objects_in(content, f"{place}.content")]


def _part(part: JsonObject, place: str) -> JsonObject:
    match part:
        case {"text": str(text)} | {"refusal": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "input_image", "image_url": str(url)}:
            return {"type": "image_url", "image_url": {"url": url, "detail": part.get("detail") or "auto"}}
        case {"type": "input_image"}:
            raise unsupported_document("an image among the files of an account", place)
        case {"type": "input_file"}:
            return _file(part, place)
    return part


def _file(part: JsonObject, place: str) -> JsonObject:
    title, given = require_type(str, part.get("filename"), f"{place}.filename"), part.get("file_data")
    if not isinstance(given, str):
        raise unsupported_document("a file at an address" if part.get("file_url") else "a file of an account", place)
    head, _, data = given.rpartition(",")
    kind = head.removeprefix("data:").partition(";")[0] or ("text/plain" if title.endswith((".txt", ".md")) else "")
    return document(decoded(kind, data, title, place), title)
