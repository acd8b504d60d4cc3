"""Measure `adapter read` on repeated outputs of the public suite: speed, memory, resuming after a kill, other parsers.

    python -m benchmarks.bench_batch                        20,000 rows
    python -m benchmarks.bench_batch --rows 1000000         takes minutes
    python -m benchmarks.bench_batch --peers 20             only other parsers, one process, 20 rounds

One run has one process, another a process per core; the memory of all processes is sampled. A third run is killed
halfway (SIGKILL) and resumed, and its output is compared. The other parsers are vLLM's hermes parser and
agent-tool-parser, on the outputs in the Hermes format. vLLM's parser needs its Python files on PYTHONPATH, and
transformers.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from statistics import median

from adapter.integrations.batch.row_parser import RowParser, RowSettings
from benchmarks.peers import vllm_whole, whole_readers

OPTIONS = ("--tools-column", "tools", "--prompt", "prompt")
CURVE = 10
"""Number of values in a memory curve."""


def write_rows(path: Path, count: int) -> None:
    from canitoolcall.fixtures import load_fixtures

    rows = [
        {
            "text": fixture.raw_output,
            "tools": json.dumps(list(fixture.tools)),
            "prompt": fixture.generation_prompt,
            "finish_reason": "length" if "truncated" in fixture.tags else "stop",
        }
        for fixture in load_fixtures()
    ]
    with path.open("w", encoding="utf-8") as file:
        for number, row in enumerate(islice(cycle(rows), count)):
            file.write(json.dumps({"id": number, **row}) + "\n")


@contextmanager
def reading(given: Path, out: Path, jobs: int) -> Iterator[subprocess.Popen[bytes]]:
    words = [sys.executable, "-m", "adapter", "read", str(given), "--out", str(out), "--jobs", str(jobs), *OPTIONS]
    with subprocess.Popen(words, stderr=subprocess.PIPE) as process:
        yield process


def rss_mb(pid: int) -> float:
    found = 0.0
    for each in (pid, *_children(pid)):
        try:
            text = Path(f"/proc/{each}/status").read_text()
        except OSError:
            continue
        found += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS")) / 1000
    return found


def cpu_s(pid: int) -> float:
    ticks = 0
    for each in (pid, *_children(pid)):
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _children(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def measure(given: Path, out: Path, jobs: int, rows: int) -> None:
    """Print the rows per second, and per second of processor time, because other programs may be running."""
    began, curve, cpu = time.monotonic(), [], 0.0
    with reading(given, out, jobs) as process:
        while process.poll() is None:
            curve.append(rss_mb(process.pid))
            cpu = max(cpu, cpu_s(process.pid))
            time.sleep(0.2)
        assert process.stderr is not None
        said = process.stderr.read().decode().strip()
    took = time.monotonic() - began
    shown = " ".join(f"{max(part):.0f}" for part in _tenths(curve))
    print(f"{jobs} jobs  {took:7.1f} s  {rows / took:8,.0f} rows/s  {rows / cpu:8,.0f} rows per CPU second")
    print(f"        memory of all processes by tenth of the run, MB: {shown}")
    print(f"        {said}", flush=True)


def _tenths(curve: list[float]) -> Iterator[list[float]]:
    size = max(1, len(curve) // CURVE)
    return (curve[start : start + size] for start in range(0, len(curve) // size * size, size))


def resume_killed_run(given: Path, out: Path, jobs: int, whole: Path) -> None:
    """Kill a run after half of the bytes are written, resume it, and compare the outputs."""
    size, partial = whole.stat().st_size, out.with_name(f"{out.name}.partial")
    with reading(given, out, jobs) as process:
        while process.poll() is None and not (partial.exists() and partial.stat().st_size > size / 2):
            time.sleep(0.01)
        process.kill()
        children = _children(process.pid)
    done = partial.stat().st_size if partial.exists() else 0
    began = time.monotonic()
    with reading(given, out, jobs) as process:
        process.wait()
    took = time.monotonic() - began
    time.sleep(0.2)
    left = [pid for pid in children if Path(f"/proc/{pid}").exists()]
    same = "identical" if _hash(out) == _hash(whole) else "DIFFERENT"
    print(
        f"killed with {done / size:.0%} written, the rest in {took:.1f} s, output {same}, processes left: {len(left)}",
        flush=True,
    )


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def compare_with_peers(rounds: int) -> None:
    """Print the texts per second of each parser, in one process on the same texts: the median of the rounds."""
    from canitoolcall.fixtures import load_fixtures

    fixtures = [each for each in load_fixtures() if each.family == "qwen3-hermes"]
    readers: dict[str, Callable[[str, str], object]] = {}
    auto, told = (RowParser(RowSettings(tools_column="tools", format=name)) for name in (None, "hermes"))
    readers["ours, any format"] = lambda text, tools: auto.build_columns({"text": text, "tools": tools})
    readers["ours, hermes"] = lambda text, tools: told.build_columns({"text": text, "tools": tools})
    if (peer := whole_readers([]).get("agent-tool-parser")) is not None:
        readers["agent-tool-parser"] = lambda text, _: peer(text)
    if (vllm := vllm_whole("hermes")) is not None:
        readers["vLLM's hermes parser"] = vllm
    texts = [(each.raw_output, json.dumps(list(each.tools))) for each in fixtures]
    taken: dict[str, list[float]] = {name: [] for name in readers}
    for _ in range(rounds):
        for name, read in readers.items():
            began = time.process_time()
            for text, tools in texts * 4:
                read(text, tools)
            taken[name].append((time.process_time() - began) / len(texts) / 4)
    ours = median(taken["ours, hermes"])
    for name, times in taken.items():
        print(f"{name:24} {1 / median(times):9,.0f} texts per CPU second  {median(times) / ours:6.2f} x ours, hermes")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, help="where the files are written; a temporary folder by itself")
    parser.add_argument("--peers", type=int, default=0, metavar="ROUNDS")
    given = parser.parse_args()
    if given.peers:
        compare_with_peers(given.peers)
        return 0
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        write_rows(folder / "in.jsonl", given.rows)
        print(
            f"{given.rows:,} rows, {(folder / 'in.jsonl').stat().st_size / 1e6:,.0f} MB, load {os.getloadavg()[0]:.1f}"
        )
        measure(folder / "in.jsonl", folder / "one.jsonl", 1, given.rows)
        measure(folder / "in.jsonl", folder / "all.jsonl", given.jobs, given.rows)
        resume_killed_run(folder / "in.jsonl", folder / "killed.jsonl", given.jobs, folder / "all.jsonl")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
