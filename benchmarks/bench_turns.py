"""Measure what `adapter serve` adds to the requests of a long conversation, compared with a relay that does not parse.

    python -m benchmarks.bench_turns [--turns 1,50,200] [--tools 60] [--rounds 40]

A scripted model server answers each request with a sentence and a call. A client sends conversations with calls and
results, each one turn longer than the one before, to all servers in turn. For each turn, the table shows processor
milliseconds per request as counted by the kernel, and additional milliseconds to the first event, in the least
disturbed quarter of the rounds.

Exits with 1 if a limit is exceeded: at the last turn 3 times the pass-through's processor time, at the first 2.5 ms
more.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
from contextlib import ExitStack
from typing import Any

from benchmarks.bench_serve import Way, cpu_s, post_chat, process

RATIO_BAR, ADDED_BAR_MS = 3.0, 2.5
WORDS = ("file", "path", "line", "content", "search", "query", "option", "value", "result", "name", "pattern", "commit")


def words(rng: random.Random, count: int) -> str:
    return " ".join(rng.choices(WORDS, k=count))


def tools(count: int) -> list[dict[str, Any]]:
    rng = random.Random(1)
    made = []
    for number in range(count):
        properties = {
            f"{word}_{index}": {"type": "string", "description": words(rng, 12)}
            for index, word in enumerate(rng.sample(WORDS, 4))
        }
        parameters = {"type": "object", "properties": {"path": {"type": "string"}, **properties}, "required": ["path"]}
        name = "read_file" if number == 0 else f"{rng.choice(WORDS)}_{number}"
        function = {"name": name, "description": words(rng, 40), "parameters": parameters}
        made.append({"type": "function", "function": function})
    return made


def conversation(turns: int, names: list[str], seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": f"You are a coding agent. {words(rng, 300)}"},
        {"role": "user", "content": f"Fix the bug in src/app.py. {words(rng, 40)}"},
    ]
    for turn in range(turns - 1):
        function = {"name": rng.choice(names), "arguments": json.dumps({"path": f"src/{turn}.py"})}
        call = {"id": f"call_{seed}_{turn}", "type": "function", "function": function}
        result = "\n".join(f"{line}: x = {{'a': [1, {line}]}}  # {words(rng, 4)}" for line in range(rng.randint(4, 16)))
        messages.append({"role": "assistant", "content": words(rng, 12), "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    return messages


async def send(way: Way, content: bytes) -> tuple[float, float]:
    """Return the processor time of the server and the time to the first event, in milliseconds."""
    used = cpu_s(way.pid)
    received, first_s = await post_chat(way.url, content)
    if b"src/app.py" not in received:
        raise RuntimeError(f"{way.name}: {received[-200:]!r}")
    await asyncio.sleep(0.003)  # let the server finish its work after the answer
    return (cpu_s(way.pid) - used) * 1e3, first_s * 1e3


async def measure(ways: list[Way], turn: int, tool_count: int, rounds: int) -> dict[str, tuple[float, float]]:
    defined = tools(tool_count)
    names = [each["function"]["name"] for each in defined]
    seen: dict[str, list[tuple[float, float]]] = {way.name: [] for way in ways}
    for number in range(-3, rounds):  # the first three fill caches
        turns, seed = (turn + number, 0) if turn > 3 else (turn, number)
        body = {"model": "qwen3", "stream": True, "messages": conversation(turns, names, seed), "tools": defined}
        for way in random.sample(ways, len(ways)):
            times = await send(way, json.dumps(body).encode())
            if number >= 0:
                seen[way.name].append(times)
    return {
        name: (
            statistics.quantiles((cpu for cpu, _ in each), n=4)[0],
            statistics.quantiles((s for _, s in each), n=4)[0],
        )
        for name, each in seen.items()
    }


async def compare(turns: list[int], tool_count: int, rounds: int) -> list[str]:
    missed: list[str] = []
    with ExitStack() as stack:
        upstream, pid, _ = stack.enter_context(process("benchmarks.bench_serve", "--as", "model"))
        passing = ("benchmarks.bench_serve", "--as", "pass-through", "--upstream", upstream)
        ways = [
            Way("direct", upstream, pid),
            Way("pass-through", *stack.enter_context(process(*passing))),
            Way("adapter", *stack.enter_context(process("adapter", "serve", "--upstream", upstream, "--port", "0"))),
        ]
        print(f"{'turn':>6}  {'':14} {'CPU ms':>8} {'times':>6} {'first event +ms':>16}")
        for turn in turns:
            rows = await measure(ways, turn, tool_count, rounds)
            least, ours, direct_ms = rows["pass-through"][0], rows["adapter"][0], rows["direct"][1]
            for name in ("pass-through", "adapter"):
                cpu, first = rows[name]
                print(f"{turn:6}  {name:14} {cpu:8.2f} {cpu / least:6.2f} {first - direct_ms:16.2f}")
            if turn == turns[0] and ours - least > ADDED_BAR_MS:
                missed.append(f"{ours - least:.2f} ms more than the pass-through at turn {turn} > {ADDED_BAR_MS:g}")
            if turn == turns[-1] and ours > RATIO_BAR * least:
                missed.append(f"{ours / least:.2f} times the pass-through's time at turn {turn} > {RATIO_BAR:g}")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", default="1,50,200")
    parser.add_argument("--tools", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=40)
    given = parser.parse_args()
    missed = asyncio.run(compare([int(each) for each in given.turns.split(",")], given.tools, given.rounds))
    for line in missed:
        print("MISSED", line)
    return 1 if missed else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
