"""Define how each request field is handled, and list dropped fields in a response header."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Literal, TypeAlias

from adapter.core.events import JsonObject

FieldHandling: TypeAlias = Literal["taken", "mapped", "passed", "left out", "refused"]
"""Handling of a request field: used by this server (taken), renamed or converted for the model server (mapped),
forwarded unchanged (passed), or dropped (left out). A refused field makes the request fail."""

HEADER = "adapter-left-out"
"""Response header that lists the dropped fields."""

MAX_NAMED = 20
"""Maximum number of field names in the header."""

MAX_NAME = 60
"""Maximum length of a field name in the header, in characters."""

_UNSAFE = re.compile(r"[^\w .:/*()-]", re.ASCII)


def build_field_table(names: Mapping[FieldHandling, str]) -> Mapping[str, FieldHandling]:
    """Return the handling of each field. ``names`` has the fields of each kind of handling, separated by spaces."""
    return {name: handling for handling, listed in names.items() for name in listed.split()}


def list_dropped_fields(body: JsonObject, names: Collection[str]) -> list[str]:
    """Return the fields in ``names`` that are not empty in the request."""
    return [name for name in names if body.get(name) not in (None, [], {}, "")]


def list_unknown_fields(body: JsonObject, fields: Mapping[str, FieldHandling]) -> list[str]:
    """Return the non-empty fields of a request that ``fields`` does not list, or lists as "left out"."""
    return list_dropped_fields(body, [name for name in body if fields.get(name, "left out") == "left out"])


def to_header(dropped: Iterable[str]) -> str:
    """Return the header value that lists the dropped fields, or "" if the list is empty."""
    names = list(dict.fromkeys(sanitize_for_header(each) for each in dropped))
    more = f", and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def sanitize_for_header(name: str) -> str:
    """Replace characters that are unsafe in headers and terminals, and shorten long names."""
    return _UNSAFE.sub("?", name[:MAX_NAME])
