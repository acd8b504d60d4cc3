"""`adapter replay`: runs recorded conversations again and compares the results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from adapter.cli import options, replay_output
from adapter.cli.options import parse_rules
from adapter.core.errors import UsageError

if TYPE_CHECKING:
    from adapter.recording.replay_workspace import CommandReplayPolicy


def replay(
    paths: Annotated[
        list[str] | None, typer.Argument(help="Transcripts, recordings or folders.", show_default="shipped transcripts")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
    update: Annotated[bool, typer.Option("--update", help="Write the new results to the transcripts.")] = False,
    run_commands: Annotated[
        bool, typer.Option("--run-commands", help="Run the recorded commands again in a sandbox, with your approval.")
    ] = False,
    approve: options.Approve = "ask",
    allow: options.Allow = None,
    ask: options.Ask = None,
    deny: options.Deny = None,
) -> None:
    """Replay recordings offline and compare the results. Command output comes from the recording."""
    replay_output.print_replay_results(
        paths, as_json=as_json, update=update, commands=_build_command_policy(run_commands, approve, allow, ask, deny)
    )


def _build_command_policy(
    is_enabled: bool, approve: str, allow: list[str] | None, ask: list[str] | None, deny: list[str] | None
) -> CommandReplayPolicy | None:
    """Return the policy for commands, or None if no command runs. Raises UsageError if there is no sandbox, or for
    permission options without --run-commands."""
    if not is_enabled:
        if approve != "ask" or allow or ask or deny:
            raise UsageError("--approve, --allow, --ask and --deny need --run-commands")
        return None
    from adapter.cli.conversation_display import Console
    from adapter.recording.replay_workspace import CommandReplayPolicy
    from adapter.workspace.sandbox.sandbox import choose_sandbox

    choose_sandbox("require")
    return CommandReplayPolicy(approve, parse_rules(allow, ask, deny), Console().ask)
