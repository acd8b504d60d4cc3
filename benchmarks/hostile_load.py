"""50 healthy clients of `adapter serve` beside 150 hostile ones: whole answers, waiting times and memory.

    python -m benchmarks.hostile_load [ROUNDS]

Each healthy client asks for a streamed answer with a tool call that names its own number, and is whole if it gets
exactly that. A round is 50 of them at a time. The hostile clients go on meanwhile, each with one habit of `HABITS`:
slow and oversized heads, bodies that do not arrive, answers that are not read, nested JSON, a pattern that takes
exponential time. All servers are on this machine, in processes of their own, which end with this one. A round that
takes more than `ROUND_S` is lost.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

HEALTHY, HOSTILE, ROUNDS, ROUND_S = 50, 150, 10, 120.0
PAUSE_S = 0.5
Reader: TypeAlias = asyncio.StreamReader
Writer: TypeAlias = asyncio.StreamWriter


# ------------------------------------------------------------------- the model server


async def answer(reader: Reader, writer: Writer) -> None:
    """Call the tool with the number in the request, in pieces of twelve characters."""
    with suppress(OSError, asyncio.IncompleteReadError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            body = await reader.readexactly(int(length[1])) if length else b""
            if head.startswith(b"POST"):
                break
            models = b'{"data": [{"id": "m"}]}'
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(models)
            )
            writer.write(models)
        number = re.search(rb"NUMBER-(\d+)", body)
        call = {"name": "look", "arguments": {"number": number[1].decode() if number else ""}}
        text = "word " * 20 + f"<tool_call>\n{json.dumps(call)}\n</tool_call>"
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for start in range(0, len(text), 12):
            writer.write(encode_event({"content": text[start : start + 12]}))
            await writer.drain()
            await asyncio.sleep(0.02)
        writer.write(encode_event({}, "stop") + b"data: [DONE]\n\n")
        await writer.drain()
    writer.close()


def encode_event(delta: dict[str, str], reason: str | None = None) -> bytes:
    return (
        b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}).encode() + b"\n\n"
    )


async def serve_model(port: int) -> None:
    async with await asyncio.start_server(answer, "127.0.0.1", port, backlog=1_000) as server:
        await server.serve_forever()


# ------------------------------------------------------------------- clients


HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
LOOK = {"type": "object", "properties": {"number": {"type": "string"}}, "required": ["number"]}
BOMB = {"type": "object", "properties": {"number": {"type": "string", "pattern": "^(x+x+)+y$"}}}


def encode_request(body: bytes) -> bytes:
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


def encode_chat(text: str, schema: Mapping[str, object] = LOOK, tools: int = 1) -> bytes:
    functions = [{"name": "look" if n == 0 else f"t{n}", "parameters": schema} for n in range(tools)]
    body = {
        "model": "m", "stream": True, "messages": [{"role": "user", "content": text}],
        "tools": [{"type": "function", "function": function} for function in functions],
    }  # fmt: skip
    return encode_request(json.dumps(body).encode())


async def ask(port: int, number: int, first_bytes: list[float]) -> bool:
    """Return whether the answer is whole and for this client."""
    started, received = time.monotonic(), b""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(encode_chat(f"NUMBER-{number}"))
    while b"[DONE]" not in received and (piece := await reader.read(65_536)):
        if not received:
            first_bytes.append(time.monotonic() - started)
        received += piece
    writer.close()
    arguments = re.findall(r'"arguments":"((?:[^"\\]|\\.)*)"', received.decode())
    return b"[DONE]" in received and json.loads(json.loads(f'"{"".join(arguments)}"')) == {"number": str(number)}


def send(data: bytes, wait_s: float, pause_s: float = 0.0) -> Callable[[Reader, Writer], Awaitable[None]]:
    """Return a habit: send ``data``, with ``pause_s`` after each byte, then read for ``wait_s`` seconds."""

    async def act(reader: Reader, writer: Writer) -> None:
        for part in [data] if not pause_s else [bytes([byte]) for byte in data]:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause_s)
        await asyncio.wait_for(reader.read(), wait_s)

    return act


async def read_nothing(_: Reader, writer: Writer) -> None:
    writer.write(encode_chat("NUMBER-2 " + "x" * 1_000))
    await asyncio.sleep(5)


HABITS = {
    "slow head": send(HEAD + b"X: " + b"a" * 200, 1, 0.1),
    "body that does not arrive": send(HEAD + b'Content-Length: 30000000\r\n\r\n{"mess', 12),
    "part of a body": send(HEAD + b"Content-Length: 30000000\r\n\r\n" + b" " * 2_000_000, 14),
    "hang up": send(encode_chat("NUMBER-1"), 0.2),
    "no reading": read_nothing,
    "garbage": send(os.urandom(2_000), 3),
    "many tools and marks": send(encode_chat("<|" * 200_000, tools=500), 20),
    "nested JSON": send(encode_request(b'{"messages":' + b"[" * 500_000), 20),
    "two lengths": send((HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") * 20, 3),
    "large head": send(b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nA: " + b"a" * 2_000_000, 3),
    "slow pattern": send(encode_chat("NUMBER-" + "x" * 35, BOMB), 20),
}


async def disturb(port: int, habit: Callable[[Reader, Writer], Awaitable[None]]) -> None:
    """Connect again and again, with pauses that leave processor time for the healthy clients in this process."""
    while True:
        await asyncio.sleep(PAUSE_S)
        with suppress(OSError, TimeoutError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                await habit(reader, writer)
            finally:
                writer.close()


# ------------------------------------------------------------------- measuring


def read_memory(pid: int, field: str) -> int:
    """Return ``VmRSS`` or ``VmHWM`` in megabytes."""
    found = re.search(rf"{field}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(encoding="utf-8"))
    return int(found[1]) // 1024 if found else 0


async def measure(port: int, pid: int, rounds: int, hostile: int) -> bool:
    """Print a line on ``rounds`` beside so many hostile clients. Return whether all answers were whole."""
    habits = list(HABITS.values())
    others = [asyncio.create_task(disturb(port, habits[n % len(habits)])) for n in range(hostile)]
    await asyncio.sleep(2)
    first_bytes: list[float] = []
    started, whole = time.monotonic(), 0
    for number in range(rounds):
        with suppress(TimeoutError):
            async with asyncio.timeout(ROUND_S):
                clients = (ask(port, 1_000 + number * HEALTHY + n, first_bytes) for n in range(HEALTHY))
                whole += sum(result is True for result in await asyncio.gather(*clients, return_exceptions=True))
    seconds = time.monotonic() - started
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    waits = statistics.quantiles(first_bytes, n=100)
    print(
        f"beside {hostile:3}: {whole} of {rounds * HEALTHY} whole in {seconds:.1f} s, first byte p50 {waits[49]:.2f} s"
        f", p99 {waits[98]:.2f} s; memory {read_memory(pid, 'VmRSS')} MB, at most {read_memory(pid, 'VmHWM')} MB",
        flush=True,
    )
    return whole == rounds * HEALTHY


async def main(rounds: int) -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        model_port = free.getsockname()[1]
    upstream = f"http://127.0.0.1:{model_port}/v1"
    command = [sys.executable, "-m", "adapter", "serve", "--upstream", upstream, "--port", "0"]
    model = subprocess.Popen([sys.executable, "-m", "benchmarks.hostile_load", "--model", str(model_port)])
    await asyncio.sleep(2)
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        found = re.search(r":(\d+)/v1, from", await asyncio.to_thread(server.stderr.readline))
        assert found, "the server did not start"
        log = asyncio.create_task(asyncio.to_thread(server.stderr.read))
        held = [await measure(int(found[1]), server.pid, rounds, hostile) for hostile in (0, HOSTILE)]
        server.terminate()
        print("tracebacks in the log:", (await log).count("Traceback"))
        return 0 if all(held) else 1
    finally:
        for process in (server, model):
            process.kill()
            process.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--model"]:
        asyncio.run(serve_model(int(sys.argv[2])))
    else:
        sys.exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)))
