"""Run the programs of codex and aider that apply a model's edits to a folder, for comparison.

No part of them belongs to this project: codex is the program of the npm package ``@openai/codex``, which applies an
envelope if it is called ``apply_patch``; aider is an interpreter with the package ``aider-chat``, whose coders apply
SEARCH/REPLACE blocks, diffs, envelopes and whole files. Both run in bubblewrap without a network, and see only the
folders of the commits.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

Applier: TypeAlias = Callable[[Path, str], str]
SECONDS = 120
"""Time limit of codex for one commit."""
AIDER_CODERS = {
    "numbered diff": "udiff",
    "bare diff": "udiff",
    "envelope": "patch",
    "blocks": "diff",
    "whole files": "whole",
}
_AIDER = """
import json, os, re, sys
from pathlib import Path
from aider.coders import Coder
from aider.io import InputOutput
from aider.models import Model

answers, sys.stdout = sys.stdout, sys.stderr
model = Model("gpt-4o")
for line in sys.stdin:
    folder, name, text = json.loads(line)
    os.chdir(folder)
    files = [str(path) for path in Path(".").rglob("*") if path.is_file()]
    io = InputOutput(yes=True, pretty=False, fancy_input=False)
    coder = Coder.create(main_model=model, edit_format=name, io=io, fnames=files, use_git=False, map_tokens=0)
    coder.fence = ("````", "````") if name == "whole" else coder.fence
    if name == "udiff":
        files = filter(None, re.split("^(?=--- (?:a/|/dev/null))", text, flags=re.MULTILINE))
        text = "".join(f"```diff\\n{file}```\\n" for file in files)
    coder.partial_response_content = text
    coder.reflected_message = None
    coder.apply_updates()
    print(json.dumps(str(coder.reflected_message or "")[:500]), file=answers, flush=True)
"""


def confine(folder: Path, *readable: str) -> list[str]:
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    for path in filter(os.path.exists, ("/usr", "/lib", "/lib64", "/bin", "/etc", *readable)):
        command += ["--ro-bind", path, path]
    return [*command, "--bind", str(folder), str(folder), "--chdir", str(folder), "--setenv", "HOME", "/tmp", "--"]


def apply_with_codex(program: str, folder: Path, text: str) -> str:
    path = str(Path(program).resolve())
    command = [*confine(folder, path), "bash", "-c", 'exec -a apply_patch "$0" "$1"', path, text]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    return done.stderr if done.returncode else ""


class Aider:
    """One process of aider for all commits, because it takes seconds to start."""

    def __init__(self, python: str, folders: Path) -> None:
        readable = (str(Path(python).parent.parent.absolute()), str(Path(python).resolve().parent.parent))
        command = [*confine(folders, *readable), python, "-c", _AIDER]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def apply(self, coder: str, folder: Path, text: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(folder), coder, text]) + "\n")
        self._process.stdin.flush()
        return str(json.loads(self._process.stdout.readline()))


def find_appliers(notation: str, codex: str | None, aider: Aider | None) -> Iterator[tuple[str, Applier]]:
    """Yield the programs that read a notation, with their names."""
    if codex and notation == "envelope":
        yield "codex", partial(apply_with_codex, codex)
    if aider and notation in AIDER_CODERS:
        yield "aider", partial(aider.apply, AIDER_CODERS[notation])
