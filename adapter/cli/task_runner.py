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

from adapter.cli.agent_factory import build_agent, mcp_tools, open_workspace, validate_settings
from adapter.cli.console import Console
from adapter.cli.exit_status import CallTally, exit_status
from adapter.cli.host_factory import api_keys_of, build_host
from adapter.cli.observers import ObserverGroup
from adapter.cli.run_settings import RunSettings
from adapter.cli.terminal_output import read_text
from adapter.core.errors import UsageError
from adapter.core.text.redaction import Redactor
from adapter.recording.recorder import SessionRecorder
from adapter.recording.transcript import TranscriptWriter
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


def run_task(task: str, settings: RunSettings) -> int:
    """Work on ``task``; the exit code. Raises TransportError and UsageError with the next step."""
    if not task.strip():
        raise UsageError("the task is empty; say in plain words what to do, or give - to read it from standard input")
    validate_settings(settings)
    console = Console()
    with ExitStack() as stack:
        # What can be wrong comes first: nobody should wait for a model to load to hear of it.
        plain = replace(
            build_host(settings.config), editor=None
        )  # nobody looks at one here, and each tool costs tokens
        own = mcp_tools(stack, settings, console)
        whole = stack.enter_context(open_workspace(settings, own, plain))
        witnesses = ObserverGroup(console, CallTally(whole.known_tools), _recording(stack, settings, whole))

        def open_for(host: Host) -> Workspace:
            return open_workspace(settings, own, host, ask=witnesses.ask, echo=console.echo)

        made = build_agent(stack, settings, whole, witnesses, open_for, task)
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
                print_changes(made.workspace, settings.workspace, console)
        code, last = exit_status(done, witnesses.tally)
        console.end(last, is_interrupted=done.reason == "interrupted")
    return code


def _recording(stack: ExitStack, settings: RunSettings, workspace: Workspace) -> SessionRecorder | None:
    """The transcript that is asked for, until ``stack`` is closed."""
    if settings.record is None:
        return None
    file = stack.enter_context(_opened(settings.record))
    secrets = Redactor(os.environ, api_keys_of(workspace.host))
    return SessionRecorder(TranscriptWriter(file.write, secrets, time.time), Path(workspace.root), settings.record)


NOT_KEPT = "no record of it could be kept beyond this run, so `adapter undo` knows nothing of it (XDG_STATE_HOME)"


def print_changes(workspace: Workspace, root: Path, console: Console) -> None:
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
