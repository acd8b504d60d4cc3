"""The routes of OpenAI's Conversations API. A conversation is a list of items. Requests to the Responses API append to
the list."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from adapter.core.events import JsonObject
from adapter.protocols.openai_responses_items import complete_item, convert_items
from adapter.protocols.request_errors import RequestError, require_objects, require_type
from adapter.server.model_server import ModelServer
from adapter.server.request_body import read_json_body
from adapter.server.response_store import ResponseStore

Action: TypeAlias = Callable[[ResponseStore, HttpRequest, JsonObject], JsonObject | None]
"""Answers a request, given the response store and the request's JSON body. Returns None if the object named in the path
is not stored. It runs in a thread."""

MAX_ITEMS = 20
"""Maximum number of items per request, as in OpenAI's API."""

MAX_PAGE = 100
"""Maximum number of items per page, as in OpenAI's API."""


def list_routes(upstream: ModelServer) -> list[Route]:
    base = "/v1/conversations"
    one, items = f"{base}/{{id}}", f"{base}/{{id}}/items"
    actions: list[tuple[str, str, Action]] = [
        (base, "POST", lambda store, _, body: store.create_conversation(_check_metadata(body), _check_items(body))),
        (one, "GET", lambda store, http, _: store.load_conversation(get_id(http))),
        (one, "POST", lambda store, http, body: store.set_metadata(get_id(http), _check_metadata(body))),
        (one, "DELETE", partial(delete_stored, "conv_", "conversation.deleted")),
        (items, "POST", _add_items),
        (items, "GET", lambda store, http, _: paginate(store.load_items(get_id(http)), http)),
        (f"{items}/{{item}}", "GET", _get_item),
        (f"{items}/{{item}}", "DELETE", _delete_item),
    ]
    return [build_store_route(upstream, path, method, action) for path, method, action in actions]


def build_store_route(upstream: ModelServer, path: str, method: str, action: Action) -> Route:
    """Return a route that runs ``action`` on the response store."""
    return Route(path, partial(_answer, action, upstream), methods=[method])


async def _answer(action: Action, upstream: ModelServer, http: HttpRequest) -> ASGIApp:
    if not upstream.store.is_enabled:
        message = "nothing is stored, as several workers cannot share memory: start with --store FILE"
        raise RequestError(message, status=404, code="unsupported_endpoint")
    body = (await read_json_body(http, upstream.work))[1] if http.method == "POST" else {}
    answer = await asyncio.to_thread(action, upstream.store, http, body)
    if answer is None:
        is_response = "/responses/" in http.url.path
        name = f"Response with id {get_id(http)[:80]!r}" if is_response else http.url.path[:120]
        message = f"{name} not found: it was not stored, was deleted or has expired."
        raise RequestError(message, "response_id" if is_response else "conversation_id", status=404)
    return JSONResponse(answer)


def get_id(http: HttpRequest) -> str:
    return str(http.path_params["id"])


def delete_stored(prefix: str, kind: str, store: ResponseStore, http: HttpRequest, _: JsonObject) -> JsonObject | None:
    """Delete a response or conversation. Its id begins with ``prefix``. ``kind`` is the type in the answer."""
    was_stored = store.delete(get_id(http), prefix)
    return {"id": get_id(http), "object": kind, "deleted": True} if was_stored else None


def _add_items(store: ResponseStore, http: HttpRequest, body: JsonObject) -> JsonObject | None:
    added = store.add_items(get_id(http), _check_items(body))
    return None if added is None else list_object([*map(complete_item, added)])


def _get_item(store: ResponseStore, http: HttpRequest, _: JsonObject) -> JsonObject | None:
    items = store.load_items(get_id(http)) or ()
    return next((complete_item(item) for item in items if item["id"] == http.path_params["item"]), None)


def _delete_item(store: ResponseStore, http: HttpRequest, _: JsonObject) -> JsonObject | None:
    conversation = store.load_conversation(get_id(http))
    was_stored = conversation is not None and store.delete_item(conversation["id"], http.path_params["item"])
    return conversation if was_stored else None


def paginate(items: Sequence[JsonObject] | None, http: HttpRequest) -> JsonObject | None:
    """Return the requested page of ``items``, or None if ``items`` is None because the object is not stored.

    Query parameters select the page: ``order`` (``asc``, or ``desc`` for the newest first, the default), ``limit``
    (number of items), and ``after`` (id of the last item of the previous page). Raises RequestError if they are
    invalid.
    """
    if items is None:
        return None
    query = http.query_params
    order, limit, after = query.get("order", "desc"), query.get("limit", "20"), query.get("after")
    if order not in ("asc", "desc") or not limit.isascii() or not limit.isdigit() or not 1 <= int(limit) <= MAX_PAGE:
        raise RequestError(
            f"order must be asc or desc, and limit between 1 and {MAX_PAGE}; got {order[:20]!r} and {limit[:20]!r}",
            "limit",
        )
    ordered = list(items) if order == "asc" else list(reversed(items))
    if after is not None:
        ordered = ordered[
            next((index + 1 for index, item in enumerate(ordered) if item["id"] == after), len(ordered)) :
        ]
    page, has_more = ordered[: int(limit)], len(ordered) > int(limit)
    return list_object([*map(complete_item, page)], has_more=has_more)


def list_object(items: Sequence[JsonObject], *, has_more: bool = False) -> JsonObject:
    """Return a page of items as OpenAI's list object. ``has_more`` is True if it is not the last page."""
    first, last = (items[0]["id"], items[-1]["id"]) if items else ("", "")
    return {"object": "list", "data": list(items), "first_id": first, "last_id": last, "has_more": has_more}


def _check_metadata(body: JsonObject) -> JsonObject:
    return require_type(dict, body.get("metadata"), "metadata")


def _check_items(body: JsonObject) -> list[JsonObject]:
    items = require_objects(body.get("items"), "items")
    if len(items) > MAX_ITEMS:
        raise RequestError(f"'items' has {len(items)} items; at most {MAX_ITEMS} can be added at a time", "items")
    list(convert_items(items, []))
    return items
