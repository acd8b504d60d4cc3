"""The tool call deltas of one choice: complete calls, streamed fragments, or calls forwarded from the server."""

from __future__ import annotations

import json
from dataclasses import dataclass

from adapter.core.events import Json, JsonObject, ToolCallDelta
from adapter.prompting.escaping import StreamingUnescaper
from adapter.protocols.tool_type_conversion import ToolTypes
from adapter.protocols.verbatim_calls import Call


@dataclass(frozen=True, slots=True)
class _NativeCall:
    id: str
    name: str
    arguments: list[str]


class ToolCallDeltas:
    """Build the deltas for the tool calls of one choice.

    Args:
        kinds: Types of the client's tools.
        turn: Prefix of generated call ids.
        whole: The complete calls that were sent to the client.
    """

    def __init__(self, kinds: ToolTypes, turn: str) -> None:
        self.whole: list[Call] = []
        self._kinds = kinds
        self._turn = turn
        self._ids: list[str] = []
        self._open: str | None = None
        self._unescaper = StreamingUnescaper()
        self._native: dict[int, int] = {}  # the server's index -> the client's
        self._held: dict[int, _NativeCall] = {}  # by the server's index

    def __len__(self) -> int:
        """Return the number of calls that were sent to the client at least partly."""
        return len(self._ids)

    @property
    def is_open(self) -> bool:
        """True if the arguments of the last call were sent only partly."""
        return self._open is not None

    def add_fragment(self, event: ToolCallDelta) -> list[JsonObject]:
        deltas: list[JsonObject] = []
        if event.id != self._open:
            self._open, self._unescaper = event.id, StreamingUnescaper()
            deltas.append(self._build_header(event.id, event.name, ""))
        return [*deltas, _build_arguments(len(self._ids) - 1, self._unescaper.feed(event.arguments))]

    def add_call(self, call_id: str, name: str, arguments: JsonObject) -> list[JsonObject]:
        """Return the deltas for a complete call, or an empty list if its fragments were already sent."""
        self.whole.append((call_id, name, arguments))
        if call_id == self._open:
            self._open = None
            return []
        return [self._build_header(call_id, name, json.dumps(arguments, ensure_ascii=False))]

    def take_native(self, calls: Json, *, streams: bool) -> list[JsonObject]:
        """Accept calls, or fragments of calls, that the server parsed, and return the deltas for those that are
        complete.

        A call is complete when the next one begins; see `release_native`. ``streams``: whether to return the fragments
        at once.
        """
        deltas: list[JsonObject] = []
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            if not isinstance(call, dict) or not isinstance(function := call.get("function"), dict):
                continue
            given_index = call.get("index")
            index = given_index if isinstance(given_index, int) else position
            arguments = function.get("arguments")
            text = arguments or "" if isinstance(arguments, str | None) else json.dumps(arguments, ensure_ascii=False)
            if index in self._native:
                deltas.append(_build_arguments(self._native[index], text))
            elif index in self._held:
                self._held[index].arguments.append(text)
            else:
                deltas += self.release_native()
                self._held[index] = _NativeCall(str(call.get("id") or ""), str(function.get("name") or ""), [text])
                deltas += self.release_native() if streams else []
        return deltas

    def release_native(self) -> list[JsonObject]:
        """Return the deltas for the server's calls that were held. They are renumbered, because other calls may precede
        them."""
        deltas: list[JsonObject] = []
        for index, call in self._held.items():
            self._native[index] = len(self._ids)
            call_id = call.id or f"call_{self._turn[:23]}{len(self._ids)}"
            deltas.append(self._build_header(call_id, call.name, "".join(call.arguments)))
        self._held.clear()
        return deltas

    def drop_cut_native(self) -> str | None:
        """Drop the server's last call if its arguments are incomplete. Return its name, or None if none was dropped."""
        for index, call in self._held.items():
            try:
                json.loads("".join(call.arguments) or "{}", strict=False)
            except (ValueError, RecursionError):
                del self._held[index]
                return call.name
        return None

    def _build_header(self, call_id: str, name: str, arguments: str) -> JsonObject:
        self._ids.append(call_id)
        return self._kinds.build_call(len(self._ids) - 1, call_id, name, arguments)


def _build_arguments(index: int, text: str) -> JsonObject:
    return {"tool_calls": [{"index": index, "function": {"arguments": text}}]}
