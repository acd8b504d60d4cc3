"""The routes of OpenAI's conversations API. A conversation is a list of items, to which response requests append."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from adapter.core.events import JsonObject
from adapter.protocols.openai_errors import RequestError, require_objects, require_type
from adapter.protocols.openai_responses_items import convert_items
from adapter.server.pagination import list_object, paginate
from adapter.server.request_body import read_json_body
from adapter.server.response_store import ResponseStore
from adapter.server.upstream_server import ModelServer

Action: TypeAlias = Callable[[ResponseStore, HttpRequest, JsonObject], JSONResponse]
"""Responds to a request, with the store and the request's JSON body. It runs in a thread."""

MAX_ITEMS = 20
"""Maximum number of items per request, as in OpenAI's API."""


def list_routes(upstream: ModelServer) -> list[Route]:
    base = "/v1/conversations"
    actions: list[tuple[str, str, Action]] = [
        (base, "POST", _create),
        (f"{base}/{{id}}", "GET", _read),
        (f"{base}/{{id}}", "POST", _update),
        (f"{base}/{{id}}", "DELETE", _delete),
        (f"{base}/{{id}}/items", "POST", _add_items),
        (f"{base}/{{id}}/items", "GET", _list_items),
        (f"{base}/{{id}}/items/{{item}}", "GET", _get_item),
        (f"{base}/{{id}}/items/{{item}}", "DELETE", _delete_item),
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
    return await asyncio.to_thread(action, upstream.store, http, body)


def _create(store: ResponseStore, _: HttpRequest, body: JsonObject) -> JSONResponse:
    return JSONResponse(store.create_conversation(_check_metadata(body), _check_items(body)))


def _read(store: ResponseStore, http: HttpRequest, _: JsonObject) -> JSONResponse:
    return JSONResponse(_require(store.load_conversation(http.path_params["id"]), http))


def _update(store: ResponseStore, http: HttpRequest, body: JsonObject) -> JSONResponse:
    return JSONResponse(_require(store.set_metadata(http.path_params["id"], _check_metadata(body)), http))


def _delete(store: ResponseStore, http: HttpRequest, _: JsonObject) -> JSONResponse:
    conversation_id = http.path_params["id"]
    _require(store.delete(conversation_id, "conv_") or None, http)
    return JSONResponse({"id": conversation_id, "object": "conversation.deleted", "deleted": True})


def _add_items(store: ResponseStore, http: HttpRequest, body: JsonObject) -> JSONResponse:
    return JSONResponse(list_object(_require(store.add_items(http.path_params["id"], _check_items(body)), http)))


def _list_items(store: ResponseStore, http: HttpRequest, _: JsonObject) -> JSONResponse:
    return paginate(_require(store.load_items(http.path_params["id"]), http), http)


def _get_item(store: ResponseStore, http: HttpRequest, _: JsonObject) -> JSONResponse:
    items = _require(store.load_items(http.path_params["id"]), http)
    stored = next((item for item in items if item["id"] == http.path_params["item"]), None)
    return JSONResponse(_require(stored, http))


def _delete_item(store: ResponseStore, http: HttpRequest, _: JsonObject) -> JSONResponse:
    conversation = _require(store.load_conversation(http.path_params["id"]), http)
    _require(store.delete_item(conversation["id"], http.path_params["item"]) or None, http)
    return JSONResponse(conversation)


def _check_metadata(body: JsonObject) -> JsonObject:
    return require_type(dict, body.get("metadata"), "metadata")


def _check_items(body: JsonObject) -> list[JsonObject]:
    items = require_objects(body.get("items"), "items")
    if len(items) > MAX_ITEMS:
        raise RequestError(f"'items' has {len(items)} items; at most {MAX_ITEMS} can be added at a time", "items")
    list(convert_items(items, []))
    return items


def _require(value: object, http: HttpRequest) -> Any:
    return require_stored(value, http.url.path[:120], "conversation_id")


def require_stored(value: object, name: str, param: str) -> Any:
    """Return ``value``. Raises RequestError if it is None, which means that the store does not contain it."""
    if value is None:
        raise RequestError(f"{name} not found.", param, status=404)
    return value
