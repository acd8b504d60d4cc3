"""Which tools a model sees: one file, one dialect."""

from __future__ import annotations

from importlib import import_module

from adapter.core.arguments import shown
from adapter.core.errors import UsageError
from adapter.dialects.lazy_definitions import load_tools
from adapter.dialects.toolset import Dialect
from adapter.tools.tool import ToolSet

__all__ = [
    "Dialect",
    "cross_toolset",
    "dialect_names",
    "get_dialect",
    "result_formatting",
    "tool_class",
    "tools_for_parsing",
    "toolset",
]

_HOMES = {
    "blade": "adapter.dialects.blade",
    "proxyai": "adapter.dialects.proxyai",
    "maki": "adapter.dialects.maki",
    "promptly": "adapter.dialects.promptly",
    "proto": "adapter.dialects.proto",
}
"""Each module defines ``DIALECT``; imported on first use."""

_ALIASES = {
    "zaguan": "blade",
    "zaguan-blade": "blade",
    "zaguan_blade": "blade",
    "proxy-ai": "proxyai",
    "protocli": "proto",
    "proto-cli": "proto",
}


def dialect_names() -> list[str]:
    return list(_HOMES)


def get_dialect(name: str | Dialect) -> Dialect:
    """The dialect called ``name``. Raises UsageError that names the nearest one."""
    if isinstance(name, Dialect):
        return name
    dialect: Dialect = import_module(_HOMES[_own_name(name)]).DIALECT
    return dialect


def tools_for_parsing(name: str) -> ToolSet:
    """The tools of the dialect called ``name``, to match what a model wrote: without their classes, where its
    definitions are kept. Raises UsageError that names the nearest dialect."""
    own = _own_name(name)
    return load_tools(own) or get_dialect(own).tools


def _own_name(name: str) -> str:
    if not isinstance(name, str):
        raise UsageError(f"dialect must be the name of a dialect, got {shown(name)}; there are: {', '.join(_HOMES)}")
    known = name.strip().lower()
    own = _ALIASES.get(known, known)
    if own in _HOMES:
        return own
    from rapidfuzz import fuzz, process

    near = process.extractOne(known, [*_HOMES, *_ALIASES], scorer=fuzz.ratio, score_cutoff=60)
    suggestion = f" (did you mean {near[0]!r}?)" if near else ""
    raise UsageError(f"unknown dialect {name!r}; there are: {', '.join(_HOMES)}{suggestion}")
