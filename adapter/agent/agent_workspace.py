"""Open the workspace of an agent: in a folder, or in a temporary folder for an agent that has only custom tools."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from adapter.core.errors import UsageError
from adapter.dialects import NO_TOOLS, Dialect, get_dialect
from adapter.tools.operations.permissions import Approver
from adapter.tools.tool import Tool
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import Host


def open_workspace(
    resources: ExitStack,
    workspace: Workspace | str | os.PathLike[str] | None,
    dialect: str | Dialect | None,
    approve: str | Approver | None,
    tools: Sequence[Tool | Callable[..., object]],
    host: Host | None,
) -> Workspace:
    """Return the agent's open workspace.

    If ``workspace`` is an open workspace, return it unchanged. If it is a folder, open a workspace there. If it is
    None, open one in a temporary folder, without a dialect's tools. ``resources`` closes the new workspace. Raises
    UsageError if the arguments conflict.
    """
    if isinstance(workspace, Workspace):
        if dialect is not None or approve is not None or tools or host is not None:
            raise UsageError(
                "dialect, approve, tools and host are arguments of Workspace; pass them there, or pass a folder"
            )
        return workspace
    state = None
    if workspace is None:
        _require_custom_tools(tools, dialect)
        dialect = NO_TOOLS
        folder = Path(resources.enter_context(TemporaryDirectory(prefix="adapter-")))
        workspace, state = folder / "workspace", folder / "state"
        workspace.mkdir()
    return resources.enter_context(
        Workspace(workspace, dialect or "blade", approve or "ask", state=state, tools=tools, host=host)
    )


def _require_custom_tools(tools: Sequence[object], dialect: str | Dialect | None) -> None:
    """Raise UsageError if an agent without a folder has a dialect, or lacks custom tools."""
    chosen = NO_TOOLS if dialect is None else get_dialect(dialect)
    if chosen is not NO_TOOLS:
        raise UsageError(f"Agent: the tools of the dialect {chosen.name!r} work in a folder; pass a folder as well")
    if not tools:
        raise UsageError("Agent has nothing to work with: pass a folder, a Workspace, or tools=[...]")
