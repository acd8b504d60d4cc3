"""Ollama's routes, for its own clients, before any model server."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from adapter.core.events import Json, JsonObject
from adapter.protocols import ollama
from adapter.protocols.exchange import BufferedExchange, StreamedExchange
from adapter.protocols.openai_errors import RequestError, relay_error
from adapter.protocols.sse import LineReader, encode_json
from adapter.protocols.translate import needs_translation, translate_chat_request
from adapter.protocols.translated_request import TranslatedRequest
from adapter.server.concurrency_limit import RETRY_AFTER_S, QueueFullError
from adapter.server.model_server import ModelServer
from adapter.server.passthrough import PassedThrough
from adapter.server.request_body import read_content, read_json_body, with_memory_budget
from adapter.server.streaming_responses import ProxiedResponse, TranslatedResponse, TranslatedStream
from adapter.server.upstream_connection import UpstreamError

CHAT = "/api/chat"
GENERATE = "/api/generate"
V1_CHAT = "/v1/chat/completions"

VERSION = "0.12.6"
"""Of the Ollama whose interface this is: some clients look for features by it."""


def routes(upstream: ModelServer, keep_alive_s: float) -> list[Route]:
    return [
        Route(CHAT, with_memory_budget(upstream.work, partial(_chat, upstream, keep_alive_s)), methods=["POST"]),
        Route(
            GENERATE, with_memory_budget(upstream.work, partial(_generate, upstream, keep_alive_s)), methods=["POST"]
        ),
        Route("/api/embed", with_memory_budget(upstream.work, partial(_embed, upstream)), methods=["POST"]),
        Route("/api/embeddings", with_memory_budget(upstream.work, partial(_embed, upstream)), methods=["POST"]),
        Route("/api/version", partial(_version, upstream)),
        Route("/api/ps", partial(_loaded, upstream)),
        Route("/", _is_there, methods=["HEAD"]),
        Route("/api/tags", partial(_tags, upstream)),
        Route("/api/show", partial(_show, upstream), methods=["POST"]),
    ]


def _answering(body: JsonObject, *, is_generating: bool = False) -> ollama.OllamaResponseInfo:
    began = time.monotonic_ns()
    created_at = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    model = str(body.get("model") or "")
    return ollama.OllamaResponseInfo(model, created_at, lambda: time.monotonic_ns() - began, is_generating)


async def _chat(upstream: ModelServer, keep_alive_s: float, http: HttpRequest) -> ASGIApp:
    is_native = (await upstream.known()).kind == "ollama"
    try:
        content, body = await read_json_body(http, upstream.work)
        answering = _answering(body)
        live = ollama.OllamaWriter(answering) if body.get("stream") is not False else None
        pass_on = partial(
            PassedThrough, upstream, "POST", CHAT, content, http.headers, ollama.as_error, keep_alive_s, live
        )
        if is_native and not needs_translation(body):
            return pass_on()
        options = replace(await upstream.options_for(body), stream_arguments=False)
        left_out: list[str] = []
        asked = await upstream.work.run(len(content), partial(ollama.as_openai, body, None if is_native else left_out))
        request = await upstream.work.run(len(content), partial(translate_chat_request, asked, options))
    except RequestError as error:
        return JSONResponse({"error": str(error)}, error.status)

    def answer(request: TranslatedRequest) -> ProxiedResponse:
        as_body = partial(ollama.to_ollama_request, body=body) if is_native else None
        path, sent = (CHAT, replace(request, body=as_body(request.body))) if as_body else (V1_CHAT, request)
        if request.client.stream:
            writer = ollama.OllamaWriter(answering)
            server = (LineReader(), ollama.as_chunk, as_body) if is_native else ()
            streamed = StreamedExchange(request, 0, writer, *server)
            return TranslatedStream(upstream, path, sent, streamed, ollama.as_error, keep_alive_s)
        completed = BufferedExchange(request, ollama.as_completion if is_native else None, as_body)
        as_answer = partial(ollama.as_answer, answering=answering)
        return TranslatedResponse(upstream, path, sent, completed, ollama.as_error, as_answer)

    def instead(status: int, said: bytes) -> ProxiedResponse | None:
        is_refused = request.as_text is not None and upstream.refuses_tools(status, said, answering.model)
        return answer(request.as_text()) if is_refused and request.as_text else None

    if is_native and request.is_native:
        return pass_on(instead)
    return upstream.left_out.with_header(answer(request), "chat", left_out)


async def _generate(upstream: ModelServer, keep_alive_s: float, http: HttpRequest) -> ASGIApp:
    """A text that goes on from a prompt: of a server that is no Ollama the answer in a chat."""
    is_native = (await upstream.known()).kind == "ollama"
    try:
        content, body = await read_json_body(http, upstream.work)
        answering = _answering(body, is_generating=True)
        writer = ollama.OllamaWriter(answering) if body.get("stream") is not False else None
        if is_native:
            return PassedThrough(
                upstream, "POST", GENERATE, content, http.headers, ollama.as_error, keep_alive_s, writer
            )
        if not body.get("prompt"):  # it asks for the model to be loaded, which it is
            head = answering.said({"role": "assistant", "content": ""})
            return JSONResponse({**head, "done": True, "done_reason": "load"})
        left_out: list[str] = []
        asked = ollama.as_openai(ollama.generation_as_chat(body), left_out)
        options = await upstream.options_for(asked)
        request = await upstream.work.run(len(content), partial(translate_chat_request, asked, options))
    except RequestError as error:
        return JSONResponse({"error": str(error)}, error.status)
    if writer is not None:
        streamed = StreamedExchange(request, 0, writer)
        answer: ASGIApp = TranslatedStream(upstream, V1_CHAT, request, streamed, ollama.as_error, keep_alive_s)
    else:
        as_answer = partial(ollama.as_answer, answering=answering)
        answer = TranslatedResponse(upstream, V1_CHAT, request, BufferedExchange(request), ollama.as_error, as_answer)
    return upstream.left_out.with_header(answer, "generate", left_out)


async def _embed(upstream: ModelServer, http: HttpRequest) -> ASGIApp:
    path = http.scope["path"]
    is_native = (await upstream.known()).kind == "ollama"
    try:
        content, body = await read_json_body(http, upstream.work)
    except RequestError as error:
        return JSONResponse({"error": str(error)}, error.status)
    if is_native:
        return PassedThrough(upstream, "POST", path, content, http.headers, ollama.as_error)
    answering = _answering(body)
    try:
        async with upstream.places.acquire():
            status, said = await _json(upstream, "POST", "/v1/embeddings", encode_json(ollama.embedding_request(body)))
    except QueueFullError as error:
        return JSONResponse({"error": str(error)}, 503, {"retry-after": str(RETRY_AFTER_S)})
    if status != 200:
        return JSONResponse(ollama.as_error(said), status)
    is_old = path == "/api/embeddings"
    answer = ollama.embedding_answer(said, answering.model, is_old=is_old, elapsed_ns=answering.elapsed_ns())
    return upstream.left_out.with_header(
        JSONResponse(answer), "embed", ollama.unknown_fields(body, ollama.EMBED_FIELDS)
    )


async def _version(upstream: ModelServer, http: HttpRequest) -> ASGIApp:
    if (await upstream.known()).kind == "ollama":
        return PassedThrough(upstream, "GET", "/api/version", b"", http.headers, ollama.as_error)
    return JSONResponse({"version": VERSION})


async def _loaded(upstream: ModelServer, http: HttpRequest) -> ASGIApp:
    """The models that are loaded: of servers that are no Ollama all."""
    if (await upstream.known()).kind == "ollama":
        return PassedThrough(upstream, "GET", "/api/ps", b"", http.headers, ollama.as_error)
    status, names = await _names(upstream)
    if isinstance(names, dict):
        return JSONResponse(ollama.as_error(names), status)
    about = {"details": _DETAILS, "size": 0, "size_vram": 0, "digest": "", "expires_at": "0001-01-01T00:00:00Z"}
    return JSONResponse({"models": [{"name": name, "model": name, **about} for name in names]})


async def _is_there(_: HttpRequest) -> ASGIApp:
    """By which Ollama's clients see whether it runs."""
    return PlainTextResponse("Ollama is running")


