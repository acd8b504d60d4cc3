"""`adapter undo`: undoes changes that tools made in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapter.cli.escaped_output import print_escaped
from adapter.cli.options import flag, option
from adapter.core.errors import UsageError

if TYPE_CHECKING:
    from adapter.workspace.changes.history import RecordedChange


def undo(
    folder: Annotated[
        Path | None, typer.Argument(help="Undo changes in this folder. Default: the current one.")
    ] = None,
    workspace: Annotated[Path | None, option("DIR", "Undo changes in this folder.", "--workspace", "-w")] = None,
    undo_all: Annotated[bool, flag("Undo all changes made by the last run, newest first.", "--all")] = False,
    list_: Annotated[bool, flag("List the changes that can be undone, newest first, and exit.", "--list")] = False,
) -> None:
    """Undo the last change that a tool made in a folder."""
    import time
    from functools import partial

    from adapter.workspace.paths.os_errors import convert_os_errors
    from adapter.workspace.workspace_context import open_context

    if folder is not None and workspace is not None:
        raise UsageError("the folder is given twice; omit --workspace")
    with open_context(folder or workspace or Path()) as context:
        changes = context.history.list_undoable_changes()
        if list_:
            for change in changes:
                print_escaped(f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(change.time))}  {change.summary}")
            return
        session = changes[0].session if undo_all and changes else None
        count = sum(change.session == session for change in changes) if undo_all else 1
        for _ in range(max(count, 1)):
            with convert_os_errors("nothing was undone"):
                undone = context.history.undo(session, partial(_review_undo, context.root.path))
            print_escaped(f"undone: {undone.change.summary}", to_stderr=True)
            print_escaped(undone.diff, end="")
            for note in undone.notes:
                print_escaped(f"note: {note}", to_stderr=True)


def _review_undo(root: str, change: RecordedChange, paths: Sequence[str], diff: str) -> None:
    """Ask the user for approval if an undo changes git's own data or files that run code later, because a program may
    have forged the record. Raises DeniedError if the user refuses."""
    from adapter.cli.agent_console import Console
    from adapter.core.errors import DeniedError
    from adapter.tools.operations.autorun_files import GIT_DATA, explain_autorun
    from adapter.workspace.paths.git_data_detection import is_git_data

    reason = GIT_DATA if any(is_git_data(root, path.split("/")) for path in paths) else explain_autorun(paths)
    if reason and not Console().confirm(f"undo {change.summary}: {', '.join(paths)}\n   {reason}\n{diff}", "undo it?"):
        raise DeniedError(
            f"not undone: {change.summary}. Undoing it needs your approval at a terminal, because {reason}. Nothing "
            "was changed"
        )
