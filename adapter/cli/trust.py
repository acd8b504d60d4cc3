"""Asks the user before a tools file in the current folder is used, because its tools run programs. The user is asked
once for each content of the file."""

from __future__ import annotations

import hashlib
from pathlib import Path

from adapter.cli.conversation_display import Console
from adapter.core.errors import UsageError
from adapter.core.text.display_escaping import escape_for_display
from adapter.dialects.promptly.tool_entry import parse_entries
from adapter.dialects.promptly.tool_files import DEFAULT_BASENAME, local_file
from adapter.workspace.changes.journal import state_home

MAX_SHOWN = 20
"""Maximum number of tools listed in the question."""


def confirm_tools_file(basename: str | None, *, is_trusted: bool) -> None:
    """Raise UsageError if the current folder has a tools file that the user has not approved.

    ``is_trusted``: whether --trust-tools was given. An approval applies to the content of the file, in any folder.
    """
    file = local_file(basename or DEFAULT_BASENAME)
    if not file.is_file():
        return
    content = file.read_bytes()
    known = Path(state_home(), "trusted-tools")
    digest = hashlib.sha256(content).hexdigest()
    if digest in (known.read_text(encoding="utf-8").split() if known.is_file() else ()):
        return
    if not is_trusted and not _ask_user(file, content):
        raise UsageError(
            f"./{escape_for_display(file.name)} defines tools that run programs, and you have not approved it: check "
            "it with `adapter tool list`, then give --trust-tools, approve it at a terminal, or use another folder"
        )
    known.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with known.open("a", encoding="utf-8") as opened:
        opened.write(f"{digest}\n")


def _ask_user(file: Path, content: bytes) -> bool:
    tools = parse_entries(content.decode("utf-8", "replace"), str(file))
    lines = "".join(f"\n   {tool.name}: runs {tool.executable}" for tool in tools[:MAX_SHOWN])
    more = f"\n   and {len(tools) - MAX_SHOWN} more" if len(tools) > MAX_SHOWN else ""
    return Console().confirm(f"./{file.name} defines tools that run programs:{lines}{more}", "use them?")
