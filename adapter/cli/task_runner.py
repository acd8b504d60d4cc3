"""Works on one task, for the command line."""

from __future__ import annotations

import os
import shlex
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from adapter.cli.agent_factory import assemble, check, mcp_tools, open_workspace
from adapter.cli.console import Console
from adapter.cli.exit_status import Tally, ending
from adapter.cli.host_factory import host_of, keys_of
from adapter.cli.observers import Witnesses
from adapter.cli.run_settings import Settings
from adapter.cli.terminal_output import read_text
from adapter.core.errors import UsageError
from adapter.core.text.redaction import Secrets
from adapter.recording.recorder import Recording
from adapter.recording.transcript import Recorder
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host import Host


def read_task() -> str:
    """The task from standard input, which is then the terminal again, where there is one to answer questions at."""
    if sys.stdin.isatty():
        print("type the task, then Enter and Ctrl-D", file=sys.stderr)
    task = read_text("-")
    if not sys.stdin.isatty() and sys.stderr.isatty():
        with suppress(OSError):
            sys.stdin = Path("/dev/tty").open(encoding="utf-8", errors="replace")  # noqa: SIM115  # for the whole run
    return task


def run_task(task: str, settings: Settings) -> int:
    """Work on ``task``; the exit code. Raises TransportError and UsageError with the next step."""
    if not task.strip():
        raise UsageError("the task is empty; say in plain words what to do, or give - to read it from standard input")
    check(settings)
    console = Console()
    with ExitStack() as stack:
        # What can be wrong comes first: nobody should wait for a model to load to hear of it.
        plain = replace(host_of(settings.config), editor=None)  # nobody looks at one here, and each tool costs tokens
        own = mcp_tools(stack, settings, console)
        whole = stack.enter_context(open_workspace(settings, own, plain))
        witnesses = Witnesses(console, Tally(whole.known_tools), _recording(stack, settings, whole))

        def open_for(host: Host) -> Workspace:
            return open_workspace(settings, own, host, ask=witnesses.ask, echo=console.echo)

        made = assemble(stack, settings, whole, witnesses, open_for, task)
        if made.workspace.sandbox:
            console.note_sandbox(made.workspace.sandbox)
        if witnesses.recording is not None:
            model, server = made.chat.model, made.chat.endpoint.kind
            witnesses.recording.begin(made.agent, task, approve=settings.approve, model=model, server=server)
        for note in whole.recovered:
            console.note(note)
        try:
            done = made.agent.run(task)
        finally:
            if settings.state is None:
                tell_changes(made.workspace, settings.workspace, console)
        code, last = ending(done, witnesses.tally)
        console.end(last, is_interrupted=done.reason == "interrupted")
    return code


def _recording(stack: ExitStack, settings: Settings, workspace: Workspace) -> Recording | None:
    """The transcript that is asked for, until ``stack`` is closed."""
    if settings.record is None:
        return None
    file = stack.enter_context(_opened(settings.record))
    secrets = Secrets(os.environ, keys_of(workspace.host))
    return Recording(Recorder(file.write, secrets, time.time), Path(workspace.root), settings.record)


NOT_KEPT = "no record of it could be kept beyond this run, so `adapter undo` knows nothing of it (XDG_STATE_HOME)"


def tell_changes(workspace: Workspace, root: Path, console: Console) -> None:
    made = len(workspace.changes())
    if made:
        changes = "1 change was" if made == 1 else f"{made} changes were"
        undo = f"`adapter undo --all {shlex.quote(str(root))}` takes back all of this run"
        console.note(f"{changes} made; {NOT_KEPT if workspace.history.store.is_temporary else undo}")


def _opened(path: Path) -> TextIO:
    """``path`` for writing a transcript, line by line."""
    try:
        return path.open("w", encoding="utf-8", newline="\n", buffering=1)
    except OSError as error:
        raise UsageError(
            f"cannot record to {path}: {error.strerror}. Name a file in a folder that is there."
        ) from error
