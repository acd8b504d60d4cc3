"""`adapter replay`: recorded conversations, run again and compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapter.cli import replay_output
from adapter.cli import run_options as options
from adapter.cli.shared_options import parse_rules
from adapter.core.errors import UsageError

if TYPE_CHECKING:
    from adapter.recording.replay_workspace import CommandReplayPolicy


def replay(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Transcripts or folders; the shipped ones when left out.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
    update: Annotated[bool, typer.Option("--update", help="Write what comes out today into the transcripts.")] = False,
    run_commands: Annotated[
        bool,
        typer.Option("--run-commands", help="Run the recorded commands again, in a sandbox, as you allow them here."),
    ] = False,
    approve: options.Approve = "ask",
    allow: options.Allow = None,
    ask: options.Ask = None,
    deny: options.Deny = None,
) -> None:
    """Run recorded conversations again, offline, and compare. What commands gave is taken from the record."""
    replay_output.print_replay_results(
        paths, as_json=as_json, update=update, commands=_commands(run_commands, approve, allow, ask, deny)
    )


def _commands(
    is_wanted: bool, approve: str, allow: list[str] | None, ask: list[str] | None, deny: list[str] | None
) -> CommandReplayPolicy | None:
    """Raises UsageError where there is no sandbox for them, and for rules about nothing."""
    if not is_wanted:
        if approve != "ask" or allow or ask or deny:
            raise UsageError("--approve, --allow, --ask and --deny are about commands: give --run-commands, too")
        return None
    from adapter.cli.console import Console
    from adapter.recording.replay_workspace import CommandReplayPolicy
    from adapter.workspace.sandbox.sandbox import choose_sandbox

    choose_sandbox("require")
    return CommandReplayPolicy(approve, parse_rules(allow, ask, deny), Console().ask)
