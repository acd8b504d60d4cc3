"""Work for a long time, and check whether anything grows: `python -m benchmarks.soak --seconds 1800 --calls 200000`.

Random models call any tool of any dialect with random arguments, each in its own format and a tenth of it damaged, in
one session after the other (`Agent`, sub-agents, batches, code, questions, pages, commands and undos included). The run
ends when both the time is over and the calls are made. Meanwhile, `adapter serve` answers streamed chats of eight
clients in each of its APIs, with 200 kinds of tools; one client in twenty, and one model server in twenty, disconnects.
Memory, descriptors, threads and processes of both are sampled between sessions; after the first fifth, memory may grow
by at most 1 MB in 10 minutes, and the others not at all. Exits with 1 if one grows or anything raises. Ctrl-C or
SIGTERM ends the run after the current session, with the results so far.

A run of a few minutes shows leaks of descriptors and processes, but not whether memory is flat.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import linear_regression, median
from urllib.parse import urlsplit

from adapter.agent.agent import Agent
from adapter.agent.answer_reader import AgentEvent
from adapter.agent.subagents import SubagentRunner
from adapter.backends.chat_client import Chunk
from adapter.cli.malloc_tuning import limit_malloc_arenas
from adapter.conversation.message_rendering import Message
from adapter.conversation.session_steps import SessionLimits
from adapter.core.errors import ToolError
from adapter.core.events import JsonObject, ToolResult
from adapter.dialects import list_dialect_names
from adapter.parsing.formats import FORMATS
from adapter.tools.operations import Question
from adapter.tools.tool import Tool
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import Host, WebAccess
from adapter.workspace.sandbox import supervisor
from benchmarks import stopping
from benchmarks.floods import answering
from benchmarks.random_calls import World, random_call
from benchmarks.stopping import leave_to_parent, stoppable
from tests.live_upstream import LiveUpstream
from tests.scripted_server import delta
from tests.serving import serving_afresh
from tests.workspace.sandbox.running import living

MEMORY_BAR_MB = 1.0
"""Maximum growth of memory in ten minutes."""
WARM = 0.2
CLIENTS = 8
HANGS_UP = 0.05
DIES = 0.05
TOOL_SETS = 200
"""Number of tool sets that the server's clients declare."""
AS_MEANT = ("whole", "hung up", "cut, said")
PATHS = (
    *("a.txt", "b.py", "src/c.py", "src/deep/d.md", "src", ".", "new/e.txt", "README.md", "link", "dangling"),
    *("nothing", "../outside", "/etc/passwd", "src/../a.txt", "{root}/a.txt", ".git/config", "fifo", "data.bin"),
)
COMMANDS = (
    *("true", "echo out; echo err >&2", "cat a.txt", "ls -la", "exit 3", "sleep 0.05", "seq 2000", "sleep 60 &"),
    *("head -c 300000 /dev/zero", "nohup sleep 60 >/dev/null 2>&1 &", "printf '\\033[31mred'"),
)
KEPT_ENTRIES = 300
"""Maximum number of entries in a workspace. A workspace with more is replaced by a new one."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample at ``time`` seconds from the start: MB of memory, open files, threads, other processes."""

    time: float
    memory: float
    descriptors: int
    threads: int
    processes: int


@dataclass(slots=True)
class Soak:
    """The results of a run."""

    calls: int = 0
    done: int = 0
    sessions: int = 0
    tools: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    own: list[Sample] = field(default_factory=list)
    server: list[Sample] = field(default_factory=list)
    chats: JsonObject = field(default_factory=dict)


# --------------------------------------------------------------------------- models


