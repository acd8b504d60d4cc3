"""Capabilities that a session's host may have, and explanations for the model if one is missing."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Literal, TypeAlias

Capability: TypeAlias = Literal["questions", "editor", "agents", "search", "docs", "web", "code", "skills", "memory"]
"""A capability that a tool may need; see `ABSENT`."""

ABSENT: Mapping[Capability, tuple[str, str]] = {
    "questions": (
        "the user cannot be asked in this session",
        "Decide yourself and state your assumptions, or end with the question as your answer",
    ),
    "editor": ("no editor is attached to this session", "Use the file tools, with a path and line numbers"),
    "agents": ("this session cannot start sub-agents", "Do the task yourself, step by step"),
    "search": (
        "no web search is configured in this session",
        "Search the workspace's files, or answer from your own knowledge",
    ),
    "docs": ("no library documentation is configured", "Read the library's source or README with the file tools"),
    "web": ("this session has no access to the web", "Work with the workspace's files, or ask the user for the text"),
    "code": ("no Python sandbox is installed", "Make the calls one by one"),
    "skills": ("this session has no skills", "Continue without skills"),
    "memory": ("this session has no memory", "Write lasting notes to a file in the workspace"),
}
"""For each capability, the reason why its tools are missing, and an alternative."""

WITHOUT_CONFIGURATION: tuple[Capability, ...] = ("editor", "docs", "web", "code", "memory")
"""Capabilities that a host can have without configuration."""
_PACKAGES: Mapping[Capability, str] = {"web": "markdownify", "code": "pydantic_monty"}


def is_installed(capability: Capability) -> bool:
    """Return whether the packages that ``capability`` needs are installed."""
    return capability not in _PACKAGES or find_spec(_PACKAGES[capability]) is not None


def list_default_capabilities() -> frozenset[Capability]:
    """Return the capabilities of a host with the default configuration on this machine."""
    return frozenset(filter(is_installed, WITHOUT_CONFIGURATION))
