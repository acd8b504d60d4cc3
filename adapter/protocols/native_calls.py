"""Calls that a model server parsed although it got no tools: they are decoded like calls in the model's text."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from adapter.core.errors import FormatError
from adapter.core.events import InvalidToolCall, Json, ToolCall
from adapter.core.text.string_builder import StringBuilder
from adapter.tools.call_normalization import normalize_call
from adapter.tools.call_shapes import parse_arguments
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
class _Fragments:
    call_id: str
    name: str = ""
    arguments: StringBuilder = field(default_factory=StringBuilder)


class NativeCalls:
    """Collects calls in OpenAI's format, either complete or as fragments of a stream."""

    def __init__(self) -> None:
        self._calls: dict[int, _Fragments] = {}

    def add(self, calls: Json) -> None:
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            if not isinstance(call, dict) or not isinstance(function := call.get("function"), dict):
                continue
            index = call.get("index")
            key = index if isinstance(index, int) else position
            call_fragments = self._calls.setdefault(key, _Fragments(str(call.get("id") or "")))
            call_fragments.name = call_fragments.name or str(function.get("name") or "")
            arguments = function.get("arguments") or ""
            call_fragments.arguments.add(
                arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            )

    def build_events(self, tools: ToolSet, turn: str) -> list[ToolCall | InvalidToolCall]:
        """Return the calls. ``turn``: prefix of generated call ids."""
        return [
            _build_event(call, tools, f"call_{turn[:20]}n{number}") for number, call in enumerate(self._calls.values())
        ]


def _build_event(call: _Fragments, tools: ToolSet, new_id: str) -> ToolCall | InvalidToolCall:
    written = str(call.arguments)
    raw = f'{{"name": {json.dumps(call.name)}, "arguments": {written or "{}"}}}'
    try:
        arguments, _ = parse_arguments(written)
    except FormatError as error:
        return InvalidToolCall(raw, str(error), call.name or None)
    name, arguments, fixes = normalize_call(call.name, arguments, tools)
    return ToolCall(call.call_id or new_id, name, arguments, raw, fixes)
