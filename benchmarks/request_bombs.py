"""What requests that are meant to be a burden cost `adapter serve`, and everybody else.

    python -m benchmarks.request_bombs [--clients 16] [--seconds 20]

- ``translate``: CPU seconds for 1,000, 2,000 and 4,000 tools, new ones each time, and for the longest texts of
  brackets and half calls that are taken;
- ``/health`` and ``a chat``, of 40 tools: how long they take, by themselves and while ``clients`` send bombs
  one after the other: too many tools, as many as are taken, texts of brackets and half calls, too long or just not;
- ``memory``: the server's peak resident memory after that.

Exits with 1 when a bar is missed: 0.5 s for 4,000 tools, and at most 2.6 times what 2,000 take; 100 ms for 99 of 100
``/health``; 300 MB.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from adapter.protocols.request_body_parsing import MAX_TEXT
from adapter.protocols.request_translation import translate_chat_request
from adapter.protocols.tool_definitions import MAX_TOOLS
from adapter.protocols.translation_options import TranslationOptions
from tests.scripted_server import CHAT, MODELS, ScriptedServer, as_json

TOOLS_BAR_S, GROWTH_BAR, HEALTH_BAR_S, MEMORY_BAR_MB = 0.5, 2.6, 0.1, 300.0
DONE = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}]}


def asking(tools: int, result: str = "", first: int = 0) -> dict[str, Any]:
    """A request with so many tools, numbered from ``first``, and a result."""
    path = {"type": "string", "description": "Which <file> to read."}
    lines = {"type": "integer", "description": "How many {lines}."}
    parameters = {"type": "object", "properties": {"path": path, "lines": lines}, "required": ["path"]}
    about = {"description": "Reads a file of the project.", "parameters": parameters}
    defined = [{"type": "function", "function": {"name": f"tool_{first + each}", **about}} for each in range(tools)]
    call = {"id": "c", "type": "function", "function": {"name": f"tool_{first}", "arguments": "{}"}}
    messages: list[Any] = [{"role": "user", "content": "Go on."}, {"role": "assistant", "tool_calls": [call]}]
    messages += [{"role": "tool", "tool_call_id": "c", "content": result}] if result else []
    return {"model": "m", "messages": messages, "tools": defined}


def bombs() -> list[bytes]:
    longest = MAX_TEXT - 10_000
    texts = [each * (longest // len(each)) for each in ("<", "<|", "[f(", '{"name":', "<tool_0>", "\n")]
    requests = [asking(20_000), asking(MAX_TOOLS), *(asking(1, text) for text in texts), asking(1, "<" * 8_000_000)]
    return [json.dumps(each).encode() for each in requests]


# ------------------------------------------------------------------ measuring


def translating() -> Iterator[tuple[str, float]]:
    """CPU seconds by what is translated; the least of three, each with tools of other names."""
    translate_chat_request(asking(1), TranslationOptions())
    for tools in (1_000, 2_000, 4_000):
        yield f"{tools:,} tools", min(cpu_seconds(asking(tools, first=turn * 10_000)) for turn in range(3))
    for text in ("<|", "[f(", '{"name":'):
        yield f"{MAX_TEXT:,} characters of {text}", cpu_seconds(asking(1, text * ((MAX_TEXT - 10_000) // len(text))))


def cpu_seconds(body: dict[str, Any]) -> float:
    began = time.process_time()
    translate_chat_request(body, TranslationOptions())
    return time.process_time() - began


def ask(address: str, method: str, path: str, body: bytes = b"") -> tuple[int, float]:
    """The status, and the seconds until the whole answer was there."""
    connection = http.client.HTTPConnection(address, timeout=600)
    began = time.monotonic()
    try:
        connection.request(method, path, body or None, {"Content-Type": "application/json"})
        response = connection.getresponse()
        response.read()
        return response.status, time.monotonic() - began
    finally:
        connection.close()


def waits(address: str, until: float) -> tuple[list[float], list[float]]:
    """Seconds of each ``/health`` and each chat, by turns, until a time; at least one of each."""
    health: list[float] = []
    chats: list[float] = []
    body = json.dumps(asking(40)).encode()
    while not health or time.monotonic() < until:
        health.append(ask(address, "GET", "/health")[1])
        if len(health) % 5 == 1:
            chats.append(ask(address, "POST", CHAT, body)[1])
        time.sleep(0.02)
    return health, chats


def p99(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=100)[98] if len(seconds) > 1 else seconds[0]


@contextmanager
def server(upstream: str) -> Iterator[tuple[str, int]]:
    """The address of `adapter serve` and its process."""
    command = [sys.executable, "-m", "adapter", "serve", "--upstream", upstream, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        match = re.match(r"serving (\S+)/v1, from ", process.stderr.readline())
        assert match
        try:
            yield urlsplit(match[1]).netloc, process.pid
        finally:
            process.terminate()


def peak_mb(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def bombarded(address: str, clients: int, seconds: float) -> tuple[list[float], list[float], int]:
    """What others wait meanwhile, and how many bombs were answered: at least one of each client's."""
    kinds, answered = bombs(), [0] * clients
    until = time.monotonic() + seconds

    def throw(number: int) -> None:
        turn = number
        while not answered[number] or time.monotonic() < until:
            status, _ = ask(address, "POST", CHAT, kinds[turn % len(kinds)])
            assert status in (200, 400), status
            answered[number] += 1
            turn += 1

    threads = [threading.Thread(target=throw, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    health, chats = waits(address, until)
    for thread in threads:
        thread.join()
    return health, chats, sum(answered)


def measure(clients: int, seconds: float) -> list[str]:
    """Prints what was measured; the bars that were missed."""
    missed = []
    took = dict(translating())
    for name, cost in took.items():
        print(f"translate  {name:<32} {cost:7.3f} s")
    growth = took["4,000 tools"] / took["2,000 tools"]
    missed += [f"4,000 tools take {growth:.1f} times what 2,000 take"] if growth > GROWTH_BAR else []
    missed += [f"4,000 tools take {took['4,000 tools']:.2f} s"] if took["4,000 tools"] > TOOLS_BAR_S else []
    with ScriptedServer() as upstream, server(f"{upstream.url}/v1") as (address, process):
        upstream.on(CHAT, as_json(200, DONE)).on(MODELS, as_json(200, {"data": []}))
        ask(address, "POST", CHAT, json.dumps(asking(1)).encode())
        quiet = waits(address, time.monotonic() + min(seconds, 5))
        health, chats, answered = bombarded(address, clients, seconds)
        for name, alone, among in (("/health", quiet[0], health), ("a chat", quiet[1], chats)):
            first, then = p99(alone) * 1e3, p99(among) * 1e3
            counted = f"{len(among)} asked, {answered} bombs"
            print(f"{name:<10} p99 {first:.1f} ms alone, {then:.1f} ms among {clients} clients with bombs ({counted})")
        memory = peak_mb(process)
        print(f"memory     {memory:.0f} MB at most")
    missed += [f"/health took {p99(health) * 1e3:.0f} ms"] if p99(health) > HEALTH_BAR_S else []
    missed += [f"{memory:.0f} MB"] if memory > MEMORY_BAR_MB else []
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=20)
    arguments = parser.parse_args()
    missed = measure(arguments.clients, arguments.seconds)
    for each in missed:
        print(f"MISSED: {each}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
