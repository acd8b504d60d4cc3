"""A simulated model behind a real server: it solves every scenario with its oracle, and makes mistakes at a given rate.

    python -m benchmarks.faulty_model [--port N] [--suite FILE]

It measures what a harness recovers, not how models behave. The model *writes* calls as Qwen does; a request with
``tools`` is answered like an engine that parses ``<tool_call>`` strictly, as vLLM's parser for Hermes does. The model's
name sets its mistakes: ``qwen3-simulated:r0.2-s1-n0-bare`` makes a mistake in one of five steps, with seed 1, in run 0
of "bare". Each run of a scenario needs another name, so that the model can remember its mistakes; the same seed and
number make the same first mistakes for every harness. Other names make no mistakes.

A mistake is one of `benchmarks.mistakes`, all equally often. A retry corrects it with a probability that depends on the
message (`CorrectionRates`): it names the mistake, reports anything else, or is the same request again. An uncorrected
mistake is repeated. Words of every examined harness count as naming a mistake. The server is of an unknown kind, so no
grammar constrains the model.
"""

from __future__ import annotations

import argparse
import json
import re
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any, Self
from uuid import uuid4

from adapter.conversation.guardrails.call_history import looks_like_error
from adapter.core.events import Json, JsonObject
from adapter.evaluation.scenario import ExecutedCall, NextStep, Scenario, find_next_step
from adapter.evaluation.suite_loader import BUILT_IN, load_suite
from adapter.parsing.parser import parse
from adapter.prompting.escaping import unescape_control_tokens
from benchmarks.mistakes import BEFORE_ANSWER, BEFORE_CALLS, MISTAKES, NAMED, RESPOND, Situation

CHARACTERS_A_TOKEN = 4
PIECE = 12
"""Number of characters per chunk of a stream."""

_NAME = re.compile(r":r(?P<rate>[\d.]+)-s(?P<seed>\d+)-n(?P<number>\d+)(?P<only>-only_\w+?)?(?:-|$)")
_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
_RESULT = re.compile(r"<tool_response>\n?(.*?)\n?</tool_response>", re.DOTALL)


def model_name(rate: float, seed: int, number: int, run: str, only: str = "") -> str:
    return f"qwen3-simulated:r{rate:g}-s{seed}-n{number}{f'-only_{only}' if only else ''}-{run}"


@dataclass(frozen=True, slots=True)
class CorrectionRates:
    """Probabilities that a retry corrects a mistake: its message names it, reports something else, or is missing."""

    named: float = 0.85
    told: float = 0.5
    anew: float = 0.3


# ------------------------------------------------------------------------------------------------------ the model


@dataclass(slots=True)
class RunCounts:
    """The requests, tokens and mistakes (in order) of the runs with one model name."""

    requests: int = 0
    prompt_tokens: int = 0
    written_tokens: int = 0
    mistakes: list[str] = field(default_factory=list)
    tries: dict[Json, int] = field(default_factory=dict)
    last: dict[Json, tuple[str, list[str]]] = field(default_factory=dict)
    """The mistake in the last try of each step, and the messages before it."""


class Model:
    """Writes the next answer of a conversation. Threads may share it, if each name is used by one thread at a time."""

    def __init__(self, scenarios: Sequence[Scenario], mending: CorrectionRates = CorrectionRates()) -> None:
        self._scenarios = sorted(scenarios, key=lambda each: -len(each.user))
        self._mending = mending
        self._lock = threading.Lock()
        self.told: dict[str, RunCounts] = {}

    def write(self, body: JsonObject) -> str:
        name, messages = str(body.get("model")), body["messages"]
        with self._lock:
            told = self.told.setdefault(name, RunCounts())
        told.requests += 1
        found = _NAME.search(name)
        rate, seed, number = (float(found["rate"]), found["seed"], found["number"]) if found else (0.0, "0", "0")
        only = (found["only"] or "").removeprefix("-only_") if found else ""
        scenario = self._scenario(messages)
        if scenario is None:
            return "I only know the scenarios of this suite."
        made = read_conversation(messages, scenario)
        step = find_next_step(scenario, made)
        calls = step.calls if isinstance(step, NextStep) else ()
        key: Json = (step.number, len(step.calls)) if isinstance(step, NextStep) else "answer"
        attempt = told.tries.get(key, 0)
        told.tries[key] = attempt + 1
        random = Random(f"{seed}/{scenario.name}/{number}/{key}/{attempt}")
        responds = any(tool["function"]["name"] == RESPOND for tool in body.get("tools") or ())
        at = Situation(scenario, calls, "" if isinstance(step, NextStep) else step, made, random, responds)
        spoken = [f"{each.get('role')}: {_text(each)}" for each in messages if each.get("role") != "assistant"]
        mistake = self._mistake(at, told, key, attempt, rate, only, spoken)
        told.last[key] = (mistake, spoken)
        if not mistake:
            return at.right()
        told.mistakes.append(mistake)
        return MISTAKES[mistake](at)

    def _mistake(
        self, at: Situation, told: RunCounts, key: Json, attempt: int, rate: float, only: str, spoken: list[str]
    ) -> str:
        before, heard = told.last.get(key, ("", []))
        if before:
            new = _rest(spoken, heard)
            calls_expected_tools = re.search(NAMED[before], new, re.IGNORECASE)
            chance = self._mending.named if calls_expected_tools else self._mending.told if new else self._mending.anew
            return before if at.random.random() >= chance else ""
        if attempt or at.random.random() >= rate:
            return ""
        kinds = [kind for kind in (BEFORE_CALLS if at.calls else BEFORE_ANSWER) if only in ("", kind)]
        kinds = [kind for kind in kinds if _is_possible(kind, at)]
        return at.random.choice(kinds) if kinds else ""

    def _scenario(self, messages: Sequence[JsonObject]) -> Scenario | None:
        """Return the scenario whose request is in a user message, or None."""
        said = "\n".join(_text(each) for each in messages if each.get("role") == "user")
        return next((each for each in self._scenarios if each.user in said), None)


