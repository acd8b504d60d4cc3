"""OpenAI's responses, for clients that know nothing older, before any model server; and those that were kept."""

from __future__ import annotations

import asyncio
from functools import partial

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from adapter.protocols.exchange import BufferedExchange, StreamedExchange
from adapter.protocols.openai_errors import RequestError, error_object, refusal
from adapter.protocols.translate import translate_chat_request
from adapter.protocols.translated_request import TranslatedRequest
from adapter.server.model_server import ModelServer
from adapter.server.pagination import paginate
from adapter.server.request_body import read_json_body, with_memory_budget
from adapter.server.responses_request import ResponsesRequest, references_stored_items
from adapter.server.streaming_responses import TranslatedResponse, TranslatedStream, identity
from adapter.server.token_counting import prompt_tokens
from adapter.server.upstream_connection import UpstreamError

CHAT = "/v1/chat/completions"


def routes(upstream: ModelServer, keep_alive_s: float) -> list[Route]:
    answer = with_memory_budget(upstream.work, partial(_responses, upstream, keep_alive_s))
    count = with_memory_budget(upstream.work, partial(_count, upstream))
    of_one = (
        ("", partial(_kept, upstream), "GET"),
        ("", partial(_forget, upstream), "DELETE"),
        ("/input_items", partial(_input_items, upstream), "GET"),
    )
    return [
        route
        for base in ("/v1/responses", "/responses")
        for route in (
            Route(base, answer, methods=["POST"]),
            Route(f"{base}/input_tokens", count, methods=["POST"]),
            *(Route(f"{base}/{{id}}{rest}", endpoint, methods=[method]) for rest, endpoint, method in of_one),
        )
    ]


async def _responses(upstream: ModelServer, keep_alive_s: float, http: HttpRequest) -> ASGIApp:
    left_out: list[str] = []
    try:
        response, request = await _translated(upstream, http, left_out)
    except RequestError as error:
        return JSONResponse(refusal(error), error.status)
    if request.client.stream:
        streamed = StreamedExchange(request, 0, response.writer())
        answer: ASGIApp = TranslatedStream(upstream, CHAT, request, streamed, identity, keep_alive_s)
    else:
        answer = TranslatedResponse(upstream, CHAT, request, BufferedExchange(request), as_answer=response.answer)
    return upstream.left_out.with_header(answer, "responses", left_out)


async def _translated(
    upstream: ModelServer, http: HttpRequest, left_out: list[str]
) -> tuple[ResponsesRequest, TranslatedRequest]:
    content, body = await read_json_body(http, upstream.work)
    asking = partial(ResponsesRequest, body, upstream.store, len(content))
    response = await asyncio.to_thread(asking) if references_stored_items(body) else asking()
    asked = await upstream.work.run(response.size, partial(response.asked, left_out))
    options = await upstream.options_for(asked)
    return response, await upstream.work.run(response.size, partial(translate_chat_request, asked, options))


async def _count(upstream: ModelServer, http: HttpRequest) -> ASGIApp:
    left_out: list[str] = []
    try:
        _, request = await _translated(upstream, http, left_out)
        counted = await prompt_tokens(upstream, (await upstream.known()).kind, request)
    except RequestError as error:
        return JSONResponse(refusal(error), error.status)
    except UpstreamError as error:
        return JSONResponse(error_object(str(error), "upstream_error"), error.status)
    answer = JSONResponse({"object": "response.input_tokens", "input_tokens": counted})
    return upstream.left_out.with_header(answer, "responses", left_out)


async def _kept(upstream: ModelServer, http: HttpRequest) -> ASGIApp:
    if http.query_params.get("stream") == "true":
        message = "answers that were kept are not streamed again: ask without stream"
        return JSONResponse(refusal(RequestError(message, "stream")), 400)
    response = await asyncio.to_thread(upstream.store.response, http.path_params["id"])
    return _not_found(http) if response is None else JSONResponse(response)


async def _forget(upstream: ModelServer, http: HttpRequest) -> ASGIApp:
    response_id = http.path_params["id"]
    if not await asyncio.to_thread(upstream.store.forget, response_id, "resp_"):
        return _not_found(http)
    return JSONResponse({"id": response_id, "object": "response", "deleted": True})


async def _input_items(upstream: ModelServer, http: HttpRequest) -> ASGIApp:
    given = await asyncio.to_thread(upstream.store.given, http.path_params["id"])
    return _not_found(http) if given is None else paginate(given, http)


def _not_found(http: HttpRequest) -> JSONResponse:
    message = f"Response with id {http.path_params['id'][:80]!r} not found."
    return JSONResponse(refusal(RequestError(message, "response_id", status=404)), 404)
