"""An MCP server without the SDK, which begins in a tenth of the time, for tests of what a server may be like.

Source: the specification of 2025-06-18, "Lifecycle" and "Tools", over standard input and output.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

Listed = Callable[[str | None], dict[str, Any]]
"""The result of ``tools/list`` for a cursor."""
READS = {"readOnlyHint": True, "openWorldHint": False}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def serve(listed: Listed, answer: Callable[[], str]) -> None:
    """Lists tools, and answers each call with a text, until its input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        parameters = request.get("params") or {}
        results: dict[str, Callable[[], dict[str, Any]]] = {
            "initialize": lambda: {  # called before the next line
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "plain", "version": "1"},
            },
            "tools/list": lambda: listed(parameters.get("cursor")),  # noqa: B023
            "tools/call": lambda: {"content": [{"type": "text", "text": answer()}]},
        }
        made = results.get(request["method"])
        outcome = {"result": made()} if made else {"error": {"code": -32601, "message": "Method not found"}}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome}), flush=True)
