"""The tool call deltas of one choice: complete calls, streamed fragments, or calls forwarded from the server."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from adapter.core.events import Json, JsonObject, ToolCallDelta
from adapter.prompting.escaping import StreamingUnescaper
from adapter.protocols.server_parsed_calls import begins_call, read_fragments
from adapter.protocols.tool_type_conversion import ToolTypes
from adapter.protocols.verbatim_call_cache import Call


@dataclass(frozen=True, slots=True)
class _NativeCall:
    id: str
    name: str
    arguments: list[str]


class ToolCallDeltas:
    """Builds the deltas for the tool calls of one choice. ``whole`` has the complete calls that were sent to the
    client.

    Args:
        kinds: Types of the client's tools.
        turn: Prefix of generated call ids.
        is_excluded: Returns whether calls of a tool that the server parsed are left out.
    """

    def __init__(self, kinds: ToolTypes, turn: str, is_excluded: Callable[[str], bool]) -> None:
        self.whole: list[Call] = []
        self._kinds = kinds
        self._turn = turn
        self._is_excluded = is_excluded
        self._ids: list[str] = []
        self._open: str | None = None
        self._unescaper = StreamingUnescaper()
        self._native: dict[int, int] = {}  # the server's index -> the client's, or -1 if left out
        self._held: dict[int, _NativeCall] = {}  # by the server's index

    def __len__(self) -> int:
        """Return the number of calls that were sent to the client, completely or partly."""
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

    def add_native_calls(self, calls: Json, *, streams: bool) -> list[JsonObject]:
        """Add calls, or fragments of calls, that the server parsed. Return the deltas for the complete calls.

        A call is complete when the next one begins; `release_native` returns the last call. If ``streams`` is True,
        fragments are returned at once.
        """
        deltas: list[JsonObject] = []
        for index, call_id, name, text in read_fragments(calls):
            held, sent = self._held.get(index), self._native.get(index)
            earlier_id = held.id if held is not None else self._ids[sent] if sent is not None and sent >= 0 else ""
            if (held is None and sent is None) or begins_call(call_id, name, earlier_id):
                deltas += self.release_native()
                self._held[index] = _NativeCall(call_id, name, [text])
                deltas += self.release_native() if streams else []
            elif held is not None:
                held.arguments.append(text)
            elif sent is not None and sent >= 0:
                deltas.append(_build_arguments(sent, text))
        return deltas

    def release_native(self, default: str = "") -> list[JsonObject]:
        """Return the deltas for the held calls that the server parsed. They are renumbered, because other calls may
        precede them. ``default`` replaces missing arguments."""
        deltas: list[JsonObject] = []
        for index, call in self._held.items():
            self._native[index] = -1 if self._is_excluded(call.name) else len(self._ids)
            if self._native[index] < 0:
                continue
            call_id = call.id or f"call_{self._turn[:23]}{len(self._ids)}"
            deltas.append(self._build_header(call_id, call.name, "".join(call.arguments) or default))
        self._held.clear()
        return deltas

    def drop_cut_native(self) -> str | None:
        """Drop the held call if its arguments are incomplete. Return its name, or None if no call was dropped."""
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
