"""The routes of Ollama's API, for any model server."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from adapter.core.events import JsonObject
from adapter.protocols import ollama
from adapter.protocols.chat_request_translation import needs_translation
from adapter.protocols.dropped_fields import list_unknown_fields
from adapter.protocols.model_descriptions import ModelDescription
from adapter.protocols.sse import encode_json
from adapter.protocols.translated_request import TranslatedRequest
from adapter.server.model_server import ModelServer
from adapter.server.passthrough import PassthroughResponse
from adapter.server.proxied_responses import ProxiedResponse, respond
from adapter.server.request_body import build_post_route, read_json_body

CHAT = "/api/chat"
GENERATE = "/api/generate"

VERSION = "0.12.6"
"""The Ollama version that this API reports. Some clients detect features by this version."""


def list_routes(upstream: ModelServer, keep_alive_s: float) -> list[Route]:
    return [
        build_post_route(CHAT, upstream.work, partial(_answer_chat, upstream, keep_alive_s)),
        build_post_route(GENERATE, upstream.work, partial(_generate, upstream, keep_alive_s)),
        build_post_route("/api/embed", upstream.work, partial(_embed, upstream)),
        build_post_route("/api/embeddings", upstream.work, partial(_embed, upstream)),
        _get_or_pass(upstream, "/api/version", _answer_version),
        _get_or_pass(upstream, "/api/ps", _answer_loaded),
        Route("/", _report_running, methods=["GET"]),
        _get_or_pass(upstream, "/api/tags", _answer_tags),
        Route("/api/show", partial(_show, upstream), methods=["POST"]),
    ]


async def _is_ollama(upstream: ModelServer) -> bool:
    return (await upstream.find_server_info()).kind == "ollama"


def _create_writer(body: JsonObject, *, is_generating: bool = False) -> ollama.OllamaWriter:
    began = time.monotonic_ns()
    created_at = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    model = str(body.get("model") or "")
    return ollama.OllamaWriter(model, created_at, lambda: time.monotonic_ns() - began, is_generating=is_generating)


async def _answer_chat(upstream: ModelServer, keep_alive_s: float, http: HttpRequest) -> ASGIApp:
    is_native = await _is_ollama(upstream)
    content, body = await read_json_body(http, upstream.work)
    writer = _create_writer(body)
    pinging = writer if body.get("stream") is not False else None
    fitted, shortened = await upstream.fit(content, body) if is_native else (content, "")
    pass_on = partial(
        PassthroughResponse, upstream, "POST", CHAT, fitted, http.headers, keep_alive_s, pinging,
        shortened=shortened,
    )  # fmt: skip
    is_empty = body.get("messages") in (None, [])
    is_plain = is_empty or not needs_translation(body, upstream.options)
    if is_native and is_plain:
        return pass_on()
    if is_empty:
        return JSONResponse(writer.build_load_response(body))
    options = replace(await upstream.find_options(body), stream_arguments=False)
    if is_native:
        options = replace(options, fields={**options.fields, **ollama.build_extra_fields(body)})
    dropped: list[str] = []
    chat = await upstream.work.run(
        len(content), partial(ollama.convert_to_openai, body, None if is_native else dropped)
    )
    request = await upstream.translate(chat, options, len(content))

    def answer(request: TranslatedRequest) -> ProxiedResponse:
        return respond(upstream, request, keep_alive_s, writer)

    def retry_as_text(status: int, content: bytes) -> ProxiedResponse | None:
        is_refused = request.as_text is not None and upstream.detected.refuses_tools(status, content, body.get("model"))
        return answer(request.as_text()) if is_refused and request.as_text else None

    if is_native and request.is_native:
        return pass_on(retry_as_text)
    return upstream.dropped.with_header(answer(request), "chat", dropped)


async def _generate(upstream: ModelServer, keep_alive_s: float, http: HttpRequest) -> ASGIApp:
    """Complete a prompt. If the model server is not Ollama, the prompt is sent as a chat."""
    is_native = await _is_ollama(upstream)
    content, body = await read_json_body(http, upstream.work)
    writer = _create_writer(body, is_generating=True)
    if is_native:
        pinging = writer if body.get("stream") is not False else None
        return PassthroughResponse(upstream, "POST", GENERATE, content, http.headers, keep_alive_s, pinging)
    if not body.get("prompt"):
        return JSONResponse(writer.build_load_response(body))
    dropped: list[str] = []
    convert = partial(ollama.convert_to_openai, ollama.convert_generation_to_chat(body), dropped)
    request = await upstream.convert_and_translate(len(content), convert)
    answer = respond(upstream, request, keep_alive_s, writer)
    return upstream.dropped.with_header(answer, "generate", dropped)


async def _embed(upstream: ModelServer, http: HttpRequest) -> ASGIApp:
    path = http.scope["path"]
    is_native = await _is_ollama(upstream)
    content, body = await read_json_body(http, upstream.work)
    if is_native:
        return PassthroughResponse(upstream, "POST", path, content, http.headers)
    began = time.monotonic_ns()
    async with upstream.limit.acquire():
        request = encode_json(ollama.build_embedding_request(body))
        answer = await upstream.request_json("POST", "/v1/embeddings", request)
    is_old = path == "/api/embeddings"
    elapsed_ns = time.monotonic_ns() - began
    embeddings = ollama.build_embedding_response(
        answer, str(body.get("model") or ""), is_old=is_old, elapsed_ns=elapsed_ns
    )
    return upstream.dropped.with_header(
        JSONResponse(embeddings), "embed", list_unknown_fields(body, ollama.EMBED_FIELDS)
    )


def _get_or_pass(upstream: ModelServer, path: str, answer: Callable[[ModelServer], Awaitable[ASGIApp]]) -> Route:
    """Return a GET route that passes requests through to Ollama, and otherwise calls ``answer``."""

    async def answer_or_pass(http: HttpRequest) -> ASGIApp:
        if await _is_ollama(upstream):
            return PassthroughResponse(upstream, "GET", path, b"", http.headers)
        return await answer(upstream)

    return Route(path, answer_or_pass)


async def _answer_version(_: ModelServer) -> ASGIApp:
    return JSONResponse({"version": VERSION})


async def _answer_loaded(upstream: ModelServer) -> ASGIApp:
    """List all models as loaded. Only Ollama reports which models are loaded."""
    return await _list_models(upstream, ModelDescription.to_loaded)


async def _answer_tags(upstream: ModelServer) -> ASGIApp:
    return await _list_models(upstream, ModelDescription.to_tag)


async def _list_models(upstream: ModelServer, describe: Callable[[ModelDescription], JsonObject]) -> ASGIApp:
    return JSONResponse({"models": [describe(each) for each in await upstream.list_models()]})


async def _report_running(_: HttpRequest) -> ASGIApp:
    """Respond as Ollama's root page does, because clients use it to detect Ollama."""
    return PlainTextResponse("Ollama is running")


async def _show(upstream: ModelServer, http: HttpRequest) -> ASGIApp:
    """Describe a model. The description includes the capability "tools", which Ollama's clients require."""
    is_native = await _is_ollama(upstream)
    content, body = await read_json_body(http, upstream.work)
    if not is_native:
        models = await upstream.list_models()
        name = str(body.get("model") or body.get("name") or "")
        known = (each for each in models if each.name in (name, name.removesuffix(":latest")))
        return JSONResponse(next(known, models[0] if models else ModelDescription(name)).to_show())
    model = await upstream.request_json("POST", "/api/show", content)
    capabilities = model.get("capabilities") or ["completion"]
    return JSONResponse({**model, "capabilities": list(dict.fromkeys([*capabilities, "tools"]))})
