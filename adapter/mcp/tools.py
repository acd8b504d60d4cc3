"""Tools of MCP servers, for any model: each server's tools become tools of the workspace, approved like all others.

A server is a command that speaks MCP on its standard input and output, or an address
that does over HTTP. The connections live in an event loop of their own, so that tools
are called like functions. Source: https://modelcontextprotocol.io/specification, by its own SDK.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import urlsplit

from adapter.operations import Effect
from adapter.tools.definition import Tool, ToolSet
from adapter.tools.functions import performed_by
from adapter.tools.functions import tool as as_tool
from adapter.values.errors import ToolError, UsageError
from adapter.values.events import Json, JsonObject

if TYPE_CHECKING:
    from mcp import Client

START_S, CALL_S, STOP_S = 30.0, 120.0, 10.0
"""How long a server may take to begin, to answer a call, and to end."""

MAX_NAME = 64
"""Of a tool: what OpenAI's interface allows."""

INSTALL = "pip install 'toolcall-adapter[mcp]'"

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class McpServer:
    """Where a server is: a ``command`` with its arguments, or a ``url``. ``environment`` is added to the few
    variables that a server is given; none of the user's keys is among these."""

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None

    def __str__(self) -> str:
        return f"the MCP server {self.name!r} ({self.url or shlex.join(self.command)})"


def servers_of(text: str) -> list[McpServer]:
    """The servers that a user names: a URL, a command line, or a JSON file as Claude Desktop and Cursor have it.

    Raises UsageError for what is none of these.
    """
    if urlsplit(text).scheme in ("http", "https"):
        return [McpServer(_plain(urlsplit(text).hostname or "http"), url=text)]
    if text.endswith(".json"):
        return _servers_in(text)
    try:
        command = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"cannot read the command {text!r}: {error}") from error
    if not command:
        raise UsageError("an MCP server is a command, a URL or a .json file; got nothing")
    return [McpServer(_plain(PurePath(command[0]).stem), command)]


def _servers_in(file: str) -> list[McpServer]:
    expected = 'expected {"mcpServers": {"NAME": {"command": ..., "args": [...], "env": {...}} or {"url": ...}}}'
    try:
        config = json.loads(Path(file).read_bytes())
        named = config["mcpServers"]
        return [_server(name, each) for name, each in named.items()]
    except OSError as error:
        raise UsageError(f"cannot read {file!r}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{file!r} names no MCP servers ({error!r}); {expected}") from error


def _server(name: str, given: Mapping[str, Any]) -> McpServer:
    if "url" in given:
        return McpServer(_plain(name), url=str(given["url"]))
    environment = {key: str(value) for key, value in (given.get("env") or {}).items()}
    command = (str(given["command"]), *map(str, given.get("args") or ()))
    return McpServer(_plain(name), command, environment=environment, cwd=given.get("cwd"))


