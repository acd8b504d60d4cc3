"""Resolve the references in a Responses API request to stored responses, items and conversations."""

from __future__ import annotations

from adapter.core.events import Json, JsonObject
from adapter.protocols.request_errors import RequestError
from adapter.server.response_store import ResponseStore


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


def resolve_item(item: JsonObject, path: str, store: ResponseStore) -> JsonObject:
    if not _is_reference(item):
        return item
    stored = store.load_item(str(item.get("id")))
    if stored is None:
        raise RequestError(f"Item with id {_quote(item.get('id'))} not found: {_GONE}", path)
    return stored


def load_history(response_id: str, store: ResponseStore) -> list[JsonObject]:
    items = store.load_history(response_id)
    if items is None:
        message = f"Previous response with id {_quote(response_id)} not found: {_GONE}"
        raise RequestError(message, "previous_response_id", code="previous_response_not_found")
    return items


def load_conversation_items(conversation: str | None, store: ResponseStore) -> list[JsonObject]:
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