class RandomModel:
    """A model that calls random tools for some turns, and then reports that it is done."""

    def __init__(self, chance: Random, tools: Mapping[str, Tool], world: World, turns: int) -> None:
        self._chance, self._tools, self._world, self._turns = chance, tools, world, turns

    def stream(self, messages: Sequence[Message], *, stop: Sequence[str] = ()) -> Iterator[Chunk]:  # noqa: ARG002
        answers = sum(message.get("role") == "assistant" for message in messages)
        text = self._calls() if answers < self._turns else "It is done."
        while text:
            size = self._chance.randint(1, 200)
            yield Chunk(text[:size], finish_reason=None if text[size:] else "stop")
            text = text[size:]

    def _calls(self) -> str:
        chance = self._chance
        world = self._world if chance.random() < 0.1 else quiet(self._world)
        calls = [random_call(chance, self._tools, world) for _ in range(chance.choice((1, 1, 2, 3)))]
        text = FORMATS[chance.choice(list(FORMATS))].encode_calls(calls)
        if chance.random() < 0.1:
            at = chance.randrange(len(text) + 1)
            text = text[:at] + chance.choice(("", "<", "\n", "}", text[:20])) + text[at + chance.randint(0, 3) :]
        return chance.choice(("", "", "Now.\n", "<think>\nHm.\n</think>\n\n")) + text


def quiet(world: World) -> World:
    return World(world.paths, world.commands, world.urls, world.texts, frozenset({"execute"}))


class FirstAnswers:
    def ask(self, questions: Sequence[Question]) -> Sequence[Sequence[str]]:
        return [[question.options[0].label] if question.options else ["yes"] for question in questions]


