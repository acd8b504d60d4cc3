"""Use the tools of MCP servers as tools of the workspace, subject to its approval rules.

A server is a command that speaks MCP on its standard input and output, or a URL. All connections run in a separate
event loop, so that tools can be called like ordinary functions. The specification is
https://modelcontextprotocol.io/specification, which the official SDK implements.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import ValidationError

from adapter.core.errors import ToolError, UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.install_advice import build_install_command
from adapter.core.validation_errors import explain_validation_error
from adapter.integrations.mcp import line_limiter
from adapter.integrations.mcp.definition_pins import DefinitionPins
from adapter.integrations.mcp.server_config import McpServer, sanitize_name
from adapter.tools.function_tools import tool as as_tool
from adapter.tools.function_tools import with_runner
from adapter.tools.operations import Effect
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet
from adapter.workspace.changes.journal import find_state_home
from adapter.workspace.paths.resolved_path import read_at

if TYPE_CHECKING:
    from mcp import Client

START_S, CALL_S, STOP_S = 30.0, 120.0, 10.0
"""Time limits for starting, calling and stopping a server, in seconds."""
MAX_NAME = 64
"""Maximum length of a tool name in OpenAI's API."""
MAX_TOOLS = 5_000
"""Maximum number of tools per server."""
MAX_PAGES = 200
"""Maximum number of pages in a server's tool list."""
MAX_DEFINITION = 100_000
"""Maximum length of a tool definition as JSON, in characters."""
MAX_DEFINITIONS = 1_000_000
"""Maximum total length of a server's tool definitions, in characters. No context window is larger."""
MAX_MESSAGE = 16 << 20
"""Maximum size of a message from a server, in bytes."""
MAX_RESULT = 1 << 20
"""Maximum length of each text in a result, in characters. A lower limit may apply to the model."""
MAX_LOG_TAIL = 8_192
"""Number of bytes at the end of a server's standard error that are searched for its last lines."""
UNTRUSTED_NOTICE = (
    "a tool from a third-party server, which itself declares the tool's effects; once allowed, it runs without "
    "approval until the session ends"
)
INSTALL = build_install_command("mcp")

_REJECTED = re.compile(r"HTTP 40[045]\b")
"""HTTP statuses after which clients must try the older protocol, according to the specification."""

_T = TypeVar("_T")


class McpTools:
    """Connects to ``servers`` inside a ``with`` block. The ``tools`` attribute contains the tools of all servers.

    A tool with the name of one of ``existing_tools`` gets the server's name as a prefix: ``git__status``. A call takes
    at most ``call_s`` seconds. ``state`` is the folder for the pinned tool definitions, by default in the user's state
    folder. Entering the block raises UsageError, with the last error output of a server, if no server starts.
    """

    def __init__(
        self,
        servers: Sequence[McpServer],
        existing_tools: ToolSet | None = None,
        *,
        call_s: float = CALL_S,
        state: str | None = None,
    ) -> None:
        self.tools: tuple[Tool, ...] = ()
        self.notes: tuple[str, ...] = ()
        """Notes for the user: servers that failed to start, omitted tools, changed definitions."""
        self._servers = _with_distinct_names(servers)
        self._existing_tools = existing_tools or ToolSet()
        self._call_s = call_s
        self._state = Path(state or find_state_home(), "mcp")
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            loop = stack.enter_context(_Loop())
            sessions_started = [_Session(server, loop, self._call_s) for server in self._servers]
            sessions, failures = [], []
            for session in sessions_started:
                session.start()
                stack.push(session.close)
            for session in sessions_started:
                try:
                    session.wait_until_started()
                    sessions.append(session)
                except UsageError as error:
                    failures.append(error)
            if failures and not sessions:
                raise failures[0]
            notes = [str(error) for error in failures] + [note for session in sessions for note in session.notes]
            self.tools = tuple(self._build_tools(sessions, notes))
            self.notes = tuple(notes)
            self._closing = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def _build_tools(self, sessions: Sequence[_Session], notes: list[str]) -> Iterator[Tool]:
        """Yield the tools of all servers, each with the notice that is shown when the user must approve a call. Append
        changed definitions to ``notes``."""
        pins = {id(session): DefinitionPins(session.server.identity, self._state) for session in sessions}
        new_definitions: dict[int, dict[str, Any]] = {}
        for session, listed, name in _assign_names(sessions, self._existing_tools):
            definition: JsonObject = {
                "name": name,
                "description": listed.description or listed.title or "",
                "parameters": listed.input_schema,
            }
            full_definition = listed.model_dump(mode="json", by_alias=True, exclude_none=True)
            pinned = pins[id(session)]
            change = pinned.describe_change(listed.name, full_definition)
            effect = _find_effect(listed.annotations)
            if change:
                notes.append(f"{session.server}: {listed.name}: {change}")
            elif not pinned.is_known:
                new_definitions.setdefault(id(session), {})[listed.name] = full_definition
            notice = change or ("" if session.server.trusted or effect == "execute" else UNTRUSTED_NOTICE)
            function = session.create_function(listed.name)
            if change:
                function = _pin_on_call(function, pinned, listed.name, full_definition)
            yield with_runner(
                f"the MCP server {session.server.name!r}", as_tool(definition, function, effect=effect), notice
            )
        for number, definitions in new_definitions.items():
            pins[number].save(definitions)