def _is_possible(kind: str, at: Situation) -> bool:
    if kind == "missing_arguments":
        return all(call.arguments for call in at.calls)
    return bool(at.made) if kind == "same_again" else True


def _rest(spoken: Sequence[str], heard: Sequence[str]) -> str:
    left = list(spoken)
    for each in heard:
        if each in left:
            left.remove(each)
    return "\n".join(left)


def read_conversation(messages: Sequence[JsonObject], scenario: Scenario) -> list[ExecutedCall]:
    """Return the executed calls with their results, native or in the model's text (the model ignores ``¤``).

    For a successful call, only the tool's own arguments count, because a harness may have dropped the others.
    """
    known = {
        tool["function"]["name"]: tool["function"]["parameters"].get("properties") or {} for tool in scenario.tools
    }

    def as_run(call: tuple[str, JsonObject], result: str) -> ExecutedCall:
        name, arguments = call
        if name in known and not looks_like_error(result):
            arguments = {key: value for key, value in arguments.items() if key in known[name]}
        return ExecutedCall(name, arguments, result)

    made: list[ExecutedCall] = []
    waiting: dict[str, tuple[str, JsonObject]] = {}
    for message in messages:
        role, text = message.get("role"), _text(message)
        if role == "assistant":
            waiting = {}
            for call in message.get("tool_calls") or ():
                waiting[call["id"]] = (call["function"]["name"], _object(call["function"]["arguments"]))
            if not waiting:  # calls in the text, in any markup
                calls = parse(text, list(scenario.tools), None, policy="lenient", generation_prompt="").calls
                waiting = {str(n): (call.name, dict(call.arguments)) for n, call in enumerate(calls)}
        elif role == "tool" and message.get("tool_call_id") in waiting:
            made.append(as_run(waiting.pop(str(message["tool_call_id"])), text))
        elif role in ("user", "tool"):
            for result in _RESULT.findall(text) or ([text] if role == "tool" else []):
                if waiting:
                    made.append(as_run(waiting.pop(next(iter(waiting))), unescape_control_tokens(result)))
    return made


def _object(text: Json) -> JsonObject:
    try:
        value = json.loads(text or "{}") if isinstance(text, str) else text
    except ValueError:
        return {"?": text}
    return value if isinstance(value, dict) else {"?": value}


def _text(message: JsonObject) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content)
    return str(content or "")


# ----------------------------------------------------------------------------------------------------- the engine


def parse_strictly(text: str) -> JsonObject:
    """Return the message that an engine builds from a text. It contains calls only if all of them are valid JSON."""
    reasoning = ""
    if (thought := re.match(r"<think>(.*?)</think>\s*", text, re.DOTALL)) is not None:
        reasoning, text = thought[1].strip(), text[thought.end() :]
    message: JsonObject = {"role": "assistant", "content": text}
    if reasoning:
        message["reasoning_content"] = reasoning
    if "<tool_call>" not in text:
        return message
    try:
        read = [json.loads(each) for each in _CALL.findall(text)]
        calls = [
            {
                "id": f"call_{uuid4().hex[:12]}",
                "type": "function",
                "function": {"name": each["name"], "arguments": json.dumps(each["arguments"], ensure_ascii=False)},
            }
            for each in read
        ]
    except (ValueError, KeyError, TypeError):
        return message
    if not calls:
        return message
    return {**message, "content": text.partition("<tool_call>")[0].strip() or None, "tool_calls": calls}


