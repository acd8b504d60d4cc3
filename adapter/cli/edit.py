"""`adapter edit` and `adapter undo`: changes to files, made and taken back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapter.cli.shared_options import EditsOption, EncodingOption, parse_edit_mode
from adapter.cli.terminal_output import print_escaped, read_text
from adapter.core.errors import UsageError
from adapter.core.text.display_escaping import json_for_display

if TYPE_CHECKING:
    from adapter.tools.operations import PatchBasis


def edit(
    file: Annotated[Path, typer.Argument(help="The file to edit, or the directory of the files that PATCHES names.")],
    patches: Annotated[
        str,
        typer.Option(
            help="What a model wrote: JSON, a diff, a Begin Patch envelope, SEARCH/REPLACE blocks, a file; - for stdin."
        ),
    ],
    edits: EditsOption = "auto",
    encoding: EncodingOption = None,
    sequence: Annotated[
        bool, typer.Option("--sequence", help="Seek each patch in what the ones before it left.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the diff and write nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Apply patches to a file, or to several: all of them, each where it was meant, or none."""
    from adapter.core.errors import FormatError
    from adapter.editing.notations.parse_edits import parse_file_edits, parse_patches
    from adapter.tools.operations import PatchFiles, PatchText
    from adapter.workspace.changes.encoding_detection import encoding_named
    from adapter.workspace.context import open_context
    from adapter.workspace.files.edit_files import plan_files, plan_patch

    basis: PatchBasis = "sequence" if sequence else "original"
    is_directory = file.is_dir()
    try:
        text = read_text(patches)
        operation = (
            PatchFiles(parse_file_edits(text), basis, "insert")
            if is_directory
            else PatchText(file.name, parse_patches(text), basis, "insert")
        )
    except FormatError as error:
        raise UsageError(f"cannot read patches from {patches!r}: {error}") from error
    folder = file if is_directory else file.absolute().parent
    with open_context(folder, edits=parse_edit_mode(edits), encoding=encoding_named(encoding)) as desk:
        change = plan_patch(desk, operation) if isinstance(operation, PatchText) else plan_files(desk, operation)
        outcome = change.outcome if dry_run else change.commit(desk)
    if as_json:
        row = {"path": str(file), "written": not dry_run, "notes": list(outcome.notes), "diff": change.diff}
        print(json_for_display(row, indent=2))
        return
    print_escaped(change.diff, end="")
    for note in outcome.notes:
        print_escaped(f"note: {note}", to_stderr=True)


def undo(
    workspace: Annotated[Path, typer.Argument(help="The folder in which something was changed.")] = Path(),
    every: Annotated[bool, typer.Option("--all", help="Undo every change of the last run, newest first.")] = False,
    show: Annotated[
        bool, typer.Option("--list", help="List what can be undone, newest first, and undo nothing.")
    ] = False,
) -> None:
    """Take back the last change that a tool made in a folder, and only that."""
    import time

    from adapter.workspace.context import open_context
    from adapter.workspace.paths.os_errors import os_errors_explained

    with open_context(workspace) as desk:
        changes = desk.history.changes()
        if show:
            for change in changes:
                print_escaped(f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(change.time))}  {change.summary}")
            return
        session = changes[0].session if every and changes else None
        count = sum(change.session == session for change in changes) if every else 1
        for _ in range(max(count, 1)):
            with os_errors_explained("nothing was undone"):
                undone = desk.history.undo(session)
            print_escaped(f"undone: {undone.change.summary}", to_stderr=True)
            print_escaped(undone.diff, end="")
            for note in undone.notes:
                print_escaped(f"note: {note}", to_stderr=True)
