"""Faults of a model server, and the acceptable reactions of a client.

The question of a request names the fault: "Weather in Bern? fault=cut". Results of a tool are answered without one.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from adapter.prompting.chat_template import ChatTemplate, render_chat_template
from tests.scripted_server import CHAT, MODELS, Reply, ScriptedServer, as_error, as_json
from tests.template_server import CHATML

SCRIPTS = Path(__file__).parent / "scripts" / "faults"
TEMPLATE = ChatTemplate(CHATML, {"bos_token": "<s>", "eos_token": "</s>"})
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Bern"}}\n</tool_call>'
RESULT, ANSWER = "weather of Bern", "Rain in Bern."

Part: TypeAlias = str | tuple[str, str]
"""Text of the model, or the name and a piece of the arguments of a native call."""
Check: TypeAlias = Callable[[Any], str | None]
"""Checks a client's reaction to an answer, and returns the fault."""


def _in_pieces(text: str) -> list[Part]:
    return [text[at : at + 7] for at in range(0, len(text), 7)]


@dataclass(frozen=True, slots=True)
class Engine:
    """A model server's encoding of answers. ``event`` takes a part, or the finish reason after the last one."""

    path: str
    event: Callable[[Part, str | None], Any]
    whole: Callable[[Sequence[Part], str], Any]
    is_native: bool = False
    is_lines: bool = False
    options: tuple[str, ...] = ()

    @property
    def parts(self) -> list[Part]:
        """An answer with a call."""
        if self.is_native:
            return ["I look.", ("get_weather", ""), ("", '{"city"'), ("", ': "Bern"}')]
        return _in_pieces(f"I look.\n{CALL}")

    @property
    def cut_parts(self) -> list[Part]:
        """Parts that end within the call."""
        return self.parts[:-1] if self.is_native else _in_pieces(f"I look.\n{CALL}"[:52])

    def stream(self, parts: Sequence[Part], *rest: Any, finish: str | None = None) -> Reply:
        """``rest``: events after the parts, as JSON values or as text."""
        events = [*(self.event(part, None) for part in parts), *([self.event("", finish)] if finish else ()), *rest]
        texts = [event if isinstance(event, str) else json.dumps(event) for event in events]
        if self.is_lines:
            return Reply(200, "".join(f"{text}\n" for text in texts).encode(), "application/x-ndjson")
        done = ["[DONE]"] if finish else []
        return Reply(200, "".join(f"data: {text}\n\n" for text in [*texts, *done]).encode(), "text/event-stream")

    def answer(self, stream: bool, parts: Sequence[Part], finish: str = "stop") -> Reply:
        return self.stream(parts, finish=finish) if stream else as_json(200, self.whole(parts, finish))


def _joined(parts: Sequence[Part]) -> str:
    return "".join(part for part in parts if isinstance(part, str))


