"""Tools of MCP servers, for any model: each server's tools become tools of the workspace, approved like all others.

A server is a command that speaks MCP on its standard input and output, or an address
that does over HTTP. The connections live in an event loop of their own, so that tools
are called like functions. Source: https://modelcontextprotocol.io/specification, by its own SDK.
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
from concurrent.futures import TimeoutError as NotYet
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from adapter.core.errors import ToolError, UsageError
from adapter.core.events import Json, JsonObject
from adapter.integrations.mcp import line_limiter
from adapter.integrations.mcp.definition_pins import DefinitionPins
from adapter.integrations.mcp.server_config import McpServer, sanitize_name
from adapter.tools.function_tools import tool as as_tool
from adapter.tools.function_tools import with_runner
from adapter.tools.operations import Effect
from adapter.tools.tool import Tool, ToolSet
from adapter.workspace.changes.journal import state_home

if TYPE_CHECKING:
    from mcp import Client

START_S, CALL_S, STOP_S = 30.0, 120.0, 10.0
"""How long a server may take to begin, to answer a call, and to end."""

MAX_NAME = 64
"""Of a tool: what OpenAI's interface allows."""

MAX_TOOLS = 5_000
"""Of one server."""
MAX_PAGES = 200
"""In which a server lists them."""
MAX_DEFINITION = 100_000
"""Characters of a tool's description and parameters, as JSON."""
MAX_MESSAGE = 16 << 20
"""Bytes of one message of a server."""
MAX_RESULT = 1 << 20
"""Characters of each text in a result; the model is shown less."""

MAX_WORDS = 8_192
"""Bytes at the end of what a server wrote to standard error in which its last words are sought."""

FOREIGN = (
    "a tool of somebody else's server, which says itself what it does: allowed once, it runs unasked until the end"
)
INSTALL = "pip install 'toolcall-adapter[mcp]'"

_T = TypeVar("_T")


class McpTools:
    """Connections to ``servers``, from entering the ``with`` block to leaving it; ``tools`` is what they offer.

    ``taken``: tools that are there already. A tool whose name is taken gets its server's name before it:
    ``git__status``. Entering raises UsageError for a server that does not begin, with what it said last.
    ``call_s``: how long a call may take.
    """

    def __init__(
        self,
        servers: Sequence[McpServer],
        taken: ToolSet | None = None,
        *,
        call_s: float = CALL_S,
        state: str | None = None,
    ) -> None:
        self.tools: tuple[Tool, ...] = ()
        self.notes: tuple[str, ...] = ()
        """For people: servers that did not begin, tools that were left out, definitions that changed."""
        self._servers = _distinct(servers)
        self._taken = taken or ToolSet()
        self._call_s = call_s
        self._state = Path(state or state_home(), "mcp")
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            loop = stack.enter_context(_Loop())
            begun = [_Session(server, loop, self._call_s) for server in self._servers]
            sessions, failures = [], []
            for each in begun:
                each.begin()
                stack.push(each.close)
            for each in begun:
                try:
                    each.wait_until_begun()
                    sessions.append(each)
                except UsageError as error:
                    failures.append(error)
            if failures and not sessions:
                raise failures[0]
            notes = [str(error) for error in failures] + [note for each in sessions for note in each.notes]
            self.tools = tuple(self._made(sessions, notes))
            self.notes = tuple(notes)
            self._closing = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def _made(self, sessions: Sequence[_Session], notes: list[str]) -> Iterator[Tool]:
        """The tools of all servers, each with what whoever approves it has to know."""
        pins = {id(each): DefinitionPins(str(each.server), self._state) for each in sessions}
        first: dict[int, dict[str, Any]] = {}
        for session, listed, name in _named(sessions, self._taken):
            definition: JsonObject = {
                "name": name,
                "description": listed.description or listed.title or "",
                "parameters": listed.input_schema,
            }
            whole = listed.model_dump(mode="json", by_alias=True, exclude_none=True)
            pinned = pins[id(session)]
            change = pinned.describe_change(listed.name, whole)
            effect = _effect(listed.annotations)
            if change:
                notes.append(f"{session.server}: {listed.name}: {change}")
            elif not pinned.is_known:
                first.setdefault(id(session), {})[listed.name] = whole
            notice = change or ("" if session.server.trusted or effect == "execute" else FOREIGN)
            function = session.function(listed.name)
            if change:
                function = _pinning(function, pinned, listed.name, whole)
            yield with_runner(
                f"the MCP server {session.server.name!r}", as_tool(definition, function, effect=effect), notice
            )
        for number, definitions in first.items():
            pins[number].save(definitions)


def _pinning(
    function: Callable[..., object], pins: DefinitionPins, name: str, definition: Any
) -> Callable[..., object]:
    """The function; once it was allowed to be called, its tool is what it says now."""

    def call(**arguments: Json) -> object:
        pins.save({name: definition})
        return function(**arguments)

    return call


def _distinct(servers: Iterable[McpServer]) -> list[McpServer]:
    """``servers`` under names of their own."""
    named: dict[str, McpServer] = {}
    for server in servers:
        name, number = server.name, 2
        while name in named:
            name, number = f"{server.name}{number}", number + 1
        named[name] = replace(server, name=name)
    return list(named.values())


