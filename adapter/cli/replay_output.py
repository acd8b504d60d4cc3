"""Print the results of `adapter replay`: for each recorded conversation, whether its results are still the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from adapter.cli.escaped_output import print_escaped
from adapter.core.text.display_escaping import dump_for_display

if TYPE_CHECKING:
    from adapter.recording.replay_workspace import CommandReplayPolicy


def print_replay_results(
    paths: Sequence[str | Path] | None = None,
    *,
    as_json: bool = False,
    update: bool = False,
    commands: CommandReplayPolicy | None = None,
) -> None:
    """Replay the recordings in ``paths`` and print the results. ``commands``: policy for running the recorded commands
    again, or None to run no commands.

    Exits with 1 if any result differs, and with 2 if a file is not a recording.
    """
    from adapter.core import package_data
    from adapter.recording.replay_files import find_transcripts, replay_file

    files = find_transcripts(
        [Path(path) for path in paths or [package_data.find_data_folder("fixtures") / "transcripts"]]
    )
    if update:
        from adapter.recording.replay import update_file

        for file in files:
            update_file(file, commands)
    replays = [replay_file(file, commands) for file in files]
    if as_json:
        rows = [
            {"name": row.name, "turns": row.turns, "calls": row.calls, "difference": row.difference} for row in replays
        ]
        print(dump_for_display(rows, indent=2))
    else:
        width = max(len(row.name) for row in replays)
        for row in replays:
            outcome = "equal" if row.is_equal else "unreadable" if row.is_unreadable else "DIFFERENT"
            print_escaped(f"{row.name:<{width}}  turns {row.turns:>2}  calls {row.calls:>2}  {outcome}")
        different = [row for row in replays if not row.is_equal]
        print(f"{len(replays) - len(different)} of {len(replays)} equal")
        for row in different:
            print_escaped(f"\n{row.name}: {row.difference}")
    if any(row.is_unreadable for row in replays):
        raise SystemExit(2)
    if not all(row.is_equal for row in replays):
        raise SystemExit(1)
