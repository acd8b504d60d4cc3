"""Dialects: the tool sets of five coding agents. A session offers a model the tools of one dialect."""

from __future__ import annotations

import json
from importlib import import_module
from pkgutil import get_data

from adapter.core.argument_checks import format_value
from adapter.core.errors import UsageError
from adapter.core.events import JsonObject
from adapter.dialects.dialect import Dialect
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

__all__ = [
    "NO_TOOLS", "Dialect", "call_translation", "dialect", "get_dialect", "list_dialect_names", "load_tools_for_parsing",
    "result_formatting", "tool_class",
]  # fmt: skip

_MODULES = {
    "blade": "adapter.dialects.blade",
    "proxyai": "adapter.dialects.proxyai",
    "maki": "adapter.dialects.maki",
    "promptly": "adapter.dialects.promptly",
    "proto": "adapter.dialects.proto_cli",
}
"""Each dialect's module, imported on first use. It defines ``DIALECT``."""

_ALIASES = {
    **dict.fromkeys(("zaguan", "zaguan-blade", "zaguan_blade"), "blade"),
    "proxy-ai": "proxyai",
    **dict.fromkeys(("protocli", "proto-cli"), "proto"),
}

DEFINED_FIELDS = ("name", "description", "parameters", "unlisted", "aliases", "argument_aliases", "effect")
"""Fields of the tools in `definitions.json`, which ``python -m tests.generate`` writes."""

NO_TOOLS = Dialect("none", "no tools of a dialect", ())
"""The dialect ``none``, for programs that offer only their own tools."""

_AVAILABLE = f"{', '.join(_MODULES)}, or {NO_TOOLS.name}"


def list_dialect_names() -> list[str]:
    """Return the names of the dialects that have tools."""
    return list(_MODULES)


def get_dialect(name: str | Dialect) -> Dialect:
    """Return the dialect ``name``. Raises UsageError for an unknown name; the message suggests the most similar one."""
    if isinstance(name, Dialect):
        return name
    resolved = _resolve_name(name)
    dialect: Dialect = NO_TOOLS if resolved == NO_TOOLS.name else import_module(_MODULES[resolved]).DIALECT
    return dialect


def load_tools_for_parsing(name: str) -> ToolSet:
    """Return the tools of the dialect ``name`` for a parser, which matches calls but does not validate them.

    If possible, the tools' classes are not loaded, because that takes longer than parsing a megabyte of text. Raises
    UsageError for an unknown name; the message suggests the most similar one.
    """
    resolved = _resolve_name(name)
    rows: dict[str, list[JsonObject]] = json.loads(get_data(__package__, "definitions.json") or b"{}")
    return ToolSet(Tool(**row) for row in rows[resolved]) if resolved in rows else get_dialect(resolved).tools


def _resolve_name(name: str) -> str:
    if not isinstance(name, str):
        raise UsageError(f"dialect must be a name, got {format_value(name)}; available: {_AVAILABLE}")
    known = name.strip().lower()
    resolved = _ALIASES.get(known, known)
    if resolved in _MODULES or resolved == NO_TOOLS.name:
        return resolved
    from rapidfuzz import fuzz, process

    near = process.extractOne(known, [*_MODULES, *_ALIASES], scorer=fuzz.ratio, score_cutoff=60)
    suggestion = f" (did you mean {near[0]!r}?)" if near else ""
    raise UsageError(f"unknown dialect {name!r}; available: {_AVAILABLE}{suggestion}")
