"""Anthropic's messages, for its own clients, before any model server."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from adapter.events import JsonObject
from adapter.server.relay import StreamedAnswer, WholeAnswer
from adapter.server.upstream import Upstream
from adapter.wire import anthropic
from adapter.wire.errors import RequestError
from adapter.wire.exchange import Streamed, translated_body
from adapter.wire.request import Request, read_body, translate

CHAT = "/v1/chat/completions"


def routes(upstream: Upstream, keep_alive_s: float) -> list[Route]:
    return [Route("/v1/messages", partial(_messages, upstream, keep_alive_s), methods=["POST"])]


async def _messages(upstream: Upstream, keep_alive_s: float, http: HttpRequest) -> ASGIApp:
    try:
        body = read_body(await http.body())
        if not isinstance(body, dict):
            raise RequestError("the request's body must be a JSON object")
        request = translate(anthropic.as_openai(body), (await upstream.known()).options)
    except ValueError as error:  # RequestError is one
        return JSONResponse(anthropic.as_error({"error": str(error)}, 400), 400)
    model, message_id = str(body.get("model") or ""), f"msg_{request.turn[:24]}"
    if request.stream:
        streamed = Streamed(request, 0, anthropic.AnthropicWriter(model, message_id))
        return StreamedAnswer(upstream, CHAT, request, streamed, anthropic.as_error, keep_alive_s)
    return WholeAnswer(upstream, CHAT, request, partial(_whole, request, model, message_id), anthropic.as_error)


def _whole(request: Request, model: str, message_id: str, body: bytes) -> tuple[int, JsonObject]:
    status, completion = translated_body(body, request)
    if status != 200:
        return status, anthropic.as_error(completion, status)
    return status, anthropic.as_answer(completion, model, message_id)
