"""OpenAI's responses, for clients that know nothing older, before any model server; and those that were kept."""

from __future__ import annotations

import asyncio
from functools import partial

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from adapter.protocols.exchange import Completed, Streamed
from adapter.protocols.openai_errors import RequestError, error_object, refusal
from adapter.protocols.translate import translate
from adapter.protocols.translated_request import Request
from adapter.server.model_server import Upstream
from adapter.server.pagination import page_of
from adapter.server.request_body import json_of, roomy
from adapter.server.responses_request import Response, refers
from adapter.server.streaming_responses import StreamedAnswer, WholeAnswer, as_it_is
from adapter.server.token_counting import prompt_tokens
from adapter.server.upstream_connection import UpstreamError

CHAT = "/v1/chat/completions"


def routes(upstream: Upstream, keep_alive_s: float) -> list[Route]:
    answer = roomy(upstream.work, partial(_responses, upstream, keep_alive_s))
    count = roomy(upstream.work, partial(_count, upstream))
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


async def _responses(upstream: Upstream, keep_alive_s: float, http: HttpRequest) -> ASGIApp:
    left_out: list[str] = []
    try:
        response, request = await _translated(upstream, http, left_out)
    except RequestError as error:
        return JSONResponse(refusal(error), error.status)
    if request.client.stream:
        streamed = Streamed(request, 0, response.writer())
        answer: ASGIApp = StreamedAnswer(upstream, CHAT, request, streamed, as_it_is, keep_alive_s)
    else:
        answer = WholeAnswer(upstream, CHAT, request, Completed(request), as_answer=response.answer)
    return upstream.left_out.telling(answer, "responses", left_out)


async def _translated(upstream: Upstream, http: HttpRequest, left_out: list[str]) -> tuple[Response, Request]:
    content, body = await json_of(http, upstream.work)
    asking = partial(Response, body, upstream.store, len(content))
    response = await asyncio.to_thread(asking) if refers(body) else asking()
    asked = await upstream.work.do(response.size, partial(response.asked, left_out))
    options = await upstream.options_for(asked)
    return response, await upstream.work.do(response.size, partial(translate, asked, options))


async def _count(upstream: Upstream, http: HttpRequest) -> ASGIApp:
    left_out: list[str] = []
    try:
        _, request = await _translated(upstream, http, left_out)
        counted = await prompt_tokens(upstream, (await upstream.known()).kind, request)
    except RequestError as error:
        return JSONResponse(refusal(error), error.status)
    except UpstreamError as error:
        return JSONResponse(error_object(str(error), "upstream_error"), error.status)
    answer = JSONResponse({"object": "response.input_tokens", "input_tokens": counted})
    return upstream.left_out.telling(answer, "responses", left_out)


async def _kept(upstream: Upstream, http: HttpRequest) -> ASGIApp:
    if http.query_params.get("stream") == "true":
        message = "answers that were kept are not streamed again: ask without stream"
        return JSONResponse(refusal(RequestError(message, "stream")), 400)
    response = await asyncio.to_thread(upstream.store.response, http.path_params["id"])
    return _not_found(http) if response is None else JSONResponse(response)


async def _forget(upstream: Upstream, http: HttpRequest) -> ASGIApp:
    response_id = http.path_params["id"]
    if not await asyncio.to_thread(upstream.store.forget, response_id, "resp_"):
        return _not_found(http)
    return JSONResponse({"id": response_id, "object": "response", "deleted": True})


async def _input_items(upstream: Upstream, http: HttpRequest) -> ASGIApp:
    given = await asyncio.to_thread(upstream.store.given, http.path_params["id"])
    return _not_found(http) if given is None else page_of(given, http)


def _not_found(http: HttpRequest) -> JSONResponse:
    message = f"Response with id {http.path_params['id'][:80]!r} not found."
    return JSONResponse(refusal(RequestError(message, "response_id", status=404)), 404)
