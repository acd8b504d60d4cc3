"""`adapter replay`: runs recorded conversations again and compares the results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapter.cli import options
from adapter.cli.escaped_output import print_escaped
from adapter.cli.options import flag, parse_rules
from adapter.core.errors import UsageError
from adapter.core.text.display_escaping import dump_for_display

if TYPE_CHECKING:
    from adapter.recording.replay_result import ReplayResult
    from adapter.recording.replay_workspace import CommandReplayPolicy


def replay(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Replay these transcripts, recordings or folders. Default: the transcripts shipped with this program."
        ),
    ] = None,
    as_json: Annotated[bool, flag("Print the results as a JSON list.", "--json")] = False,
    update: Annotated[
        bool, flag("Replace the recorded results in the transcripts with the new ones.", "--update")
    ] = False,
    run_commands: Annotated[
        bool, flag("Run the recorded commands again, in a sandbox and with your approval.", "--run-commands")
    ] = False,
    approve: options.Approve = "ask",
    allow: options.Allow = None,
    ask: options.Ask = None,
    deny: options.Deny = None,
) -> None:
    """Replay recordings offline and compare the results. The output of commands comes from the recording."""
    from adapter.core import package_data
    from adapter.recording.file_replay import find_transcripts, replay_file

    commands = _build_command_policy(run_commands, approve, allow, ask, deny)
    shipped = package_data.find_data_directory("fixtures") / "transcripts"
    files = find_transcripts(paths or [shipped])
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
        _print_results(replays)
    if any(row.is_unreadable for row in replays):
        raise typer.Exit(2)
    if not all(row.is_equal for row in replays):
        raise typer.Exit(1)


def _print_results(replays: Sequence[ReplayResult]) -> None:
    width = max(len(row.name) for row in replays)
    for row in replays:
        outcome = "equal" if row.is_equal else "unreadable" if row.is_unreadable else "DIFFERENT"
        print_escaped(f"{row.name:<{width}}  turns {row.turns:>2}  calls {row.calls:>2}  {outcome}")
    different = [row for row in replays if not row.is_equal]
    print(f"{len(replays) - len(different)} of {len(replays)} equal")
    for row in different:
        print_escaped(f"\n{row.name}: {row.difference}")


def _build_command_policy(
    is_enabled: bool, approve: str, allow: list[str] | None, ask: list[str] | None, deny: list[str] | None
) -> CommandReplayPolicy | None:
    """Return the policy for commands, or None without --run-commands. Raises UsageError if there is no sandbox, or if
    permission options are given without --run-commands."""
    if not is_enabled:
        if approve != "ask" or allow or ask or deny:
            raise UsageError("--approve, --allow, --ask and --deny need --run-commands")
        return None
    from adapter.cli.agent_console import Console
    from adapter.recording.replay_workspace import CommandReplayPolicy
    from adapter.workspace.sandbox.sandbox import choose_sandbox

    choose_sandbox("require")
    return CommandReplayPolicy(approve, parse_rules(allow, ask, deny), Console().ask)