def _named(sessions: Sequence[_Session], taken: ToolSet) -> Iterator[tuple[_Session, Any, str]]:
    """Each tool with a name that no other has and every server takes."""
    names: set[str] = set()
    offered = [(session, listed) for session in sessions for listed in session.listed]
    counts = Counter(sanitize_name(listed.name) for _, listed in offered)
    for session, listed in offered:
        name = sanitize_name(listed.name)
        if counts[name] > 1 or taken.match(name) is not None:
            name = f"{session.server.name}__{name}"
        name, number = name[:MAX_NAME], 2
        plain = name
        while name in names or taken.match(name) is not None:
            name = f"{plain[: MAX_NAME - 1 - len(str(number))]}_{number}"
            number += 1
        names.add(name)
        yield session, listed, name


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
        self.notes: list[str] = []
        self._loop = loop
        self._call_s = call_s
        self._client: Future[Client] = Future()
        self._leave = asyncio.Event()
        self._has_ended = threading.Event()
        logging.getLogger("mcp").setLevel(logging.CRITICAL)  # else each line that is no message gets a traceback
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115  # till the end

    def begin(self) -> None:
        self._task = self._loop.start(self._live())

    def wait_until_begun(self) -> None:
        """Raises UsageError for a server that does not begin, with what it said last."""
        try:
            self._client.result(START_S)
        except Exception as error:
            reason = f"it did not answer within {START_S:g} s" if isinstance(error, NotYet) else _said(error)
            words = self._last_words()
            self.close()
            raise UsageError(f"{self.server} does not begin: {reason}.{words}") from error

    def close(self, *_: object) -> None:
        if self._log.closed:
            return
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
                result = self._loop.start(client.call_tool(name, arguments, self._call_s)).result(self._call_s + 5)
            except Exception as error:
                raise ToolError(self._explained(name, error)) from error
            return _bounded(result)

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
            from adapter.integrations.mcp.http_transport import limited_http_client

            way = limited_http_client(self.server.url, MAX_MESSAGE, self._call_s)
            return Client(way, read_timeout_seconds=self._call_s)
        program, *arguments = _accompanied(_limited(self.server.command))
        environment = dict(self.server.environment) or None
        started = StdioServerParameters(command=program, args=arguments, env=environment, cwd=self.server.cwd)
        return Client(stdio_client(started, self._log), read_timeout_seconds=self._call_s)

    async def _list(self, client: Client) -> None:
        cursor: str | None = None
        seen: set[str | None] = set()
        while cursor not in seen and len(seen) < MAX_PAGES:
            seen.add(cursor)
            page = await client.list_tools(cursor=cursor)
            for listed in page.tools:
                self._take(listed)
            cursor = page.next_cursor
            if not cursor or len(self.listed) > MAX_TOOLS:
                break
        if cursor:
            self.notes.append(f"{self.server} lists its tools without end; the first {len(self.listed):,} are there")
        if len(self.listed) > MAX_TOOLS:
            del self.listed[MAX_TOOLS:]
            self.notes.append(f"{self.server} has more than {MAX_TOOLS:,} tools; the others are left out")

    def _take(self, listed: Any) -> None:
        size = len(listed.model_dump_json())
        if size <= MAX_DEFINITION:
            self.listed.append(listed)
            return
        self.notes.append(
            f"{self.server}: the tool {listed.name[:MAX_NAME]!r} is left out: its definition has {size:,} characters, "
            f"more than {MAX_DEFINITION:,}"
        )

    def _last_words(self) -> str:
        """What it wrote to standard error, which else nobody sees."""
        size = os.fstat(self._log.fileno()).st_size
        written = os.pread(self._log.fileno(), MAX_WORDS, max(size - MAX_WORDS, 0)).decode("utf-8", "replace")
        lines = [line.strip() for line in written.splitlines() if line.strip()]
        return f" Its last words: {' | '.join(lines[-3:])[:500]}" if lines else ""


def _accompanied(command: Sequence[str]) -> Sequence[str]:
    """So that nothing of a server is left, whatever it starts and however we end."""
    if os.name != "posix":
        return command
    from adapter.workspace.sandbox import supervisor

    return (*supervisor.COMMAND, "--accompany", *command)


def _limited(command: Sequence[str]) -> Sequence[str]:
    """So that no message of a server takes all memory."""
    return (sys.executable, "-I", "-S", "-X", "utf8", line_limiter.__file__, str(MAX_MESSAGE), *command)


def _bounded(result: Any) -> Any:
    """``result`` with texts of bearable length."""
    for block in result.content:
        text = getattr(block, "text", None)
        if isinstance(text, str) and len(text) > MAX_RESULT:
            block.text = f"{text[:MAX_RESULT]}\n({len(text) - MAX_RESULT:,} more characters were left out)"
    return result


def _said(error: BaseException) -> str:
    """The innermost reason, without a full stop."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return re.sub(r"^\[Errno -?\d+\] ", "", message or type(error).__name__).rstrip(".")
