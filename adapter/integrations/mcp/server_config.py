"""Parse the configuration of MCP servers: a command, a URL, or the JSON configuration file of an MCP client."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit

from adapter.core.argument_checks import explain_read_error
from adapter.core.bounded_parsing import parse_json_with_comments
from adapter.core.errors import UsageError
from adapter.core.text.redaction import Redactor


@dataclass(frozen=True, slots=True)
class McpServer:
    """The configuration of an MCP server: a ``command`` with its arguments, or a ``url``.

    ``environment`` has variables for the server, in addition to a few safe ones; the user's API keys are not passed on.
    If the server is ``trusted``, its claims that a tool only reads are believed; otherwise, the first call of each tool
    needs approval.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    is_sse: bool = False
    """True if the URL uses the older protocol with server-sent events. If False, the older protocol is tried only after
    the server rejects the current one."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of all requests to the URL, such as ``Authorization``."""
    environment: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    trusted: bool = False
    included: tuple[str, ...] = ("*",)
    excluded: tuple[str, ...] = ()
    """Names of the tools to use, and of the tools to omit. A name may contain ``*``."""

    def uses_tool(self, name: str) -> bool:
        included, excluded = (
            any(fnmatchcase(name, each) for each in names) for names in (self.included, self.excluded)
        )
        return included and not excluded

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
    """Return the servers that ``text`` names: a URL, a command line, or a JSON file in the format of Claude Desktop.

    Raises UsageError if it is invalid.
    """
    if text.startswith(("http://", "https://")):
        try:
            parts = urlsplit(text)
            is_valid = bool(parts.hostname) and parts.port != 0
        except ValueError:  # an unclosed bracket or an invalid port
            is_valid = False
        if not is_valid:
            raise UsageError(f"{text!r} is not the URL of an MCP server; expected one like http://127.0.0.1:8000/mcp")
        return [McpServer(sanitize_name(parts.hostname or "http"), url=text)]
    if text.endswith(".json") and (Path(text).exists() or not re.search(r"\s", text)):  # not `server --config a.json`
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
        file_content = parse_json_with_comments(Path(file).read_bytes())
        servers = next(filter(None, map(file_content.get, _SERVER_KEYS)), None) or file_content["mcpServers"]
        servers = servers.get("servers") or servers  # VS Code's settings.json has them in "mcp"
        return [
            _parse_server(name, server)
            for name, server in servers.items()
            if not server.get("disabled") and server.get("enabled") is not False
        ]
    except UsageError:
        raise
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
    if "envFile" in config:
        raise UsageError(f"MCP server {name!r}: envFile is not supported; put its variables in the server's env")
    lists = (config.get(key) for key in ("includeTools", "tools"))
    included = next((each for each in lists if each is not None), ["*"])  # an empty list means no tools
    excluded = [each for key in ("excludeTools", "disabledTools") for each in _to_list(config.get(key))]
    tools: dict[str, Any] = {"included": tuple(_to_list(included)), "excluded": tuple(excluded)}
    name = sanitize_name(name)
    if url := next((config[key] for key in _URL_KEYS if key in config), None):
        is_sse = "sse" in (config.get("type"), config.get("transport"))
        headers = _expand_values(config.get("headers"))
        return McpServer(name, url=_expand(url), is_sse=is_sse, headers=headers, **tools)
    program, arguments, cwd = config["command"], _to_list(config.get("args")), config.get("cwd")
    command = tuple(map(_expand, [*(program if isinstance(program, list) else [program]), *arguments]))
    environment = _expand_values(config.get("env") or config.get("environment"))
    return McpServer(name, command, environment=environment, cwd=cwd and _expand(cwd), **tools)


_SERVER_KEYS = ("mcpServers", "servers", "mcp", "context_servers")
"""Names of the key for the servers: the usual name, and then the names in VS Code, opencode and Zed."""
_URL_KEYS = ("url", "serverUrl", "httpUrl")
"""Names of the key for the URL: the usual name, and then the names in Windsurf and Gemini CLI."""
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}|\$\{\w+:\w[^}]*\}")


def _to_list(value: object) -> list[Any]:
    """Return a list from the file, or [] for null. Raises TypeError for any other value."""
    if value is not None and not isinstance(value, list):
        raise TypeError
    return value or []


def _expand_values(values: Mapping[str, object] | None) -> dict[str, str]:
    return {key: _expand(value) for key, value in (values or {}).items()}


def _expand(value: object) -> str:
    """Replace ``${NAME}``, ``${env:NAME}`` and ``${NAME:-default}``. Raises UsageError if the variable is not set, or
    for another kind of variable, such as VS Code's ``${input:NAME}``."""

    def look_up(match: re.Match[str]) -> str:
        if match[1] is None:
            raise UsageError(f"{match[0]} is not supported in an MCP configuration file; use ${{env:NAME}} instead")
        value = os.environ.get(match[1], match[2])
        if value is None:
            raise UsageError(
                f"the MCP configuration file uses the environment variable {match[1]}, which is not set; "
                f"set it, or write ${{{match[1]}:-DEFAULT}}"
            )
        return value

    return _VARIABLE.sub(look_up, str(value))


def sanitize_name(name: str) -> str:
    """Replace the characters in ``name`` that a tool name must not contain."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name) or "mcp"
