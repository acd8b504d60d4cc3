"""Which tools a model sees: one file, one dialect."""

from __future__ import annotations

from importlib import import_module

from rapidfuzz import fuzz, process

from adapter.dialects.base import Dialect
from adapter.values.errors import UsageError

__all__ = ["Dialect", "dialect_names", "get_dialect"]

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
    known = name.strip().lower()
    home = _HOMES.get(_ALIASES.get(known, known))
    if home is None:
        near = process.extractOne(known, [*_HOMES, *_ALIASES], scorer=fuzz.ratio, score_cutoff=60)
        suggestion = f" (did you mean {near[0]!r}?)" if near else ""
        raise UsageError(f"unknown dialect {name!r}; there are: {', '.join(_HOMES)}{suggestion}")
    dialect: Dialect = import_module(home).DIALECT
    return dialect
