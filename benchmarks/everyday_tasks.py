"""Everyday tasks for `adapter run` with a small model: how many are done, and what the exit code says.

    python -m benchmarks.everyday_tasks [--model GGUF] [--base-url URL] [--runs N] [--folder DIR]
        [--held-out | --unseen | --sloppy] [TASK ...]

Each task is a sentence in a small folder. A task is done if the files, or the answer, are exactly as requested. With
``--folder``, the folders, the outputs and the transcripts are kept. ``--held-out`` and ``--unseen`` each run ten other
tasks of the same kinds, which were written before any model was asked. Failures of both have been read since. Those of
``--sloppy`` have not: ten short requests in a careless style, five of them in German, French or Spanish.
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
    """``before``: the files. ``after``: the files that must then exist, with their text, without a final newline; None
    for a file that must not. ``answer``: text that the answer must contain."""

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
HELD_OUT = {
    "create": Task(
        "Make a new file docs/hello.txt that says: Hello everyone",
        {"a.md": "# Demo"},
        {"docs/hello.txt": "Hello everyone"},
    ),
    "typo": Task(
        'In guide.md, "recieve" is misspelled. Correct it to "receive".',
        {"guide.md": "# Guide\n\nYou will recieve a letter.\n\nKeep it.\n"},
        {"guide.md": "# Guide\n\nYou will receive a letter.\n\nKeep it."},
    ),
    "rename": Task(
        "Rename the function total to amount in till.py and in shop.py.",
        {
            "shop.py": "from till import total\n\nprint(total([1, 2]))\n",
            "till.py": "def total(prices):\n    return sum(prices)\n",
        },
        {
            "shop.py": "from till import amount\n\nprint(amount([1, 2]))",
            "till.py": "def amount(prices):\n    return sum(prices)",
        },
    ),
    "json": Task(
        "Set the number of retries to 5 in settings.json.",
        {"settings.json": '{\n  "name": "demo",\n  "retries": 3,\n  "timeout": 30\n}\n'},
        {"settings.json": '{\n  "name": "demo",\n  "retries": 5,\n  "timeout": 30\n}'},
    ),
    "yaml": Task(
        "Add carol to the users in team.yaml.",
        {"team.yaml": "users:\n  - alice\n  - bob\n"},
        {"team.yaml": "users:\n  - alice\n  - bob\n  - carol"},
    ),
    "delete": Task(
        "Remove the file build/tmp.bin.", {"build/tmp.bin": "x\n", "a.md": "y"}, {"build/tmp.bin": None, "a.md": "y"}
    ),
    "question": Task(
        "What version is in package.json?",
        {"package.json": '{\n  "name": "demo",\n  "version": "2.7.13"\n}\n'},
        {},
        "2.7.13",
    ),
    "command": Task(
        'Run "python3 check.py" and tell me how many checks passed.',
        {"check.py": 'print("38 checks passed")\n'},
        {},
        "38",
    ),
    "move": Task(
        "Move the file report.csv into the folder archive.",
        {"report.csv": "a,b\n", "archive/old.csv": "c,d\n"},
        {"report.csv": None, "archive/report.csv": "a,b"},
    ),
    "template": Task(
        "Fill in invoice.txt: replace {{customer}} with Berger and {{total}} with 89.50.",
        {"invoice.txt": "Invoice\n\nCustomer: {{customer}}\nTotal: {{total}}\n"},
        {"invoice.txt": "Invoice\n\nCustomer: Berger\nTotal: 89.50"},
    ),
}

UNSEEN = {
    "create": Task(
        "Write the word draft into a new file named status.txt.", {"main.c": "int main;\n"}, {"status.txt": "draft"}
    ),
    "typo": Task(
        "There is a spelling mistake in about.html: change 'adress' to 'address'.",
        {"about.html": "<h1>About</h1>\n<p>Our adress is unknown.</p>\n<p>Thanks.</p>\n"},
        {"about.html": "<h1>About</h1>\n<p>Our address is unknown.</p>\n<p>Thanks.</p>"},
    ),
    "rename": Task(
        "The variable cnt in loop.py and in test_loop.py should be called counter.",
        {
            "loop.py": "cnt = 0\n\n\ndef step():\n    return 1\n",
            "test_loop.py": "from loop import cnt\n\nassert cnt == 0\n",
        },
        {
            "loop.py": "counter = 0\n\n\ndef step():\n    return 1",
            "test_loop.py": "from loop import counter\n\nassert counter == 0",
        },
    ),
    "json": Task(
        "Turn debug off in app.json.",
        {"app.json": '{\n  "title": "shop",\n  "debug": true,\n  "lines": 20\n}\n'},
        {"app.json": '{\n  "title": "shop",\n  "debug": false,\n  "lines": 20\n}'},
    ),
    "yaml": Task(
        "Put linux on the list of platforms in build.yml, after windows.",
        {"build.yml": "name: demo\nplatforms:\n  - macos\n  - windows\n"},
        {"build.yml": "name: demo\nplatforms:\n  - macos\n  - windows\n  - linux"},
    ),
    "delete": Task(
        "Please delete cache/index.db, we no longer need it.",
        {"cache/index.db": "x\n", "cache/keep.txt": "y"},
        {"cache/index.db": None, "cache/keep.txt": "y"},
    ),
    "question": Task(
        "Who is the author according to thesis.toml?",
        {"thesis.toml": '[thesis]\ntitle = "Bees"\nauthor = "Nora Lindqvist"\nyear = 2019\n'},
        {},
        "Lindqvist",
    ),
    "command": Task(
        "Run python3 test_sum.py and tell me the name of the test that fails.",
        {"test_sum.py": 'print("test_zero: ok\\ntest_negative: FAILED\\ntest_large: ok")\n'},
        {},
        "test_negative",
    ),
    "move": Task(
        "Rename photo.jpeg to beach.jpeg.",
        {"photo.jpeg": "not a real photo\n", "notes.md": "beach\n"},
        {"photo.jpeg": None, "beach.jpeg": "not a real photo"},
    ),
    "template": Task(
        "Fill in the placeholders of badge.txt: NAME is Ole Berg, ROOM is 214.",
        {"badge.txt": "Visitor: NAME\nRoom: ROOM\n"},
        {"badge.txt": "Visitor: Ole Berg\nRoom: 214"},
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
    sets = parser.add_mutually_exclusive_group()
    sets.add_argument("--held-out", action="store_const", const=HELD_OUT, dest="tasks", help="ten other tasks")
    sets.add_argument("--unseen", action="store_const", const=UNSEEN, dest="tasks", help="ten further tasks")
    sets.add_argument("--sloppy", action="store_const", const=SLOPPY, dest="tasks", help="ten tasks of unread failures")
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
