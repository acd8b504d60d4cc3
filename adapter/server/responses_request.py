"""A request for a response with all that it refers to: earlier answers, their items, conversations."""

from __future__ import annotations

import time
from secrets import token_hex

from adapter.core.events import Json, JsonObject
from adapter.protocols import openai_responses_request
from adapter.protocols.openai_errors import RequestError, objects_in, require_type
from adapter.protocols.openai_responses_stream import ResponsesWriter, answer_head, as_answer
from adapter.protocols.openai_responses_tools import ResponsesTools
from adapter.protocols.sse import encode_json
from adapter.server.response_store import ResponseStore


class ResponsesRequest:
    """A request for a response, and its answer. ``size``: bytes of the request; with what it refers to.

    Raises RequestError where something of that is not here, or not any more.
    """

    def __init__(self, body: JsonObject, store: ResponseStore, size: int) -> None:
        self._body, self._store, self.size = body, store, size
        self._is_kept = body.get("store") is not False
        self._conversation = _conversation(body.get("conversation"))
        self._given = _items(body.get("input")) if self._is_kept or references_stored_items(body) else []
        if references_stored_items(body):
            self._recall()
        # Nobody can guess the id, for who knows it may read the answer.
        self._head = answer_head(body, f"resp_{token_hex(16)}", int(time.time()))
        self._forms = ResponsesTools()

    def _recall(self) -> None:
        """Put into the request what it refers to."""
        previous = self._body.get("previous_response_id")
        if previous and self._conversation is not None:
            raise RequestError("'previous_response_id' and 'conversation' exclude one another", "conversation")
        given = enumerate(self._given)
        self._given = [_referred(item, f"input[{index}]", self._store) for index, item in given]
        before = _before(str(previous), self._store) if previous else _spoken(self._conversation, self._store)
        self._body = {**self._body, "input": [*before, *self._given]}
        self.size = len(encode_json(self._body))

    def asked(self, left_out: list[str]) -> JsonObject:
        """The request as a chat; in ``left_out`` what is lost."""
        self._forms = openai_responses_request.forms_in(self._body, left_out)
        return openai_responses_request.as_openai(self._body, self._forms, left_out)

    def writer(self) -> ResponsesWriter:
        return ResponsesWriter(self._head, self._forms, self._keep)

    def answer(self, completion: JsonObject) -> JsonObject:
        response = as_answer(completion, self._head, self._forms)
        self._keep(response)
        return response

    def _keep(self, response: JsonObject) -> None:
        if self._is_kept:
            self._store.keep_soon(response, self._given, self._conversation)


def references_stored_items(body: JsonObject) -> bool:
    """Whether a request speaks of what is not in it."""
    given = body.get("input")
    items = given if isinstance(given, list) else []
    return bool(body.get("previous_response_id") or body.get("conversation")) or any(
        isinstance(item, dict) and _is_reference(item) for item in items
    )


def _items(given: Json) -> list[JsonObject]:
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": given}]}]
    return objects_in(given, "input")


def _is_reference(item: JsonObject) -> bool:
    """The type may be left out, as the interface has it."""
    return item.get("type") == "item_reference" or (item.keys() == {"id"} and isinstance(item["id"], str))


def _referred(item: JsonObject, place: str, store: ResponseStore) -> JsonObject:
    if not _is_reference(item):
        return item
    found = store.item(str(item.get("id")))
    if found is None:
        raise RequestError(f"Item with id {_shown(item.get('id'))} not found: {_GONE}", place)
    return found


def _before(response_id: str, store: ResponseStore) -> list[JsonObject]:
    said = store.history(response_id)
    if said is None:
        message = f"Previous response with id {_shown(response_id)} not found: {_GONE}"
        raise RequestError(message, "previous_response_id", code="previous_response_not_found")
    return said


def _conversation(given: Json) -> str | None:
    if isinstance(given, str) or not given:
        return given or None
    return str(require_type(dict, given, "conversation").get("id"))


def _spoken(conversation: str | None, store: ResponseStore) -> list[JsonObject]:
    if conversation is None:
        return []
    items = store.items(conversation)
    if items is None:
        message = f"Conversation with id {_shown(conversation)} not found: {_GONE}"
        raise RequestError(message, "conversation", status=404)
    return items


_GONE = "it was not kept (store: false), or is not kept any more. Send the whole input"


def _shown(given: Json) -> str:
    return repr(str(given)[:80])
