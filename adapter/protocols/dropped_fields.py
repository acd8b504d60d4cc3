"""What of a request is left out, because nobody here can do it: named, so that nothing is dropped in silence."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Literal, TypeAlias

from adapter.core.events import JsonObject

FieldHandling: TypeAlias = Literal["taken", "mapped", "passed", "left out", "refused"]
"""What becomes of a field: we do it ourselves; it goes on under another name or in another shape; it goes on as it is;
it is left out; the request is refused because of it."""

HEADER = "adapter-left-out"
"""Of the answer."""

MAX_NAMED = 20
"""In one answer."""

MAX_NAME = 60
"""Characters of a name."""

_UNSPEAKABLE = re.compile(r"[^\w .:/*()-]", re.ASCII)


def dropped_fields(body: JsonObject, names: Collection[str]) -> list[str]:
    """Those of ``names`` that a request has, with something in them."""
    return [name for name in names if body.get(name) not in (None, [], {}, "")]


def as_header(left_out: Iterable[str]) -> str:
    """The names as the value of a header; "" for none."""
    names = list(dict.fromkeys(header_safe(each) for each in left_out))
    more = f", and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def header_safe(name: str) -> str:
    """What a client called something, as a header and a terminal can say it."""
    return _UNSPEAKABLE.sub("?", name[:MAX_NAME])
