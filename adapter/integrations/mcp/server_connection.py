"""Connect to an MCP server, list its tools and call them.

A connection stays open in an event loop of a separate thread, so that other threads can call the tools like ordinary
functions. The official SDK implements the protocol.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import ValidationError

from adapter.core.errors import ToolError, UsageError
from adapter.core.events import Json
from adapter.core.validation_errors import explain_validation_error
from adapter.integrations.mcp import line_limiter
from adapter.integrations.mcp.server_config import McpServer
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

_REJECTED = re.compile(r"HTTP 40[045]\b")
"""HTTP statuses after which clients must try the older protocol, according to the specification."""

_T = TypeVar("_T")


class ConnectionLoop:
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


class ServerConnection:
    """The connection to a server. One task opens, uses and closes it, as the SDK requires."""

    def __init__(self, server: McpServer, loop: ConnectionLoop, call_s: float) -> None:
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
