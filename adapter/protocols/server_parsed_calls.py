"""Collect calls that a model server parsed although the request had no tools, and decode them like calls in the model's
text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from adapter.core.errors import FormatError
from adapter.core.events import InvalidToolCall, Json, ToolCall
from adapter.core.text.string_builder import StringBuilder
from adapter.tools.call_extraction import parse_arguments
from adapter.tools.call_normalization import normalize_call
from adapter.tools.tool import ToolSet


def measure_calls(calls: Json) -> int:
    """Return the number of characters in calls or fragments of calls. Each counts as at least one."""
    functions = (call.get("function") for call in (calls if isinstance(calls, list) else ()) if isinstance(call, dict))
    return sum(
        1 + len(str(function.get("name") or "")) + len(str(function.get("arguments") or ""))
        for function in functions
        if isinstance(function, dict)
    )


@dataclass(slots=True)
class NativeCall:
    """A call that the server parsed. Its index in the client's answer is ``index``: None before the call is sent, and
    -1 if it is left out."""

    id: str
    name: str = ""
    arguments: StringBuilder = field(default_factory=StringBuilder)
    index: int | None = None


class NativeCalls:
    """Collects calls in OpenAI's format, either complete or as fragments of a stream."""

    def __init__(self) -> None:
        self.calls: list[NativeCall] = []
        self._last: dict[int, NativeCall] = {}
        """The last call with each index of the server."""

    def add(self, calls: Json) -> list[tuple[NativeCall, str]]:
        """Add calls, or fragments of calls. Return the call of each fragment, and the fragment's arguments."""
        return [self._add(*fragment) for fragment in _read_fragments(calls)]

    def _add(self, index: int, call_id: str, name: str, arguments: str) -> tuple[NativeCall, str]:
        call = self._last.get(index)
        # Ollama gives all calls the index 0. Other servers repeat the id or name of a call in each fragment.
        if call is None or (name and call_id and call.id and call_id != call.id):
            call = self._last[index] = NativeCall(call_id)
            self.calls.append(call)
        call.name = call.name or name
        call.arguments.add(arguments)
        return call, arguments

    def build_events(self, tools: ToolSet, turn: str) -> list[ToolCall | InvalidToolCall]:
        """Return the calls. The ids of calls without one are generated from ``turn``."""
        return [_build_event(call, tools, f"call_{turn[:20]}n{number}") for number, call in enumerate(self.calls)]


def _read_fragments(calls: Json) -> Iterator[tuple[int, str, str, str]]:
    """Yield the index, id, name and arguments of each call, or fragment of a call."""
    for position, call in enumerate(calls if isinstance(calls, list) else ()):
        if isinstance(call, dict) and isinstance(function := call.get("function"), dict):
            index, arguments = call.get("index"), function.get("arguments")
            text = arguments or "" if isinstance(arguments, str | None) else json.dumps(arguments, ensure_ascii=False)
            name = str(function.get("name") or "")
            yield index if isinstance(index, int) else position, str(call.get("id") or ""), name, text


def _build_event(call: NativeCall, tools: ToolSet, new_id: str) -> ToolCall | InvalidToolCall:
    written = str(call.arguments)
    raw = f'{{"name": {json.dumps(call.name)}, "arguments": {written or "{}"}}}'
    try:
        arguments, _ = parse_arguments(written)
    except FormatError as error:
        return InvalidToolCall(raw, str(error), call.name or None)
    name, arguments, fixes = normalize_call(call.name, arguments, tools)
    return ToolCall(call.id or new_id, name, arguments, raw, fixes)
