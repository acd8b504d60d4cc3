"""Where MCP servers are, as users name them: a command, a URL, or a file in which clients keep theirs."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit

from adapter.core.arguments import reason
from adapter.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class McpServer:
    """Where a server is: a ``command`` with its arguments, or a ``url``. ``environment`` is added to the few
    variables that a server is given; none of the user's keys is among these. ``trusted``: its word counts that a tool
    only reads; of other servers the first call of each tool is asked for."""

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    trusted: bool = False

    def __str__(self) -> str:
        return f"the MCP server {self.name!r} ({self.url or shlex.join(self.command)})"


def parse_servers(text: str) -> list[McpServer]:
    """The servers that a user names: a URL, a command line, or a JSON file as Claude Desktop and Cursor have it.

    Raises UsageError for what is none of these.
    """
    if text.startswith(("http://", "https://")):
        try:
            parts = urlsplit(text)
            is_address = bool(parts.hostname) and parts.port != 0
        except ValueError:  # an unclosed bracket, a port that is none
            is_address = False
        if not is_address:
            raise UsageError(f"{text!r} is not the URL of an MCP server; expected one like http://127.0.0.1:8000/mcp")
        return [McpServer(sanitize_name(parts.hostname or "http"), url=text)]
    if text.endswith(".json"):
        return _servers_in(text)
    try:
        command = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"cannot read the command {text!r}: {error}") from error
    if not command:
        raise UsageError("an MCP server is a command, a URL or a .json file; got nothing")
    return [McpServer(sanitize_name(PurePath(command[0]).stem), command)]


def _servers_in(file: str) -> list[McpServer]:
    expected = 'expected {"mcpServers": {"NAME": {"command": ..., "args": [...], "env": {...}} or {"url": ...}}}'
    try:
        config = json.loads(Path(file).read_bytes())
        named = config["mcpServers"]
        return [_server(name, each) for name, each in named.items()]
    except OSError as error:
        raise UsageError(f"cannot read {file!r}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        match error:
            case KeyError():
                why = f"{error} is missing"
            case ValueError():
                why = reason(error)
            case _:
                why = "it has another shape"
        raise UsageError(f"{file!r} names no MCP servers ({why}); {expected}") from error


def _server(name: str, given: Mapping[str, Any]) -> McpServer:
    if "url" in given:
        return McpServer(sanitize_name(name), url=str(given["url"]))
    environment = {key: str(value) for key, value in (given.get("env") or {}).items()}
    command = (str(given["command"]), *map(str, given.get("args") or ()))
    return McpServer(sanitize_name(name), command, environment=environment, cwd=given.get("cwd"))


def sanitize_name(name: str) -> str:
    """As a part of a tool's name."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name) or "mcp"
