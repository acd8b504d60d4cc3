"""What a session's host may be able to give, and why a tool is not there when it cannot."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Literal, TypeAlias

Capability: TypeAlias = Literal["questions", "editor", "agents", "search", "docs", "web", "code", "skills", "memory"]
"""What a tool may need; see `ABSENT`."""

ABSENT: Mapping[Capability, tuple[str, str]] = {
    "questions": (
        "nobody can be asked in this session",
        "Decide yourself, say in your answer what you assumed, or end with the question as your answer",
    ),
    "editor": ("no editor is attached to this session", "Use the file tools, with a path and line numbers"),
    "agents": ("this session cannot start sub-agents", "Do the task yourself, step by step"),
    "search": (
        "no web search is configured in this session",
        "Search the workspace's files, or answer from what you know",
    ),
    "docs": ("no library documentation is configured", "Read the library's source or README with the file tools"),
    "web": ("this session has no access to the web", "Work with the files that are here, or ask for the text"),
    "code": ("no Python sandbox is installed", "Make the calls one by one"),
    "skills": ("this session has no skills", "Go on without; nothing is missing"),
    "memory": ("this session keeps no memory", "Write what should last into a file of the workspace"),
}
"""By capability: why its tools are not there, and what to do instead."""

WITHOUT_CONFIGURATION: tuple[Capability, ...] = ("editor", "docs", "web", "code", "memory")
"""What a host that is left as it is can give."""
_PACKAGES: Mapping[Capability, str] = {"web": "markdownify", "code": "pydantic_monty"}


def is_installed(capability: Capability) -> bool:
    """Whether the packages are there that ``capability`` needs."""
    return capability not in _PACKAGES or find_spec(_PACKAGES[capability]) is not None


def usual_capabilities() -> frozenset[Capability]:
    """What tools may count on where nobody configured a host."""
    return frozenset(filter(is_installed, WITHOUT_CONFIGURATION))
