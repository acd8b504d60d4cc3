"""A text-only model server, and a task of two turns: two calls at once, then an answer from the results."""

from __future__ import annotations

import json
from typing import Any

from tests.loopback import LoopbackServer, QuietHandler

CITIES = ("Bern", "Basel")
ANSWER = "Rain in Bern, sun in Basel."

TOOLS: dict[str, dict[str, Any]] = {
    "get_weather": {"city": "{city}"},
    "Outside-get_weather": {"city": "{city}"},
    "exec_command": {"cmd": "{command}"},
    "run_shell_command": {"command": "{command}", "is_background": False},
    "bash": {"command": "{command}", "description": "Looks outside"},
    "Bash": {"command": "{command}", "description": "Looks outside"},
    "run_commands": {"commands": ["{command}"]},
    "execute_bash": {"command": "{command}"},
    "terminal": {"command": "{command}"},
    "shell": {"command": "{command}"},
}
"""The tools that it calls; the first that exists is used, because coding agents have only a shell."""
ENDS: dict[str, dict[str, Any]] = {"final_answer": {"answer": "{answer}"}}
"""The tools that end agents which continue until one is called."""
SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""The first line of a command's output that ends mini-swe-agent, as its prompt states."""


class TextModel(LoopbackServer):
    """Call ``get_weather``, or the request's other tool, for two cities, and answer after both results.

    If a client runs only one call of an answer, the other call is repeated.
    """

    def __init__(self) -> None:
        self.asked: list[Any] = []
        super().__init__(_handler(self))

    @property
    def url(self) -> str:
        return f"{super().url}/v1"

    def text(self, body: Any) -> str:
        said, tools = json.dumps(body["messages"]), _described(body["messages"])
        missing = [city for city in CITIES if f"weather of {city}" not in said]
        if missing:  # what a command prints is not what it says, which is in the conversation as well
            calls = [_call(tools, TOOLS, city=city, command=f"echo weather 'of' {city}") for city in missing]
            return "<think>Two cities.</think>I look.\n" + "\n".join(calls)
        if SUBMIT in said:
            return _call(tools, TOOLS, command=f"echo {SUBMIT}; echo {ANSWER}")
        return _call(tools, ENDS, answer=ANSWER) or ANSWER


def _described(messages: Any) -> dict[str, Any]:
    """Return the tools defined in the prompt, with their parameters, by name."""
    lines = [line for message in messages for line in str(message["content"]).splitlines()]
    functions = [json.loads(line)["function"] for line in lines if line.startswith('{"type": "function", ')]
    return {function["name"]: function["parameters"]["properties"] for function in functions}


def _call(described: dict[str, Any], known: dict[str, dict[str, Any]], **given: str) -> str:
    """Return a call of the first known tool that is described, if any."""
    name = next((name for name in known if name in described), None)
    if name is None:
        return ""
    arguments = {key: value for key, value in known[name].items() if key in described[name]}
    call = json.dumps({"name": name, "arguments": arguments})
    for word, text in given.items():
        call = call.replace(f"{{{word}}}", text)
    return f"<tool_call>\n{call}\n</tool_call>"


def _handler(model: TextModel) -> type[QuietHandler]:
    class Handler(QuietHandler):
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
            name = f"chatcmpl-{len(model.asked)}"
            if body.get("stream"):
                pieces = [text[start : start + 7] for start in range(0, len(text), 7)]
                events = [*({"content": piece} for piece in pieces), None]
                lines = [b"data: " + json.dumps(_chunk(name, event)).encode() + b"\n\n" for event in events]
                self._send(200, "text/event-stream", b"".join(lines) + b"data: [DONE]\n\n")
            else:
                message = {"role": "assistant", "content": text}
                usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
                choice = {"index": 0, "message": message, "finish_reason": "stop"}
                whole = {"id": name, "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
                self._send(200, "application/json", json.dumps({**whole, "choices": [choice]}).encode())

        def _send(self, status: int, kind: str, content: bytes) -> None:
            self.send_response_only(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler


def _chunk(name: str, delta: Any) -> Any:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": None if delta else "stop"}
    return {"id": name, "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
