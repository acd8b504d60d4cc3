"""An MCP server for tests: ``python -m tests.mcp_example [--http | --sse]``. Standard error has its process id."""

from __future__ import annotations

import os
import socket
import sys
import time
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import EmbeddedResource, ImageContent, ResourceLink, TextContent, TextResourceContents, ToolAnnotations

server = MCPServer("example")
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)


@server.tool(annotations=READS)
def add(first: int, second: int = 1) -> int:
    """Add two numbers."""
    return first + second


@server.tool(annotations=READS)
def read_file(path: str) -> str:
    """Not the workspace's."""
    return f"the server's own {path}"


@server.tool(annotations=READS, structured_output=False)
def show() -> list[Any]:
    """Return one block of each kind."""
    page = TextResourceContents(uri="example://page", text="the page")
    return [
        TextContent(text="Here:"),
        ImageContent(data="AAAA", mime_type="image/png"),
        EmbeddedResource(resource=page),
        ResourceLink(name="more", uri="example://more", description="the rest"),
    ]


@server.tool(annotations=READS)
def fail() -> str:
    """Fail."""
    raise ToolError("the disk is full")


@server.tool()
def erase(what: str) -> str:
    """Erase something."""
    return f"{what} erased"


@server.tool(annotations=READS)
def sleep(seconds: float) -> str:
    """Take time."""
    time.sleep(seconds)
    return "awake"


@server.tool(annotations=READS)
def secrets() -> list[str]:
    """Return the environment variables of the server."""
    return sorted(os.environ)


@server.tool(annotations=READS)
def die() -> str:
    """Exit during a call."""
    print("out of cheese", file=sys.stderr, flush=True)
    os._exit(3)


if __name__ == "__main__":
    print(f"pid {os.getpid()}", file=sys.stderr, flush=True)
    if "--http" in sys.argv or "--sse" in sys.argv:
        import uvicorn

        listener = socket.create_server(("127.0.0.1", 0))
        print(f"port {listener.getsockname()[1]}", file=sys.stderr, flush=True)
        config = uvicorn.Config(
            server.sse_app() if "--sse" in sys.argv else server.streamable_http_app(), log_level="error"
        )
        uvicorn.Server(config).run(sockets=[listener])
    else:
        server.run()
