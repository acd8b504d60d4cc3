"""Measure `adapter.integrations.ray_serve` on a cluster of two nodes on this machine, with a scripted model server.

    python -m benchmarks.bench_ray                          in an environment with ray[serve]

The program restarts itself in a network namespace that has only the loopback interface (``unshare``, ``ip``), and
refuses to run if it cannot, because Ray listens on all addresses of its machine.

It measures how often the turns of a conversation reach the same replica, how many of 200 streams survive if a replica
is killed (`ray.kill`), and the tokens per second with one replica, with two, and with `adapter serve` without Ray.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
import ray
from ray import serve
from ray.cluster_utils import Cluster

from adapter.integrations.ray_serve import REPLICA, Ingress, ServerReplica
from benchmarks.bench_serve import TOOLS, process

PORT = 8123
URL = f"http://127.0.0.1:{PORT}/v1/chat/completions"
SMALL = {"num_cpus": 0.2}
STORE_BYTES = 100_000_000
UNAVAILABLE = 69
"""Exit status if namespaces are unavailable (EX_UNAVAILABLE in sysexits.h)."""


@dataclass(frozen=True)
class Stream:
    """An answer: the replica that sent it, whether it is complete with its call, and its error."""

    replica: str
    is_whole: bool
    error: str
    took_s: float


def start(replicas: int, upstream: str) -> None:
    settings: dict[str, Any] = {"num_replicas": replicas, "autoscaling_config": None, "ray_actor_options": SMALL}
    doors = {**settings, "num_replicas": 1}
    door: Any = Ingress
    proxy: Any = ServerReplica
    behind = proxy.options(**settings).bind({"upstream": [upstream], "profile": "none"})
    serve.run(door.options(**doors).bind(behind), name="adapter")


async def ask(session: aiohttp.ClientSession, url: str, number: int, pieces: int, rate: float, turn: int = 0) -> Stream:
    said = [{"role": "user", "content": f"conversation {number}"}]
    said += [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Go on."}] * turn
    said += [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": f"{number} {pieces} {rate}"}]
    body = {"model": "m", "stream": True, "messages": said, "tools": TOOLS}
    began, text, replica = time.monotonic(), b"", ""
    try:
        async with session.post(url, json=body) as answer:
            replica = answer.headers.get(REPLICA, "")
            text = await answer.read()
    except aiohttp.ClientError as broken:
        return Stream(replica, False, type(broken).__name__, time.monotonic() - began)
    is_whole = f"{number}w{pieces - 1}".encode() in text and b"[DONE]" in text and b"tool_calls" in text
    error = "" if is_whole else text[-300:].decode(errors="replace")
    return Stream(replica, is_whole, error, time.monotonic() - began)


async def affinity(conversations: int, turns: int) -> None:
    """Run all turns of all conversations concurrently, and print how many reach the previous turn's replica."""
    last: dict[int, str] = {}
    hits = all_turns = 0
    async with _session() as session:
        for turn in range(turns):
            streams = await asyncio.gather(*(ask(session, URL, n, 2, 0, turn) for n in range(conversations)))
            for number, stream in enumerate(streams):
                assert stream.is_whole, stream
                if turn:
                    all_turns += 1
                    hits += last[number] == stream.replica
                last[number] = stream.replica
    spread = sorted(Counter(last.values()).values())
    print(f"affinity: {hits} of {all_turns} later turns at the replica of the turn before; conversations {spread}")


async def kill_one(streams: int, pieces: int, rate: float) -> None:
    async with _session() as session:
        running = [asyncio.create_task(ask(session, URL, n, pieces, rate)) for n in range(streams)]
        await asyncio.sleep(pieces / rate / 2)
        killed = await asyncio.to_thread(kill_replica)
        began = time.monotonic()
        after = await ask(session, URL, 10_000, 2, 0)
        first_s = time.monotonic() - began
        done = await asyncio.gather(*running)
    of_it = [stream for stream in done if stream.replica == killed]
    others = [stream for stream in done if stream.replica != killed]
    told = sum("the replica that was answering has ended" in stream.error for stream in of_it)
    print(
        f"killed {killed}: of its {len(of_it)} streams {sum(s.is_whole for s in of_it)} came whole and {told} say that "
        f"it ended; of the other {len(others)} {sum(s.is_whole for s in others)} came whole\n"
        f"a request after it: {'whole' if after.is_whole else after.error} in {first_s:.2f} s; the other streams took "
        f"{max(s.took_s for s in others):.1f} s at most, {pieces / rate:.1f} s by the script"
    )


def kill_replica() -> str:
    """Kill a replica, and return its name in answers."""
    named = ray.util.list_named_actors(all_namespaces=True)
    found = min(each["name"] for each in named if "#Proxy#" in each["name"])
    ray.kill(ray.get_actor(found, namespace="serve"))
    return str(found).rpartition("#")[2]


async def throughput(label: str, url: str, streams: int, pieces: int, rounds: int) -> float:
    async with _session() as session:
        best = 0.0
        for _ in range(rounds):
            began = time.monotonic()
            done = await asyncio.gather(*(ask(session, url, n, pieces, 0) for n in range(streams)))
            assert all(stream.is_whole for stream in done), next(s for s in done if not s.is_whole)
            best = max(best, streams * pieces / (time.monotonic() - began))
    print(f"{label:28} {best:10,.0f} pieces/s, {streams} streams of {pieces}", flush=True)
    return best


def _session() -> aiohttp.ClientSession:
    timeout = aiohttp.ClientTimeout(total=120)
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout)


def has_loopback_alone() -> bool:
    return {name for _, name in socket.if_nameindex()} == {"lo"}


def run_in_namespace(arguments: Sequence[str]) -> int:
    """Run this program with ``arguments`` in a namespace with only the loopback interface. Return its exit status."""
    command = [sys.executable, "-m", "benchmarks.bench_ray", *arguments]
    script = f'ip link set lo up || exit {UNAVAILABLE}; exec "$@"'
    try:
        status = subprocess.run(["unshare", "-rn", "sh", "-c", script, "sh", *command], check=False).returncode
    except FileNotFoundError:
        status = UNAVAILABLE
    if status == UNAVAILABLE:
        print("benchmarks.bench_ray: no network namespace with the loopback alone: it needs unshare, ip, and the right")
    return status


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--pieces", type=int, default=60)
    given = parser.parse_args()
    if not has_loopback_alone():
        return run_in_namespace(sys.argv[1:])
    node = {"num_cpus": 1, "object_store_memory": STORE_BYTES}
    with process("benchmarks.bench_serve", "--as", "model") as (upstream, _, _):
        with process("adapter", "serve", "--upstream", upstream, "--port", "0") as (plain, _, _):
            url = f"{plain}/chat/completions"
            asyncio.run(throughput("adapter serve, without Ray", url, 32, given.pieces, 3))
        cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
        cluster.add_node(**node)
        ray.init(address=cluster.address, log_to_driver=False)
        print(json.dumps({"nodes": len(ray.nodes()), "load": os.getloadavg()[0]}), flush=True)
        try:
            serve.start(http_options={"host": "127.0.0.1", "port": PORT}, proxy_location="HeadOnly")
            for replicas in (1, 2):
                start(replicas, upstream)
                asyncio.run(throughput(f"Ray, replicas: {replicas}", URL, 32, given.pieces, 3))
            asyncio.run(affinity(100, 5))
            asyncio.run(kill_one(given.streams, given.pieces, 10.0))
        finally:
            serve.shutdown()
            ray.shutdown()
            cluster.shutdown()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
