"""OpenAI's responses (``/v1/responses``) as chat completions, and back.

Source: https://platform.openai.com/docs/api-reference/responses and its streaming page. Differences: a
conversation is a list of items, calls and results among them; tools are flat; an answer
is a list of items, too, and a stream opens and closes each and its parts. Nothing is
stored here, so a request brings its whole conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from adapter.values.events import Json, JsonObject
from adapter.wire.errors import RequestError, checked_as, is_error, objects_in
from adapter.wire.sse import PING, as_event

RENAMED = {"max_output_tokens": "max_tokens"}
NOT_FOR_CHATS = frozenset(
    {
        "input", "instructions", "tools", "tool_choice", "text", "reasoning", "store", "include", "truncation",
        "previous_response_id", "conversation", "metadata", "background", "prompt", "prompt_cache_key", "service_tier",
        "safety_identifier", "max_tool_calls", "stream_options", "client_metadata", "context_management",
    }
)  # fmt: skip
"""Fields that a server of chat completions does not have, or has in another shape; what is left goes on untouched."""


def as_openai(body: JsonObject) -> JsonObject:
    """The request as one for chat completions. Raises RequestError for what is none."""
    for field in ("previous_response_id", "conversation", "prompt"):
        if body.get(field):
            raise RequestError(f"{field!r} needs answers that are kept; nothing is: send the whole input", field)
    request: JsonObject = {RENAMED.get(key, key): body[key] for key in body if key not in NOT_FOR_CHATS}
    request["messages"] = list(_messages(body.get("input")))
    if body.get("instructions"):
        instructions = checked_as(str, body["instructions"], "instructions")
        request["messages"].insert(0, {"role": "system", "content": instructions})
    if body.get("stream"):
        request["stream_options"] = {"include_usage": True}
    effort = checked_as(dict, body.get("reasoning"), "reasoning").get("effort")
    if effort:
        request["reasoning_effort"] = effort
    # Tools of types of their own (web search, a shell) are run by OpenAI's servers or known to its models alone.
    tools = [tool for tool in objects_in(body.get("tools"), "tools") if tool.get("type") == "function"]
    if tools:
        request["tools"] = tools
        request["tool_choice"] = _choice(body.get("tool_choice"))
    return request | _format(checked_as(dict, body.get("text"), "text").get("format"))


def _choice(choice: Json) -> Json:
    match choice:
        case {"type": "allowed_tools", **rest} if "allowed_tools" not in rest:
            return {"type": "allowed_tools", "allowed_tools": rest}
    return choice


def _format(format: Json) -> JsonObject:
    match format:
        case {"type": "json_object"}:
            return {"response_format": format}
        case {"type": "json_schema", **rest}:
            return {"response_format": {"type": "json_schema", "json_schema": rest}}
    return {}


def _messages(given: Json) -> Iterator[JsonObject]:
    """The items as messages: what the assistant says and calls in one go is one."""
    if isinstance(given, str):
        yield {"role": "user", "content": given}
        return
    said: JsonObject | None = None
    for index, item in enumerate(objects_in(given, "input")):
        message = _message(item, f"input[{index}]")
        if message is None:
            continue
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


def _message(item: JsonObject, place: str) -> JsonObject | None:
    """None for reasoning, which is not shown to a model again."""
    match item.get("type", "message"):
        case "message":
            return {"role": item.get("role"), "content": _content(item.get("content"), place)}
        case "function_call":
            function = {"name": item.get("name"), "arguments": item.get("arguments")}
            return {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": item.get("call_id"), "type": "function", "function": function}],
            }
        case "function_call_output":
            result = _content(item.get("output"), f"{place}.output")
            return {"role": "tool", "tool_call_id": item.get("call_id"), "content": result}
        case "reasoning":
            return None
        case kind:
            raise RequestError(
                f"{place} is of the type {str(kind)[:80]!r}; expected message, function_call, function_call_output or "
                "reasoning",
                place,
            )


def _content(content: Json, place: str) -> Json:
    if content is None or isinstance(content, str):
        return content
    return [_part(part) for part in objects_in(content, f"{place}.content")]


def _part(part: JsonObject) -> JsonObject:
    if isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    if part.get("type") == "input_image":
        return {
            "type": "image_url",
            "image_url": {"url": part.get("image_url"), "detail": part.get("detail") or "auto"},
        }
    return part


def answer_head(body: Mapping[str, Json], response_id: str, created: int) -> JsonObject:
    """What every state of an answer says of its request. ``created``: seconds since 1970."""
    asked: JsonObject = {
        "instructions": None, "max_output_tokens": None, "metadata": {}, "parallel_tool_calls": True, "reasoning": None,
        "temperature": None, "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_p": None,
        "previous_response_id": None,
    }  # fmt: skip
    return {
        "id": response_id,
        "object": "response",
        "created_at": created,
        "model": str(body.get("model") or ""),
        **{key: default if body.get(key) is None else body[key] for key, default in asked.items()},
    }


def _state(head: JsonObject, output: Sequence[JsonObject], reason: str | None, usage: Json) -> JsonObject:
    """``reason``: the finish reason, None while the answer goes on."""
    cut = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(reason or "")
    return {
        **head,
        "status": "in_progress" if reason is None else "incomplete" if cut else "completed",
        "incomplete_details": {"reason": cut} if cut else None,
        "error": None,
        "output": list(output),
        "usage": _usage(usage) if isinstance(usage, dict) and usage else None,
    }


def _usage(usage: JsonObject) -> JsonObject:
    read, written = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.get("total_tokens") or read + written,
    }


def _reasoning(item_id: str, text: str | None) -> JsonObject:
    parts = [] if text is None else [{"type": "reasoning_text", "text": text}]
    return {"type": "reasoning", "id": item_id, "summary": [], "content": parts}


def _said(item_id: str, text: str | None) -> JsonObject:
    return {
        "type": "message",
        "id": item_id,
        "role": "assistant",
        "status": "in_progress" if text is None else "completed",
        "content": [] if text is None else [_text_part(text)],
    }


def _text_part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _called(item_id: str, call: JsonObject, arguments: str, status: str) -> JsonObject:
    name = call["function"]["name"]
    return {"type": "function_call", "id": item_id, "call_id": call["id"], "name": name, "arguments": arguments,
            "status": status}  # fmt: skip


def as_answer(completion: JsonObject, head: JsonObject) -> JsonObject:
    """A whole answer as a response, from a chat completion."""
    choice: JsonObject = next(iter(completion["choices"]), {"message": {}, "finish_reason": "stop"})
    message, suffix = choice["message"], str(head["id"]).partition("_")[2]
    output: list[JsonObject] = []
    if message.get("reasoning_content"):
        output.append(_reasoning(f"rs_{suffix}", message["reasoning_content"]))
    if message.get("content"):
        output.append(_said(f"msg_{suffix}", message["content"]))
    for number, call in enumerate(message.get("tool_calls") or ()):
        output.append(_called(f"fc_{suffix}{number}", call, call["function"]["arguments"], "completed"))
    return _state(head, output, choice["finish_reason"] or "stop", completion.get("usage"))


class ResponsesWriter:
    """Chunks as the events of a response."""

    content_type = "text/event-stream; charset=utf-8"
    ping = PING

    def __init__(self, head: JsonObject) -> None:
        self._head = head
        self._suffix = str(head["id"]).partition("_")[2]
        self._numbers = count()
        self._output: list[JsonObject] = []  # the items that are done
        self._open: str | None = None  # the kind of the open item
        self._id = ""
        self._text: list[str] = []
        self._call: JsonObject = {}
        self._has_begun = False
        self._reason: str | None = None
        self._usage: Json = None

    def write(self, chunks: list[JsonObject]) -> bytes:
        return b"".join(event for chunk in chunks for event in self._events(chunk))

    def end(self) -> bytes:
        reason = self._reason or "stop"
        events = [*self._begin(), *self._close_item()]
        state = _state(self._head, self._output, reason, self._usage)
        return b"".join([*events, self._event(f"response.{state['status']}", response=state)])

    def _events(self, chunk: JsonObject) -> Iterator[bytes]:
        if is_error(chunk):
            error = chunk["error"] if isinstance(chunk["error"], dict) else {"message": str(chunk["error"])}
            # As an event of this interface, and with what makes the SDK raise it.
            shown = {"message": error.get("message"), "code": error.get("code"), "param": error.get("param")}
            yield self._event("error", **shown, error=error)
            return
        yield from self._begin()
        self._usage = chunk.get("usage") or self._usage
        for choice in chunk["choices"]:
            delta = choice["delta"]
            self._reason = choice["finish_reason"] or self._reason
            if delta.get("reasoning_content"):
                yield from self._add("reasoning", delta["reasoning_content"])
            if delta.get("content"):
                yield from self._add("message", delta["content"])
            for call in delta.get("tool_calls") or ():
                if "id" in call:
                    yield from self._close_item()
                    self._call = call
                if call["function"]["arguments"]:
                    yield from self._add("function_call", call["function"]["arguments"])
                elif "id" in call:
                    yield from self._open_item("function_call")

    def _begin(self) -> Iterator[bytes]:
        if not self._has_begun:
            self._has_begun = True
            state = _state(self._head, (), None, None)
            yield self._event("response.created", response=state)
            yield self._event("response.in_progress", response=state)

    def _add(self, kind: str, text: str) -> Iterator[bytes]:
        if self._open != kind:
            yield from self._close_item()
            yield from self._open_item(kind)
        self._text.append(text)
        yield self._about_item(f"response.{_DELTAS[kind]}.delta", delta=text)

    def _open_item(self, kind: str) -> Iterator[bytes]:
        self._open, self._text = kind, []
        self._id = f"{_IDS[kind]}_{self._suffix}{len(self._output)}"
        yield self._event("response.output_item.added", output_index=len(self._output), item=self._item(None))
        if kind == "message":
            yield self._about_item("response.content_part.added", part=_text_part(""))

    def _close_item(self) -> Iterator[bytes]:
        kind, text = self._open, "".join(self._text)
        if kind is None:
            return
        if kind == "function_call":
            name = self._call["function"]["name"]
            yield self._about_item("response.function_call_arguments.done", name=name, arguments=text)
        else:
            yield self._about_item(f"response.{_DELTAS[kind]}.done", text=text)
        if kind == "message":
            yield self._about_item("response.content_part.done", part=_text_part(text))
        item = self._item(text)
        yield self._event("response.output_item.done", output_index=len(self._output), item=item)
        self._output.append(item)
        self._open, self._text = None, []

    def _item(self, text: str | None) -> JsonObject:
        """The open item with all its text, None while it goes on."""
        if self._open == "function_call":
            return _called(self._id, self._call, text or "", "in_progress" if text is None else "completed")
        return _reasoning(self._id, text) if self._open == "reasoning" else _said(self._id, text)

    def _about_item(self, kind: str, **fields: Json) -> bytes:
        place: JsonObject = {"item_id": self._id, "output_index": len(self._output)}
        if self._open != "function_call":
            place["content_index"] = 0
        if self._open == "message" and "part" not in fields:
            place["logprobs"] = []
        return self._event(kind, **place, **fields)

    def _event(self, kind: str, **fields: Json) -> bytes:
        event = {"type": kind, "sequence_number": next(self._numbers), **fields}
        return f"event: {kind}\n".encode() + as_event(event)


_DELTAS = {"message": "output_text", "reasoning": "reasoning_text", "function_call": "function_call_arguments"}
_IDS = {"message": "msg", "reasoning": "rs", "function_call": "fc"}