def lay_out(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    (directory / "src/deep").mkdir(parents=True)
    (directory / ".claude/skills/one").mkdir(parents=True)
    (directory / ".git").mkdir()
    skill = "---\nname: one\ndescription: A skill.\n---\nDo one thing.\n"
    (directory / ".claude/skills/one/SKILL.md").write_text(skill, encoding="utf-8")
    for name in ("a.txt", "b.py", "src/c.py", "src/deep/d.md", "README.md"):
        (directory / name).write_text("# one\ndef f(x):\n    return x\n" * 20, encoding="utf-8")
    (directory / "data.bin").write_bytes(bytes(range(256)) * 100)
    (directory / "link").symlink_to("src")
    (directory / "dangling").symlink_to("gone")
    os.mkfifo(directory / "fifo")


def work(folder: Path, dialect: str, chance: Random, page: str, soak: Soak) -> None:
    """Run one whole session."""
    directory = folder / dialect
    if not directory.is_dir() or sum(1 for _ in directory.rglob("*")) > KEPT_ENTRIES:
        lay_out(directory)
    paths = [path.replace("{root}", str(directory)) for path in PATHS]
    world = World(paths, COMMANDS, (page, "http://127.0.0.1:1/", "https://10.0.0.1/", "nonsense"))

    def observe(happening: AgentEvent) -> None:
        if isinstance(happening, ToolResult):
            soak.calls += 1
            soak.done += happening.ok
            soak.tools[f"{dialect}.{happening.name}"] += 1

    model = RandomModel(chance, {}, world, turns=chance.randint(5, 25))
    host = Host(
        questions=FirstAnswers(),
        agents=SubagentRunner(model, limits=SessionLimits(turns=3), observe=lambda _, happening: observe(happening)),
        web=WebAccess(allow_loopback=True, upgrade=False),
        state=str(folder / "state"),
    )
    with Workspace(directory, dialect, "yolo", host=host, state=folder / "state") as workspace:
        model._tools = workspace.tools
        limits = SessionLimits(turns=30, repetitions=5, refusals=30, unreadable=30)
        Agent(workspace, model, format=chance.choice(list(FORMATS)), limits=limits, observe=observe).run(
            "Do something."
        )
        with contextlib.suppress(ToolError):
            workspace.undo()
    soak.sessions += 1


# --------------------------------------------------------------------------- server


PARAMETERS: JsonObject = {"type": "object", "properties": {"path": {"type": "string"}}}
ASKED = re.compile(r"(whole|dies) in (\w+) with (\d+)\.")
WHOLE_ENDS = {
    "/v1/chat/completions": b"data: [DONE]",
    "/v1/messages": b"event: message_stop",
    "/v1/responses": b"event: response.completed",
    "/api/chat": b'"done":true',
}
"""A part of the last event of a complete answer, by the API's path."""


def asked(path: str, fate: str, tool: str, number: int) -> bytes:
    text = f"words {' words' * 200} {fate} in {tool} with {number}."
    function = {"name": tool, "parameters": PARAMETERS}
    fields: JsonObject = {"messages": [{"role": "user", "content": text}]}
    match path:
        case "/v1/messages":
            fields |= {"max_tokens": 999, "tools": [{"name": tool, "input_schema": PARAMETERS}]}
        case "/v1/responses":
            fields = {"input": text, "tools": [{"type": "function", **function}]}
        case _:
            fields["tools"] = [{"type": "function", "function": function}]
    return json.dumps({"model": "m", "stream": True, **fields}).encode()


def answer(body: JsonObject) -> Iterator[JsonObject]:
    found = ASKED.search(json.dumps(body["messages"]))
    assert found is not None, body
    fate, tool, number = found.groups()
    call = json.dumps({"name": tool, "arguments": {"path": number + "x" * 3_000}})
    text = f"Some words first.\n<tool_call>\n{call}\n</tool_call>"
    end = len(text) if fate == "whole" else int(number) % len(text)
    yield delta(role="assistant")
    for start in range(0, end, 80):
        yield delta(text[start : min(start + 80, end)])
    if fate == "whole":
        yield delta(finish_reason="stop")


def load() -> None:
    leave_to_parent()
    counts: Counter[str] = Counter()
    over = threading.Event()
    with LiveUpstream(answer) as upstream:
        print(upstream.url, flush=True)
        url = urlsplit(sys.stdin.readline().strip())
        clients = [threading.Thread(target=_chat, args=(url.netloc, Random(n), counts, over)) for n in range(CLIENTS)]
        for client in clients:
            client.start()
        sys.stdin.readline()
        over.set()
        for client in clients:
            client.join()
    print(json.dumps(counts), flush=True)


def _chat(netloc: str, chance: Random, counts: Counter[str], over: threading.Event) -> None:
    while not over.is_set():
        counts[chat(netloc, chance)] += 1
        time.sleep(0.05)


def chat(netloc: str, chance: Random) -> str:
    path, tool = chance.choice(list(WHOLE_ENDS)), f"tool_{chance.randrange(TOOL_SETS)}"
    fate = "dies" if chance.random() < DIES else "whole"
    content = asked(path, fate, tool, chance.randrange(10**9))
    connection = http.client.HTTPConnection(netloc, timeout=60)
    try:
        connection.request("POST", path, content, {"Content-Type": "application/json"})
        response = connection.getresponse()
        if chance.random() < HANGS_UP:
            response.read(chance.randint(0, 400))
            return "hung up"
        return _seen(response.read(), path, fate, tool)
    except OSError as error:
        return f"failed: {type(error).__name__}"
    finally:
        connection.close()


def _seen(content: bytes, path: str, fate: str, tool: str) -> str:
    if fate == "dies":
        return "cut, said" if b"error" in content else "cut, unsaid"
    is_whole = tool.encode() in content and WHOLE_ENDS[path] in content.replace(b'": ', b'":')
    return "whole" if is_whole else "broken"


@contextlib.contextmanager
def served() -> Iterator[tuple[int, JsonObject]]:
    counts: JsonObject = {}
    words = [sys.executable, "-m", "benchmarks.soak", "--load"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        upstream = process.stdout.readline().strip()
        with serving_afresh(upstream) as url:
            (server,) = living(f"serve --upstream {upstream}")
            process.stdin.write(f"{url}\n")
            process.stdin.flush()
            try:
                yield server, counts
            finally:
                process.stdin.write("over\n")
                process.stdin.flush()
                counts.update(json.loads(process.stdout.readline() or "{}"))


# ------------------------------------------------------------------------ measuring


def sample(pid: int, started: float, ours: int) -> Sample:
    """Take a sample. ``ours``: number of processes that belong to the measurement."""
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line
    )
    return Sample(
        time.monotonic() - started,
        int(status["VmRSS"].split()[0]) / 1024,
        len(os.listdir(f"/proc/{pid}/fd")),  # noqa: PTH208
        int(status["Threads"]),
        len(list(supervisor.iter_descendants(pid))) - ours,
    )


def run(folder: Path, seconds: float, calls: int, seed: int, every_s: float, soak: Soak) -> Soak:
    """Run sessions until ``seconds`` and ``calls`` are reached. Take samples at least ``every_s`` seconds apart."""
    chance, started, sampled = Random(seed), time.monotonic(), 0.0
    with (
        stoppable() as stop,
        served() as (server, chats),
        answering("identity", lambda: iter([b"a page\n" * 50])) as page,
    ):
        ours = len(list(supervisor.iter_descendants(os.getpid())))
        while not stop.is_set() and (time.monotonic() - started < seconds or soak.calls < calls):
            try:
                work(folder, chance.choice(list_dialect_names()), chance, page, soak)
            except Exception:  # noqa: BLE001 - that none escapes is the claim
                soak.errors.append(traceback.format_exc())
            if time.monotonic() - sampled > every_s:
                sampled = time.monotonic()
                gc.collect()
                soak.own.append(sample(os.getpid(), started, ours))
                soak.server.append(sample(server, started, 0))
                line = f"\r{soak.own[-1].time:,.0f} s, {soak.calls:,} calls, {soak.own[-1].memory:.0f} MB"
                print(f"{line}, {len(soak.errors)} errors   ", end="", file=sys.stderr, flush=True)
    soak.chats = chats
    return soak


def growth(samples: Sequence[Sample], what: str) -> tuple[float, float, float]:
    """Return the medians of the first and the last quarter after the warm-up, and the slope per ten minutes."""
    warm = samples[int(len(samples) * WARM) :]
    values = [float(getattr(each, what)) for each in warm]
    quarter = max(len(values) // 4, 1)
    slope = linear_regression([each.time for each in warm], values).slope * 600 if len(warm) > 1 else 0.0
    return median(values[:quarter]), median(values[-quarter:]), slope


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=1_800.0)
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--load", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        load()
        return 0
    limit_malloc_arenas()  # as `adapter mcp` and `adapter serve` do
    started, grown, soak = time.monotonic(), [], Soak()
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), options.seconds, options.calls, options.seed, max(options.seconds / 180, 0.5), soak)
    minutes = (time.monotonic() - started) / 60
    is_whole = minutes * 60 >= options.seconds and soak.calls >= options.calls
    print("" if is_whole else "\nSTOPPED EARLY")
    print(f"seed {options.seed}: {soak.calls:,} calls, {soak.done:,} of them done, of {len(soak.tools)} tools in "
          f"{soak.sessions:,} sessions, {minutes:.1f} min; chats: {soak.chats}; {len(soak.errors)} errors")  # fmt: skip
    print("| | after the warm-up | at the end | in 10 min |")
    print("|---|--:|--:|--:|")
    for name, samples in (("tools", soak.own), ("server", soak.server)):
        for what in ("memory", "descriptors", "threads", "processes"):
            before, after, slope = growth(samples, what)
            print(f"| {name}: {what} | {before:.1f} | {after:.1f} | {slope:+.2f} |")
            if slope > MEMORY_BAR_MB if what == "memory" else after > before:
                grown.append(f"{name}: {what}")
    for error in soak.errors[:3]:
        print(error)
    for name in grown:
        print("GROWN", name)
    broken = sum(count for name, count in soak.chats.items() if name not in AS_MEANT)
    return 1 if grown or soak.errors or broken else 0


if __name__ == "__main__":
    stopping.run(main)