class FaultyServer:
    """Serves the model with an OpenAI-compatible API on loopback, in threads of this process.

    ``first_s``: seconds before the first token; ``token_s``: seconds for each token.
    """

    def __init__(
        self, scenarios: Sequence[Scenario], mending: CorrectionRates = CorrectionRates(), *, port: int = 0,
        first_s: float = 0.0, token_s: float = 0.0,
    ) -> None:  # fmt: skip
        self.model = Model(scenarios, mending)
        self.first_s, self.token_s = first_s, token_s
        self._http = _Http(("127.0.0.1", port), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def wait(self) -> None:
        self._thread.join()


class _Http(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


def _handler(server: FaultyServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_GET(self) -> None:
            if self.path.rstrip("/").endswith("/models"):
                self._json(200, {"object": "list", "data": [{"id": "qwen3-simulated", "object": "model"}]})
            else:
                self._json(404, {"error": {"message": f"nothing is at {self.path}"}})

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if not self.path.endswith("/chat/completions"):
                self._json(404, {"error": {"message": f"nothing is at {self.path}"}})
                return
            body = json.loads(raw)
            text = server.model.write(body)
            for stop in body.get("stop") or ():
                text = text.partition(stop)[0]
            told = server.model.told[str(body.get("model"))]
            asked = len(json.dumps(body["messages"], ensure_ascii=False)) + len(json.dumps(body.get("tools") or []))
            usage = {"prompt_tokens": asked // CHARACTERS_A_TOKEN, "completion_tokens": len(text) // CHARACTERS_A_TOKEN}
            usage["total_tokens"] = sum(usage.values())
            told.prompt_tokens += usage["prompt_tokens"]
            told.written_tokens += usage["completion_tokens"]
            time.sleep(server.first_s)
            if body.get("stream"):
                self._stream(body, text, usage)
                return
            time.sleep(server.token_s * usage["completion_tokens"])
            message = parse_strictly(text) if body.get("tools") else {"role": "assistant", "content": text}
            reason = "tool_calls" if message.get("tool_calls") else "stop"
            choice = {"index": 0, "message": message, "finish_reason": reason}
            self._json(200, {**_head(body, "chat.completion"), "choices": [choice], "usage": usage})

        def _stream(self, body: JsonObject, text: str, usage: JsonObject) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            head = _head(body, "chat.completion.chunk")
            is_native = bool(body.get("tools"))
            message = parse_strictly(text) if is_native else {"content": text}
            shown = str(message.get("content") or "")
            for start in range(0, len(shown), PIECE):
                time.sleep(server.token_s * PIECE / CHARACTERS_A_TOKEN)
                self._event({**head, "choices": [_delta({"content": shown[start : start + PIECE]})]})
            if calls := message.get("tool_calls"):
                time.sleep(server.token_s * (len(text) - len(shown)) / CHARACTERS_A_TOKEN)
                self._event(
                    {**head, "choices": [_delta({"tool_calls": [{"index": n, **c} for n, c in enumerate(calls)]})]}
                )
            self._event({**head, "choices": [_delta({}, "tool_calls" if calls else "stop")]})
            if (body.get("stream_options") or {}).get("include_usage"):
                self._event({**head, "choices": [], "usage": usage})
            self._piece(b"data: [DONE]\n\n")
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()

        def _event(self, event: JsonObject) -> None:
            self._piece(b"data: " + json.dumps(event).encode() + b"\n\n")

        def _piece(self, data: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

        def _json(self, status: int, value: JsonObject) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            self.wfile.flush()

        def handle(self) -> None:
            with suppress(ConnectionError):  # the client hung up
                super().handle()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def _head(body: JsonObject, kind: str) -> JsonObject:
    return {"id": "chatcmpl-simulated", "object": kind, "created": 0, "model": body.get("model")}


def _delta(delta: JsonObject, reason: str | None = None) -> JsonObject:
    return {"index": 0, "delta": delta, "finish_reason": reason}


def main() -> None:
    parser = argparse.ArgumentParser(description="A simulated model that errs; see benchmarks/faulty_model.py.")
    parser.add_argument("--port", type=int, default=8085)
    parser.add_argument("--suite", default=BUILT_IN)
    options = parser.parse_args()
    with FaultyServer(load_suite(options.suite), port=options.port) as server:
        print(f"a simulation, no model: {server.url}/v1", flush=True)
        try:
            server.wait()
        except KeyboardInterrupt:
            print("stopped")


if __name__ == "__main__":
    main()
