"""`adapter chat`: a conversation with a model that works in a folder, at the terminal or through pipes."""

from __future__ import annotations

from typing import Annotated

import typer

from adapter.cli.run_options import RunOptions, with_run_options


@with_run_options
def chat(
    go_on: Annotated[bool, typer.Option("--continue", "-c", help="Go on with the last chat of this folder.")] = False,
    resume: Annotated[
        str | None, typer.Option(metavar="ID", help="Go on with this chat; the beginning of its id will do.")
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the chats of this folder, the last one first.")] = False,
    *,
    options: RunOptions,
) -> None:
    """Talk with a model that works in a folder.

    At a terminal /help lists the commands. What is piped in is one message, whole; the answer goes to standard output,
    all else to standard error.
    """
    from adapter.cli.chat_loop import list_chats, start_chat
    from adapter.cli.run_settings import settings_from

    if listing:
        list_chats(options.workspace)
        return
    raise typer.Exit(start_chat(settings_from(options), resume, is_continued=go_on))
