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

from adapter.errors import TransportError, UsageError
from adapter.events import Json, JsonObject
from adapter.server.relay import PassedThrough, StreamedAnswer, WholeAnswer, body_of
from adapter.server.upstream import Upstream
from adapter.wire import ollama
from adapter.wire.errors import relayed
from adapter.wire.exchange import Streamed, translated_body
from adapter.wire.request import Request, has_tools, read_body, translate
from adapter.wire.sse import LineReader

CHAT = "/api/chat"


def routes(upstream: Upstream, keep_alive_s: float) -> list[Route]:
    return [
        Route(CHAT, partial(_chat, upstream, keep_alive_s), methods=["POST"]),
        Route("/api/tags", partial(_tags, upstream)),
        Route("/api/show", partial(_show, upstream), methods=["POST"]),
    ]


async def _chat(upstream: Upstream, keep_alive_s: float, http: HttpRequest) -> ASGIApp:
    content = await http.body()
    known = await upstream.known()
    try:
        body = read_body(content)
        if known.kind == "ollama" and not has_tools(body):
            return PassedThrough(upstream, "POST", CHAT, content, http.headers)
        if not isinstance(body, dict):
            raise UsageError("the request's body must be a JSON object")
        request = replace(translate(ollama.as_openai(body), known.options), stream_arguments=False)
        if known.kind == "ollama" and request.is_native:
            return PassedThrough(upstream, "POST", CHAT, content, http.headers)
    except ValueError as error:  # UsageError is one
        return JSONResponse({"error": str(error)}, 400)
    is_native = known.kind == "ollama"
    path = CHAT if is_native else "/v1/chat/completions"
    if is_native:
        request = replace(request, body=ollama.for_ollama(request.body, body))
    model, created_at = str(body.get("model") or ""), datetime.now(UTC).isoformat().replace("+00:00", "Z")
    if request.stream:
        writer = ollama.OllamaWriter(model, created_at)
        streamed = (
            Streamed(request, 0, writer, LineReader(), ollama.as_chunk) if is_native else Streamed(request, 0, writer)
        )
        return StreamedAnswer(upstream, path, request, streamed, ollama.as_error, keep_alive_s)
    whole = partial(_whole, request, is_native, model, created_at)
    return WholeAnswer(upstream, path, request, whole, ollama.as_error)


def _whole(request: Request, is_native: bool, model: str, created_at: str, body: bytes) -> tuple[int, JsonObject]:
    status, completion = translated_body(body, request, ollama.as_completion if is_native else None)
    if status != 200:
        return status, ollama.as_error(completion)
    return status, ollama.as_answer(completion, model, created_at)


async def _tags(upstream: Upstream, http: HttpRequest) -> ASGIApp:
    """The models; of servers that are no Ollama with what little they tell."""
    if (await upstream.known()).kind == "ollama":
        return PassedThrough(upstream, "GET", "/api/tags", b"", http.headers)
    status, listed = await _json(upstream, "GET", "/v1/models", b"")
    if status != 200:
        return JSONResponse(ollama.as_error(listed), status)
    names = [each["id"] for each in listed.get("data") or () if isinstance(each, dict) and "id" in each]
    return JSONResponse({"models": [{"name": name, "model": name, "details": _DETAILS} for name in names]})


async def _show(upstream: Upstream, http: HttpRequest) -> ASGIApp:
    """What Ollama says of a model, and that it can call tools: its clients look for that."""
    shown: Json = {"details": _DETAILS, "model_info": {}, "capabilities": ["completion"]}
    if (await upstream.known()).kind == "ollama":
        status, shown = await _json(upstream, "POST", "/api/show", await http.body())
        if status != 200:
            return JSONResponse(ollama.as_error(shown), status)
    capabilities = shown.get("capabilities") or ["completion"]
    return JSONResponse({**shown, "capabilities": list(dict.fromkeys([*capabilities, "tools"]))})


_DETAILS = {"format": "gguf", "family": "", "families": [], "parameter_size": "", "quantization_level": ""}


async def _json(upstream: Upstream, method: str, path: str, content: bytes) -> tuple[int, JsonObject]:
    """An answer of the model server that is a JSON object, or an error in OpenAI's shape."""
    try:
        response = await upstream.send(method, path, content, {"Accept-Encoding": "identity"})
    except TransportError as error:
        return 502, {"error": str(error)}
    try:
        status, body = response.status, await body_of(response)
    finally:
        response.close()
    if status != 200:
        return status, relayed(status, body)
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    return (200, value) if isinstance(value, dict) else (502, relayed(502, body))
