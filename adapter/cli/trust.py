"""Files in the current folder that are code of somebody's: used when the user has said so, once for each content."""

from __future__ import annotations

import hashlib
from pathlib import Path

from adapter.cli.console import Console
from adapter.core.errors import UsageError
from adapter.core.text.display_escaping import escape_for_display
from adapter.dialects.promptly.tool_entry import parse_entries
from adapter.dialects.promptly.tool_files import DEFAULT_BASENAME, local_file
from adapter.workspace.changes.journal import state_home

MAX_SHOWN = 20
"""Tools that the question names."""


def confirm_tools_file(basename: str | None, *, is_trusted: bool) -> None:
    """Raises UsageError where the current folder's tools file is there and the user does not want it.

    ``is_trusted``: as the command line says. An answer holds for this content, wherever it lies.
    """
    file = local_file(basename or DEFAULT_BASENAME)
    if not file.is_file():
        return
    content = file.read_bytes()
    known = Path(state_home(), "trusted-tools")
    digest = hashlib.sha256(content).hexdigest()
    if digest in (known.read_text(encoding="utf-8").split() if known.is_file() else ()):
        return
    if not is_trusted and not _wants(file, content):
        raise UsageError(
            f"./{escape_for_display(file.name)} here defines tools that run programs, and you have not allowed this file: look at "
            "it with `adapter tool list`, then give --trust-tools, say yes at a terminal, or start in another folder"
        )
    known.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with known.open("a", encoding="utf-8") as opened:
        opened.write(f"{digest}\n")


def _wants(file: Path, content: bytes) -> bool:
    console = Console()
    tools = parse_entries(content.decode("utf-8", "replace"), str(file))
    named = "".join(f"\n   {tool.name}: runs {tool.executable}" for tool in tools[:MAX_SHOWN])
    more = f"\n   and {len(tools) - MAX_SHOWN} more" if len(tools) > MAX_SHOWN else ""
    return console.confirm(f"./{file.name} defines tools that run programs:{named}{more}", "use them?")
