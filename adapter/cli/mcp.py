"""`adapter mcp`: serves a dialect's tools to an MCP client."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from adapter.cli.malloc_tuning import limit_malloc_arenas
from adapter.cli.options import (
    Allow,
    DialectOption,
    EditsOption,
    EncodingOption,
    option,
    parse_edit_mode,
    parse_rules,
)
from adapter.core.errors import UsageError


def mcp(
    root: Annotated[Path, option("DIR", "Let the tools work in this folder.")] = Path(),
    dialect: DialectOption = "blade",
    approve: Annotated[
        str,
        option(
            "MODE", "Set which actions are allowed: reads (ask or plan), reads and edits (auto-edit) or all (yolo)."
        ),
    ] = "ask",
    allow: Allow = None,
    deny: Annotated[
        list[str] | None,
        option("RULE", "Refuse calls that match RULE, even if another rule or the mode allows them; repeatable."),
    ] = None,
    edits: EditsOption = "auto",
    encoding: EncodingOption = None,
    port: Annotated[
        int | None,
        option(
            "N",
            "Serve over HTTP on this port of 127.0.0.1 instead of standard input and output; 0 picks a free port.",
            min=0,
            max=65535,
        ),
    ] = None,
    api_key: Annotated[
        str | None,
        option("KEY", "Require this key from HTTP clients. By default, a random key is printed as part of the URL."),
    ] = None,
) -> None:
    """Serve a dialect's tools to an MCP client, over stdio or HTTP."""
    from importlib.util import find_spec

    from adapter.integrations.mcp.client import INSTALL
    from adapter.workspace import Workspace
    from adapter.workspace.capabilities.host_capabilities import Host

    if api_key is not None and port is None:
        raise UsageError("--api-key needs --port, because clients over standard input and output send no key")
    if find_spec("mcp") is None:
        raise UsageError(f"`adapter mcp` needs the MCP SDK: {INSTALL}")
    from adapter.integrations.mcp.server import serve_mcp

    limit_malloc_arenas()
    rules, edit_mode = parse_rules(allow, None, deny), parse_edit_mode(edits)
    host = Host(editor=None)
    with Workspace(root, dialect, approve, rules=rules, host=host, edits=edit_mode, encoding=encoding) as workspace:
        serve_mcp(workspace, port, api_key)
