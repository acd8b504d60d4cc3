"""Translate a chat completion to a response of OpenAI's Responses API: a list of items, streamed one after another.

Source: https://platform.openai.com/docs/api-reference/responses-streaming. After an error, the stream contains both an
``error`` event, which the openai SDK raises, and ``response.failed``, which codex waits for. Reasoning has OpenAI's
events (``response.reasoning_text.delta``), which clients show. Open Responses (https://www.openresponses.org) names
them ``response.reasoning.delta``, and its compliance tests reject events with other names, so no stream suits both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count

from adapter.core.events import Json, JsonObject
from adapter.protocols.answer_parts import AnswerPart, AnswerParts, Step
from adapter.protocols.openai_errors import is_error
from adapter.protocols.openai_responses_tools import IDS, ResponsesTools, build_call_item
from adapter.protocols.sse import PING, encode_event
from adapter.protocols.usage import Usage


def build_answer_head(
    body: Mapping[str, Json], response_id: str, created: int, *, is_stored: bool = True
) -> JsonObject:
    """Return the response fields that depend only on the request. ``created`` is the time in seconds since 1970."""
    given = {key: body[key] for key in _ECHOED if body.get(key) is not None}
    head: JsonObject = {**_ECHOED, **given, **_UNSUPPORTED, "store": is_stored}
    if isinstance(reasoning := head["reasoning"], dict):
        head["reasoning"] = {"effort": None, "summary": None, **reasoning}
    if isinstance(text := head["text"], dict):
        head["text"] = {**text, "format": _format(text.get("format"))}
    if isinstance(tools := head["tools"], list):
        head["tools"] = [_convert_tool(tool) if isinstance(tool, dict) else tool for tool in tools]
    model = str(body.get("model") or "")
    return {**head, "id": response_id, "object": "response", "created_at": created, "model": model}


_ECHOED: JsonObject = {
    "instructions": None, "max_output_tokens": None, "metadata": {}, "parallel_tool_calls": True, "reasoning": None,
    "temperature": 1.0, "text": {}, "tool_choice": "auto", "tools": [], "top_p": 1.0, "presence_penalty": 0.0,
    "frequency_penalty": 0.0, "previous_response_id": None, "prompt_cache_key": None, "safety_identifier": None,
    "user": None,
}  # fmt: skip
"""Default values of the request fields that every response repeats, as in OpenAI's API."""

_UNSUPPORTED: JsonObject = {
    "background": False, "max_tool_calls": None, "service_tier": "default", "top_logprobs": 0,
    "truncation": "disabled",
}  # fmt: skip
"""Response fields for settings that this library does not support."""


def _format(format: Json) -> JsonObject:
    if not isinstance(format, dict):
        return {"type": "text"}
    return {"description": None, "strict": False, **format} if format.get("type") == "json_schema" else format


def _convert_tool(tool: JsonObject) -> JsonObject:
    """Convert a tool to the flat form for a response. The tool may be nested, as in the chat API."""
    if tool.get("type") != "function":
        return tool
    function = tool.get("function")
    flat = {**function, "type": "function"} if isinstance(function, dict) else tool
    return {"description": None, "parameters": None, "strict": None, **flat}


def _convert_usage(usage: Usage) -> JsonObject:
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.reused or 0, "cache_write_tokens": usage.stored or 0},
        "output_tokens": usage.written,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": usage.prompt + usage.written,
    }


