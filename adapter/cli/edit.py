"""`adapter edit`: applies patches to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapter.cli.escaped_output import print_escaped
from adapter.cli.options import AsJson, EditsOption, EncodingOption, flag, option, parse_edit_mode
from adapter.cli.text_input import read_text
from adapter.core.errors import UsageError
from adapter.core.text.display_escaping import dump_for_display

if TYPE_CHECKING:
    from adapter.tools.operations import PatchBasis


def edit(
    file: Annotated[Path, typer.Argument(help="Edit this file, or the files in this folder that the patches name.")],
    patches: Annotated[
        str,
        option(
            "FILE",
            "Read the patches from this file: JSON, a diff, a Begin Patch envelope, SEARCH/REPLACE blocks or a whole "
            "new text; - means standard input.",
        ),
    ],
    edits: EditsOption = "auto",
    encoding: EncodingOption = None,
    sequence: Annotated[
        bool,
        flag("Match each patch against the result of the previous patches instead of the original file.", "--sequence"),
    ] = False,
    dry_run: Annotated[bool, flag("Show the diff without changing any file.", "--dry-run")] = False,
    as_json: AsJson = False,
) -> None:
    """Apply patches to one or more files. Either all patches are applied or none."""
    from adapter.core.errors import FormatError
    from adapter.editing.notations.parse_edits import parse_file_edits, parse_patches
    from adapter.tools.operations import PatchFiles, PatchText
    from adapter.workspace.changes.encoding_detection import parse_encoding
    from adapter.workspace.files.file_changes import plan_files, plan_patch
    from adapter.workspace.workspace_context import open_context

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
    with open_context(folder, edits=parse_edit_mode(edits), encoding=parse_encoding(encoding)) as context:
        change = plan_patch(context, operation) if isinstance(operation, PatchText) else plan_files(context, operation)
        outcome = change.outcome if dry_run else change.commit(context)
    if as_json:
        row = {
            "path": str(file),
            "written": bool(change.diff) and not dry_run,
            "notes": list(outcome.notes),
            "diff": change.diff,
        }
        print(dump_for_display(row, indent=2))
        return
    print_escaped(change.diff, end="")
    for note in outcome.notes:
        print_escaped(f"note: {note}", to_stderr=True)
