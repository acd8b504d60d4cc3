"""Unsupported request fields: how each field is handled, and how dropped ones are named in a response header."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Literal, TypeAlias

from adapter.core.events import JsonObject

FieldHandling: TypeAlias = Literal["taken", "mapped", "passed", "left out", "refused"]
"""taken: used by this server. mapped: renamed or converted for the model server. passed: forwarded unchanged. left out:
dropped. refused: the request fails because of it."""

HEADER = "adapter-left-out"
"""Response header with the names of dropped fields."""

MAX_NAMED = 20
"""Maximum number of names in the header."""

MAX_NAME = 60
"""Maximum length of a name, in characters."""

_UNSAFE = re.compile(r"[^\w .:/*()-]", re.ASCII)


def field_table(names: Mapping[FieldHandling, str]) -> Mapping[str, FieldHandling]:
    """Invert a table of space-separated field names by handling."""
    return {name: handling for handling, listed in names.items() for name in listed.split()}


def dropped_fields(body: JsonObject, names: Collection[str]) -> list[str]:
    """Return those of ``names`` that have a non-empty value in the request."""
    return [name for name in names if body.get(name) not in (None, [], {}, "")]


def unknown_fields(body: JsonObject, fields: Mapping[str, FieldHandling]) -> list[str]:
    """Return the non-empty fields of a request that ``fields`` drops, or does not list."""
    return dropped_fields(body, [name for name in body if fields.get(name, "left out") == "left out"])


def as_header(dropped: Iterable[str]) -> str:
    """Return the names as the value of a header, or ""."""
    names = list(dict.fromkeys(header_safe(each) for each in dropped))
    more = f", and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def header_safe(name: str) -> str:
    """Replace characters that are unsafe in headers and terminals, and shorten long names."""
    return _UNSAFE.sub("?", name[:MAX_NAME])
