"""Ask the user for approval before using a tools file in the current folder, because its tools run programs.

The approval is saved, and applies until the file's content changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from adapter.cli.agent_console import Console
from adapter.core.errors import UsageError
from adapter.core.program_lookup import find_program
from adapter.core.text.display_escaping import escape_for_display
from adapter.dialects.promptly.tool_files import DEFAULT_BASENAME, find_local_file
from adapter.dialects.promptly.tools_file_entries import ShellTool, parse_entries
from adapter.workspace.approved_content import ApprovedContent
from adapter.workspace.changes.journal import find_state_home

MAX_SHOWN = 20
"""Maximum number of tools listed in the question."""


def confirm_tools_file(basename: str | None, *, is_trusted: bool) -> str:
    """Ask for approval of the tools file in the current folder, and return its approved text.

    Returns "" if there is no such file. The caller must use the returned text, because the file may change after the
    approval. ``is_trusted`` is true if --trust-tools was given, which skips the question. An approval also applies to
    files with the same content in other folders. Raises UsageError if the user has not approved the text.
    """
    file = find_local_file(basename or DEFAULT_BASENAME)
    if not file.is_file():
        return ""
    content = file.read_bytes()
    approved = ApprovedContent(find_state_home(), "tools")
    if approved.holds(content):
        return content.decode("utf-8", "replace")
    if not is_trusted and not _ask_user(file, content):
        raise UsageError(
            f"./{escape_for_display(file.name)} defines tools that run programs, and you have not approved it. Check "
            "it with `adapter tool list`; then pass --trust-tools, approve it at a terminal, or use another folder"
        )
    approved.add(content)
    return content.decode("utf-8", "replace")


def _ask_user(file: Path, content: bytes) -> bool:
    tools = parse_entries(content.decode("utf-8", "replace"), str(file))
    lines = "".join(f"\n   {tool.name}: runs {' '.join(_list_command(tool)).rstrip()}" for tool in tools[:MAX_SHOWN])
    more = f"\n   and {len(tools) - MAX_SHOWN} more" if len(tools) > MAX_SHOWN else ""
    return Console().confirm(f"./{file.name} defines tools that run programs:{lines}{more}", "use them?")


def _list_command(tool: ShellTool) -> Iterator[str]:
    """Yield the name of a tool's program, its arguments with their placeholders, and the program's path."""
    yield tool.executable
    for group in tool.argument_template:
        yield from group
    yield f"({find_program(tool.executable) or 'not installed'})" if "/" not in tool.executable else ""