class ResponsesWriter:
    """Encodes chunks as streaming events of a response, and a buffered completion as a whole response.

    ``tools`` are the request's tools, ``store`` is called with the complete response, and ``clock`` returns the seconds
    since 1970.
    """

    content_type = "text/event-stream; charset=utf-8"
    ping = PING

    def __init__(
        self,
        head: JsonObject,
        tools: ResponsesTools | None = None,
        store: Callable[[JsonObject], None] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._head, self._tools, self._store = head, tools or ResponsesTools(), store
        self._clock = clock or (lambda: head["created_at"])
        self._suffix = str(head["id"]).partition("_")[2]
        self._numbers = count()
        self._answer = AnswerParts()
        self._has_begun = False

    def build_response(self, completion: JsonObject) -> JsonObject:
        """Return the whole response for a completion, as in the last event of a stream."""
        self._answer = AnswerParts.from_completion(completion)
        return self._complete_answer()

    def write(self, chunks: list[JsonObject]) -> bytes:
        return b"".join(event for chunk in chunks for event in self._encode_chunk(chunk))

    def encode_end(self) -> bytes:
        events = [*self._begin(), *self._encode_steps(self._answer.close(), self._ending)]
        response = self._complete_answer()
        return b"".join([*events, self._encode_event(f"response.{response['status']}", response=response)])

    def _encode_chunk(self, chunk: JsonObject) -> Iterator[bytes]:
        yield from self._begin()
        if is_error(chunk):
            error = chunk["error"]
            yield from self._fail(error if isinstance(error, dict) else {"message": str(error)})
        else:
            yield from self._encode_steps(self._answer.feed(chunk), "completed")

    def _begin(self) -> Iterator[bytes]:
        if not self._has_begun:
            self._has_begun = True
            yield self._encode_event("response.created", response=self._build_response("in_progress"))
            yield self._encode_event("response.in_progress", response=self._build_response("in_progress"))

    def _fail(self, error: JsonObject) -> Iterator[bytes]:
        fields = {"message": error.get("message"), "code": error.get("code"), "param": error.get("param")}
        yield self._encode_event("error", **fields, error=error)
        code = str(error.get("code") or "")
        known = "server_error" if not code or code.isdigit() else code  # a name, not llama.cpp's HTTP status
        detail = {"code": known, "message": str(error.get("message") or "")}
        output = self._build_output("incomplete")
        yield self._encode_event("response.failed", response=self._build_response("failed", output) | {"error": detail})

    @property
    def _cut(self) -> str | None:
        """The reason for an incomplete answer."""
        reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
        return reasons.get(self._answer.finish_reason)

    @property
    def _ending(self) -> str:
        return "incomplete" if self._cut else "completed"

    def _build_output(self, ending: str) -> list[JsonObject]:
        """Return the items of the answer, the last one with the status ``ending``."""
        parts = self._answer.parts
        statuses = ["completed"] * (len(parts) - 1) + [ending]
        return [self._build_item(part, status) for part, status in zip(parts, statuses, strict=False)]

    def _complete_answer(self) -> JsonObject:
        output = self._build_output(self._ending)
        completed = {"incomplete_details": {"reason": self._cut}} if self._cut else {"completed_at": int(self._clock())}
        response = self._build_response(self._ending, output) | completed | self._answer.notice
        if self._store is not None:
            self._store(response)
        return response

    def _build_response(self, status: str, output: Sequence[JsonObject] = ()) -> JsonObject:
        return {
            **self._head,
            "status": status,
            "completed_at": None,
            "incomplete_details": None,
            "error": None,
            "output": list(output),
            "usage": _convert_usage(self._answer.usage) if self._answer.usage else None,
        }

    def _encode_steps(self, steps: Iterable[Step], status: str) -> Iterator[bytes]:
        """Encode changes of the answer. ``status`` is the status of the items that are closed."""
        for action, part, text in steps:
            kind = self._get_item_kind(part)
            is_streamed = kind not in _BUFFERED
            match action:
                case "open" if is_streamed:
                    yield from self._open(part)
                case "add" if is_streamed:
                    yield self._encode_part_event(f"response.{_DELTAS[kind]}.delta", part, delta=text)
                case "close":
                    yield from () if is_streamed else self._open(part)
                    yield from self._close(part, status)

    def _open(self, part: AnswerPart) -> Iterator[bytes]:
        item = self._build_item(part, "in_progress")
        yield self._encode_event("response.output_item.added", output_index=part.index, item=item)
        if part.kind != "call":
            yield self._encode_part_event("response.content_part.added", part, part=_build_content(part, ""))

    def _close(self, part: AnswerPart, status: str) -> Iterator[bytes]:
        kind, text, item = self._get_item_kind(part), part.text, self._build_item(part, status)
        match kind:
            case "function":
                yield self._encode_part_event(
                    "response.function_call_arguments.done", part, name=item["name"], arguments=text
                )
            case "custom":
                yield self._encode_part_event("response.custom_tool_call_input.delta", part, delta=item["input"])
                yield self._encode_part_event("response.custom_tool_call_input.done", part, input=item["input"])
            case "text" | "reasoning":
                yield self._encode_part_event(f"response.{_DELTAS[kind]}.done", part, text=text)
                yield self._encode_part_event("response.content_part.done", part, part=_build_content(part, text))
        yield self._encode_event("response.output_item.done", output_index=part.index, item=item)

    def _get_item_kind(self, part: AnswerPart) -> str:
        return self._tools.find(part.name).kind if part.kind == "call" else part.kind

    def _build_item_id(self, part: AnswerPart) -> str:
        return f"{_IDS[self._get_item_kind(part)]}_{self._suffix}{part.index}"

    def _build_item(self, part: AnswerPart, status: str) -> JsonObject:
        item_id = self._build_item_id(part)
        if part.kind == "call":
            return build_call_item(self._tools.find(part.name), item_id, part.call_id, part.text, status)
        content = [] if status == "in_progress" else [_build_content(part, part.text)]
        if part.kind == "reasoning":
            return {"type": "reasoning", "id": item_id, "summary": [], "content": content}
        return {"type": "message", "id": item_id, "role": "assistant", "status": status, "content": content}

    def _encode_part_event(self, kind: str, part: AnswerPart, /, **fields: Json) -> bytes:
        location: JsonObject = {"item_id": self._build_item_id(part), "output_index": part.index}
        if part.kind != "call":
            location["content_index"] = 0
        if part.kind == "text" and "part" not in fields:
            location["logprobs"] = []
        return self._encode_event(kind, **location, **fields)

    def _encode_event(self, kind: str, **fields: Json) -> bytes:
        event = {"type": kind, "sequence_number": next(self._numbers), **fields}
        return f"event: {kind}\n".encode() + encode_event(event)


def _build_content(part: AnswerPart, text: str) -> JsonObject:
    if part.kind == "reasoning":
        return {"type": "reasoning_text", "text": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


_DELTAS = {"text": "output_text", "reasoning": "reasoning_text", "function": "function_call_arguments"}
_IDS = {"text": "msg", "reasoning": "rs", **IDS}
_BUFFERED = ("custom", "shell", "local_shell", "apply_patch", "tool_search")
"""Types of calls whose items contain parsed arguments. They are sent only when the arguments are complete."""
