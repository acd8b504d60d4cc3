"""Measure the cost of `adapter serve` under load, compared with relays that do not parse.

    python -m benchmarks.bench_serve [--streams 64,256] [--rate 100] [--seconds 5] [--burst 1000] [--repeats 3]

A scripted model server (in its own process) streams a different text to each client, followed by a call with the
client's number. The clients (this process) check every chunk. For each server in between, the table shows CPU
microseconds per chunk as counted by the kernel, additional time to the first byte (single streams, in turn), peak
memory per stream, and the streams that lost or mixed up chunks. ``burst`` unpaced streams at once come last. Everything
is repeated, with the servers in turn; the table shows medians, and for memory the maximum.

- ``pass-through``: starlette, uvicorn and aiohttp, which forward each chunk
- ``adapter, no tools``: this server, which passes the requests through
- ``adapter``: this server with tools, which decodes, parses and rewrites every chunk
- ``adapter --view``: the same, with an open live page

Exits with 1 if a stream is lost or crossed, or a limit is exceeded: with tools and the largest number of streams, at
most 1.4 times the pass-through's CPU time per chunk, 2.5 times its additional time to the first byte, and 64 KB per
stream; with a page at most 1.4 times the time without.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

CPU_BAR, FIRST_BAR, MEMORY_BAR_KB, VIEW_BAR = 1.4, 2.5, 64.0, 1.4
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
CALL = '<tool_call>\n{"name": "read_file", "arguments": {"path": "%s"}}\n</tool_call>'
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "description": "Read a file.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
    }
]


def event(text: str | None = None, finish_reason: str | None = None) -> bytes:
    delta = {} if text is None else {"content": text}
    chunk = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1795255059,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    }
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


# ------------------------------------------------------------------ the model server


async def answer_as_model(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    if not head.startswith(b"POST") or length is None:
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    else:
        body = json.loads(await reader.readexactly(int(length[1])))
        asked = re.fullmatch(r"(\S+) (\d+) ([\d.]+)", body["messages"][-1]["content"])
        number, pieces, rate = asked.groups() if asked else ("src/app.py", "1", "0")
        writer.write(HEAD)
        began = time.monotonic()
        for index in range(int(pieces)):
            writer.write(event(f"{number}w{index} "))
            await writer.drain()
            if float(rate):
                await asyncio.sleep(max(0.0, began + (index + 1) / float(rate) - time.monotonic()))
        writer.write(event(CALL % number) + event(None, "stop") + b"data: [DONE]\n\n")
    await writer.drain()
    writer.close()


async def run_model_server() -> None:
    server = await asyncio.start_server(answer_as_model, "127.0.0.1", 0, backlog=2048)
    print(f"serving http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1, itself", file=sys.stderr, flush=True)
    await server.serve_forever()


def run_pass_through(upstream: str) -> None:
    """Run a relay that does the minimum possible with these libraries."""
    import socket

    import aiohttp
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    session: list[aiohttp.ClientSession] = []

    async def chat(request: Request) -> StreamingResponse:
        if not session:
            session.append(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        response = await session[0].post(f"{upstream}/chat/completions", data=await request.body())
        return StreamingResponse(response.content.iter_any(), media_type="text/event-stream")

    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(f"serving http://127.0.0.1:{listener.getsockname()[1]}/v1, from {upstream}", file=sys.stderr, flush=True)
    app = Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])])
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listener])


@contextmanager
def process(*arguments: str) -> Iterator[tuple[str, int, str]]:
    """Start a server process. Yield its base URL, its process id, and the address of its page, if any."""
    with subprocess.Popen([sys.executable, "-m", *arguments], stderr=subprocess.PIPE, text=True) as started:
        assert started.stderr is not None
        try:
            line = started.stderr.readline()
            match = re.match(r"serving (\S+), ", line)
            if match is None:
                raise RuntimeError(line + started.stderr.read())
            page = started.stderr.readline().partition("live view: ")[2].strip() if "--view" in arguments else ""
            yield match[1], started.pid, page
        finally:
            started.terminate()


# ------------------------------------------------------------------------- clients


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream. ``first_s``: seconds to the first event. ``is_right``: exactly its own chunks arrived, in order."""

    first_s: float
    is_right: bool


