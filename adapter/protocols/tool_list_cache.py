"""Decode a request's list of tools only once, because clients repeat the same bytes in every turn."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from adapter.core.events import Json
from adapter.core.json.load import load_json

MAX_BYTES = 131_072
"""Maximum length of a request whose tools are recognized, in bytes. Above it, this takes as long as decoding."""
MAX_KNOWN = 16
"""Maximum number of lists of tools that are known."""
MAX_BUILT = 4
"""Maximum number of objects that are cached for a list of tools."""

_KEY = re.compile(rb'"tools"\s*:\s*')
_MARK = "\0tools"
_PLACEHOLDER = b'"tools":"\\u0000tools"'
_DECODER = json.JSONDecoder()

Built = TypeVar("Built")


@dataclass(frozen=True, slots=True)
class _KnownTools:
    """Tools, which must not be changed, and the objects that were built from them."""

    definitions: list[Json]
    built: dict[Hashable, tuple[Json, Any]] = field(default_factory=dict)
    converted: list[list[Json]] = field(default_factory=list)
    """The tools in the form of other APIs."""

    def has(self, tools: Json) -> bool:
        return tools is self.definitions or any(tools is each for each in self.converted)


_KNOWN: dict[bytes, _KnownTools] = {}
"""The tools of the last requests, by the bytes of key and value, which no JSON string contains unescaped."""


def load_request(content: bytes) -> Json:
    """Decode a request body like `load_json`. Requests with equal tools share one list object for them."""
    found = _KEY.search(content) if len(content) <= MAX_BYTES else None
    if found is None:
        return load_json(content)
    start = found.start()
    encoded = next((each for each in tuple(_KNOWN) if content.startswith(each, start)), None)
    known = _KNOWN.pop(encoded, None) if encoded is not None else None
    if encoded is not None and known is not None:
        _KNOWN[encoded] = known  # the least recently used one is the first
        try:
            body = load_json(b"".join((content[:start], _PLACEHOLDER, content[start + len(encoded) :])))
        except ValueError:
            return load_json(content)  # its error has the right position
        if isinstance(body, dict) and body.get("tools") == _MARK:
            body["tools"] = known.definitions
            return body
    body = load_json(content)
    if known is None and isinstance(body, dict) and isinstance(body.get("tools"), list):
        _remember(content[start:], found.end() - start, body["tools"])
    return body


def _remember(content: bytes, start: int, tools: list[Json]) -> None:
    """Remember ``tools`` if they are the value at ``start``, and not another field of the same name."""
    text = content[start:].decode("utf-8", "replace")
    try:
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return
    if value == tools:
        _KNOWN[content[:start] + text[:end].encode()] = _KnownTools(tools)
        if len(_KNOWN) > MAX_KNOWN:
            _KNOWN.pop(next(iter(_KNOWN)), None)


def build_once(definitions: Json, key: Hashable, build: Callable[[], Built]) -> Built:
    """Return the object that ``build`` builds from the tools ``definitions``. It is cached if the tools are known."""
    known = next((each for each in tuple(_KNOWN.values()) if each.has(definitions)), None)
    if known is None:
        return build()
    key = key, id(definitions)
    entry = known.built.get(key)
    if entry is None:
        if len(known.built) >= MAX_BUILT:
            known.built.clear()
            known.converted.clear()
        entry = known.built[key] = (definitions, build())  # with the list, so that no other one gets its id
    built: Built = entry[1]
    return built


def convert_once(
    definitions: Json, api: str, dropped: list[str], convert: Callable[[list[str]], tuple[Built, list[Json]]]
) -> Built:
    """Convert tools of another ``api`` to the format of chats. The result is cached if the tools are known.

    ``convert`` receives a list to which it appends the names of dropped tools, and returns a result and the converted
    tools. The names are also appended to ``dropped``.
    """

    def build() -> tuple[Built, list[str]]:
        names: list[str] = []
        result, tools = convert(names)
        known = next((each for each in tuple(_KNOWN.values()) if each.definitions is definitions), None)
        if known is not None:
            known.converted[:] = [*known.converted[-1:], tools]
        return result, names

    result, names = build_once(definitions, api, build)
    dropped += names
    return result
