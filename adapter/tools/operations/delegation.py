"""Operations that make further calls: batches, code, sub-agents and functions of the host program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from adapter.core.events import Json, JsonObject, ToolResult
from adapter.tools.operations.outcome import Effect, Outcome

MAX_BATCH = 25
"""Maximum number of calls in a batch, from Maki's document."""


@dataclass(frozen=True, slots=True)
class BatchCall:
    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class RunBatch:
    """Run independent calls in parallel. Calls after the first ``MAX_BATCH`` are dropped."""

    calls: tuple[BatchCall, ...]


@dataclass(frozen=True, slots=True)
class BatchResults(Outcome):
    """One result per call, in the order of the calls."""

    results: tuple[ToolResult, ...]


@dataclass(frozen=True, slots=True)
class RunCode:
    """Run Python in a sandbox in which the session's tools are async functions."""

    code: str
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class CodeOutput(Outcome):
    """Printed output, and the last expression as JSON text ("" for None)."""

    output: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class RunSubagent:
    """Run a sub-agent on ``prompt``."""

    prompt: str
    kind: str = "research"
    """``research`` (reads only), ``general`` or a custom kind."""
    description: str = ""
    model: str | None = None
    """A model or a tier of models, by its name in the dialect."""
    cwd: str | None = None
    """The sub-agent's directory in the workspace."""


@dataclass(frozen=True, slots=True)
class AgentReport(Outcome):
    """A sub-agent's report. ``seconds``: elapsed time. ``tokens``: None if the server did not report usage."""

    kind: str
    description: str
    prompt: str
    output: str
    seconds: float
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class CallFunction:
    """Call a function of the host program, which may be async. Its tool declares the ``effect``."""

    name: str
    function: Callable[..., object]
    arguments: JsonObject = field(default_factory=dict)
    effect: Effect = "execute"
    runner: str = ""
    """Name of the external runner, such as ``the MCP server 'git'``; "" for a function of this program."""
    notice: str = ""
    """A reason to request approval, shown to the approver. It applies whatever the effect, until a call to the tool has
    been allowed once."""


@dataclass(frozen=True, slots=True)
class FunctionResult(Outcome):
    """A function's result: text for the model, and the value as JSON if the function returned one."""

    text: str
    data: Json = None
    is_error: bool = False