async def _names(upstream: ModelServer) -> tuple[int, list[str] | JsonObject]:
    """What the models of a server that is no Ollama are called, or its error."""
    status, listed = await _json(upstream, "GET", "/v1/models", b"")
    if status != 200:
        return status, listed
    return 200, [str(each["id"]) for each in listed.get("data") or () if isinstance(each, dict) and "id" in each]


async def _tags(upstream: ModelServer, http: HttpRequest) -> ASGIApp:
    """The models; of servers that are no Ollama with what little they tell."""
    if (await upstream.known()).kind == "ollama":
        return PassedThrough(upstream, "GET", "/api/tags", b"", http.headers, ollama.as_error)
    status, names = await _names(upstream)
    if isinstance(names, dict):
        return JSONResponse(ollama.as_error(names), status)
    return JSONResponse({"models": [{"name": name, "model": name, "details": _DETAILS} for name in names]})


async def _show(upstream: ModelServer, http: HttpRequest) -> ASGIApp:
    """What Ollama says of a model, and that it can call tools: its clients look for that."""
    shown: Json = {"details": _DETAILS, "model_info": {}, "capabilities": ["completion"]}
    if (await upstream.known()).kind == "ollama":
        try:
            content = await read_content(http)
        except RequestError as error:
            return JSONResponse({"error": str(error)}, error.status)
        status, shown = await _json(upstream, "POST", "/api/show", content)
        if status != 200:
            return JSONResponse(ollama.as_error(shown), status)
    capabilities = shown.get("capabilities") or ["completion"]
    return JSONResponse({**shown, "capabilities": list(dict.fromkeys([*capabilities, "tools"]))})


_JSON = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
_DETAILS = {"format": "gguf", "family": "", "families": [], "parameter_size": "", "quantization_level": ""}


async def _json(upstream: ModelServer, method: str, path: str, content: bytes) -> tuple[int, JsonObject]:
    """An answer of the model server that is a JSON object, or an error in OpenAI's shape."""
    try:
        response = await upstream.send(method, path, content, _JSON)
        try:
            status, body = response.status, await upstream.body_of(response)
        finally:
            response.close()
    except UpstreamError as error:
        return error.status, {"error": str(error)}
    if status != 200:
        return status, relay_error(status, body)
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    return (200, value) if isinstance(value, dict) else (502, relay_error(502, body))
