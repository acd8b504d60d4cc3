"""Anthropic's messages, for its own clients, before any model server."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from adapter.core.events import JsonObject
from adapter.protocols import anthropic_request
from adapter.protocols.anthropic_response import AnthropicWriter, as_answer, as_error, unthreaded
from adapter.protocols.exchange import Completed, Streamed
from adapter.protocols.openai_errors import RequestError, error_object, refusal
from adapter.protocols.translate import translate
from adapter.protocols.translated_request import Request
from adapter.server.model_server import Upstream
from adapter.server.request_body import json_of, roomy
from adapter.server.streaming_responses import StreamedAnswer, WholeAnswer
from adapter.server.token_counting import about, prompt_tokens
from adapter.server.upstream_connection import UpstreamError

CHAT = "/v1/chat/completions"


def routes(upstream: Upstream, keep_alive_s: float) -> list[Route]:
    messages = roomy(upstream.work, partial(_messages, upstream, keep_alive_s))
    count = roomy(upstream.work, partial(_count, upstream))
    return [
        Route("/v1/messages", messages, methods=["POST"]),
        Route("/v1/messages/count_tokens", count, methods=["POST"]),
    ]


async def _messages(upstream: Upstream, keep_alive_s: float, http: HttpRequest) -> ASGIApp:
    left_out: list[str] = []
    try:
        content, body = await json_of(http, upstream.work)
        if body.get("thread"):
            return JSONResponse(unthreaded(), 400)
        request = await _translated(upstream, body, len(content), left_out)
    except RequestError as error:
        return JSONResponse(as_error(refusal(error), error.status), error.status)
    model, message_id = str(body.get("model") or ""), f"msg_{request.turn[:24]}"
    if request.client.stream:
        read = 0
        if (await upstream.known()).kind == "llama.cpp":
            request = _telling_progress(request)
        else:
            read = await upstream.work.do(len(content), partial(about, request.body))
        streamed = Streamed(request, 0, AnthropicWriter(model, message_id, read))
        answer: ASGIApp = StreamedAnswer(upstream, CHAT, request, streamed, as_error, keep_alive_s)
    else:
        as_message = partial(as_answer, model=model, message_id=message_id)
        answer = WholeAnswer(upstream, CHAT, request, Completed(request), as_error, as_message)
    return upstream.left_out.telling(answer, "messages", left_out)


async def _translated(upstream: Upstream, body: JsonObject, size: int, left_out: list[str]) -> Request:
    asked = await upstream.work.do(size, partial(anthropic_request.as_openai, body, left_out))
    options = await upstream.options_for(asked)
    return await upstream.work.do(size, partial(translate, asked, options))


def _telling_progress(request: Request) -> Request:
    """The request of a client that wants to know how long its prompt is before the answer begins."""
    return replace(request, body={**request.body, "return_progress": True})


async def _count(upstream: Upstream, http: HttpRequest) -> ASGIApp:
    left_out: list[str] = []
    try:
        content, body = await json_of(http, upstream.work)
        request = await _translated(upstream, body, len(content), left_out)
        counted = await prompt_tokens(upstream, (await upstream.known()).kind, request)
    except RequestError as error:
        return JSONResponse(as_error(refusal(error), error.status), error.status)
    except UpstreamError as error:
        failure = error_object(str(error), "upstream_error")
        return JSONResponse(as_error(failure, error.status), error.status)
    return upstream.left_out.telling(JSONResponse({"input_tokens": counted}), "messages", left_out)
