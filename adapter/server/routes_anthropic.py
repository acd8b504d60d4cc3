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
from adapter.protocols.anthropic_response import AnthropicWriter, as_answer, as_error, with_thread_removed
from adapter.protocols.exchange import BufferedExchange, StreamedExchange
from adapter.protocols.openai_errors import RequestError, error_object, refusal
from adapter.protocols.translate import translate_chat_request
from adapter.protocols.translated_request import TranslatedRequest
from adapter.server.model_server import ModelServer
from adapter.server.request_body import read_json_body, with_memory_budget
from adapter.server.streaming_responses import TranslatedResponse, TranslatedStream
from adapter.server.token_counting import about, prompt_tokens
from adapter.server.upstream_connection import UpstreamError

CHAT = "/v1/chat/completions"


def routes(upstream: ModelServer, keep_alive_s: float) -> list[Route]:
    messages = with_memory_budget(upstream.work, partial(_messages, upstream, keep_alive_s))
    count = with_memory_budget(upstream.work, partial(_count, upstream))
    return [
        Route("/v1/messages", messages, methods=["POST"]),
        Route("/v1/messages/count_tokens", count, methods=["POST"]),
    ]


async def _messages(upstream: ModelServer, keep_alive_s: float, http: HttpRequest) -> ASGIApp:
    left_out: list[str] = []
    try:
        content, body = await read_json_body(http, upstream.work)
        if body.get("thread"):
            return JSONResponse(with_thread_removed(), 400)
        request = await _translated(upstream, body, len(content), left_out)
    except RequestError as error:
        return JSONResponse(as_error(refusal(error), error.status), error.status)
    model, message_id = str(body.get("model") or ""), f"msg_{request.turn[:24]}"
    if request.client.stream:
        read = 0
        if (await upstream.known()).kind == "llama.cpp":
            request = _telling_progress(request)
        else:
            read = await upstream.work.run(len(content), partial(about, request.body))
        streamed = StreamedExchange(request, 0, AnthropicWriter(model, message_id, read))
        answer: ASGIApp = TranslatedStream(upstream, CHAT, request, streamed, as_error, keep_alive_s)
    else:
        as_message = partial(as_answer, model=model, message_id=message_id)
        answer = TranslatedResponse(upstream, CHAT, request, BufferedExchange(request), as_error, as_message)
    return upstream.left_out.with_header(answer, "messages", left_out)


async def _translated(upstream: ModelServer, body: JsonObject, size: int, left_out: list[str]) -> TranslatedRequest:
    asked = await upstream.work.run(size, partial(anthropic_request.as_openai, body, left_out))
    options = await upstream.options_for(asked)
    return await upstream.work.run(size, partial(translate_chat_request, asked, options))


def _telling_progress(request: TranslatedRequest) -> TranslatedRequest:
    """The request of a client that wants to know how long its prompt is before the answer begins."""
    return replace(request, body={**request.body, "return_progress": True})


async def _count(upstream: ModelServer, http: HttpRequest) -> ASGIApp:
    left_out: list[str] = []
    try:
        content, body = await read_json_body(http, upstream.work)
        request = await _translated(upstream, body, len(content), left_out)
        counted = await prompt_tokens(upstream, (await upstream.known()).kind, request)
    except RequestError as error:
        return JSONResponse(as_error(refusal(error), error.status), error.status)
    except UpstreamError as error:
        failure = error_object(str(error), "upstream_error")
        return JSONResponse(as_error(failure, error.status), error.status)
    return upstream.left_out.with_header(JSONResponse({"input_tokens": counted}), "messages", left_out)
