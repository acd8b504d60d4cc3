"""An MCP server without the SDK, which starts ten times as fast, for tests of unusual servers.

As a program (``python -m tests.mcp_plain``) it has some tools of `tests.mcp_example`. Source: the specification of
2025-06-18, "Lifecycle" and "Tools", over standard input and output, or HTTP.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

Listed = Callable[[str | None], dict[str, Any]]
"""The result of ``tools/list`` for a cursor."""
Answer = Callable[[dict[str, Any]], str]
"""The text of the result of ``tools/call`` for its parameters."""
READS = {"readOnlyHint": True, "openWorldHint": False}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


ADDS = {
    "type": "object",
    "properties": {"first": {"type": "integer"}, "second": {"type": "integer"}},
    "required": ["first"],
}
TOOLS = [
    tool("add", annotations=READS, description="Add two numbers.", inputSchema=ADDS),
    tool("sleep", annotations=READS, inputSchema={"type": "object", "properties": {"seconds": {"type": "number"}}}),
    *(tool(name, annotations=READS) for name in ("read_file", "secrets", "die")),
]


def example(params: dict[str, Any]) -> str:
    """Return the result of a tool of `TOOLS`."""
    given = params.get("arguments") or {}
    match params["name"]:
        case "add":
            return str(given["first"] + given.get("second", 1))
        case "secrets":
            return "\n".join(sorted(os.environ))
        case "sleep":
            time.sleep(given["seconds"])
        case "die":
            print("out of cheese", file=sys.stderr, flush=True)
            os._exit(3)
    return ""


def answered(request: dict[str, Any], listed: Listed, answer: Answer) -> dict[str, Any] | None:
    """Return the message that answers ``request``; None for a notification."""
    if "id" not in request:
        return None
    results: dict[str, Callable[[], dict[str, Any]]] = {
        "initialize": lambda: {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "plain", "version": "1"},
        },
        "tools/list": lambda: listed((request.get("params") or {}).get("cursor")),
        "tools/call": lambda: {"content": [{"type": "text", "text": answer(request["params"])}]},
    }
    made = results.get(request["method"])
    outcome = {"result": made()} if made else {"error": {"code": -32601, "message": "Method not found"}}
    return {"jsonrpc": "2.0", "id": request["id"], **outcome}


def serve(listed: Listed, answer: Answer) -> None:
    """List tools, and answer each call with a text, until the input ends."""
    for line in sys.stdin:
        message = answered(json.loads(line), listed, answer)
        if message is not None:
            print(json.dumps(message), flush=True)


class Handler(BaseHTTPRequestHandler):
    """The same over HTTP, with plain JSON answers; subclasses define ``listed`` and ``answer``."""

    protocol_version = "HTTP/1.1"
    listed: Listed
    answer: Answer

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = answered(request, type(self).listed, type(self).answer)
        body = b"" if message is None else json.dumps(message).encode()
        self.send_response(202 if message is None else 200)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):  # who asked has gone
            self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_error(405)

    do_DELETE = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    serve(lambda _cursor: {"tools": TOOLS}, example)
