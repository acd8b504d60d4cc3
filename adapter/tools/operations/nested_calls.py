"""Operations that make further calls: batches, code, sub-agents, functions of the user; with their outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from adapter.core.events import Json, JsonObject, ToolResult

Effect: TypeAlias = Literal["read", "state", "write", "delete", "execute", "network", "skill"]
"""What an operation does to the world: approval is decided by it. ``state`` changes only what
the agent keeps for itself (todo list, memory, cursor); ``skill`` takes in instructions."""

MAX_BATCH = 25
"""Maki's document: 1 to 25 calls."""


@dataclass(frozen=True, slots=True)
class BatchCall:
    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class RunBatch:
    """Run independent calls at the same time; of more than ``MAX_BATCH`` only the first."""

    calls: tuple[BatchCall, ...]


@dataclass(frozen=True, slots=True)
class BatchResults:
    """One result per call, in the order of the calls."""

    results: tuple[ToolResult, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunCode:
    """Run Python in a sandbox in which the session's tools are async functions."""

    code: str
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class CodeOutput:
    """What was printed, and the last expression as JSON text ("" for None)."""

    output: str
    value: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunSubagent:
    """Let a sub-agent work on ``prompt``. ``kind`` is ``research`` (reads only), ``general`` or one of the
    user's own; ``model`` what the dialect calls a model or a tier; ``cwd`` its folder in the workspace."""

    prompt: str
    kind: str = "research"
    description: str = ""
    model: str | None = None
    cwd: str | None = None


@dataclass(frozen=True, slots=True)
class AgentReport:
    """``seconds`` of wall time; ``tokens`` None when the server did not say."""

    kind: str
    description: str
    prompt: str
    output: str
    seconds: float
    tokens: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallFunction:
    """Call a function of the user's program, which may be async. ``effect`` is what its tool declares."""

    name: str
    function: Callable[..., object]
    arguments: JsonObject = field(default_factory=dict)
    effect: Effect = "execute"
    runner: str = ""
    """Who performs it, where that is not this program: ``the MCP server 'git'``."""
    notice: str = ""
    """Why it is asked about until it was allowed once, whatever its effect; shown to whoever is asked."""


@dataclass(frozen=True, slots=True)
class FunctionResult:
    """What a function gave: a text for the model, and the value as JSON where it is any."""

    text: str
    data: Json = None
    is_error: bool = False
    notes: tuple[str, ...] = ()
