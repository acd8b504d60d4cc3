"""The routes that describe models: OpenAI's route for a single model, and Anthropic's and LM Studio's routes."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from adapter.protocols.model_descriptions import ModelDescription
from adapter.server.model_server import ModelServer
from adapter.server.request_body import Endpoint
from adapter.server.routes_conversations import list_object
from adapter.server.upstream_connection import UpstreamError

LIST = "/api/v0/models"

VERSION_HEADER = "anthropic-version"
"""Header that identifies requests of Anthropic's SDK."""


def list_routes(upstream: ModelServer, pass_on: Endpoint) -> list[Route]:
    """Return the routes that list models or describe one. ``pass_on`` forwards a request to the model server."""
    return [
        Route("/v1/models", partial(_list_models, upstream, pass_on), methods=["GET"]),
        Route("/v1/models/{id:path}", partial(_answer_model, upstream, pass_on), methods=["GET"]),
        Route(LIST, partial(_answer_lm_studio, upstream, pass_on), methods=["GET"]),
        Route(f"{LIST}/{{id:path}}", partial(_answer_lm_studio, upstream, pass_on), methods=["GET"]),
    ]


async def _list_models(upstream: ModelServer, pass_on: Endpoint, http: HttpRequest) -> ASGIApp:
    if VERSION_HEADER not in http.headers:
        return await pass_on(http)
    models = [each.to_anthropic() for each in await upstream.list_models()]
    return JSONResponse(list_object(models))


async def _answer_model(upstream: ModelServer, pass_on: Endpoint, http: HttpRequest) -> ASGIApp:
    """Return the entry of one model in ``/v1/models``. Most model servers have no route for a single model."""
    model = await _find(upstream, http.path_params["id"])
    if model is None:
        return await pass_on(http)
    return JSONResponse(model.to_anthropic() if VERSION_HEADER in http.headers else model.to_openai())


async def _answer_lm_studio(upstream: ModelServer, pass_on: Endpoint, http: HttpRequest) -> ASGIApp:
    if (await upstream.find_server_info()).kind == "lmstudio":
        return await pass_on(http)
    if "id" in http.path_params:
        model = await _find(upstream, http.path_params["id"])
        return await pass_on(http) if model is None else JSONResponse(model.to_lm_studio())
    models = [each.to_lm_studio() for each in await upstream.list_models()]
    return JSONResponse({"object": "list", "data": models})


async def _find(upstream: ModelServer, name: str) -> ModelDescription | None:
    with suppress(UpstreamError):
        return next((each for each in await upstream.list_models() if each.name == name), None)
    return None
