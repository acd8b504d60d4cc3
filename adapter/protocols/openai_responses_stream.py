"""A chat's answer as one of OpenAI's responses: a list of items, which a stream opens, fills and closes.

Source: https://platform.openai.com/docs/api-reference/responses-streaming. An error in a stream is an ``error``, which
the openai SDK raises, and ``response.failed``, for which codex waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count

from adapter.core.events import Json, JsonObject
from adapter.protocols.openai_errors import is_error
from adapter.protocols.openai_responses_tools import IDS, ResponsesTool, ResponsesTools, call_item
from adapter.protocols.sse import PING, encode_event


def answer_head(body: Mapping[str, Json], response_id: str, created: int) -> JsonObject:
    """What every state of an answer says of its request. ``created``: seconds since 1970."""
    asked: JsonObject = {
        "instructions": None, "max_output_tokens": None, "metadata": {}, "parallel_tool_calls": True, "reasoning": None,
        "temperature": None, "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_p": None,
        "previous_response_id": None, "store": True, "background": False,
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


def as_answer(completion: JsonObject, head: JsonObject, forms: ResponsesTools | None = None) -> JsonObject:
    """A whole answer as a response, from a chat completion: that with which its stream would end."""
    writer = ResponsesWriter(head, forms)
    choices = [{"delta": each["message"], "finish_reason": each["finish_reason"]} for each in completion["choices"][:1]]
    writer.write([{"choices": choices, "usage": completion.get("usage")}])
    writer.end()
    return writer.response


class ResponsesWriter:
    """Chunks as the events of a response."""

    content_type = "text/event-stream; charset=utf-8"
    ping = PING

    def __init__(
        self, head: JsonObject, forms: ResponsesTools | None = None, keep: Callable[[JsonObject], None] | None = None
    ) -> None:
        """``forms``: of the tools that the client has. ``keep`` is given the whole response when it is over."""
        self._head, self._forms, self._keep = head, forms or ResponsesTools(), keep
        self._suffix = str(head["id"]).partition("_")[2]
        self._numbers = count()
        self._output: list[JsonObject] = []  # the items that are done
        self._open: str | None = None  # the kind of the open item
        self._id = ""
        self._text: list[str] = []
        self._call: JsonObject = {}
        self._form = ResponsesTool("function", "")  # of the open call
        self._has_begun = False
        self._reason: str | None = None
        self.response: JsonObject = {}
        """The whole response, once it is over."""
        self._usage: Json = None

    def write(self, chunks: list[JsonObject]) -> bytes:
        return b"".join(event for chunk in chunks for event in self._events(chunk))

    def end(self) -> bytes:
        reason = self._reason or "stop"
        events = [*self._begin(), *self._close_item()]
        self.response = _state(self._head, self._output, reason, self._usage)
        if self._keep is not None:
            self._keep(self.response)
        return b"".join([*events, self._event(f"response.{self.response['status']}", response=self.response)])

    def _events(self, chunk: JsonObject) -> Iterator[bytes]:
        if is_error(chunk):
            yield from self._fail(
                chunk["error"] if isinstance(chunk["error"], dict) else {"message": str(chunk["error"])}
            )
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
                yield from self._calling(call)

    def _calling(self, call: JsonObject) -> Iterator[bytes]:
        if "id" in call:
            yield from self._close_item()
            self._call, self._form = call, self._forms.of(call["function"]["name"])
            yield from self._open_item(self._form.kind)
        arguments = call["function"]["arguments"]
        if arguments and self._form.kind == "function":
            yield from self._add("function", arguments)
        else:
            self._text.append(arguments)

    def _fail(self, error: JsonObject) -> Iterator[bytes]:
        yield from self._begin()
        said = {"message": error.get("message"), "code": error.get("code"), "param": error.get("param")}
        yield self._event("error", **said, error=error)
        why = {"code": str(error.get("code") or "server_error"), "message": str(error.get("message") or "")}
        state = _state(self._head, self._output, "stop", self._usage) | {"status": "failed", "error": why}
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
        yield self._about_item(f"response.{_DELTAS[kind]}.delta", delta=text)

    def _open_item(self, kind: str) -> Iterator[bytes]:
        self._open, self._text = kind, []
        self._id = f"{_IDS[kind]}_{self._suffix}{len(self._output)}"
        if kind in _AT_ONCE:
            return
        yield self._event("response.output_item.added", output_index=len(self._output), item=self._item(None))
        if kind == "message":
            yield self._about_item("response.content_part.added", part=_text_part(""))

    def _close_item(self) -> Iterator[bytes]:
        kind, text = self._open, "".join(self._text)
        if kind is None:
            return
        item = self._item(text)
        if kind in _AT_ONCE:
            begun = {**item, "status": "in_progress"}
            yield self._event("response.output_item.added", output_index=len(self._output), item=begun)
        match kind:
            case "function":
                yield self._about_item("response.function_call_arguments.done", name=self._form.name, arguments=text)
            case "custom":
                yield self._about_item("response.custom_tool_call_input.delta", delta=item["input"])
                yield self._about_item("response.custom_tool_call_input.done", input=item["input"])
            case "message" | "reasoning":
                yield self._about_item(f"response.{_DELTAS[kind]}.done", text=text)
        if kind == "message":
            yield self._about_item("response.content_part.done", part=_text_part(text))
        yield self._event("response.output_item.done", output_index=len(self._output), item=item)
        self._output.append(item)
        self._open, self._text = None, []

    def _item(self, text: str | None) -> JsonObject:
        """The open item with all its text, None while it goes on."""
        if self._open == "message":
            return _said(self._id, text)
        if self._open == "reasoning":
            return _reasoning(self._id, text)
        status = "in_progress" if text is None else "completed"
        return call_item(self._form, self._id, self._call["id"], text or "", status)

    def _about_item(self, kind: str, **fields: Json) -> bytes:
        place: JsonObject = {"item_id": self._id, "output_index": len(self._output)}
        if self._open in ("message", "reasoning"):
            place["content_index"] = 0
        if self._open == "message" and "part" not in fields:
            place["logprobs"] = []
        return self._event(kind, **place, **fields)

    def _event(self, kind: str, **fields: Json) -> bytes:
        event = {"type": kind, "sequence_number": next(self._numbers), **fields}
        return f"event: {kind}\n".encode() + encode_event(event)


_DELTAS = {"message": "output_text", "reasoning": "reasoning_text", "function": "function_call_arguments"}
_IDS = {"message": "msg", "reasoning": "rs", **IDS}
_AT_ONCE = ("custom", "shell", "local_shell", "apply_patch", "tool_search")
"""Calls whose items hold what stands in their arguments, which must be whole for that."""
