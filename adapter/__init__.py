"""Turn any local language model that speaks plain text into a dependable tool-calling agent.

The names below are the public API, see docs/api.md: they keep their meaning between minor versions, and all else may
change. They are imported on first use, so that reading text never pays for what talks to servers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from adapter.values.version import __version__ as __version__

if TYPE_CHECKING:
    from adapter.agent.agent import Agent
    from adapter.agent.async_agent import AsyncAgent
    from adapter.conversation.guardrails.guardrails import Accept, AskAgain, Guardrails, Stop
    from adapter.conversation.guardrails.steps import Steps
    from adapter.edits import patch_text
    from adapter.formats import guess
    from adapter.formats.parser import Parser, parse
    from adapter.operations.approval import Approval, Decision, Rule
    from adapter.prompting.prompt import system_prompt
    from adapter.server.wrapped import wrap
    from adapter.tools.definition import Tool
    from adapter.tools.functions import tool
    from adapter.transcripts.replay import replay
    from adapter.transcripts.transcript import Transcript
    from adapter.upstream.deriving import derive
    from adapter.upstream.transport import ChatClient
    from adapter.values.errors import (
        AdapterError,
        DeniedError,
        EditError,
        FormatError,
        ToolError,
        TransportError,
        UsageError,
    )
    from adapter.values.events import (
        ContentWasReasoning,
        InvalidToolCall,
        Markup,
        ReasoningDelta,
        ReasoningWasContent,
        RejectedCall,
        TextDelta,
        ToolCall,
        ToolCallDelta,
        ToolCallProgress,
        ToolResult,
    )
    from adapter.values.turn import Turn
    from adapter.workspace import Workspace
    from adapter.workspace.hosted.host import Host

__all__ = [
    "Accept",
    "AdapterError",
    "Agent",
    "Approval",
    "AskAgain",
    "AsyncAgent",
    "ChatClient",
    "ContentWasReasoning",
    "Decision",
    "DeniedError",
    "EditError",
    "FormatError",
    "Guardrails",
    "Host",
    "InvalidToolCall",
    "Markup",
    "Parser",
    "ReasoningDelta",
    "ReasoningWasContent",
    "RejectedCall",
    "Rule",
    "Steps",
    "Stop",
    "TextDelta",
    "Tool",
    "ToolCall",
    "ToolCallDelta",
    "ToolCallProgress",
    "ToolError",
    "ToolResult",
    "Transcript",
    "TransportError",
    "Turn",
    "UsageError",
    "Workspace",
    "derive",
    "guess",
    "parse",
    "patch_text",
    "replay",
    "system_prompt",
    "tool",
    "wrap",
]

_NAMES = {
    "adapter.agent.agent": ("Agent",),
    "adapter.agent.async_agent": ("AsyncAgent",),
    "adapter.edits": ("patch_text",),
    "adapter.formats": ("guess",),
    "adapter.formats.parser": ("Parser", "parse"),
    "adapter.conversation.guardrails.guardrails": ("Accept", "AskAgain", "Guardrails", "Stop"),
    "adapter.conversation.guardrails.steps": ("Steps",),
    "adapter.operations.approval": ("Approval", "Decision", "Rule"),
    "adapter.prompting.prompt": ("system_prompt",),
    "adapter.server.wrapped": ("wrap",),
    "adapter.tools.definition": ("Tool",),
    "adapter.tools.functions": ("tool",),
    "adapter.transcripts.replay": ("replay",),
    "adapter.transcripts.transcript": ("Transcript",),
    "adapter.upstream.deriving": ("derive",),
    "adapter.upstream.transport": ("ChatClient",),
    "adapter.values.errors": (
        "AdapterError",
        "DeniedError",
        "EditError",
        "FormatError",
        "ToolError",
        "TransportError",
        "UsageError",
    ),
    "adapter.values.events": (
        "ContentWasReasoning",
        "InvalidToolCall",
        "Markup",
        "ReasoningDelta",
        "ReasoningWasContent",
        "RejectedCall",
        "TextDelta",
        "ToolCall",
        "ToolCallDelta",
        "ToolCallProgress",
        "ToolResult",
    ),
    "adapter.values.turn": ("Turn",),
    "adapter.workspace": ("Workspace",),
    "adapter.workspace.hosted.host": ("Host",),
}
_HOME = {name: home for home, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'adapter' has no attribute {name!r}; it has: {', '.join(__all__)}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
