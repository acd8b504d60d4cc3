"""Run everyday tasks with `adapter run` and a small model, and count those that are done.

    python -m benchmarks.everyday_tasks [--model GGUF] [--base-url URL] [--runs N] [--folder DIR]
        [--sloppy] [TASK ...]

Each task is a sentence about a small folder. A task is done if the files, or the answer, are exactly as requested. With
``--folder``, the folders, the outputs and the transcripts are kept. ``--sloppy`` runs ten short requests in a careless
style, five of them in German, French or Spanish, whose failures were not used in development.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from adapter.backends.in_process_llama_cpp import download_builtin_model

TIMEOUT_S = 600


@dataclass(frozen=True)
class Task:
    """A request, the files ``before`` it, and the expected result.

    ``after`` has the text of each file without a final newline, or None for a file that must not exist. ``answer`` is
    text that the model's answer must contain.
    """

    request: str
    before: Mapping[str, str]
    after: Mapping[str, str | None]
    answer: str = ""


GREETING = 'def greet():\n    return "hi"\n'
TASKS = {
    "create": Task("Create a file notes.txt with the text: buy milk", {"a.md": "# Demo"}, {"notes.txt": "buy milk"}),
    "typo": Task(
        'Fix the typo "smal" in README.md: it should be "small".',
        {"README.md": "# Demo\n\nThis is a smal tool.\n"},
        {"README.md": "# Demo\n\nThis is a small tool."},
    ),
    "rename": Task(
        "Rename the function greet to hello in b.py and in a.py.",
        {"a.py": "from b import greet\n\nprint(greet())\n", "b.py": GREETING},
        {"a.py": "from b import hello\n\nprint(hello())", "b.py": 'def hello():\n    return "hi"'},
    ),
    "json": Task(
        "In config.json, change the port to 9090.",
        {"config.json": '{\n  "port": 8080,\n  "debug": false\n}\n'},
        {"config.json": '{\n  "port": 9090,\n  "debug": false\n}'},
    ),
    "yaml": Task(
        "Add banana to the list of fruits in list.yaml.",
        {"list.yaml": "fruits:\n  - apple\n  - pear\n"},
        {"list.yaml": "fruits:\n  - apple\n  - pear\n  - banana"},
    ),
    "delete": Task("Delete the file old.log.", {"old.log": "x\n", "keep.md": "y"}, {"old.log": None, "keep.md": "y"}),
    "question": Task("Which port is set in server.ini?", {"server.ini": "[server]\nport = 4711\n"}, {}, "4711"),
    "command": Task('Run "ls -la" and tell me the name of the log file.', {"boot.log": "x\n", "a.md": "y"}, {}, "boot"),
    "move": Task(
        "Move draft.md to docs/draft.md.",
        {"draft.md": "hello\n", "docs/index.md": "index"},
        {"draft.md": None, "docs/draft.md": "hello"},
    ),
    "template": Task(
        "In letter.txt, replace {{name}} with Anna and {{order}} with 5512.",
        {"letter.txt": "Dear {{name}},\n\nyour order {{order}} has been sent.\n"},
        {"letter.txt": "Dear Anna,\n\nyour order 5512 has been sent."},
    ),
}
SLOPPY = {
    "create": Task(
        "erstell mal todo.md, da soll nur drin stehen: Zahnarzt anrufen",
        {"a.md": "# Demo"},
        {"todo.md": "Zahnarzt anrufen"},
    ),
    "typo": Task(
        "menu.txt says spagetti, shoud be spaghetti. pls fix",
        {"menu.txt": "Monday: soup\nTuesday: spagetti\nWednesday: fish\n"},
        {"menu.txt": "Monday: soup\nTuesday: spaghetti\nWednesday: fish"},
    ),
    "rename": Task(
        "fn calc is a dumb name, make it add_tax in prices.py + main.py",
        {
            "main.py": "from prices import calc\n\nprint(calc(10))\n",
            "prices.py": "def calc(net):\n    return net * 1.19\n",
        },
        {
            "main.py": "from prices import add_tax\n\nprint(add_tax(10))",
            "prices.py": "def add_tax(net):\n    return net * 1.19",
        },
    ),
    "json": Task(
        "dans reglages.json mets le volume à 35",
        {"reglages.json": '{\n  "langue": "fr",\n  "volume": 80,\n  "muet": false\n}\n'},
        {"reglages.json": '{\n  "langue": "fr",\n  "volume": 35,\n  "muet": false\n}'},
    ),
    "yaml": Task(
        "guests.yml: we forgot oma, put her at the end of the list",
        {"guests.yml": "party: saturday\nguests:\n  - lea\n  - tim\n"},
        {"guests.yml": "party: saturday\nguests:\n  - lea\n  - tim\n  - oma"},
    ),
    "delete": Task(
        "borra el archivo viejo.bak por favor",
        {"viejo.bak": "x\n", "nuevo.txt": "y"},
        {"viejo.bak": None, "nuevo.txt": "y"},
    ),
    "question": Task(
        "wie heißt der server in verbindung.ini",
        {"verbindung.ini": "[verbindung]\nserver = kiebitz.intern\nport = 993\n"},
        {},
        "kiebitz",
    ),
    "command": Task(
        "run python3 count.py, how many ducks?",
        {"count.py": 'print("geese: 12")\nprint("ducks: 57")\n'},
        {},
        "57",
    ),
    "move": Task(
        "img1.png goes into pics/ (dont rename it)",
        {"img1.png": "not a real picture\n", "pics/img0.png": "nor is this\n"},
        {"img1.png": None, "pics/img1.png": "not a real picture"},
    ),
    "template": Task(
        "Rellena carta.txt: [CIUDAD] es Sevilla y [FECHA] es 3 de mayo",
        {"carta.txt": "[CIUDAD], [FECHA]\n\nHola Ana,\nnos vemos pronto.\n"},
        {"carta.txt": "Sevilla, 3 de mayo\n\nHola Ana,\nnos vemos pronto."},
    ),
}


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
    paths = {name: workspace / name for name in task.after}
    found = {name: path.read_text("utf-8").rstrip() if path.is_file() else None for name, path in paths.items()}
    return found == task.after and task.answer in done.stdout, done.returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("task", nargs="*", choices=[*TASKS, []], help="default: all")
    parser.add_argument("--model", help="a GGUF file; default: the built-in model")
    parser.add_argument("--base-url", help="a running server instead")
    parser.add_argument(
        "--sloppy", action="store_const", const=SLOPPY, dest="tasks", help="ten tasks of unread failures"
    )
    parser.add_argument("--runs", type=int, default=1, help="of each task")
    parser.add_argument("--folder", type=Path, help="default: a temporary folder")
    options = parser.parse_args()
    model = ["--model", options.model or str(download_builtin_model())]
    if options.base_url:
        model = ["--base-url", options.base_url]
    tasks = options.tasks or TASKS
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