def _chat_event(part: Part, finish: str | None) -> Any:
    if isinstance(part, str):
        delta: Any = {"content": part} if part else {}
    else:
        name, arguments = part
        head = {"id": "call_1", "type": "function"} if name else {}
        function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
        delta = {"tool_calls": [{"index": 0, **head, "function": function}]}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def _chat(parts: Sequence[Part], finish: str) -> Any:
    message: Any = {"role": "assistant", "content": _joined(parts)}
    pieces = [part[1] for part in parts if not isinstance(part, str)]
    if pieces:
        function = {"name": "get_weather", "arguments": "".join(pieces)}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    return {**head, "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def _llama_event(part: Part, finish: str | None) -> Any:
    ends = {"stop": True, "stop_type": "limit" if finish == "length" else "eos"} if finish else {"stop": False}
    return {"index": 0, "content": part, "tokens_predicted": 3, "tokens_evaluated": 9, **ends}


def _generate_event(part: Part, finish: str | None) -> Any:
    return {"model": "m", "response": part, "done": bool(finish), **({"done_reason": finish} if finish else {})}


def _completions_event(part: Part, finish: str | None) -> Any:
    return {"model": "m", "choices": [{"index": 0, "text": part, "finish_reason": finish}]}


ENGINES = {
    "chat": Engine(CHAT, _chat_event, _chat),
    "native": Engine(CHAT, _chat_event, _chat, is_native=True, options=("--profile", "NATIVE")),
    "llama.cpp": Engine("/completion", _llama_event, lambda parts, end: _llama_event(_joined(parts), end)),
    "ollama": Engine(
        "/api/generate", _generate_event, lambda parts, end: _generate_event(_joined(parts), end), is_lines=True
    ),
    "koboldcpp": Engine(
        "/v1/completions", _completions_event, lambda parts, end: _completions_event(_joined(parts), end),
        options=("--template", "TEMPLATE"),
    ),
}  # fmt: skip


def options_of(engine: str, folder: Path) -> list[str]:
    """Return the options of `serve` for a server of this kind; the files that they name are written to ``folder``."""
    files = {"NATIVE": '[model]\nname = "m"\n[use]\nnative = true\n', "TEMPLATE": CHATML}
    options = []
    for option in ENGINES[engine].options:
        if text := files.get(option):
            (folder / f"{option}.toml").write_text(text, encoding="utf-8")
            option = str(folder / f"{option}.toml")
        options.append(option)
    return options


Answer: TypeAlias = Callable[[Engine, bool], Reply]


def _broken(engine: Engine, stream: bool) -> Reply:
    if stream:
        return engine.stream(engine.cut_parts, '{"choices": [{"delta": {"content": "x')
    whole = engine.answer(False, engine.parts)
    return replace(whole, body=whole.body[:-30])


def _error_event(engine: Engine, stream: bool) -> Reply:
    said = "CUDA error: out of memory"
    error: Any = {"error": said if engine.is_lines else {"message": said, "type": "server_error", "code": 500}}
    return engine.stream(engine.cut_parts, error) if stream else as_json(200, error)


def _error_first(engine: Engine, stream: bool) -> Reply:
    error = {"error": {"message": "CUDA error: out of memory", "type": "server_error", "code": 500}}
    return engine.stream([], error) if stream else as_json(500, error)


def _bare_error(engine: Engine, stream: bool) -> Reply:
    """As older vLLM sends it; the stream ends normally."""
    error = {"object": "error", "message": "CUDA error: out of memory", "type": "InternalServerError", "code": 500}
    return engine.stream(engine.cut_parts, error, "[DONE]") if stream else as_json(200, error)


def _cut(engine: Engine, stream: bool) -> Reply:
    reply = engine.stream(engine.cut_parts) if stream else engine.answer(False, engine.parts)
    size = len(reply.body)
    return replace(reply, body=reply.body if stream else reply.body[:60], length=size + 100)


def _stops(engine: Engine, stream: bool) -> Reply:
    """As from a proxy that lost its server: the body ends normally, without a finish reason."""
    return engine.stream(engine.cut_parts) if stream else Reply(200, b"")


def _compressed(engine: Engine, stream: bool) -> Reply:
    plain = engine.answer(stream, engine.parts)
    return replace(plain, body=gzip.compress(plain.body), headers=(("Content-Encoding", "gzip"),))


def _busy(status: int, message: str, kind: str) -> Answer:
    return lambda *_: replace(as_error(status, message, kind), headers=(("Retry-After", "2"),))


def _fails(word: str, status: int | None = None) -> Check:
    """The client raises an error that contains ``word``, without a call."""

    def check(said: Any) -> str | None:
        if not said["error"]:
            return "no error"
        if said["calls"]:
            return "a call"
        if word not in said["error"]:
            return "does not say why"
        actual = said.get("status")
        # litellm makes a 500 of Anthropic's overloaded_error
        return None if not status or not actual or actual == status or (status, actual) == (503, 500) else "status"

    return check


def _has_call(said: Any) -> str | None:
    return None if said["calls"] == [["get_weather", {"city": "Bern"}]] and not said["error"] else "not the call"


def _has_no_call(said: Any) -> str | None:
    if said["calls"] or "JSON" in (said["error"] or ""):
        return "a call"
    return "half a call as text" if re.search(r"tool_call|get_weather|\{", said["text"]) else None


@dataclass(frozen=True, slots=True)
class Fault:
    reply: Answer
    check: Check


FAULTS: dict[str, Fault] = {
    "none": Fault(lambda engine, stream: engine.answer(stream, engine.parts), _has_call),
    "malformed": Fault(_broken, _fails("model server")),
    "429": Fault(_busy(429, "slow down", "rate_limit_error"), _fails("slow down", 429)),
    "503": Fault(_busy(503, "overloaded just now", "overloaded_error"), _fails("overloaded", 503)),
    "error_event": Fault(_error_event, _fails("out of memory")),
    "error_first": Fault(_error_first, _fails("out of memory")),
    "bare_error": Fault(_bare_error, _fails("out of memory")),
    "aborted": Fault(lambda engine, stream: engine.answer(stream, engine.cut_parts, "abort"), _fails("'abort'")),
    "cut": Fault(_cut, _fails("in the middle of its answer")),
    "stops": Fault(_stops, _fails("model server")),
    "length": Fault(lambda engine, stream: engine.answer(stream, engine.cut_parts, "length"), _has_no_call),
    "gzip": Fault(_compressed, _has_call),
    "empty": Fault(lambda engine, stream: engine.answer(stream, []), _has_no_call),
}


def cases_of(engine: str) -> list[str]:
    """Return the cases, "fault:streamed" or "fault:whole". llama.cpp and Ollama have no finish reason for failures."""
    names = [name for name in FAULTS if name != "aborted" or engine not in ("llama.cpp", "ollama")]
    return [f"{name}:{how}" for name in names for how in ("streamed", "whole")]


MAX_FAULTS = 5
"""Number of requests of an agent that fail. Some agents repeat a request until it succeeds."""


class FaultyServer(ScriptedServer):
    """Answers each request with the fault that its question names. ``fault``: the first requests' fault instead."""

    def __init__(self, kind: str, fault: str = "") -> None:
        super().__init__()
        self.engine = ENGINES[kind]
        self._faults = [fault] * MAX_FAULTS if fault else []
        self._is_named = not fault
        self.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "m", "object": "model"}]}))
        known = {
            "llama.cpp": ("/props", {"chat_template": CHATML, "default_generation_settings": {"n_ctx": 8192}}),
            "ollama": ("/api/version", {"version": "0.33.2"}),
            "koboldcpp": ("/api/extra/version", {"result": "KoboldCpp"}),
        }
        if kind in known:
            path, answer = known[kind]
            self.on(path, as_json(200, answer, server=kind))

    def next_reply(self, path: str, body: Any) -> Reply:
        if path == "/apply-template":
            return as_json(200, {"prompt": _rendered(body)})
        if path == "/api/chat" and body.get("_debug_render_only"):
            return as_json(200, {"model": "m", "_debug_info": {"rendered_template": _rendered(body)}})
        if path != self.engine.path:
            return super().next_reply(path, body)
        text, stream = json.dumps(body), bool(body.get("stream"))
        if self._is_named and RESULT not in text:
            named = re.search(r"fault=(\w+)", text)
            assert named, text
            return FAULTS[named[1]].reply(self.engine, stream)
        fault = self._faults.pop() if self._faults else ""
        return FAULTS[fault].reply(self.engine, stream) if fault else self.engine.answer(stream, [ANSWER])


def _rendered(body: Any) -> str:
    return render_chat_template(TEMPLATE, body["messages"], body.get("tools"))


def script_of(name: str) -> str:
    """Return the program that asks a client's questions; its arguments are the API and cases."""
    path = next(SCRIPTS.glob(f"{name.replace('-', '_')}.*"))
    driver = (SCRIPTS / f"driver{path.suffix}").read_text(encoding="utf-8")
    return path.read_text(encoding="utf-8") + driver


def find_failures(output: str, cases: Sequence[str]) -> list[str]:
    """Return the fault of each case. ``output``: a script's output, one JSON object per line."""
    lines = [line for line in output.splitlines() if line.startswith('{"case"')]
    said = {value["case"]: value for value in map(json.loads, lines)}
    return [f"{case}: {why}: {said.get(case)}" for case in cases if (why := _judge(case, said.get(case)))]


def _judge(case: str, said: Any) -> str | None:
    if said is None:
        return "not reached"
    if "did not end within" in (said["error"] or ""):
        return "does not end"
    return FAULTS[case.partition(":")[0]].check(said)
