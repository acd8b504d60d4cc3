"""`adapter chat`: a conversation with a model that works in a folder."""

from __future__ import annotations

from typing import Annotated

import typer

from adapter.cli.options import flag, option, takes_settings
from adapter.cli.run_settings import RunSettings


@takes_settings(RunSettings)
def chat(
    settings: RunSettings,
    is_continued: Annotated[bool, flag("Continue the last chat in this folder.", "--continue", "-c")] = False,
    resume: Annotated[str | None, option("ID", "Continue the chat whose id starts with ID.")] = None,
    list_: Annotated[bool, flag("List the saved chats in this folder, newest first, and exit.", "--list")] = False,
) -> None:
    """Chat with a model that works in a folder.

    At a terminal, /help lists the commands. Piped input is sent as one message; the answer goes to standard output and
    everything else to standard error.
    """
    from adapter.cli.chat_loop import list_chats, start_chat

    if list_:
        list_chats(settings.workspace)
        return
    raise typer.Exit(start_chat(settings, resume, is_continued=is_continued))
