"""Run one task for `adapter run`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from adapter.cli import agent_factory
from adapter.cli.agent_console import Console
from adapter.cli.folder_changes import FolderState
from adapter.cli.run_outcome import describe_run_outcome
from adapter.cli.run_settings import RunSettings
from adapter.cli.text_input import read_text
from adapter.core.errors import UsageError
from adapter.core.private_files import open_private
from adapter.workspace import Workspace


def read_task() -> str:
    """Read the task from stdin. Then connect stdin to the terminal if there is one, so that the user can approve
    calls."""
    if sys.stdin.isatty():
        print("type the task, then press Enter and Ctrl-D", file=sys.stderr)
    task = read_text("-")
    if not sys.stdin.isatty() and sys.stderr.isatty():
        with suppress(OSError):
            sys.stdin = Path("/dev/tty").open(encoding="utf-8", errors="replace")  # noqa: SIM115  # for the whole run
    return task


MAX_CHECKED = 1_000_000
"""Maximum size of a file that is searched for leftover old names after a run, in bytes."""


def run_task(task: str, settings: RunSettings) -> int:
    """Run ``task`` and return the exit code. Raises TransportError and UsageError, which state the next step."""
    if not task.strip():
        raise UsageError("the task is empty; describe it in plain language, or pass - to read it from standard input")
    agent_factory.validate_settings(settings)
    console = Console()
    with ExitStack() as stack:
        # Check the settings first, because loading the model may take long.
        workspace, observers = agent_factory.open_workspace(stack, settings, console)
        write = stack.enter_context(_open_transcript(settings.record)) if settings.record else None
        bundle = agent_factory.build_agent(stack, settings, workspace, observers, task)
        if write is not None:
            observers.recording = agent_factory.begin_recording(bundle, write, settings, task, is_chat=False)
        console.note_workspace(workspace)
        read_file = partial(_read_file, Path(workspace.root))
        state = FolderState.read(Path(workspace.root), task, read_file)
        try:
            done = bundle.agent.run(task)
        finally:
            if settings.state is None:
                print_changes(workspace, settings.workspace, console)
        diff = workspace.history.render_diff(workspace.history.session) if workspace.changes() else None
        changes = state.compare(diff, read_file)
        code, last = describe_run_outcome(done, observers.tally, task, read_file, changes)
        console.end(last, is_interrupted=done.reason == "interrupted")
    return code


def _read_file(root: Path, path: str) -> str:
    """Return the text of a file in the workspace, or "" if the file is unreadable, too large or outside it."""
    with suppress(OSError, RuntimeError, ValueError):  # a name that is too long, a loop of links, a null character
        file = (root / path).resolve()
        if file.is_relative_to(root.resolve()) and file.is_file() and file.stat().st_size <= MAX_CHECKED:
            return file.read_text("utf-8", "replace")
    return ""


NO_UNDO = "the journal could not be saved, so `adapter undo` cannot undo them (check XDG_STATE_HOME)"


def print_changes(workspace: Workspace, root: Path, console: Console) -> None:
    if count := len(workspace.changes()):
        changes = "1 change was" if count == 1 else f"{count} changes were"
        undo = f"`adapter undo --all {shlex.quote(str(root))}` undoes this run"
        console.note(f"{changes} made; {NO_UNDO if workspace.history.store.is_temporary else undo}")


@contextmanager
def _open_transcript(path: Path) -> Iterator[Callable[[str], object]]:
    """Yield a function that writes to ``path``. The file is readable only by the user.

    An existing file is overwritten only by the first write, and a new file that stays empty is removed. So a run that
    fails to start changes nothing.
    """
    is_new = not path.exists()
    try:
        descriptor = open_private(path, os.O_WRONLY)
    except OSError as error:
        raise UsageError(f"cannot record to {path}: {error.strerror}. Choose a file in an existing folder.") from error
    is_empty = True

    def write(text: str) -> None:
        nonlocal is_empty
        if is_empty and path.is_file():
            file.truncate(0)
        is_empty = False
        file.write(text)

    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n", buffering=1) as file:
            yield write
    finally:
        if is_empty and is_new:
            path.unlink(missing_ok=True)
