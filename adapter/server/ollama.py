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

from adapter.events import Json, JsonObject
from adapter.server.intake import content_of, json_of
from adapter.server.relay import PassedThrough, StreamedAnswer, WholeAnswer
from adapter.server.upstream import Upstream, UpstreamError
from adapter.wire import ollama
from adapter.wire.errors import RequestError, relayed
from adapter.wire.exchange import Completed, Streamed
from adapter.wire.request import has_tools, translate
from adapter.wire.sse import LineReader

CHAT = "/api/chat"


def routes(upstream: Upstream, keep_alive_s: float) -> list[Route]:
    return [
        Route(CHAT, partial(_chat, upstream, keep_alive_s), methods=["POST"]),
        Route("/api/tags", partial(_tags, upstream)),
        Route("/api/show", partial(_show, upstream), methods=["POST"]),
    ]


async def _chat(upstream: Upstream, keep_alive_s: float, http: HttpRequest) -> ASGIApp:
    known = await upstream.known()
    try:
        content, body = await json_of(http)
        model, created_at = str(body.get("model") or ""), datetime.now(UTC).isoformat().replace("+00:00", "Z")
        writer = ollama.OllamaWriter(model, created_at)
        live = writer if body.get("stream") is not False else None
        passed = PassedThrough(upstream, "POST", CHAT, content, http.headers, ollama.as_error, keep_alive_s, live)
        if known.kind == "ollama" and not has_tools(body):
            return passed
        options = await upstream.options_for(body)
        request = replace(translate(ollama.as_openai(body), options), stream_arguments=False)
        if known.kind == "ollama" and request.is_native:
            return passed
    except RequestError as error:
        return JSONResponse({"error": str(error)}, error.status)
    is_native = known.kind == "ollama"
    path = CHAT if is_native else "/v1/chat/completions"
    as_body = partial(ollama.for_ollama, body=body) if is_native else None
    sent = replace(request, body=as_body(request.body)) if as_body else request
    if request.stream:
        streamed = (
            Streamed(request, 0, writer, LineReader(), ollama.as_chunk, as_body)
            if is_native
            else Streamed(request, 0, writer)
        )
        return StreamedAnswer(upstream, path, sent, streamed, ollama.as_error, keep_alive_s)
    completed = Completed(request, ollama.as_completion if is_native else None, as_body)
    return WholeAnswer(upstream, path, sent, partial(_whole, completed, model, created_at), ollama.as_error)


def _whole(completed: Completed, model: str, created_at: str, body: bytes) -> tuple[int, JsonObject] | JsonObject:
    answer = completed.feed(body)
    if not isinstance(answer, tuple):
        return answer
    status, completion = answer
    if status != 200:
        return status, ollama.as_error(completion)
    return status, ollama.as_answer(completion, model, created_at)


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
