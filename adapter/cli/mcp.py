"""`adapter mcp`: a dialect's tools for an MCP client."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adapter.cli.malloc_tuning import limit_malloc_arenas
from adapter.cli.shared_options import EditsOption, EncodingOption, parse_edit_mode, parse_rules
from adapter.core.errors import UsageError


def mcp(
    root: Annotated[Path, typer.Option(help="The folder that the tools work in.")] = Path(),
    dialect: Annotated[str, typer.Option(help="The tool set.")] = "blade",
    approve: Annotated[
        str,
        typer.Option(
            help="What may happen, as nobody can be asked: ask or plan (nothing but reading), auto-edit or yolo."
        ),
    ] = "ask",
    allow: Annotated[list[str] | None, typer.Option(help="Allow this all the same: 'run_command(git status)'.")] = None,
    deny: Annotated[list[str] | None, typer.Option(help="Never do this, whatever else is allowed.")] = None,
    edits: EditsOption = "auto",
    encoding: EncodingOption = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve over HTTP on this port of 127.0.0.1; 0 takes a free one."),
    ] = None,
) -> None:
    """Serve the tools of a dialect to an MCP client, over standard input and output."""
    from importlib.util import find_spec

    from adapter.integrations.mcp.client import INSTALL
    from adapter.workspace import Workspace
    from adapter.workspace.capabilities.host import Host

    if find_spec("mcp") is None:
        raise UsageError(f"this needs the MCP SDK: {INSTALL}")
    from adapter.integrations.mcp.server import serve_mcp

    limit_malloc_arenas()
    rules, exactness = parse_rules(allow, None, deny), parse_edit_mode(edits)
    host = Host(editor=None)
    with Workspace(root, dialect, approve, rules=rules, host=host, edits=exactness, encoding=encoding) as workspace:
        serve_mcp(workspace, port)
