"""Use the tools of MCP servers as tools of the workspace, subject to its approval rules.

A server is a command that speaks MCP on its standard input and output, or a URL. All connections run in a separate
event loop, so that tools can be called like ordinary functions. The specification is
https://modelcontextprotocol.io/specification, which the official SDK implements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.core.install_advice import build_install_command
from adapter.integrations.mcp.definition_pins import DefinitionPins
from adapter.integrations.mcp.server_config import McpServer, sanitize_name
from adapter.integrations.mcp.server_connection import CALL_S, MAX_NAME, ConnectionLoop, ServerConnection
from adapter.tools.function_tools import tool as as_tool
from adapter.tools.function_tools import with_runner
from adapter.tools.operations import Effect
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet
from adapter.workspace.changes.journal import find_state_home

UNTRUSTED_NOTICE = (
    "a tool from a third-party server, which itself declares the tool's effects; once allowed, it runs without "
    "approval until the session ends"
)
INSTALL = build_install_command("mcp")


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
            loop = stack.enter_context(ConnectionLoop())
            sessions_started = [ServerConnection(server, loop, self._call_s) for server in self._servers]
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

    def _build_tools(self, sessions: Sequence[ServerConnection], notes: list[str]) -> Iterator[Tool]:
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


def _assign_names(
    sessions: Sequence[ServerConnection], existing_tools: ToolSet
) -> Iterator[tuple[ServerConnection, Any, str]]:
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
