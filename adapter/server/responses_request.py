"""Resolve the references to stored responses in a request to the Responses API, and store its response."""

from __future__ import annotations

import time
from secrets import token_hex

from adapter.core.events import Json, JsonObject
from adapter.protocols import openai_responses_request
from adapter.protocols.openai_responses_stream import ResponsesWriter, build_answer_head
from adapter.protocols.openai_responses_tools import ResponsesTools
from adapter.protocols.request_errors import RequestError, require_objects, require_type
from adapter.protocols.sse import encode_json
from adapter.server.response_store import ResponseStore


class ResponsesRequest:
    """A request to the Responses API.

    The parameter ``size`` is the size of the body in bytes; the attribute ``size`` also counts the stored items that
    the request refers to. Raises RequestError if such an item is not stored.
    """

    def __init__(self, body: JsonObject, store: ResponseStore, size: int) -> None:
        self._body, self._store, self.size = body, store, size
        self._stores_response = body.get("store") is not False and store.is_enabled
        self._conversation = _parse_conversation_id(body.get("conversation"))
        has_references = references_stored_items(body)
        self._input_items = _list_items(body.get("input")) if self._stores_response or has_references else []
        if has_references:
            self._resolve_references()
        # random, because any client that knows the id can read the response
        self._head = build_answer_head(body, f"resp_{token_hex(16)}", int(time.time()), is_stored=self._stores_response)
        if self._conversation is not None:
            self._head["conversation"] = {"id": self._conversation}
        self._tools = ResponsesTools()

    def _resolve_references(self) -> None:
        previous = self._body.get("previous_response_id")
        if previous and self._conversation is not None:
            raise RequestError(
                "'previous_response_id' and 'conversation' cannot be combined; send one of them", "conversation"
            )
        self._input_items = [
            _resolve_item(item, f"input[{index}]", self._store) for index, item in enumerate(self._input_items)
        ]
        before = (
            _load_history(str(previous), self._store)
            if previous
            else _load_conversation_items(self._conversation, self._store)
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


def references_stored_items(body: JsonObject) -> bool:
    """Return whether a request refers to stored responses, items or conversations."""
    value = body.get("input")
    items = value if isinstance(value, list) else []
    return bool(body.get("previous_response_id") or body.get("conversation")) or any(
        isinstance(item, dict) and _is_reference(item) for item in items
    )


def _is_reference(item: JsonObject) -> bool:
    """Return whether an item is a reference to a stored one. As in OpenAI's API, its type is optional."""
    return item.get("type") == "item_reference" or (item.keys() == {"id"} and isinstance(item["id"], str))


def _resolve_item(item: JsonObject, path: str, store: ResponseStore) -> JsonObject:
    if not _is_reference(item):
        return item
    stored = store.load_item(str(item.get("id")))
    if stored is None:
        raise RequestError(f"item with id {_quote(item.get('id'))} not found: {_GONE}", path)
    return stored


def _load_history(response_id: str, store: ResponseStore) -> list[JsonObject]:
    items = store.load_history(response_id)
    if items is None:
        message = f"Previous response with id {_quote(response_id)} not found: {_GONE}"
        raise RequestError(message, "previous_response_id", code="previous_response_not_found")
    return items


def _load_conversation_items(conversation: str | None, store: ResponseStore) -> list[JsonObject]:
    if conversation is None:
        return []
    items = store.load_items(conversation)
    if items is None:
        message = (
            f"Conversation with id {_quote(conversation)} not found: it was never created, was deleted or has expired. "
            "Create a new one, or send the whole input without `conversation`"
        )
        raise RequestError(message, "conversation", status=404)
    return items


_GONE = "it was not stored (store: false) or has expired. Send the whole input"


def _quote(value: Json) -> str:
    return repr(str(value)[:80])
