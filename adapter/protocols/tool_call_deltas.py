"""The tool call deltas of one choice: complete calls, streamed fragments, or calls forwarded from the server."""

from __future__ import annotations

import json
from collections.abc import Callable

from adapter.core.events import Json, JsonObject, ToolCallDelta
from adapter.prompting.escaping import StreamingUnescaper
from adapter.protocols.server_parsed_calls import NativeCall, NativeCalls
from adapter.protocols.tool_type_conversion import ToolTypes
from adapter.protocols.verbatim_call_cache import Call


class ToolCallDeltas:
    """Builds the deltas for the tool calls of one choice. ``whole`` has the complete calls that were sent to the
    client, and ``native`` the calls that the server parsed in its current answer.

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
        self.native = NativeCalls()
        self._held: NativeCall | None = None

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
        for call, text in self.native.add(calls):
            if call.index is not None:
                deltas += [_build_arguments(call.index, text)] if call.index >= 0 else []
            elif call is not self._held:
                deltas += self.release_native()
                self._held = call
                deltas += self.release_native() if streams else []
        return deltas

    def release_native(self, default: str = "") -> list[JsonObject]:
        """Return the deltas for the held call that the server parsed. It gets a new index, because other calls may
        precede it. ``default`` replaces missing arguments."""
        call, self._held = self._held, None
        if call is None:
            return []
        call.index = -1 if self._is_excluded(call.name) else len(self._ids)
        if call.index < 0:
            return []
        call_id = call.id or f"call_{self._turn[:23]}{len(self._ids)}"
        return [self._build_header(call_id, call.name, str(call.arguments) or default)]

    def drop_cut_native(self) -> str | None:
        """Drop the held call if its arguments are incomplete. Return its name, or None if no call was dropped."""
        call = self._held
        try:
            json.loads(str(call.arguments) or "{}" if call else "{}", strict=False)
        except (ValueError, RecursionError):
            self._held = None
            return call.name if call else None
        return None

    def _build_header(self, call_id: str, name: str, arguments: str) -> JsonObject:
        self._ids.append(call_id)
        return self._kinds.build_call(len(self._ids) - 1, call_id, name, arguments)


def _build_arguments(index: int, text: str) -> JsonObject:
    return {"tool_calls": [{"index": index, "function": {"arguments": text}}]}