async def post_chat(url: str, content: bytes) -> tuple[bytes, float]:
    """Post a streamed chat request. Return the whole HTTP answer, and the seconds to its first event."""
    host, port = re.fullmatch(r"http://(.*):(\d+)/v1", url).groups()  # type: ignore[union-attr]
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 20)
    began = time.perf_counter()
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(content) + content
    )
    received = await reader.readuntil(b"data:")
    first_s = time.perf_counter() - began
    received += await reader.read(-1)
    writer.close()
    return received, first_s


async def read_stream(url: str, number: int, pieces: int, rate: float, *, tools: bool) -> Stream:
    body = {
        "model": "qwen3",
        "stream": True,
        "messages": [{"role": "user", "content": f"n{number} {pieces} {rate}"}],
        **({"tools": TOOLS} if tools else {}),
    }
    received, first_s = await post_chat(url, json.dumps(body).encode())
    chunks = [json.loads(each) for each in re.findall(rb"data: (\{.*\})", received)]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    content_ = "".join(delta.get("content") or "" for delta in deltas)
    calls = [call["function"]["arguments"] for delta in deltas for call in delta.get("tool_calls") or ()]
    expected = "".join(f"n{number}w{index} " for index in range(pieces))
    wanted = expected.rstrip() if tools else expected + CALL % f"n{number}"
    is_right = content_.rstrip() == wanted.rstrip() and calls == ([f'{{"path": "n{number}"}}'] if tools else [])
    return Stream(first_s, is_right and received.rstrip().endswith((b"[DONE]", b"0")))


def cpu_s(pid: int) -> float:
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def rss_kb(pid: int) -> int:
    with open(f"/proc/{pid}/status") as file:  # noqa: PTH123
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1])  # type: ignore[index]


async def look_on(page: str) -> None:
    host, port, key = re.fullmatch(r"http://(.*):(\d+)/view/\?key=(.*)", page).groups()  # type: ignore[union-attr]
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET /view/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
    try:
        while await reader.read(1 << 20):
            pass
    finally:
        writer.close()


@dataclass(frozen=True, slots=True)
class Way:
    """A server between the client and the model server, or the model server itself."""

    name: str
    url: str
    pid: int
    page: str = ""
    tools: bool = False


@dataclass(frozen=True, slots=True)
class Load:
    cpu_us: float
    kb_per_stream: float
    wrong: int
    seconds: float


async def load(way: Way, streams: int, pieces: int, rate: float) -> Load:
    cpu, memory, began = cpu_s(way.pid), rss_kb(way.pid), time.perf_counter()
    peak = memory

    async def watch() -> None:
        nonlocal peak
        while True:
            peak = max(peak, rss_kb(way.pid))
            await asyncio.sleep(0.1)

    watching = [asyncio.create_task(each) for each in (watch(), *([look_on(way.page)] if way.page else []))]
    done = await asyncio.gather(
        *(read_stream(way.url, number, pieces, rate, tools=way.tools) for number in range(streams)),
        return_exceptions=True,
    )
    for task in watching:
        task.cancel()
    wrong = sum(not (isinstance(each, Stream) and each.is_right) for each in done)
    used = (cpu_s(way.pid) - cpu) / (streams * (pieces + 2)) * 1e6
    return Load(used, (peak - memory) / streams, wrong, time.perf_counter() - began)


async def first_bytes_ms(ways: list[Way], rounds: int = 40) -> list[float]:
    seen: list[list[float]] = [[] for _ in ways]
    for _ in range(rounds):
        for way, times in zip(ways, seen, strict=True):
            times.append((await read_stream(way.url, 0, 1, 0, tools=way.tools)).first_s * 1e3)
    return [statistics.quantiles(times, n=4)[0] for times in seen]


