"""Attack a temporary workspace to check whether SECURITY.md's promises hold on this machine (`adapter doctor --prove`).

Each attack tests one row of SECURITY.md's table, and must have no effect. It runs in a temporary workspace, next to a
file that it must neither read nor change.
"""

from __future__ import annotations

import os
import shlex
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from adapter.core.events import Json
from adapter.tools.operations.permissions import ApprovalRequest
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import Host
from adapter.workspace.sandbox.sandbox import SandboxSettings

CANARY = "canary-7f3a91c2"
"""Text that must not reach the model."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The result for one row of SECURITY.md. ``effect`` describes what the attack did; it is "" if the row holds."""

    row: str
    effect: str


@dataclass(frozen=True, slots=True)
class Target:
    """An attack's temporary workspace, with the files around it."""

    workspace: Workspace
    outside: Path

    def run(self, tool: str, **arguments: Json) -> str:
        return self.workspace.run(tool, arguments).content

    def run_command(self, line: str) -> str:
        return self.run("run_command", command=line, cwd=".")

    def run_python(self, code: str) -> str:
        return self.run_command(f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}")

    @property
    def victim(self) -> Path:
        return self.outside / "file"


Attack: TypeAlias = Callable[[Target], str]
"""Runs one attack, and returns a description of its effect, or "" if it had none."""


def prove(sandbox: SandboxSettings) -> Iterator[Proof]:
    """Yield the result of each attack. Commands run in ``sandbox``."""
    for row, attack in ATTACKS.items():
        with _create_target(sandbox) as target:
            yield Proof(row, attack(target))


@contextmanager
def _create_target(sandbox: SandboxSettings) -> Iterator[Target]:
    with tempfile.TemporaryDirectory(prefix="adapter-prove-") as folder:
        base = Path(os.path.realpath(folder))
        for name in ("ws/.git/hooks", "outside"):
            (base / name).mkdir(parents=True)
        (base / "outside" / "file").write_text(CANARY)
        (base / "ws" / "link").symlink_to(base / "outside")
        state = str(base / "state")
        with Workspace(base / "ws", approve="yolo", sandbox=sandbox, state=state, host=Host(state=state)) as workspace:
            yield Target(workspace, base / "outside")


def _try_opening_outside(target: Target) -> str:
    for path in ("../outside/file", str(target.victim), "link/file", "link/../../outside/file"):
        if CANARY in target.run("read_file", path=path):
            return f"{path} was read"
        target.run("write_file", path=path, content="x")
    return _try_changes(target)


def _try_undoing(target: Target) -> str:
    target.run("write_file", path="a.txt", content="one\n")
    target.run("write_file", path="a.txt", content="two\n")
    target.workspace.undo()
    return "" if Path(target.workspace.root, "a.txt").read_text() == "one\n" else "the undo did not restore the file"


def _try_outliving_call(target: Target) -> str:
    target.run_command("(setsid sh -c 'sleep 1; echo x > late' >/dev/null 2>&1 &)")
    threading.Event().wait(1.5)
    return "a process wrote a file after its command" if Path(target.workspace.root, "late").exists() else ""


def _try_reading_environment(target: Target) -> str:
    os.environ["ADAPTER_PROOF_TOKEN"] = CANARY
    try:
        return "a variable was read" if CANARY in target.run_command("env") else ""
    finally:
        del os.environ["ADAPTER_PROOF_TOKEN"]


def _try_reading_files(target: Target) -> str:
    return "a file was read" if CANARY in target.run_command(f"cat {shlex.quote(str(target.victim))}") else ""


def _try_changing_files(target: Target) -> str:
    target.run_python(f"import os\ntry:\n os.truncate({str(target.victim)!r}, 0)\nexcept OSError: pass")
    target.run_command(f"echo x > {shlex.quote(str(target.victim))}; touch {shlex.quote(str(target.outside))}/new")
    return _try_changes(target)


def _try_changing_git(target: Target) -> str:
    target.run_command("echo x > .git/hooks/pre-commit; mv .git moved; mv moved .git")
    return "a hook was written" if Path(target.workspace.root, ".git/hooks/pre-commit").exists() else ""


def _try_writing_git(target: Target) -> str:
    for path in (".git/hooks/pre-commit", ".GIT/hooks/pre-commit", "sub/.git/config"):
        if target.workspace.run("write_file", {"path": path, "content": "x"}).ok:
            return f"{path} was written"
    return ""


def _try_writing_autorun_files(target: Target) -> str:
    asked: list[ApprovalRequest] = []

    def refuse(request: ApprovalRequest) -> bool:
        asked.append(request)
        return False

    with Workspace(target.workspace.root, approve="auto-edit", ask=refuse, state=str(target.outside / "s")) as cautious:
        for path in (".envrc", ".vscode/tasks.json", ".adapter/skills/x/SKILL.md"):
            cautious.run("write_file", {"path": path, "content": "x"})
    return "" if len(asked) == 3 else "a file was written without approval"


def _try_using_network(target: Target) -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        port = listener.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2); print('connected')"
        return "a server on this machine was reached" if "connected" in target.run_python(code).split("\n") else ""


def _try_reaching_processes(target: Target) -> str:
    code = f"import os\ntry:\n os.kill({os.getpid()}, 0); print('sent')\nexcept OSError: print('refused')"
    return "a signal reached this program" if "sent" in target.run_python(code).split("\n") else ""


def _try_changing_after_approval(target: Target) -> str:
    folder = Path(target.workspace.root, "d")
    folder.mkdir()

    def approve(_: ApprovalRequest) -> bool:
        (folder / "new").write_text("x")
        return True

    with Workspace(target.workspace.root, approve=approve, state=str(target.outside / "s")) as asking:
        asking.run("delete_file", {"path": "d", "recursive": True})
    return "" if (folder / "new").exists() else "a file was deleted that was not shown"


def _try_changes(target: Target) -> str:
    names = sorted(path.name for path in target.outside.iterdir())
    return "" if names == ["file"] and target.victim.read_text() == CANARY else "a file was changed"


ATTACKS: Mapping[str, Attack] = {
    "A file tool opens something outside the workspace, by a path, a link or a race": _try_opening_outside,
    "A change is interrupted by a crash, or unwanted": _try_undoing,
    "A command outlives its call, its timeout or the program": _try_outliving_call,
    "A command reads credentials from the environment": _try_reading_environment,
    "A command reads your other files": _try_reading_files,
    "A command changes files elsewhere": _try_changing_files,
    "A command changes git's own data, so that git runs something later": _try_changing_git,
    "A file tool changes git's own data": _try_writing_git,
    "A file is written that some program runs later": _try_writing_autorun_files,
    "A command uses the network": _try_using_network,
    "A command reaches other processes: signals, debugging, D-Bus, X11, Wayland": _try_reaching_processes,
    "What you approved changes before it is done": _try_changing_after_approval,
}
"""Attacks, by the row of SECURITY.md that they test. The test suite covers races, crashes and rows about servers."""
