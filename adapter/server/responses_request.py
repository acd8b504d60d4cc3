"""A request to the Responses API, with its references to stored responses resolved."""

from __future__ import annotations

import time
from secrets import token_hex

from adapter.core.events import Json, JsonObject
from adapter.protocols import openai_responses_request
from adapter.protocols.openai_responses_stream import ResponsesWriter, build_answer_head
from adapter.protocols.openai_responses_tools import ResponsesTools
from adapter.protocols.request_errors import RequestError, require_objects, require_type
from adapter.protocols.sse import encode_json
from adapter.server.response_references import (
    load_conversation_items,
    load_history,
    references_stored_items,
    resolve_item,
)
from adapter.server.response_store import ResponseStore


class ResponsesRequest:
    """A request to the Responses API.

    ``size`` is the size of the body in bytes; the attribute ``size`` also counts the items that the request refers to.
    Raises RequestError if such an item is not stored.
    """

    def __init__(self, body: JsonObject, store: ResponseStore, size: int) -> None:
        self._body, self._store, self.size = body, store, size
        self._stores_response = body.get("store") is not False and store.is_enabled
        self._conversation = _parse_conversation_id(body.get("conversation"))
        self._input_items = (
            _list_items(body.get("input")) if self._stores_response or references_stored_items(body) else []
        )
        if references_stored_items(body):
            self._resolve_references()
        # random, because any client that knows the id can read the response
        self._head = build_answer_head(body, f"resp_{token_hex(16)}", int(time.time()), is_stored=self._stores_response)
        self._tools = ResponsesTools()

    def _resolve_references(self) -> None:
        previous = self._body.get("previous_response_id")
        if previous and self._conversation is not None:
            raise RequestError("'previous_response_id' and 'conversation' cannot be combined", "conversation")
        self._input_items = [
            resolve_item(item, f"input[{index}]", self._store) for index, item in enumerate(self._input_items)
        ]
        before = (
            load_history(str(previous), self._store)
            if previous
            else load_conversation_items(self._conversation, self._store)
        )
        self._body = {**self._body, "input": [*before, *self._input_items]}
        self.size = len(encode_json(self._body))

    def to_chat_request(self, dropped: list[str]) -> JsonObject:
        """Return the chat completion request, and append the names of dropped fields to ``dropped``."""
        self._tools = openai_responses_request.parse_tools(self._body, dropped)
        return openai_responses_request.convert_to_openai(self._body, self._tools, dropped)

    def create_writer(self) -> ResponsesWriter:
        return ResponsesWriter(self._head, self._tools, self._keep, time.time)

    def _keep(self, response: JsonObject) -> None:
        if self._stores_response:
            self._store.save_soon(response, self._input_items, self._conversation)


def _list_items(value: Json) -> list[JsonObject]:
    if isinstance(value, str):
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": value}]}]
    return require_objects(value, "input")


def _parse_conversation_id(value: Json) -> str | None:
    if isinstance(value, str) or not value:
        return value or None
    return str(require_type(dict, value, "conversation").get("id"))
