"""Ollama's routes, for its own clients, before any model server."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from adapter.server.intake import content_of, json_of, roomy
from adapter.server.relay import Answering, PassedThrough, StreamedAnswer, WholeAnswer
from adapter.server.upstream import Upstream, UpstreamError
from adapter.values.events import Json, JsonObject
from adapter.wire import ollama
from adapter.wire.errors import RequestError, relayed
from adapter.wire.exchange import Completed, Streamed
from adapter.wire.request import Request, has_tools, translate
from adapter.wire.sse import LineReader

CHAT = "/api/chat"
V1_CHAT = "/v1/chat/completions"


def routes(upstream: Upstream, keep_alive_s: float) -> list[Route]:
    return [
        Route(CHAT, roomy(upstream.work, partial(_chat, upstream, keep_alive_s)), methods=["POST"]),
        Route("/api/tags", partial(_tags, upstream)),
        Route("/api/show", partial(_show, upstream), methods=["POST"]),
    ]


async def _chat(upstream: Upstream, keep_alive_s: float, http: HttpRequest) -> ASGIApp:
    is_native = (await upstream.known()).kind == "ollama"
    try:
        content, body = await json_of(http, upstream.work)
        model, created_at = str(body.get("model") or ""), datetime.now(UTC).isoformat().replace("+00:00", "Z")
        live = ollama.OllamaWriter(model, created_at) if body.get("stream") is not False else None
        pass_on = partial(
            PassedThrough, upstream, "POST", CHAT, content, http.headers, ollama.as_error, keep_alive_s, live
        )
        if is_native and not has_tools(body):
            return pass_on()
        options = replace(await upstream.options_for(body), stream_arguments=False)
        asked = await upstream.work.do(len(content), partial(ollama.as_openai, body))
        request = await upstream.work.do(len(content), partial(translate, asked, options))
    except RequestError as error:
        return JSONResponse({"error": str(error)}, error.status)

    def answer(request: Request) -> Answering:
        as_body = partial(ollama.for_ollama, body=body) if is_native else None
        path, sent = (CHAT, replace(request, body=as_body(request.body))) if as_body else (V1_CHAT, request)
        if request.stream:
            writer = ollama.OllamaWriter(model, created_at)
            server = (LineReader(), ollama.as_chunk, as_body) if is_native else ()
            streamed = Streamed(request, 0, writer, *server)
            return StreamedAnswer(upstream, path, sent, streamed, ollama.as_error, keep_alive_s)
        completed = Completed(request, ollama.as_completion if is_native else None, as_body)
        as_answer = partial(ollama.as_answer, model=model, created_at=created_at)
        return WholeAnswer(upstream, path, sent, completed, ollama.as_error, as_answer)

    def instead(status: int, said: bytes) -> Answering | None:
        is_refused = request.as_text is not None and upstream.refuses_tools(status, said, model)
        return answer(request.as_text()) if is_refused and request.as_text else None

    return pass_on(instead) if is_native and request.is_native else answer(request)


async def _tags(upstream: Upstream, http: HttpRequest) -> ASGIApp:
    """The models; of servers that are no Ollama with what little they tell."""
    if (await upstream.known()).kind == "ollama":
        return PassedThrough(upstream, "GET", "/api/tags", b"", http.headers, ollama.as_error)
    status, listed = await _json(upstream, "GET", "/v1/models", b"")
    if status != 200:
        return JSONResponse(ollama.as_error(listed), status)
    names = [each["id"] for each in listed.get("data") or () if isinstance(each, dict) and "id" in each]
    return JSONResponse({"models": [{"name": name, "model": name, "details": _DETAILS} for name in names]})


async def _show(upstream: Upstream, http: HttpRequest) -> ASGIApp:
    """What Ollama says of a model, and that it can call tools: its clients look for that."""
    shown: Json = {"details": _DETAILS, "model_info": {}, "capabilities": ["completion"]}
    if (await upstream.known()).kind == "ollama":
        try:
            content = await content_of(http)
        except RequestError as error:
            return JSONResponse({"error": str(error)}, error.status)
        status, shown = await _json(upstream, "POST", "/api/show", content)
        if status != 200:
            return JSONResponse(ollama.as_error(shown), status)
    capabilities = shown.get("capabilities") or ["completion"]
    return JSONResponse({**shown, "capabilities": list(dict.fromkeys([*capabilities, "tools"]))})


_DETAILS = {"format": "gguf", "family": "", "families": [], "parameter_size": "", "quantization_level": ""}


async def _json(upstream: Upstream, method: str, path: str, content: bytes) -> tuple[int, JsonObject]:
    """An answer of the model server that is a JSON object, or an error in OpenAI's shape."""
    try:
        response = await upstream.send(method, path, content, {"Accept-Encoding": "identity"})
        try:
            status, body = response.status, await upstream.body_of(response)
        finally:
            response.close()
    except UpstreamError as error:
        return error.status, {"error": str(error)}
    if status != 200:
        return status, relayed(status, body)
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    return (200, value) if isinstance(value, dict) else (502, relayed(502, body))
