"""The routes of Anthropic's Messages API, for any model server."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from adapter.core.events import JsonObject
from adapter.protocols import anthropic_request
from adapter.protocols.anthropic_response import AnthropicWriter, build_thread_error
from adapter.protocols.translated_request import TranslatedRequest
from adapter.server.model_server import ModelServer
from adapter.server.proxied_responses import respond
from adapter.server.request_body import build_post_route
from adapter.server.token_counting import count_prompt_tokens, estimate_prompt_tokens


def list_routes(upstream: ModelServer, keep_alive_s: float) -> list[Route]:
    return [
        build_post_route("/v1/messages", upstream.work, partial(_answer_messages, upstream, keep_alive_s)),
        build_post_route("/v1/messages/count_tokens", upstream.work, partial(_count, upstream)),
    ]


async def _answer_messages(upstream: ModelServer, keep_alive_s: float, http: HttpRequest) -> ASGIApp:
    dropped: list[str] = []
    size, body = await upstream.pdfs.read_body(http, upstream.work)
    if body.get("thread"):
        return JSONResponse(build_thread_error(), 400)
    request = await _translate(upstream, body, size, dropped)
    prompt_tokens_estimate = 0
    if request.client.stream:
        if (await upstream.find_server_info()).kind == "llama.cpp":
            request = replace(
                request, body={**request.body, "return_progress": True}
            )  # reports the prompt's length first
        else:
            prompt_tokens_estimate = await upstream.work.run(size, partial(estimate_prompt_tokens, request.body))
    model, stops = str(body.get("model") or ""), body.get("stop_sequences")
    writer = AnthropicWriter(model, f"msg_{request.turn[:24]}", prompt_tokens_estimate, stops)
    answer = respond(upstream, request, keep_alive_s, writer)
    return upstream.dropped.with_header(answer, "messages", dropped)


async def _translate(upstream: ModelServer, body: JsonObject, size: int, dropped: list[str]) -> TranslatedRequest:
    return await upstream.convert_and_translate(size, partial(anthropic_request.convert_to_openai, body, dropped))


async def _count(upstream: ModelServer, http: HttpRequest) -> ASGIApp:
    dropped: list[str] = []
    size, body = await upstream.pdfs.read_body(http, upstream.work)
    request = await _translate(upstream, body, size, dropped)
    counted = await count_prompt_tokens(upstream, (await upstream.find_server_info()).kind, request)
    return upstream.dropped.with_header(JSONResponse({"input_tokens": counted}), "messages", dropped)
