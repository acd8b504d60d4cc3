"""Run everyday tasks with `adapter run` and a small model, and count the completed ones.

    python -m benchmarks.everyday_tasks [--model GGUF] [--base-url URL] [--runs N] [--folder DIR] [--set SET] [TASK ...]

Each task is a sentence about a small folder. A task is done if all files and the answer are as requested; files that
the task does not mention must be unchanged. With ``--folder``, the folders, the outputs and the transcripts are kept.

The sets are in everyday_tasks.toml. The requests of ``sloppy`` are written carelessly, five of them in German, French
or Spanish. Those of ``second`` and all later sets were written before any run of them. Half of ``third`` is German;
four of ``fourth`` and five of ``fifth`` are in other languages than English.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from adapter.backends.builtin_model import download_builtin_model

TIMEOUT_S = 600
_TASKS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
SETS = tuple(_TASKS)


@dataclass(frozen=True)
class Task:
    """A request, the files ``before`` it, and the expected result.

    ``after`` has the text of each changed file without a final newline, False for a file that must not exist, or True
    for any text. ``answer`` are words that the model's answer must contain. ``check`` is a Python program that fails if
    the task was not done.
    """

    request: str
    before: Mapping[str, str]
    after: Mapping[str, str | bool] = field(default_factory=dict)
    answer: str = ""
    check: str = ""


def load_tasks(name: str) -> dict[str, Task]:
    return {task: Task(**fields) for task, fields in _TASKS[name].items()}


def run_task(task: Task, workspace: Path, model: list[str]) -> tuple[bool, int]:
    """Return whether the task was done, and the exit code; -1 if the time limit was reached."""
    for name, text in task.before.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    record = ["--record", str(workspace.with_suffix(".jsonl"))]
    command = [sys.executable, "-m", "adapter", "run", "-w", str(workspace), "--approve", "yolo", *record, *model]
    try:
        done = subprocess.run([*command, task.request], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return False, -1
    workspace.with_suffix(".txt").write_text(f"{done.stdout}\n{done.stderr}", encoding="utf-8")
    expected = {name: text.rstrip() for name, text in task.before.items()} | dict(task.after)
    paths = {name: workspace / name for name in expected}
    found = {
        name: path.read_text("utf-8", "replace").rstrip() if path.is_file() else False for name, path in paths.items()
    }
    has_answer = re.search(rf"(?<!\w){re.escape(task.answer)}(?!\w)", done.stdout) if task.answer else True
    is_same = all(found[name] == text or (text is True and found[name]) for name, text in expected.items())
    is_done = is_same and bool(has_answer)
    if is_done and task.check:
        check = [sys.executable, "-c", task.check]
        is_done = subprocess.run(check, cwd=workspace, capture_output=True, check=False).returncode == 0
    return is_done, done.returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("task", nargs="*", help="default: all")
    parser.add_argument("--model", help="a GGUF file; default: the built-in model")
    parser.add_argument("--base-url", help="a running server instead")
    parser.add_argument("--set", choices=SETS, default="plain", help="default: plain")
    parser.add_argument("--runs", type=int, default=1, help="of each task")
    parser.add_argument("--folder", type=Path, help="default: a temporary folder")
    options = parser.parse_args()
    model = ["--model", options.model or str(download_builtin_model())]
    if options.base_url:
        model = ["--base-url", options.base_url]
    tasks = load_tasks(options.set)
    total, misled = 0, 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for name in options.task or tasks:
            results = []
            for number in range(options.runs):
                workspace = folder / f"{name}-{number}"
                workspace.mkdir(parents=True)
                results.append(run_task(tasks[name], workspace, model))
            done = sum(each for each, _ in results)
            total, misled = total + done, misled + sum(not each and code == 0 for each, code in results)
            print(f"{name:10} done {done} of {len(results)}, exit codes {[code for _, code in results]}", flush=True)
    count = options.runs * len(options.task or tasks)
    print(f"done {total} of {count}; exit code 0 although not done: {misled}")


if __name__ == "__main__":
    main()
