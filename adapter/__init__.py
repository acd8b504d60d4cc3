"""Run dependable tool-calling agents on local language models that produce plain text.

The names below are the public API (docs/api.md). Their meaning is stable between minor versions; everything else may
change. They are imported on first use, so that parsing text does not load the code for servers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from adapter.core.version import __version__ as __version__

if TYPE_CHECKING:
    from adapter.agent.agent import Agent
    from adapter.agent.async_agent import AsyncAgent
    from adapter.backends.chat_client import ChatClient
    from adapter.backends.format_derivation import derive
    from adapter.conversation.guardrails.guardrails import Guardrails
    from adapter.conversation.guardrails.required_steps import Steps
    from adapter.conversation.guardrails.verdicts import Accept, Retry, Stop
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
        ContentReclassified,
        InvalidToolCall,
        MarkupDelta,
        ReasoningDelta,
        ReasoningReclassified,
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
    from adapter.parsing.formats import guess_format
    from adapter.parsing.parser import Parser, parse
    from adapter.prompting.system_prompt import system_prompt
    from adapter.recording.replay import replay
    from adapter.recording.transcript import Transcript
    from adapter.tools.function_tools import tool
    from adapter.tools.operations.permissions import ApprovalDecision, ApprovalRequest, PermissionRule
    from adapter.tools.tool import Tool
    from adapter.workspace import Workspace
    from adapter.workspace.capabilities.host_capabilities import Host

    Approval = ApprovalRequest
    AskAgain = Retry
    ContentWasReasoning = ContentReclassified
    Decision = ApprovalDecision
    Markup = MarkupDelta
    ReasoningWasContent = ReasoningReclassified
    Rule = PermissionRule
    guess = guess_format

__all__ = [
    "Accept", "AdapterError", "Agent", "Approval", "ApprovalDecision", "ApprovalRequest", "AskAgain", "AsyncAgent",
    "ChatClient", "ContentReclassified", "ContentWasReasoning", "Decision", "DeniedError", "EditError", "FormatError",
    "Guardrails", "Host", "InvalidToolCall", "Markup", "MarkupDelta", "Parser", "PermissionRule", "ReasoningDelta",
    "ReasoningReclassified", "ReasoningWasContent", "RejectedCall", "Retry", "Rule", "Steps", "Stop", "TextDelta",
    "Tool", "ToolCall", "ToolCallDelta", "ToolCallProgress", "ToolError", "ToolResult", "Transcript",
    "TransportError", "Turn", "UsageError", "Workspace", "derive", "guess", "guess_format", "parse", "patch_text",
    "replay", "system_prompt", "tool", "wrap",
]  # fmt: skip

_NAMES = {
    "adapter.agent.agent": ("Agent",),
    "adapter.agent.async_agent": ("AsyncAgent",),
    "adapter.editing": ("patch_text",),
    "adapter.parsing.formats": ("guess_format",),
    "adapter.parsing.parser": ("Parser", "parse"),
    "adapter.conversation.guardrails.guardrails": ("Guardrails",),
    "adapter.conversation.guardrails.verdicts": ("Accept", "Retry", "Stop"),
    "adapter.conversation.guardrails.required_steps": ("Steps",),
    "adapter.tools.operations.permissions": ("ApprovalRequest", "ApprovalDecision", "PermissionRule"),
    "adapter.prompting.system_prompt": ("system_prompt",),
    "adapter.integrations.openai_client.wrap": ("wrap",),
    "adapter.tools.tool": ("Tool",),
    "adapter.tools.function_tools": ("tool",),
    "adapter.recording.replay": ("replay",),
    "adapter.recording.transcript": ("Transcript",),
    "adapter.backends.format_derivation": ("derive",),
    "adapter.backends.chat_client": ("ChatClient",),
    "adapter.core.errors": (
        "AdapterError", "DeniedError", "EditError", "FormatError", "ToolError", "TransportError", "UsageError",
    ),
    "adapter.core.events": (
        "ContentReclassified", "InvalidToolCall", "MarkupDelta", "ReasoningDelta", "ReasoningReclassified",
        "RejectedCall", "TextDelta", "ToolCall", "ToolCallDelta", "ToolCallProgress", "ToolResult",
    ),
    "adapter.core.turn": ("Turn",),
    "adapter.workspace": ("Workspace",),
    "adapter.workspace.capabilities.host_capabilities": ("Host",),
}  # fmt: skip
_HOME = {name: home for home, names in _NAMES.items() for name in names}

ALIASES = {
    "Approval": "ApprovalRequest",
    "AskAgain": "Retry",
    "ContentWasReasoning": "ContentReclassified",
    "Decision": "ApprovalDecision",
    "Markup": "MarkupDelta",
    "ReasoningWasContent": "ReasoningReclassified",
    "Rule": "PermissionRule",
    "guess": "guess_format",
}
"""Maps former public names, which still work, to the names that new code should use."""


def __getattr__(name: str) -> object:
    name = ALIASES.get(name, name)
    if name not in _HOME:
        raise AttributeError(f"module 'adapter' has no attribute {name!r}; it has: {', '.join(__all__)}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
