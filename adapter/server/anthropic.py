"""Anthropic's messages, for its own clients, before any model server."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from adapter.server.intake import json_of, roomy
from adapter.server.relay import StreamedAnswer, WholeAnswer
from adapter.server.upstream import Upstream
from adapter.wire import anthropic
from adapter.wire.errors import RequestError, refusal
from adapter.wire.exchange import Completed, Streamed
from adapter.wire.request import translate

CHAT = "/v1/chat/completions"


def routes(upstream: Upstream, keep_alive_s: float) -> list[Route]:
    messages = roomy(upstream.work, partial(_messages, upstream, keep_alive_s))
    return [Route("/v1/messages", messages, methods=["POST"])]


async def _messages(upstream: Upstream, keep_alive_s: float, http: HttpRequest) -> ASGIApp:
    try:
        content, body = await json_of(http, upstream.work)
        asked = await upstream.work.do(len(content), partial(anthropic.as_openai, body))
        options = await upstream.options_for(asked)
        request = await upstream.work.do(len(content), partial(translate, asked, options))
    except RequestError as error:
        return JSONResponse(anthropic.as_error(refusal(error), error.status), error.status)
    model, message_id = str(body.get("model") or ""), f"msg_{request.turn[:24]}"
    if request.stream:
        streamed = Streamed(request, 0, anthropic.AnthropicWriter(model, message_id))
        return StreamedAnswer(upstream, CHAT, request, streamed, anthropic.as_error, keep_alive_s)
    as_answer = partial(anthropic.as_answer, model=model, message_id=message_id)
    return WholeAnswer(upstream, CHAT, request, Completed(request), anthropic.as_error, as_answer)