@contextmanager
def all_ways() -> Iterator[list[Way]]:
    with ExitStack() as stack:
        upstream, pid, _ = stack.enter_context(process("benchmarks.bench_serve", "--as", "model"))
        passing = ("benchmarks.bench_serve", "--as", "pass-through", "--upstream", upstream)
        serving = ("adapter", "serve", "--upstream", upstream, "--port", "0")
        yield [
            Way("direct", upstream, pid),
            Way("pass-through", *stack.enter_context(process(*passing))),
            Way("adapter, no tools", *stack.enter_context(process(*serving))),
            Way("adapter", *stack.enter_context(process(*serving)), tools=True),
            Way("adapter --view", *stack.enter_context(process(*serving, "--view")), tools=True),
        ]


async def measure(streams: list[int], rate: float, seconds: float, burst: int, repeats: int) -> list[str]:
    missed: list[str] = []
    loads = [(count, int(rate * seconds), rate) for count in streams] + [(burst, 20, 0.0)] * bool(burst)
    seen: dict[tuple[str, int], list[Load]] = {}
    with all_ways() as ways:
        for way in ways:
            await load(way, 8, 20, 0)  # imports, caches
        direct, *firsts = await first_bytes_ms(ways)
        for _ in range(repeats):
            for count, pieces, paced in loads:
                for way in ways[1:]:
                    seen.setdefault((way.name, count), []).append(await load(way, count, pieces, paced))
    rows = {key: median_of(each) for key, each in seen.items()}
    print(f"{'':18} {'streams':>8} {'CPU us/chunk':>13} {'first byte +ms':>15} {'KB/stream':>10} {'wrong':>6}")
    for way, first in zip(ways[1:], firsts, strict=True):
        for count, _, paced in loads:
            row = rows[way.name, count]
            how = "" if paced else f"  at once, {row.seconds:.1f} s"
            numbers = f"{row.cpu_us:13.1f} {first - direct:15.2f} {row.kb_per_stream:10.1f} {row.wrong:6}"
            print(f"{way.name:18} {count:8} {numbers}{how}")
            if row.wrong:
                missed.append(f"{way.name}, {count} streams: {row.wrong} lost or crossed")
    ours, least = rows["adapter", max(streams)], rows["pass-through", max(streams)]
    if ours.cpu_us > CPU_BAR * least.cpu_us:
        missed.append(f"{ours.cpu_us / least.cpu_us:.2f} times the pass-through's CPU per chunk > {CPU_BAR:g}")
    viewed = rows["adapter --view", max(streams)]
    if viewed.cpu_us > VIEW_BAR * ours.cpu_us:
        missed.append(f"{viewed.cpu_us / ours.cpu_us:.2f} times the CPU per chunk with a page > {VIEW_BAR:g}")
    if ours.kb_per_stream > MEMORY_BAR_KB:
        missed.append(f"{ours.kb_per_stream:.1f} KB per stream > {MEMORY_BAR_KB:g}")
    if firsts[2] - direct > FIRST_BAR * (firsts[0] - direct):
        ratio = (firsts[2] - direct) / (firsts[0] - direct)
        missed.append(f"the first byte {ratio:.1f} times as much later as the pass-through's > {FIRST_BAR:g}")
    return missed


def median_of(loads: list[Load]) -> Load:
    return Load(
        statistics.median(each.cpu_us for each in loads),
        max(each.kb_per_stream for each in loads),
        sum(each.wrong for each in loads),
        statistics.median(each.seconds for each in loads),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", default="64,256")
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--burst", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--as", dest="role", choices=["model", "pass-through"], help=argparse.SUPPRESS)
    parser.add_argument("--upstream", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.role == "model":
        asyncio.run(run_model_server())
    elif given.role == "pass-through":
        run_pass_through(given.upstream)
    else:
        counts = [int(each) for each in given.streams.split(",")]
        missed = asyncio.run(measure(counts, given.rate, given.seconds, given.burst, given.repeats))
        for line in missed:
            print("MISSED", line)
        return 1 if missed else 0
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
