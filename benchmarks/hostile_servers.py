"""Hostile servers for attacks: an MCP server over HTTP, and a model server whose answers are native tool calls."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

PIECES_S = 0.1
"""Pause between the bytes of a very slow answer, in seconds."""
ENDLESS = 1 << 40
"""Number of pieces of an answer without an end."""


def answer_mcp(handler: BaseHTTPRequestHandler, script: dict[str, Any], body: bytes) -> None:
    message = json.loads(body or b"{}")
    method = message.get("method", handler.command)
    act, _, argument = script.get("acts", {}).get(method, "").partition(" ")
    if act:
        with suppress(OSError):
            _act(handler, act, argument, message)
        return
    match method:
        case "initialize":
            params = message["params"]
            result: Any = {
                "protocolVersion": params.get("protocolVersion", "2025-06-18"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "there", "version": "1"},
            }
        case "tools/list":
            page = int((message.get("params") or {}).get("cursor") or 0)
            result = {"tools": tools_of(script["tools"], page)}
            if page + 1 < script.get("pages", 1):
                result["nextCursor"] = str(page + 1)
        case "tools/call":
            gives = script.get("gives", "").replace("{SENT}", str(dict(handler.headers)))
            result = {"content": [{"type": "text", "text": gives}] * script.get("blocks", 1)}
        case _:
            error = {"code": -32601, "message": "Method not found"}
            reply: Any = {"jsonrpc": "2.0", "id": message.get("id"), "error": error}
            _send(handler, 202 if "id" not in message else 200, reply)
            return
    _send(handler, 200, {"jsonrpc": "2.0", "id": message["id"], "result": result})


def tools_of(described: Any, page: int = 0) -> list[dict[str, Any]]:
    """Return tool definitions. ``times``: number of copies with other names. ``pad``: additional characters in each."""
    found = []
    for tool in described:
        definition = {"inputSchema": {"type": "object"}, **tool}
        times, pad = definition.pop("times", 1), definition.pop("pad", 0)
        definition["description"] = definition.get("description", "") + "x" * pad
        names = [definition["name"]] if times == 1 else [f"{definition['name']}_{page}_{n}" for n in range(times)]
        found += [{**definition, "name": name} for name in names]
    return found


def _act(handler: BaseHTTPRequestHandler, act: str, argument: str, message: dict[str, Any]) -> None:
    number = message.get("id")
    head = json.dumps({"jsonrpc": "2.0", "id": number, "result": {}})[:-2].encode()
    match act:
        case "silent":
            time.sleep(600)
        case "drip":
            _begin(handler, "application/json")
            for byte in head + b" " * 6_000:
                handler.wfile.write(bytes([byte]))
                time.sleep(PIECES_S)
        case "comments" | "notices" | "events":
            level = {"level": "error", "logger": "x", "data": "x" * 1_000}
            notice = {"jsonrpc": "2.0", "method": "notifications/message", "params": level}
            piece = {
                "comments": b": x\n",
                "notices": b"data: %s\n\n" % json.dumps(notice).encode(),
                "events": b"event: x\ndata: x\n\n",
            }[act]
            _begin(handler, "text/event-stream")
            for _ in range(ENDLESS):
                handler.wfile.write(piece * 100)
        case "reconnect":
            _begin(handler, "text/event-stream")
            handler.wfile.write(b"retry: 0\nid: 1\n\n")
        case "redirect":
            handler.send_response(int(argument.split(" ")[0]))
            port = str(handler.server.server_port)  # type: ignore[attr-defined]
            handler.send_header("Location", argument.split(" ")[1].replace("{PORT}", port))
            handler.send_header("Content-Length", "0")
            handler.end_headers()
        case "big" | "deep":
            _begin(handler, "application/json")
            handler.wfile.write(head)
            for _ in range(int(argument) >> 16 or 1):
                handler.wfile.write((b"x" if act == "big" else b"[") * 65_536)
        case "long-line":
            _begin(handler, "text/event-stream")
            handler.wfile.write(b"data: ")
            for _ in range(int(argument) >> 16):
                handler.wfile.write(b"x" * 65_536)
        case "bomb":
            handler.send_response(200)
            handler.send_header("Content-Type", "application/json")
            handler.send_header("Content-Encoding", "gzip")
            handler.end_headers()
            handler.wfile.write(gzip.compress(b"x" * int(argument), 9))
        case "session":
            result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
            _send(handler, 200, {"jsonrpc": "2.0", "id": number, "result": result}, {"Mcp-Session-Id": argument})
        case "says":
            _begin(handler, "application/json")
            handler.wfile.write(argument.replace("{ID}", json.dumps(number)).encode())


def _begin(handler: BaseHTTPRequestHandler, kind: str) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", kind)
    handler.end_headers()
    handler.close_connection = True


def _send(handler: BaseHTTPRequestHandler, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
    body = json.dumps(value).encode() if status != 202 else b""
    handler.send_response(status)
    for name, text in {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}.items():
        handler.send_header(name, text)
    handler.end_headers()
    with suppress(OSError):
        handler.wfile.write(body)


# ------------------------------------------------------------------- native tool calls


def native_deltas(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the deltas of an answer with ``times`` calls of the tool ``name``. Each has ``arguments``, followed by
    ``piece`` as often as ``pieces``. Without ``id``, each call gets a new id; without ``index``, the index increases by
    ``step``."""
    for number in range(spec.get("times", 1)):
        index = spec.get("index", number * spec.get("step", 1))
        function = {"name": spec.get("name", "read_file"), "arguments": spec.get("arguments", "")}
        call_id = spec.get("id", f"c{number}")
        yield {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}
        for _ in range(spec.get("pieces", 0)):
            yield {"tool_calls": [{"index": index, "function": {"arguments": spec.get("piece", "x")}}]}
        if "end" in spec:
            yield {"tool_calls": [{"index": index, "function": {"arguments": spec["end"]}}]}
    yield from spec.get("deltas", ())


def stream_native(handler: BaseHTTPRequestHandler, spec: dict[str, Any]) -> None:
    """Answer with the deltas of `native_deltas`, many in each packet."""
    _begin(handler, "text/event-stream")
    with suppress(OSError):
        held = b""
        for delta in native_deltas(spec):
            choice = {"index": 0, "delta": delta, "finish_reason": None}
            held += b"data: " + json.dumps({"id": "x", "choices": [choice]}).encode() + b"\n\n"
            if len(held) > 65_536:
                handler.wfile.write(held)
                held = b""
        last = {"index": 0, "delta": {}, "finish_reason": spec.get("reason", "tool_calls")}
        handler.wfile.write(held + b"data: " + json.dumps({"id": "x", "choices": [last]}).encode() + b"\n\n")
        handler.wfile.write(b"data: [DONE]\n\n")
