"""`adapter replay`: recorded conversations, run again and compared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adapter.commands.output import print_visible
from adapter.text.visible import visible_json


def replay(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Transcripts or folders; the shipped ones when left out.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
    update: Annotated[bool, typer.Option("--update", help="Write what comes out today into the transcripts.")] = False,
) -> None:
    """Run recorded conversations again, offline, and compare."""
    from adapter.prompting import resources
    from adapter.transcripts.replay import replay_file, transcripts_in, update_file

    files = transcripts_in(paths or [resources.folder("fixtures") / "transcripts"])
    if update:
        for file in files:
            update_file(file)
    replays = [replay_file(file) for file in files]
    if as_json:
        rows = [
            {"name": row.name, "turns": row.turns, "calls": row.calls, "difference": row.difference} for row in replays
        ]
        print(visible_json(rows, indent=2))
    else:
        width = max(len(row.name) for row in replays)
        for row in replays:
            outcome = "equal" if row.is_equal else "DIFFERENT"
            print_visible(f"{row.name:<{width}}  turns {row.turns:>2}  calls {row.calls:>2}  {outcome}")
        different = [row for row in replays if not row.is_equal]
        print(f"{len(replays) - len(different)} of {len(replays)} equal")
        for row in different:
            print_visible(f"\n{row.name}: {row.difference}")
    if not all(row.is_equal for row in replays):
        raise typer.Exit(1)
