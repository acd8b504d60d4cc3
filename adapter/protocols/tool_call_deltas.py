"""The calls of one answer as its client is told of them: whole, in fragments, or as the server has read them."""

from __future__ import annotations

import json

from adapter.core.events import Json, JsonObject, ToolCallDelta
from adapter.prompting.escaping import StreamingUnescaper
from adapter.protocols.tool_types import ToolTypes
from adapter.protocols.verbatim_calls import Call


class ToolCallDeltas:
    """``kinds``: in which of OpenAI's shapes each is. ``turn``: what ids begin with where a server gives none.

    ``whole`` are those that the client has with all of their arguments.
    """

    def __init__(self, kinds: ToolTypes, turn: str) -> None:
        self.whole: list[Call] = []
        self._kinds = kinds
        self._turn = turn
        self._ids: list[str] = []
        self._open: str | None = None
        self._restoring = StreamingUnescaper()
        self._native: dict[int, int] = {}  # the server's index -> ours

    def __len__(self) -> int:
        """Those that the client has at least the beginning of."""
        return len(self._ids)

    @property
    def is_open(self) -> bool:
        """Whether the client waits for more of the last one's arguments."""
        return self._open is not None

    def fragment(self, event: ToolCallDelta) -> list[JsonObject]:
        begun: list[JsonObject] = []
        if event.id != self._open:
            self._open, self._restoring = event.id, StreamingUnescaper()
            begun.append(self._header(event.id, event.name, ""))
        return [*begun, _arguments(len(self._ids) - 1, self._restoring.feed(event.arguments))]

    def call(self, call_id: str, name: str, arguments: JsonObject) -> list[JsonObject]:
        """Nothing where the client has it in fragments already."""
        self.whole.append((call_id, name, arguments))
        if call_id == self._open:
            self._open = None
            return []
        return [self._header(call_id, name, json.dumps(arguments, ensure_ascii=False))]

    def forward_native(self, calls: Json) -> list[JsonObject]:
        """Calls, or pieces of them, that the server has read, under our numbers: there may be calls of ours before."""
        told: list[JsonObject] = []
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            if not isinstance(call, dict) or not isinstance(function := call.get("function"), dict):
                continue
            given = call.get("index")
            index = given if isinstance(given, int) else position
            arguments = function.get("arguments")
            text = arguments or "" if isinstance(arguments, str | None) else json.dumps(arguments, ensure_ascii=False)
            if index in self._native:
                told.append(_arguments(self._native[index], text))
                continue
            self._native[index] = len(self._ids)
            call_id = str(call.get("id") or f"call_{self._turn[:23]}{len(self._ids)}")
            told.append(self._header(call_id, str(function.get("name") or ""), text))
        return told

    def _header(self, call_id: str, name: str, arguments: str) -> JsonObject:
        self._ids.append(call_id)
        return self._kinds.call(len(self._ids) - 1, call_id, name, arguments)


def _arguments(index: int, text: str) -> JsonObject:
    return {"tool_calls": [{"index": index, "function": {"arguments": text}}]}
