"""Measure the start of commands and the first use of the library, relative to ``python -c pass``.

    python -m benchmarks.start_up [--runs 11]

Each row is the median processor time of fresh interpreters, run in turn, as a multiple of the time of ``pass``. The
libraries' own start-up times are lower bounds: a command that uses typer cannot be faster than one that does nothing.
Exits with 1 if a row exceeds its limit.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

CALL = '<tool_call>{"name":"read_file","arguments":{"path":"a.py"}}</tool_call>'
EXCHANGE = {
    "kind": "exchange",
    "model": "qwen3",
    "format": "hermes",
    "policy": "safe",
    "sent": {"messages": []},
    "tools": [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}],
    "text": CALL,
    "finish_reason": "stop",
    "calls": [{"name": "read_file", "arguments": {"path": "a.py"}}],
}
ONE_COMMAND = """
import sys, typer
def command(file: str, as_json: bool = False) -> None: ...
app = typer.Typer(rich_markup_mode=None)
app.command()(command)
sys.argv = ["command", "a.txt"]
app()
"""
TRANSCRIPT = Path(__file__).parent.parent / "fixtures" / "transcripts" / "by-hand-six-turns.jsonl"

LIMITS = {
    "import dataclasses, json, re, typing": "import dataclasses, json, re, typing",
    "import pydantic": "from pydantic import BaseModel",
    "import typer": "import typer",
    "a command of typer that does nothing": ONE_COMMAND,
    "import openai": "import openai",
}
READ = f"import adapter; adapter.parse({CALL!r}"
BARS = {
    "adapter.parse, format told": 11.5,
    "adapter.parse, none told": 11.5,
    "adapter parse FILE": 12.5,
    "adapter --help": 14.0,
    "adapter replay EXCHANGES": 36.0,
    "adapter replay TRANSCRIPT": 80.0,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=11)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        rows = dict(programs(Path(folder)))
        taken: dict[str, list[float]] = {name: [] for name in rows}
        for _ in range(runs + 1):  # the first run compiles
            for name, words in rows.items():
                taken[name].append(seconds(words))
    unit = median(taken["pass"][1:])
    print(f"python -c pass: {unit * 1000:.0f} ms")
    missed = []
    for name in rows:
        ratio, bar = median(taken[name][1:]) / unit, BARS.get(name)
        print(f"{name:<40} {ratio:5.1f}" + (f"  (bar {bar:g})" if bar else ""))
        missed += [name] if bar and ratio > bar else []
    for name in missed:
        print("MISSED", name)
    return 1 if missed else 0


def programs(folder: Path) -> Iterator[tuple[str, Sequence[str]]]:
    said, exchanges = folder / "said.txt", folder / "said.jsonl"
    said.write_text(CALL, encoding="utf-8")
    exchanges.write_text(json.dumps(EXCHANGE) + "\n", encoding="utf-8")
    yield "pass", (sys.executable, "-c", "pass")
    for name, code in LIMITS.items():
        yield name, (sys.executable, "-c", code)
    yield "adapter.parse, format told", (sys.executable, "-c", f'{READ}, format="hermes")')
    yield "adapter.parse, none told", (sys.executable, "-c", f"{READ})")
    command = (sys.executable, "-m", "adapter")
    yield "adapter parse FILE", (*command, "parse", str(said))
    yield "adapter --help", (*command, "--help")
    yield "adapter replay EXCHANGES", (*command, "replay", str(exchanges))
    yield "adapter replay TRANSCRIPT", (*command, "replay", str(TRANSCRIPT))


def seconds(words: Sequence[str]) -> float:
    keeping = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, capture_output=True, env=keeping)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
