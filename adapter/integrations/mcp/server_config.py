"""Parse the configuration of MCP servers: a command, a URL, or the JSON configuration file of an MCP client."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit

from adapter.core.argument_checks import explain_read_error
from adapter.core.bounded_parsing import parse_json
from adapter.core.errors import UsageError
from adapter.core.text.redaction import Redactor


@dataclass(frozen=True, slots=True)
class McpServer:
    """A server: a ``command`` with its arguments, or a ``url``.

    ``environment`` has variables in addition to a few safe ones, which do not include the user's keys. If the server is
    ``trusted``, its read-only hints are believed; otherwise, the first call to each of its tools needs approval.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    trusted: bool = False

    @property
    def identity(self) -> str:
        """The server's name and complete address or command, which may contain keys."""
        return f"the MCP server {self.name!r} ({self.url or shlex.join(self.command)})"

    def __str__(self) -> str:
        """Describe the server without keys, for messages to the user and the model."""
        shown = re.sub(r"://[^/@]*@|[?#].*", lambda match: "://" if match[0][0] == ":" else "", self.url)
        command = Redactor({}, self.environment.values()).redact(shlex.join(self.command))
        return f"the MCP server {self.name!r} ({shown or command})"


def parse_servers(text: str) -> list[McpServer]:
    """Parse a URL, a command line or the path of a JSON file as in Claude Desktop. Raises UsageError if invalid."""
    if text.startswith(("http://", "https://")):
        try:
            parts = urlsplit(text)
            is_valid = bool(parts.hostname) and parts.port != 0
        except ValueError:  # an unclosed bracket or an invalid port
            is_valid = False
        if not is_valid:
            raise UsageError(f"{text!r} is not the URL of an MCP server; expected one like http://127.0.0.1:8000/mcp")
        return [McpServer(sanitize_name(parts.hostname or "http"), url=text)]
    if text.endswith(".json"):
        return _load_servers(text)
    try:
        command = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"cannot read the command {text!r}: {error}") from error
    if not command:
        raise UsageError("an MCP server must be a command, a URL or a .json file; got an empty string")
    return [McpServer(sanitize_name(PurePath(command[0]).stem), command)]


def _load_servers(file: str) -> list[McpServer]:
    expected = 'expected {"mcpServers": {"NAME": {"command": ..., "args": [...], "env": {...}} or {"url": ...}}}'
    try:
        file_content = parse_json(Path(file).read_bytes())
        servers = file_content["mcpServers"]
        return [_parse_server(name, server) for name, server in servers.items()]
    except OSError as error:
        raise UsageError(f"cannot read {file!r}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        match error:
            case KeyError():
                problem = f"{error} is missing"
            case ValueError():
                problem = explain_read_error(error)
            case _:
                problem = "unexpected structure"
        raise UsageError(f"{file!r} has no valid MCP servers ({problem}); {expected}") from error


def _parse_server(name: str, config: Mapping[str, Any]) -> McpServer:
    if "url" in config:
        return McpServer(sanitize_name(name), url=str(config["url"]))
    environment = {key: str(value) for key, value in (config.get("env") or {}).items()}
    command = (str(config["command"]), *map(str, config.get("args") or ()))
    return McpServer(sanitize_name(name), command, environment=environment, cwd=config.get("cwd"))


def sanitize_name(name: str) -> str:
    """Replace the characters in ``name`` that a tool name must not contain."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name) or "mcp"
