"""Serve a dialect's tools as an MCP server, over standard input and output or HTTP (`adapter mcp`).

Clients can use the tools of one workspace, without interactive approval: calls that the mode and the rules do not allow
are refused, and the response explains how the user can allow them.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import sys
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from adapter.core.errors import UsageError
from adapter.core.text.display_escaping import replace_surrogates_in_json
from adapter.core.version import __version__
from adapter.tools.operations import Effect
from adapter.tools.tool import Tool
from adapter.workspace import Workspace

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.lowlevel import Server

INSTRUCTIONS = "Tools for the files in one folder. Paths are relative to this folder; nothing outside it is accessible."

HOST = "127.0.0.1"
"""The loopback address. The SDK checks the Host header."""


def serve_mcp(workspace: Workspace, port: int | None = None, key: str | None = None) -> None:
    """Serve the tools of ``workspace`` until the client disconnects. With a ``port`` (0 for any free one), serve over
    HTTP until interrupted.

    ``key`` is the key that clients over HTTP need, by default a random one, which is printed with the address. Raises
    UsageError if the port is in use or cannot be bound.
    """
    import anyio

    if port is None:
        anyio.run(_serve_stdio, workspace)
    else:
        _serve_http(workspace, port, key)


async def _serve_stdio(workspace: Workspace) -> None:
    from mcp.server.stdio import stdio_server

    server = build_server(workspace)
    _read_any_text()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _read_any_text() -> None:
    """Replace lone surrogates in standard input, because the SDK does not answer requests that contain them."""
    source, (reader, writer) = os.dup(0), os.pipe()
    os.dup2(reader, 0)
    os.close(reader)

    def forward_lines() -> None:
        with os.fdopen(source, "rb") as lines, os.fdopen(writer, "wb", 0) as out, suppress(BrokenPipeError):
            for line in lines:
                out.write(
                    replace_surrogates_in_json(line.decode("utf-8", "replace")).encode() if b"\\u" in line else line
                )

    threading.Thread(target=forward_lines, name="stdin", daemon=True).start()


def _serve_http(workspace: Workspace, port: int, key: str | None) -> None:
    import uvicorn

    try:
        listener = socket.create_server((HOST, port))
    except OSError as error:
        raise UsageError(
            f"cannot listen on {HOST}:{port}: {error.strerror}. Choose another port with --port (0 picks a free one)."
        ) from error
    port = listener.getsockname()[1]
    shown = "" if key else f"?key={(key := secrets.token_urlsafe(16))}"
    print(f"serving http://{HOST}:{port}/mcp{shown}, in {workspace.root}", file=sys.stderr, flush=True)
    config = uvicorn.Config(
        KeyCheckMiddleware(build_server(workspace).streamable_http_app(host=HOST), key or "", port),
        log_level="warning",
        access_log=False,
        http="h11",  # limits the size of a request's head
        timeout_graceful_shutdown=2,
    )
    with listener:
        uvicorn.Server(config).run(sockets=[listener])


class KeyCheckMiddleware:
    """ASGI middleware that rejects requests from web pages, or without the key in a bearer token or the address."""

    def __init__(self, app: Any, key: str, port: int) -> None:
        self._app, self._key = app, key.encode()
        self._origins = {f"http://{name}:{port}".encode() for name in (HOST, "localhost")}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and (problem := self._find_problem(scope)):
            from starlette.responses import JSONResponse

            status, message = problem
            await JSONResponse({"error": {"message": message}}, status)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _find_problem(self, scope: Any) -> tuple[int, str] | None:
        headers = scope["headers"]
        sites = (b"cross-site", b"same-site")
        if any(
            (name == b"origin" and value not in self._origins) or (name == b"sec-fetch-site" and value in sites)
            for name, value in headers
        ):
            return 403, "requests from web pages are rejected"
        found = [value[7:] for name, value in headers if name == b"authorization" and value[:7].lower() == b"bearer "]
        found += [value.encode() for value in parse_qs(scope["query_string"].decode("latin-1")).get("key", ())]
        if any(hmac.compare_digest(value, self._key) for value in found):
            return None
        return 401, "send the key as `Authorization: Bearer KEY`, or use the address that `adapter mcp` printed"


def build_server(workspace: Workspace) -> Server[Any]:
    """Build an MCP server that runs the tools of ``workspace``."""
    from anyio.to_thread import run_sync
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent

    async def list_tools(_context: object, _page: object) -> ListToolsResult:
        return ListToolsResult(tools=[_to_mcp(tool) for tool in workspace.tools.values()])

    async def call_tool(_context: object, request: CallToolRequestParams) -> CallToolResult:
        result = await run_sync(partial(workspace.run, request.name, request.arguments or {}))
        structured = result.data if isinstance(result.data, dict) else None
        return CallToolResult(
            content=[TextContent(text=result.content)], structured_content=structured, is_error=not result.ok
        )

    server: Server[Any] = Server(
        "toolcall-adapter",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    server.middleware.append(_answer_pings)
    return server


async def _answer_pings(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Answer ``ping``. Protocol version 2026-07-28 removed it, but some clients of that version (fastmcp 4) send it."""
    return {} if ctx.method == "ping" else await call_next(ctx)


READS: frozenset[Effect] = frozenset({"read", "state", "skill"})
DESTROYS: frozenset[Effect] = frozenset({"write", "delete", "execute"})


def _to_mcp(tool: Tool) -> Any:
    from mcp_types import Tool as McpTool
    from mcp_types import ToolAnnotations

    hints = ToolAnnotations(
        read_only_hint=tool.effect in READS,
        destructive_hint=tool.effect in DESTROYS,
        open_world_hint=tool.effect in ("network", "execute"),
    )
    return McpTool(name=tool.name, description=tool.description, input_schema=tool.parameters, annotations=hints)
