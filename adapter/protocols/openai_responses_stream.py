"""Translate a chat completion to an OpenAI response: a list of items, which a stream opens, fills and closes in turn.

Source: https://platform.openai.com/docs/api-reference/responses-streaming. After an error, the stream contains both an
``error`` event, which the openai SDK raises, and ``response.failed``, which codex waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count

from adapter.core.events import Json, JsonObject
from adapter.protocols.openai_errors import is_error
from adapter.protocols.openai_responses_tools import IDS, ResponsesTool, ResponsesTools, call_item
from adapter.protocols.sse import PING, encode_event


def answer_head(body: Mapping[str, Json], response_id: str, created: int) -> JsonObject:
    """Return the response fields that depend only on the request. ``created``: seconds since 1970."""
    defaults: JsonObject = {
        "instructions": None, "max_output_tokens": None, "metadata": {}, "parallel_tool_calls": True, "reasoning": None,
        "temperature": None, "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_p": None,
        "previous_response_id": None, "store": True, "background": False,
    }  # fmt: skip
    return {
        "id": response_id,
        "object": "response",
        "created_at": created,
        "model": str(body.get("model") or ""),
        **{key: default if body.get(key) is None else body[key] for key, default in defaults.items()},
    }


def _state(head: JsonObject, output: Sequence[JsonObject], reason: str | None, usage: Json) -> JsonObject:
    """Return the response with its output so far. ``reason``: the finish reason; None while the answer is
    incomplete."""
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
    prompt, completion = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.get("total_tokens") or prompt + completion,
    }


def _reasoning(item_id: str, text: str | None) -> JsonObject:
    parts = [] if text is None else [{"type": "reasoning_text", "text": text}]
    return {"type": "reasoning", "id": item_id, "summary": [], "content": parts}


def _message(item_id: str, text: str | None) -> JsonObject:
    return {
        "type": "message",
        "id": item_id,
        "role": "assistant",
        "status": "in_progress" if text is None else "completed",
        "content": [] if text is None else [_text_part(text)],
    }


def _text_part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def as_answer(completion: JsonObject, head: JsonObject, tools: ResponsesTools | None = None) -> JsonObject:
    """Convert a completion to the complete response, as in the last event of a stream."""
    writer = ResponsesWriter(head, tools)
    choices = [{"delta": each["message"], "finish_reason": each["finish_reason"]} for each in completion["choices"][:1]]
    writer.write([{"choices": choices, "usage": completion.get("usage")}])
    writer.end()
    return writer.response


class ResponsesWriter:
    """Encodes chunks as streaming events of a response."""

    content_type = "text/event-stream; charset=utf-8"
    ping = PING

    def __init__(
        self, head: JsonObject, tools: ResponsesTools | None = None, store: Callable[[JsonObject], None] | None = None
    ) -> None:
        """``tools``: the request's tools. ``store``: called with the complete response at the end."""
        self._head, self._tools, self._store = head, tools or ResponsesTools(), store
        self._suffix = str(head["id"]).partition("_")[2]
        self._numbers = count()
        self._output: list[JsonObject] = []  # completed items
        self._open: str | None = None  # type of the open item
        self._id = ""
        self._text: list[str] = []
        self._call: JsonObject = {}
        self._tool = ResponsesTool("function", "")  # tool of the open call
        self._has_begun = False
        self._reason: str | None = None
        self.response: JsonObject = {}
        """The complete response; empty until the end."""
        self._usage: Json = None

    def write(self, chunks: list[JsonObject]) -> bytes:
        return b"".join(event for chunk in chunks for event in self._events(chunk))

    def end(self) -> bytes:
        reason = self._reason or "stop"
        events = [*self._begin(), *self._close_item()]
        self.response = _state(self._head, self._output, reason, self._usage)
        if self._store is not None:
            self._store(self.response)
        return b"".join([*events, self._event(f"response.{self.response['status']}", response=self.response)])

    def _events(self, chunk: JsonObject) -> Iterator[bytes]:
        if is_error(chunk):
            error = chunk["error"]
            yield from self._fail(error if isinstance(error, dict) else {"message": str(error)})
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
                yield from self._add_call(call)

    def _add_call(self, call: JsonObject) -> Iterator[bytes]:
        if "id" in call:
            yield from self._close_item()
            self._call, self._tool = call, self._tools.find(call["function"]["name"])
            yield from self._open_item(self._tool.kind)
        arguments = call["function"]["arguments"]
        if arguments and self._tool.kind == "function":
            yield from self._add("function", arguments)
        else:
            self._text.append(arguments)

    def _fail(self, error: JsonObject) -> Iterator[bytes]:
        yield from self._begin()
        fields = {"message": error.get("message"), "code": error.get("code"), "param": error.get("param")}
        yield self._event("error", **fields, error=error)
        detail = {"code": str(error.get("code") or "server_error"), "message": str(error.get("message") or "")}
        state = _state(self._head, self._output, "stop", self._usage) | {"status": "failed", "error": detail}
        yield self._event("response.failed", response=state)

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
        yield self._item_event(f"response.{_DELTAS[kind]}.delta", delta=text)

    def _open_item(self, kind: str) -> Iterator[bytes]:
        self._open, self._text = kind, []
        self._id = f"{_IDS[kind]}_{self._suffix}{len(self._output)}"
        if kind in _BUFFERED:
            return
        yield self._event("response.output_item.added", output_index=len(self._output), item=self._item(None))
        if kind == "message":
            yield self._item_event("response.content_part.added", part=_text_part(""))

    def _close_item(self) -> Iterator[bytes]:
        kind, text = self._open, "".join(self._text)
        if kind is None:
            return
        item = self._item(text)
        if kind in _BUFFERED:
            opened = {**item, "status": "in_progress"}
            yield self._event("response.output_item.added", output_index=len(self._output), item=opened)
        match kind:
            case "function":
                yield self._item_event("response.function_call_arguments.done", name=self._tool.name, arguments=text)
            case "custom":
                yield self._item_event("response.custom_tool_call_input.delta", delta=item["input"])
                yield self._item_event("response.custom_tool_call_input.done", input=item["input"])
            case "message" | "reasoning":
                yield self._item_event(f"response.{_DELTAS[kind]}.done", text=text)
        if kind == "message":
            yield self._item_event("response.content_part.done", part=_text_part(text))
        yield self._event("response.output_item.done", output_index=len(self._output), item=item)
        self._output.append(item)
        self._open, self._text = None, []

    def _item(self, text: str | None) -> JsonObject:
        """Return the open item. ``text``: its complete text; None while the item is incomplete."""
        if self._open == "message":
            return _message(self._id, text)
        if self._open == "reasoning":
            return _reasoning(self._id, text)
        status = "in_progress" if text is None else "completed"
        return call_item(self._tool, self._id, self._call["id"], text or "", status)

    def _item_event(self, kind: str, **fields: Json) -> bytes:
        location: JsonObject = {"item_id": self._id, "output_index": len(self._output)}
        if self._open in ("message", "reasoning"):
            location["content_index"] = 0
        if self._open == "message" and "part" not in fields:
            location["logprobs"] = []
        return self._event(kind, **location, **fields)

    def _event(self, kind: str, **fields: Json) -> bytes:
        event = {"type": kind, "sequence_number": next(self._numbers), **fields}
        return f"event: {kind}\n".encode() + encode_event(event)


_DELTAS = {"message": "output_text", "reasoning": "reasoning_text", "function": "function_call_arguments"}
_IDS = {"message": "msg", "reasoning": "rs", **IDS}
_BUFFERED = ("custom", "shell", "local_shell", "apply_patch", "tool_search")
"""Types of calls whose items contain parsed arguments. They are sent only when the arguments are complete."""
