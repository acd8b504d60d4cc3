"""Decode a request's messages and tools only once, because clients repeat the same bytes in every turn."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from adapter.core.events import Json
from adapter.core.json.load import load_json

MAX_BYTES = 8_000_000
"""Maximum total length of the known lists, in bytes."""
MAX_NEW_BYTES = 1_000_000
"""Maximum length of a new list, in bytes. Searching for its end takes as long as decoding it."""
MAX_KNOWN = 64
"""Maximum number of known lists."""
MAX_BUILT = 4
"""Maximum number of objects that are cached for a list of tools."""

_NAMES = ("messages", "input", "tools")
_OPENING = re.compile(rb'"\w+"\s*:\s*\[')
_MARK = "\0known"
_DECODER = json.JSONDecoder()

Built = TypeVar("Built")


@dataclass(frozen=True, slots=True, eq=False)
class _KnownList:
    """A list in an earlier request, which must not be changed. ``encoded`` has its bytes in that request, from the key
    to the end of the last item. Because these bytes contain quotes, they cannot occur inside a JSON string."""

    encoded: bytes
    items: list[Json]


@dataclass(frozen=True, slots=True)
class _Location:
    """The position of the list ``name`` in a request, and the known list with the same first items."""

    name: str
    start: int
    known: _KnownList | None

    @property
    def end(self) -> int:
        """Index of the end of the known list's bytes in the request."""
        return self.start + (len(self.known.encoded) if self.known else 0)


_KNOWN: list[_KnownList] = []
"""The lists of the last requests. The least recently used one is the first."""
_BUILT: dict[int, tuple[list[Json], dict[Hashable, Any]]] = {}
"""Objects built from known lists of tools, by the id of the list: the list, and the objects by key. Lists converted to
the chat format are included."""


def load_request(content: bytes) -> Json:
    """Decode a request body like `load_json`. Equal lists in different requests become the same object, and lists with
    the same first items share these items."""
    locations = list(_find_lists(content))
    pieces, end = [], 0
    for location in sorted(locations, key=lambda each: each.start):
        if location.known is not None:
            pieces += [content[end : location.start], f'"{location.name}":[{json.dumps(_MARK)}'.encode()]
            end = location.end
    if not pieces:
        body = load_json(content)
    else:
        try:
            body = load_json(b"".join((*pieces, content[end:])))
        except ValueError:
            return load_json(content)  # its error has the right position
    for location in locations:
        items = body.get(location.name) if isinstance(body, dict) else None
        if location.known is not None:
            if not isinstance(items, list) or items[:1] != [_MARK]:
                return load_json(content)  # another object has the list
            items = body[location.name] = (
                [*location.known.items, *items[1:]] if len(items) > 1 else location.known.items
            )
        if isinstance(items, list):
            _remember(content, location, items)
    return body


def _find_lists(content: bytes) -> Iterator[_Location]:
    begin = end = 0
    for name in _NAMES:
        if name == "input" and end:
            continue  # a request has either messages or an input
        key = f'"{name}"'.encode()
        if (start := content.find(key, end)) >= 0 or (start := content.find(key, 0, begin)) >= 0:
            known = (each for each in tuple(_KNOWN) if content.startswith(each.encoded, start))
            location = _Location(name, start, max(known, key=lambda each: len(each.encoded), default=None))
            begin, end = location.start, location.end
            yield location


def _remember(content: bytes, location: _Location, items: list[Json]) -> None:
    """Remember ``items`` if they are the list at ``location`` rather than another field of the same name."""
    known = location.known
    if known is None or items is not known.items:
        opening = _OPENING.match(content, location.start)
        end = location.end if known else opening.end() if opening else len(content)
        text, before = content[end:].decode("utf-8", "replace"), "[0" if known else "[0,"
        try:
            (_, *added), size = _DECODER.raw_decode(before + text) if len(text) <= MAX_NEW_BYTES else ([0], 0)
        except (ValueError, RecursionError):
            return
        if not added or added != items[len(known.items) if known else 0 :]:
            return
        encoded = content[location.start : end] + text[: size - len(before) - 1].rstrip().encode()
        known = _KnownList(encoded, items)
    if location.name == "tools":
        _keep(known.items)
    kept = [each for each in _KNOWN if each is not known and each is not location.known] + [known]
    total = sum([len(each.encoded) for each in kept])  # faster than a generator
    while total > MAX_BYTES or len(kept) > MAX_KNOWN:
        total -= len(kept.pop(0).encoded)
    _KNOWN[:] = kept


def build_once(definitions: Json, key: Hashable, build: Callable[[], Built]) -> Built:
    """Return the object that ``build`` builds from the list of tools ``definitions``. It is cached under ``key`` if an
    earlier request had the same list."""
    _, cached = _BUILT.get(id(definitions), (None, None))
    built: Built = build() if cached is None or key not in cached else cached[key]
    if cached is not None:
        if len(cached) >= MAX_BUILT and key not in cached:
            cached.clear()
        cached[key] = built
    return built


def convert_once(
    definitions: Json, api: str, dropped: list[str], convert: Callable[[list[str]], tuple[Built, list[Json]]]
) -> Built:
    """Convert tools of another API to the chat format, and return the first value that ``convert`` returns. It is
    cached under ``api`` if an earlier request had the same list of tools.

    ``convert`` receives a list to which it appends the names of dropped tools, and returns a result and the converted
    tools. The names are also appended to ``dropped``.
    """

    def build() -> tuple[Built, list[Json], list[str]]:
        names: list[str] = []
        return *convert(names), names

    result, tools, names = build_once(definitions, api, build)
    if id(definitions) in _BUILT:
        _keep(tools)
    dropped += names
    return result


def _keep(tools: list[Json]) -> None:
    """Let `build_once` cache the objects that are built from ``tools``."""
    _BUILT[id(tools)] = _BUILT.pop(id(tools), (tools, {}))  # with the list, so that its id is not reused
    if len(_BUILT) > MAX_KNOWN:
        _BUILT.pop(next(iter(_BUILT)), None)