def _pin_on_call(
    function: Callable[..., object], pins: DefinitionPins, name: str, definition: Any
) -> Callable[..., object]:
    """Return a function like ``function`` that also pins the tool's definition, because a call means that the user has
    approved it."""

    def call(**arguments: Json) -> object:
        pins.save({name: definition})
        return function(**arguments)

    return call


def _with_distinct_names(servers: Iterable[McpServer]) -> list[McpServer]:
    """Return the servers, renamed if necessary so that all names are different."""
    servers_by_name: dict[str, McpServer] = {}
    for server in servers:
        name, number = server.name, 2
        while name in servers_by_name:
            name, number = f"{server.name}{number}", number + 1
        servers_by_name[name] = replace(server, name=name)
    return list(servers_by_name.values())


def _assign_names(sessions: Sequence[_Session], existing_tools: ToolSet) -> Iterator[tuple[_Session, Any, str]]:
    """Yield each tool with its session and a unique name that is valid for every model server."""
    names: set[str] = set()
    offered = [(session, listed) for session in sessions for listed in session.listed]
    counts = Counter(sanitize_name(listed.name) for _, listed in offered)
    for session, listed in offered:
        name = sanitize_name(listed.name)
        if counts[name] > 1 or existing_tools.has_name(name):
            name = f"{session.server.name}__{name}"
        name, number = name[:MAX_NAME], 2
        base_name = name
        while name in names or existing_tools.has_name(name):
            name = f"{base_name[: MAX_NAME - 1 - len(str(number))]}_{number}"
            number += 1
        names.add(name)
        yield session, listed, name


def _find_effect(hints: Any) -> Effect:
    """Return the effect that a tool's annotations claim; without such a claim, ``execute``, which needs approval."""
    if hints is None or not hints.read_only_hint:
        return "execute"
    return "network" if hints.open_world_hint is not False else "read"


