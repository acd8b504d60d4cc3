"""Turn any local language model that speaks plain text into a dependable tool-calling agent.

The ten names below are the public API. They are imported on first use, so
that reading text never pays for what talks to servers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.agent import Agent
    from adapter.edits import patch_text
    from adapter.formats import guess
    from adapter.functions import tool
    from adapter.parser import Parser, parse
    from adapter.prompt import system_prompt
    from adapter.transcripts.transcript import Transcript
    from adapter.workspace import Workspace
    from adapter.wrapped import wrap

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Parser",
    "Transcript",
    "Workspace",
    "guess",
    "parse",
    "patch_text",
    "system_prompt",
    "tool",
    "wrap",
]

_HOME = {
    "Agent": "adapter.agent",
    "Parser": "adapter.parser",
    "Transcript": "adapter.transcripts.transcript",
    "Workspace": "adapter.workspace",
    "guess": "adapter.formats",
    "parse": "adapter.parser",
    "patch_text": "adapter.edits",
    "system_prompt": "adapter.prompt",
    "tool": "adapter.functions",
    "wrap": "adapter.wrapped",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'adapter' has no attribute {name!r}; it has: {', '.join(__all__)}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
