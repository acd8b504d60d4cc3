"""A model server that knows only text, and a task of two turns: two calls at once, then an answer from the results."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

CITIES = ("Bern", "Basel")
ANSWER = "Rain in Bern, sun in Basel."


class TextModel:
    """Calls ``get_weather``, or what the request has instead, for two cities; answers once it has both results."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def text(self, body: Any) -> str:
        said = json.dumps(body["messages"])
        if all(f"weather of {city}" in said for city in CITIES):
            return ANSWER
        calls = [_call(said, city) for city in CITIES]
        return "<think>Two cities.</think>I look.\n" + "\n".join(calls)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def _call(said: str, city: str) -> str:
    """With the tool that the conversation describes: coding agents have a shell alone."""
    if "get_weather" in said:
        call = {"name": "get_weather", "arguments": {"city": city}}
    elif "exec_command" in said:
        call = {"name": "exec_command", "arguments": {"cmd": f"echo weather of {city}"}}
    elif "bash" in said.lower():
        call = {"name": "bash", "arguments": {"command": f"echo weather of {city}", "description": "Looks outside"}}
    else:
        call = {"name": "shell", "arguments": {"command": ["echo", f"weather of {city}"]}}
    return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"


def _handler(model: TextModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            listed = {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": "us", "created": 0}]}
            self._send(200 if self.path == "/v1/models" else 404, "application/json", json.dumps(listed).encode())

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path != "/v1/chat/completions":
                self._send(404, "application/json", b'{"error": {"message": "not here"}}')
                return
            model.asked.append(body)
            text = model.text(body)
            if body.get("stream"):
                pieces = [text[start : start + 7] for start in range(0, len(text), 7)]
                events = [*({"content": piece} for piece in pieces), None]
                lines = [b"data: " + json.dumps(_chunk(event)).encode() + b"\n\n" for event in events]
                self._send(200, "text/event-stream", b"".join(lines) + b"data: [DONE]\n\n")
            else:
                message = {"role": "assistant", "content": text}
                usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
                choice = {"index": 0, "message": message, "finish_reason": "stop"}
                whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
                self._send(200, "application/json", json.dumps({**whole, "choices": [choice]}).encode())

        def _send(self, status: int, kind: str, content: bytes) -> None:
            self.send_response_only(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def _chunk(delta: Any) -> Any:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": None if delta else "stop"}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
