"""The routes of OpenAI's Responses API, for any model server, with stored responses."""

from __future__ import annotations

import asyncio
from functools import partial

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from adapter.core.events import JsonObject
from adapter.protocols.request_errors import RequestError
from adapter.protocols.translated_request import TranslatedRequest
from adapter.server.model_server import ModelServer
from adapter.server.proxied_responses import respond
from adapter.server.request_body import build_post_route
from adapter.server.response_store import ResponseStore
from adapter.server.responses_request import ResponsesRequest, references_stored_items
from adapter.server.routes_conversations import Action, build_store_route, delete_stored, get_id, paginate
from adapter.server.token_counting import count_prompt_tokens


def list_routes(upstream: ModelServer, keep_alive_s: float) -> list[Route]:
    stored: tuple[tuple[str, str, Action], ...] = (
        ("", "GET", _load_response),
        ("", "DELETE", partial(delete_stored, "resp_", "response")),
        ("/input_items", "GET", lambda store, http, _: paginate(store.load_input_items(get_id(http)), http)),
    )
    return [
        route
        for base in ("/v1/responses", "/responses")
        for route in (
            build_post_route(base, upstream.work, partial(_answer_responses, upstream, keep_alive_s)),
            build_post_route(f"{base}/input_tokens", upstream.work, partial(_count, upstream)),
            Route(f"{base}/compact", _refuse_compaction, methods=["POST"]),
            *(build_store_route(upstream, f"{base}/{{id}}{rest}", method, action) for rest, method, action in stored),
        )
    ]


async def _answer_responses(upstream: ModelServer, keep_alive_s: float, http: HttpRequest) -> ASGIApp:
    dropped: list[str] = []
    response, request = await _translate(upstream, http, dropped)
    answer = respond(upstream, request, keep_alive_s, response.create_writer())
    return upstream.dropped.with_header(answer, "responses", dropped)


async def _translate(
    upstream: ModelServer, http: HttpRequest, dropped: list[str]
) -> tuple[ResponsesRequest, TranslatedRequest]:
    size, body = await upstream.pdfs.read_body(http, upstream.work)
    build = partial(ResponsesRequest, body, upstream.store, size)
    response = await asyncio.to_thread(build) if references_stored_items(body) else build()
    convert = partial(response.to_chat_request, dropped)
    return response, await upstream.convert_and_translate(response.size, convert)


async def _count(upstream: ModelServer, http: HttpRequest) -> ASGIApp:
    dropped: list[str] = []
    _, request = await _translate(upstream, http, dropped)
    counted = await count_prompt_tokens(upstream, (await upstream.find_server_info()).kind, request)
    answer = JSONResponse({"object": "response.input_tokens", "input_tokens": counted})
    return upstream.dropped.with_header(answer, "responses", dropped)


async def _refuse_compaction(_: HttpRequest) -> JSONResponse:
    message = "this server cannot compact conversations; summarize older input items yourself, or send fewer of them"
    raise RequestError(message, status=404, code="unsupported_endpoint")


def _load_response(store: ResponseStore, http: HttpRequest, _: JsonObject) -> JsonObject | None:
    if http.query_params.get("stream") == "true":
        raise RequestError("stored responses cannot be streamed; omit 'stream'", "stream")
    return store.load_response(get_id(http))
