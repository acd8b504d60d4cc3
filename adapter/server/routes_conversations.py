"""OpenAI's conversations: lists of items that requests for a response add to."""

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
from adapter.protocols.openai_errors import RequestError, objects_in, refusal, require_type
from adapter.protocols.openai_responses_items import messages_of
from adapter.server.model_server import ModelServer
from adapter.server.pagination import list_object, paginate
from adapter.server.request_body import read_json_body
from adapter.server.response_store import ResponseStore

Act: TypeAlias = Callable[[ResponseStore, HttpRequest, JsonObject], JSONResponse]
"""From the store, the request and its body to the answer; beside the event loop."""

MAX_ITEMS = 20
"""That may be added at a time, as at OpenAI."""


def routes(upstream: ModelServer) -> list[Route]:
    base = "/v1/conversations"
    acts: list[tuple[str, str, Act]] = [
        (base, "POST", _begin),
        (f"{base}/{{id}}", "GET", _read),
        (f"{base}/{{id}}", "POST", _describe),
        (f"{base}/{{id}}", "DELETE", _forget),
        (f"{base}/{{id}}/items", "POST", _add),
        (f"{base}/{{id}}/items", "GET", _list),
        (f"{base}/{{id}}/items/{{item}}", "GET", _item),
        (f"{base}/{{id}}/items/{{item}}", "DELETE", _remove),
    ]
    return [Route(path, partial(_acting, act, upstream), methods=[method]) for path, method, act in acts]


async def _acting(act: Act, upstream: ModelServer, http: HttpRequest) -> ASGIApp:
    try:
        body = (await read_json_body(http, upstream.work))[1] if http.method == "POST" else {}
        return await asyncio.to_thread(act, upstream.store, http, body)
    except RequestError as error:
        return JSONResponse(refusal(error), error.status)


def _begin(store: ResponseStore, _: HttpRequest, body: JsonObject) -> JSONResponse:
    return JSONResponse(store.begin(_metadata(body), _checked(body)))


def _read(store: ResponseStore, http: HttpRequest, _: JsonObject) -> JSONResponse:
    return JSONResponse(_found(store.conversation(http.path_params["id"]), http))


def _describe(store: ResponseStore, http: HttpRequest, body: JsonObject) -> JSONResponse:
    return JSONResponse(_found(store.describe(http.path_params["id"], _metadata(body)), http))


def _forget(store: ResponseStore, http: HttpRequest, _: JsonObject) -> JSONResponse:
    conversation_id = http.path_params["id"]
    _found(store.forget(conversation_id, "conv_") or None, http)
    return JSONResponse({"id": conversation_id, "object": "conversation.deleted", "deleted": True})


def _add(store: ResponseStore, http: HttpRequest, body: JsonObject) -> JSONResponse:
    return JSONResponse(list_object(_found(store.add(http.path_params["id"], _checked(body)), http)))


def _list(store: ResponseStore, http: HttpRequest, _: JsonObject) -> JSONResponse:
    return paginate(_found(store.items(http.path_params["id"]), http), http)


def _item(store: ResponseStore, http: HttpRequest, _: JsonObject) -> JSONResponse:
    items = _found(store.items(http.path_params["id"]), http)
    found = next((item for item in items if item["id"] == http.path_params["item"]), None)
    return JSONResponse(_found(found, http))


def _remove(store: ResponseStore, http: HttpRequest, _: JsonObject) -> JSONResponse:
    conversation = _found(store.conversation(http.path_params["id"]), http)
    _found(store.remove(conversation["id"], http.path_params["item"]) or None, http)
    return JSONResponse(conversation)


def _metadata(body: JsonObject) -> JsonObject:
    return require_type(dict, body.get("metadata"), "metadata")


def _checked(body: JsonObject) -> list[JsonObject]:
    items = objects_in(body.get("items"), "items")
    if len(items) > MAX_ITEMS:
        raise RequestError(f"'items' has {len(items)} items; at most {MAX_ITEMS} can be added at a time", "items")
    list(messages_of(items, []))
    return items


def _found(value: object, http: HttpRequest) -> Any:
    """``value``, unless it is None: that raises RequestError."""
    if value is None:
        raise RequestError(f"{http.url.path[:120]} not found.", "conversation_id", status=404)
    return value
