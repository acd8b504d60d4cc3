"""`adapter mcp`: serves a dialect's tools to an MCP client."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adapter.cli.malloc_tuning import limit_malloc_arenas
from adapter.cli.options import Allow, DialectOption, EditsOption, EncodingOption, parse_edit_mode, parse_rules
from adapter.core.errors import UsageError


def mcp(
    root: Annotated[Path, typer.Option(metavar="DIR", help="Folder that the tools work in.")] = Path(),
    dialect: DialectOption = "blade",
    approve: Annotated[
        str,
        typer.Option(
            metavar="MODE",
            help="Actions that are allowed: reads (ask, plan), reads and edits (auto-edit) or all (yolo).",
        ),
    ] = "ask",
    allow: Allow = None,
    deny: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="Refuse calls that match RULE, even if another rule or the mode allows them; repeatable.",
        ),
    ] = None,
    edits: EditsOption = "auto",
    encoding: EncodingOption = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, max=65535, help="Serve over HTTP on this port of 127.0.0.1; 0 picks a free one."
        ),
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="API key for HTTP clients. By default, a random key is generated and printed in the URL.",
        ),
    ] = None,
) -> None:
    """Serve a dialect's tools to an MCP client, over stdio or HTTP."""
    from importlib.util import find_spec

    from adapter.integrations.mcp.client import INSTALL
    from adapter.workspace import Workspace
    from adapter.workspace.capabilities.host import Host

    if find_spec("mcp") is None:
        raise UsageError(f"`adapter mcp` needs the MCP SDK: {INSTALL}")
    from adapter.integrations.mcp.server import serve_mcp

    limit_malloc_arenas()
    rules, edit_mode = parse_rules(allow, None, deny), parse_edit_mode(edits)
    host = Host(editor=None)
    with Workspace(root, dialect, approve, rules=rules, host=host, edits=edit_mode, encoding=encoding) as workspace:
        serve_mcp(workspace, port, api_key)
