"""A loopback HTTP server with scripted answers, which keeps its requests."""

from __future__ import annotations

import json
import threading
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Any, Self

from tests.loopback import LoopbackServer, QuietHandler


@dataclass(frozen=True)
class Reply:
    """``length``: a wrong Content-Length. ``linger_s``: silence before closing."""

    status: int
    body: bytes
    content_type: str = "application/json"
    server: str = "test"
    length: int | None = None
    linger_s: float = 0.0
    headers: tuple[tuple[str, str], ...] = ()


def as_json(status: int, value: Any, server: str = "test") -> Reply:
    return Reply(status, json.dumps(value).encode(), server=server)


def as_error(status: int, message: str, kind: str = "invalid_request_error") -> Reply:
    return as_json(status, {"error": {"message": message, "type": kind, "param": None, "code": None}})


def as_stream(*events: Any, done: bool = True, cut: bool = False) -> Reply:
    """Return server-sent events: dicts become JSON, text is unchanged. ``cut`` drops the connection at the end."""
    lines = [event if isinstance(event, str) else "data: " + json.dumps(event) for event in events]
    body = "".join(line + "\n\n" for line in [*lines, *(["data: [DONE]"] if done else [])]).encode()
    return Reply(200, body, "text/event-stream", length=len(body) + 100 if cut else None)


def delta(text: str | None = None, finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return one event as llama.cpp and Ollama send it."""
    inner = fields if text is None else {"content": text, **fields}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1795255059,
        "model": "m",
        "choices": [{"index": 0, "delta": inner, "finish_reason": finish_reason}],
    }


CHAT = "/v1/chat/completions"
MODELS = "/v1/models"


class ScriptedServer(LoopbackServer):
    """``replies[path]`` are sent in turn, the last one repeatedly. Other paths are a 404."""

    def __init__(self, port: int = 0) -> None:
        self.replies: dict[str, deque[Reply]] = defaultdict(deque)
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        super().__init__(_handler(self), port)
        self._http.daemon_threads = False
        self.is_closing = threading.Event()

    def on(self, path: str, *replies: Reply) -> Self:
        self.replies[path].extend(replies)
        return self

    def bodies(self, path: str = CHAT) -> list[Any]:
        return [body for asked, _, body in self.requests if asked == path]

    def next_reply(self, path: str, _body: Any) -> Reply:
        replies = self.replies.get(path)
        if not replies:
            return as_error(404, "File Not Found", "not_found_error")
        return replies.popleft() if len(replies) > 1 else replies[0]

    def __exit__(self, *error: object) -> None:
        self.is_closing.set()
        super().__exit__(*error)


def _handler(script: ScriptedServer) -> type[QuietHandler]:
    class Handler(QuietHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: Any) -> None:
            script.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            reply = script.next_reply(self.path, body)
            self.send_response_only(reply.status)
            self.send_header("Server", reply.server)
            self.send_header("Content-Type", reply.content_type)
            self.send_header("Content-Length", str(len(reply.body) if reply.length is None else reply.length))
            for name, value in reply.headers:
                self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(reply.body)
            script.is_closing.wait(reply.linger_s)
            self.close_connection = True

    return Handler
