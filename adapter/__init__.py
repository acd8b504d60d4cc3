"""Turn any local language model that speaks plain text into a dependable tool-calling agent.

The names below are the public API, see docs/api.md: they keep their meaning between minor versions, and all else may
change. They are imported on first use, so that reading text never pays for what talks to servers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from adapter.core.version import __version__ as __version__

if TYPE_CHECKING:
    from adapter.agent.agent import Agent
    from adapter.agent.async_agent import AsyncAgent
    from adapter.backends.chat_client import ChatClient
    from adapter.backends.template_detection import derive
    from adapter.conversation.guardrails.engine import Accept, AskAgain, Guardrails, Stop
    from adapter.conversation.guardrails.required_steps import Steps
    from adapter.core.errors import (
        AdapterError,
        DeniedError,
        EditError,
        FormatError,
        ToolError,
        TransportError,
        UsageError,
    )
    from adapter.core.events import (
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
    from adapter.core.turn import Turn
    from adapter.editing import patch_text
    from adapter.integrations.openai_client.wrap import wrap
    from adapter.parsing.formats import guess
    from adapter.parsing.parser import Parser, parse
    from adapter.prompting.system_prompt import system_prompt
    from adapter.recording.replay import replay
    from adapter.recording.transcript import Transcript
    from adapter.tools.function_tools import tool
    from adapter.tools.operations.permissions import Approval, Decision, Rule
    from adapter.tools.tool import Tool
    from adapter.workspace import Workspace
    from adapter.workspace.capabilities.host import Host

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
    "adapter.editing": ("patch_text",),
    "adapter.parsing.formats": ("guess",),
    "adapter.parsing.parser": ("Parser", "parse"),
    "adapter.conversation.guardrails.engine": ("Accept", "AskAgain", "Guardrails", "Stop"),
    "adapter.conversation.guardrails.required_steps": ("Steps",),
    "adapter.tools.operations.permissions": ("Approval", "Decision", "Rule"),
    "adapter.prompting.system_prompt": ("system_prompt",),
    "adapter.integrations.openai_client.wrap": ("wrap",),
    "adapter.tools.tool": ("Tool",),
    "adapter.tools.function_tools": ("tool",),
    "adapter.recording.replay": ("replay",),
    "adapter.recording.transcript": ("Transcript",),
    "adapter.backends.template_detection": ("derive",),
    "adapter.backends.chat_client": ("ChatClient",),
    "adapter.core.errors": (
        "AdapterError",
        "DeniedError",
        "EditError",
        "FormatError",
        "ToolError",
        "TransportError",
        "UsageError",
    ),
    "adapter.core.events": (
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
    "adapter.core.turn": ("Turn",),
    "adapter.workspace": ("Workspace",),
    "adapter.workspace.capabilities.host": ("Host",),
}
_HOME = {name: home for home, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'adapter' has no attribute {name!r}; it has: {', '.join(__all__)}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