def _plain(name: str) -> str:
    """As a part of a tool's name."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name) or "mcp"


class McpTools:
    """Connections to ``servers``, from entering the ``with`` block to leaving it; ``tools`` is what they offer.

    ``taken``: tools that are there already. A tool whose name is taken gets its server's name before it:
    ``git__status``. Entering raises UsageError for a server that does not begin, with what it said last.
    ``call_s``: how long a call may take.
    """

    def __init__(self, servers: Sequence[McpServer], taken: ToolSet | None = None, *, call_s: float = CALL_S) -> None:
        self.tools: tuple[Tool, ...] = ()
        self._servers = _distinct(servers)
        self._taken = taken or ToolSet()
        self._call_s = call_s
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            loop = stack.enter_context(_Loop())
            sessions = [stack.enter_context(_Session(server, loop, self._call_s)) for server in self._servers]
            self.tools = tuple(_named([(each, listed) for each in sessions for listed in each.listed], self._taken))
            self._closing = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()


def _distinct(servers: Iterable[McpServer]) -> list[McpServer]:
    """``servers`` under names of their own."""
    named: dict[str, McpServer] = {}
    for server in servers:
        name, number = server.name, 2
        while name in named:
            name, number = f"{server.name}{number}", number + 1
        named[name] = McpServer(name, server.command, server.url, server.environment, server.cwd)
    return list(named.values())


def _named(offered: list[tuple[_Session, Any]], taken: ToolSet) -> Iterator[Tool]:
    """Each tool under a name that no other has and every server takes."""
    names: list[str] = []
    counts = {
        name: sum(_plain(tool.name) == name for _, tool in offered) for name in {_plain(t.name) for _, t in offered}
    }
    for session, listed in offered:
        name = _plain(listed.name)
        if counts[name] > 1 or taken.match(name) is not None:
            name = f"{session.server.name}__{name}"
        name = name[:MAX_NAME]
        while name in names or taken.match(name) is not None:
            name = f"{name[: MAX_NAME - 1]}_"
        names.append(name)
        definition: JsonObject = {
            "name": name,
            "description": listed.description or listed.title or "",
            "parameters": listed.input_schema,
        }
        made = as_tool(definition, session.function(listed.name), effect=_effect(listed.annotations))
        yield performed_by(f"the MCP server {session.server.name!r}", made)


def _effect(hints: Any) -> Effect:
    """By its annotations, as far as they make a tool harmless: anything else is asked for as a command is."""
    if hints is None or not hints.read_only_hint:
        return "execute"
    return "network" if hints.open_world_hint is not False else "read"


class _Loop:
    """An event loop in a thread of its own, for as long as there are connections."""

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mcp", daemon=True)
        self._thread.start()
        return self

    def start(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, function: Callable[[], object]) -> None:
        self._loop.call_soon_threadsafe(function)

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_S)
        if not self._thread.is_alive():
            self._loop.close()


class _Session:
    """One server's connection: begun, used and ended by one task, as the SDK needs it."""

    def __init__(self, server: McpServer, loop: _Loop, call_s: float) -> None:
        self.server = server
        self.listed: list[Any] = []
        self._loop = loop
        self._call_s = call_s
        self._client: Future[Client] = Future()
        self._leave = asyncio.Event()
        self._has_ended = threading.Event()
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115  # till the end

    def __enter__(self) -> Self:
        self._task = self._loop.start(self._live())
        try:
            self._client.result(START_S)
        except BaseException as error:
            reason = f"it did not answer within {START_S:g} s" if isinstance(error, NotYet) else _said(error)
            words = self._last_words()
            self.__exit__()
            if not isinstance(error, Exception):  # Ctrl-C
                raise
            raise UsageError(f"{self.server} does not begin: {reason}.{words}") from error
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call(self._leave.set)
        if not self._client.done() or not self._has_ended.wait(STOP_S):
            self._task.cancel()
            self._has_ended.wait(STOP_S)
        self._log.close()

    def function(self, name: str) -> Callable[..., object]:
        """Calls the tool ``name`` and waits. Raises ToolError when there is no result."""

        def call(**arguments: Json) -> object:
            try:
                client = self._client.result(0)
                return self._loop.start(client.call_tool(name, arguments, self._call_s)).result(self._call_s + 5)
            except Exception as error:
                raise ToolError(self._explained(name, error)) from error

        return call

    def _explained(self, name: str, error: Exception) -> str:
        if self._task.done():
            return f"{self.server} has ended; its tools cannot be used any more.{self._last_words()}"
        said = _said(error)
        if isinstance(error, NotYet | TimeoutError) or "timed out" in said.lower():
            return f"{self.server} did not answer {name} within {self._call_s:g} s. It may still be at work"
        return f"{self.server} could not do {name}: {said}.{self._last_words()}"

    async def _live(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(self._new_client())
                await self._list(client)
                self._client.set_result(client)
                await self._leave.wait()
        except BaseException as error:
            if self._client.done():
                raise
            self._client.set_exception(error if isinstance(error, Exception) else RuntimeError("it was stopped"))
        finally:
            self._has_ended.set()

    def _new_client(self) -> Client:
        from mcp import Client, StdioServerParameters, stdio_client

        if self.server.url:
            return Client(self.server.url, read_timeout_seconds=self._call_s)
        program, *arguments = _accompanied(self.server.command)
        environment = dict(self.server.environment) or None
        started = StdioServerParameters(command=program, args=arguments, env=environment, cwd=self.server.cwd)
        return Client(stdio_client(started, self._log), read_timeout_seconds=self._call_s)

    async def _list(self, client: Client) -> None:
        cursor: str | None = None
        while True:
            page = await client.list_tools(cursor=cursor)
            self.listed += page.tools
            cursor = page.next_cursor
            if not cursor:
                return

    def _last_words(self) -> str:
        """What it wrote to standard error, which else nobody sees."""
        self._log.seek(0)
        lines = [line.strip() for line in self._log.readlines() if line.strip()]
        return f" Its last words: {' | '.join(lines[-3:])[:500]}" if lines else ""


def _accompanied(command: Sequence[str]) -> Sequence[str]:
    """So that nothing of a server is left, whatever it starts and however we end."""
    if os.name != "posix":
        return command
    from adapter.workspace.processes import supervisor

    return (sys.executable, "-I", "-S", "-X", "utf8", supervisor.__file__, "--accompany", *command)


def _said(error: BaseException) -> str:
    """The innermost reason, without a full stop."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return (str(error) or type(error).__name__).rstrip(".")
