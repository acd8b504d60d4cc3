"""OpenAI's responses, for clients that know nothing older, before any model server."""

from __future__ import annotations

import time
from functools import partial

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from adapter.server.intake import json_of, roomy
from adapter.server.relay import StreamedAnswer, WholeAnswer, as_it_is
from adapter.server.upstream import Upstream
from adapter.wire import responses
from adapter.wire.errors import RequestError, refusal
from adapter.wire.exchange import Completed, Streamed
from adapter.wire.request import translate

CHAT = "/v1/chat/completions"


def routes(upstream: Upstream, keep_alive_s: float) -> list[Route]:
    answer = roomy(upstream.work, partial(_responses, upstream, keep_alive_s))
    return [Route(path, answer, methods=["POST"]) for path in ("/v1/responses", "/responses")]


async def _responses(upstream: Upstream, keep_alive_s: float, http: HttpRequest) -> ASGIApp:
    try:
        content, body = await json_of(http, upstream.work)
        asked = await upstream.work.do(len(content), partial(responses.as_openai, body))
        options = await upstream.options_for(asked)
        request = await upstream.work.do(len(content), partial(translate, asked, options))
    except RequestError as error:
        return JSONResponse(refusal(error), error.status)
    head = responses.answer_head(body, f"resp_{request.turn[:24]}", int(time.time()))
    if request.stream:
        streamed = Streamed(request, 0, responses.ResponsesWriter(head))
        return StreamedAnswer(upstream, CHAT, request, streamed, as_it_is, keep_alive_s)
    as_answer = partial(responses.as_answer, head=head)
    return WholeAnswer(upstream, CHAT, request, Completed(request), as_answer=as_answer)