class _Loop:
    """An event loop in a separate thread, which runs as long as there are connections."""

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
    """The connection to a server. One task opens, uses and closes it, as the SDK requires."""

    def __init__(self, server: McpServer, loop: _Loop, call_s: float) -> None:
        self.server = server
        self.listed: list[Any] = []
        self.notes: list[str] = []
        self._defined, self._is_full = 0, False
        self._loop = loop
        self._call_s = call_s
        self._client: Future[Client] = Future()
        self._stop_requested = asyncio.Event()
        self._has_ended = threading.Event()
        logging.getLogger("mcp").setLevel(logging.CRITICAL)  # the SDK logs a traceback for each line that is not JSON
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115  # open until close()

    def start(self) -> None:
        self._task = self._loop.start(self._run())

    def wait_until_started(self) -> None:
        """Wait until the server is connected. Raises UsageError, with the server's last error output, if it fails."""
        try:
            self._client.result(START_S)
        except Exception as error:
            reason = (
                f"it did not answer within {START_S:g} s"
                if isinstance(error, FutureTimeoutError)
                else _describe_error(error)
            )
            stderr_note = self._get_recent_stderr()
            self.close()
            raise UsageError(f"{self.server} failed to start: {reason}.{stderr_note}") from error

    def close(self, *_: object) -> None:
        if self._log.closed:
            return
        self._loop.call(self._stop_requested.set)
        if not self._client.done() or not self._has_ended.wait(STOP_S):
            self._task.cancel()
            self._has_ended.wait(STOP_S)
        self._log.close()

    def create_function(self, name: str) -> Callable[..., object]:
        """Return a function that calls the tool ``name`` and waits for its result. It raises ToolError on failure."""

        def call(**arguments: Json) -> object:
            try:
                client = self._client.result(0)
                result = self._loop.start(client.call_tool(name, arguments, self._call_s)).result(self._call_s + 5)
            except Exception as error:
                raise ToolError(self._explain_failure(name, error)) from error
            return _truncate_texts(result)

        return call

    def _explain_failure(self, name: str, error: Exception) -> str:
        if self._task.done():
            return f"{self.server} has ended; its tools can no longer be used.{self._get_recent_stderr()}"
        reason = _describe_error(error)
        if isinstance(error, FutureTimeoutError | TimeoutError) or "timed out" in reason.lower():
            return f"{self.server} did not answer {name} within {self._call_s:g} s. The call may still be running."
        return f"{self.server} failed to run {name}: {reason}.{self._get_recent_stderr()}"

    async def _run(self) -> None:
        try:
            await self._connect_by_either_protocol()
        except BaseException as error:
            if self._client.done():
                raise
            self._client.set_exception(error if isinstance(error, Exception) else RuntimeError("it was stopped"))
        finally:
            self._has_ended.set()

    async def _connect_by_either_protocol(self) -> None:
        """Connect. If an HTTP server rejects the first request, try the older protocol."""
        try:
            await self._connect(is_sse=self.server.is_sse)
        except Exception as error:
            is_known = not self.server.url or self.server.is_sse or self._client.done()
            if is_known or not _REJECTED.search(self._get_recent_stderr()):
                raise
            try:
                await self._connect(is_sse=True)
            except Exception as later:  # noqa: BLE001  # without the older protocol, the first error has the reason
                raise (later if self._client.done() else error) from None

    async def _connect(self, *, is_sse: bool) -> None:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(self._create_client(is_sse=is_sse))
            await self._list(client)
            self._client.set_result(client)
            await self._stop_requested.wait()

    def _create_client(self, *, is_sse: bool) -> Client:
        from mcp import Client, StdioServerParameters, stdio_client

        if self.server.url:
            from adapter.integrations.mcp.http_transport import create_limited_http_client

            transport = create_limited_http_client(
                self.server.url, self.server.headers, MAX_MESSAGE, self._call_s, self._log, is_sse=is_sse
            )
            return Client(transport, read_timeout_seconds=self._call_s)
        program, *arguments = _wrap_in_supervisor(_wrap_in_limiter(self.server.command))
        environment = dict(self.server.environment) or None
        parameters = StdioServerParameters(command=program, args=arguments, env=environment, cwd=self.server.cwd)
        return Client(stdio_client(parameters, self._log), read_timeout_seconds=self._call_s)

    async def _list(self, client: Client) -> None:
        cursor: str | None = None
        seen: set[str | None] = set()
        while cursor not in seen and len(seen) < MAX_PAGES:
            seen.add(cursor)
            page = await client.list_tools(cursor=cursor)
            for listed in filter(lambda each: self.server.uses_tool(each.name), page.tools):
                self._add_tool(listed)
            cursor = page.next_cursor
            if not cursor or self._is_full:
                break
        if cursor or self._is_full:
            self.notes.append(
                f"{self.server} has more tools than can be used; using the first {len(self.listed):,} "
                f"(limits: {MAX_TOOLS:,} tools, {MAX_PAGES} pages, {MAX_DEFINITIONS:,} characters of definitions)"
            )

    def _add_tool(self, listed: Any) -> None:
        size = len(listed.model_dump_json())
        if size <= MAX_DEFINITION:
            self._defined += size
            self._is_full = self._is_full or len(self.listed) == MAX_TOOLS or self._defined > MAX_DEFINITIONS
            if not self._is_full:
                self.listed.append(listed)
            return
        self.notes.append(
            f"{self.server}: the tool {listed.name[:MAX_NAME]!r} is omitted: its definition is too long "
            f"({size:,} characters, limit {MAX_DEFINITION:,})"
        )

    def _get_recent_stderr(self) -> str:
        """Return the last lines of the server's standard error, for error messages."""
        size = os.fstat(self._log.fileno()).st_size
        written = read_at(self._log.fileno(), MAX_LOG_TAIL, max(size - MAX_LOG_TAIL, 0)).decode("utf-8", "replace")
        lines = [line.strip() for line in written.splitlines() if line.strip()]
        return f" Its last output: {' | '.join(lines[-3:])[:500]}" if lines else ""


def _wrap_in_supervisor(command: Sequence[str]) -> Sequence[str]:
    """Wrap a command in the supervisor, which ends the server and its child processes even if this process crashes."""
    if os.name != "posix":
        return command
    from adapter.workspace.sandbox import supervisor

    return (*supervisor.COMMAND, "--accompany", *command)


def _wrap_in_limiter(command: Sequence[str]) -> Sequence[str]:
    """Wrap a command in the line limiter, which limits the size of a message."""
    return (sys.executable, "-I", "-S", "-X", "utf8", line_limiter.__file__, str(MAX_MESSAGE), *command)


def _truncate_texts(result: Any) -> Any:
    """Truncate long text blocks in ``result``, and return it."""
    for block in result.content:
        text = getattr(block, "text", None)
        if isinstance(text, str) and len(text) > MAX_RESULT:
            block.text = f"{text[:MAX_RESULT]}\n({len(text) - MAX_RESULT:,} more characters were omitted)"
    return result


def _describe_error(error: BaseException) -> str:
    """Return the message of the innermost error in a group, without a final period."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ValidationError):
        return f"its answer is invalid: {explain_validation_error(error)}"
    message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return re.sub(r"^\[Errno -?\d+\] ", "", message or type(error).__name__).rstrip(".")
