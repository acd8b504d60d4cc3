"""Collect the calls of one choice that the model server parsed, and build the deltas of all its calls.

If the server parsed calls although the request had no tools, they are decoded like calls in the model's text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from adapter.core.errors import FormatError
from adapter.core.events import InvalidToolCall, Json, JsonObject, ToolCall, ToolCallDelta
from adapter.core.text.string_builder import StringBuilder
from adapter.prompting.escaping import StreamingUnescaper
from adapter.protocols.conversation_cache import Call
from adapter.protocols.custom_and_legacy_tools import ToolTypes
from adapter.protocols.sse import is_cut, read_json_or_none
from adapter.tools.call_normalization import normalize_call
from adapter.tools.decoded_json_calls import parse_arguments
from adapter.tools.tool_set import ToolSet


def measure_calls(calls: Json) -> int:
    """Return the number of characters in calls or fragments of calls, counting each fragment as at least one."""
    return sum(1 + len(name) + len(arguments) for _, _, name, arguments in _iter_fragments(calls))


@dataclass(slots=True, eq=False)
class NativeCall:
    """A call parsed by the server. ``index`` is its index for the client: None before it is sent, -1 if it is left out.
    ``is_whole`` is True if its first fragment has complete arguments."""

    id: str
    is_whole: bool = False
    name: str = ""
    arguments: StringBuilder = field(default_factory=StringBuilder)
    index: int | None = None

    def is_followed_by(self, call_id: str, name: str, arguments: str) -> bool:
        """Return whether a fragment with the same server index belongs to another call. Ollama gives every call the
        index 0. Gemini's API does the same, and sends no id. Other servers repeat a call's id or name in each
        fragment."""
        if not name or (call_id and call_id == self.id):
            return False
        return bool(call_id and self.id) or (self.is_whole and arguments.strip() != "")


class NativeCalls:
    """Collects calls in OpenAI's format, either complete or as fragments of a stream."""

    def __init__(self) -> None:
        self.calls: list[NativeCall] = []
        self._last: dict[int, NativeCall] = {}
        """The last call for each index that the server uses."""

    def add(self, calls: Json) -> list[tuple[NativeCall, str]]:
        """Add calls, or fragments of calls. Return the call of each fragment, and the fragment's arguments."""
        return [self._add(*fragment) for fragment in _iter_fragments(calls) if any(fragment[1:])]

    def _add(self, index: int, call_id: str, name: str, arguments: str) -> tuple[NativeCall, str]:
        call = self._last.get(index)
        if call is None or call.is_followed_by(call_id, name, arguments):
            call = self._last[index] = NativeCall(call_id, isinstance(read_json_or_none(arguments), dict))
            self.calls.append(call)
        call.name = call.name or name
        call.arguments.add(arguments)
        return call, arguments

    def build_events(self, tools: ToolSet, turn: str, *, at_limit: bool = False) -> list[ToolCall | InvalidToolCall]:
        """Return the calls as events. Missing ids are generated from ``turn``. If ``at_limit`` is True, the answer was
        cut off at a limit, and calls with incomplete arguments are invalid, even if they could be repaired."""
        return [
            InvalidToolCall(_render(call), "the call was cut off", call.name or None)
            if at_limit and _is_cut(call, at_limit=True)
            else _build_event(call, f"call_{turn[:20]}n{number}", tools)
            for number, call in enumerate(self.calls)
        ]


def _iter_fragments(calls: Json) -> Iterator[tuple[int, str, str, str]]:
    """Yield the index, id, name and arguments of each call, or fragment of a call."""
    for position, call in enumerate(calls if isinstance(calls, list) else ()):
        function = call.get("function", call if "name" in call else None) if isinstance(call, dict) else None
        if isinstance(function, dict):
            index, arguments = call.get("index"), function.get("arguments")
            text = arguments or "" if isinstance(arguments, str | None) else json.dumps(arguments, ensure_ascii=False)
            name = str(function.get("name") or "")
            yield index if isinstance(index, int) else position, str(call.get("id") or ""), name, text


def _render(call: NativeCall) -> str:
    return f'{{"name": {json.dumps(call.name)}, "arguments": {str(call.arguments) or "{}"}}}'


def _build_event(call: NativeCall, new_id: str, tools: ToolSet | None) -> ToolCall | InvalidToolCall:
    """Return a complete call. If ``tools`` is None, its name and arguments are not matched to tools."""
    written, raw = str(call.arguments), _render(call)
    if not call.name:
        return InvalidToolCall(raw, "the call has no name")
    try:
        arguments, _ = parse_arguments(written)
    except FormatError as error:
        return InvalidToolCall(raw, str(error), call.name or None)
    name, arguments, fixes = normalize_call(call.name, arguments, tools) if tools else (call.name, arguments, ())
    return ToolCall(call.id or new_id, name, arguments, raw, fixes)


class ToolCallDeltas:
    """Builds the deltas for the tool calls of one choice.

    ``whole`` has the complete calls that were sent to the client, and ``native`` the calls that the server parsed in
    its current answer. ``kinds`` are the types of the client's tools. Ids of calls that have none are generated from
    ``turn``. ``is_excluded`` returns True for tools whose calls are left out if the server parsed them.
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
        self._held: dict[NativeCall, None] = {}
        self._streamed: NativeCall | None = None  # the last one whose fragments are sent at once
        self._holds_all = False  # until the end, because a call began before the end of the streamed one
        self.unreadable: list[InvalidToolCall] = []
        """The server's calls whose arguments are not a JSON object and cannot be repaired."""

    def __len__(self) -> int:
        """Return the number of calls that were sent to the client, completely or partly."""
        return len(self._ids)

    @property
    def is_open(self) -> bool:
        """True if the arguments of the last call were sent only partly."""
        return self._open is not None

    def add_fragment(self, event: ToolCallDelta) -> list[JsonObject]:
        """Return the deltas for a fragment of a call that this library parses."""
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

        A call with a JSON object is complete when the next one begins; `release_native` returns the other calls. If
        ``streams`` is True, fragments are returned at once, except for a call that begins before the end of another.
        """
        deltas: list[JsonObject] = []
        for call, text in self.native.add(calls):
            if call.index is not None:
                deltas += [_build_arguments(call.index, text)] if call.index >= 0 else []
                continue
            if call not in self._held:
                self._holds_all = self._holds_all or not (self._streamed is None or _has_object(self._streamed))
                if len(self._held) == 1 and not self._holds_all and _has_object(next(iter(self._held))):
                    deltas += self.release_native()
                self._held[call] = None
            if streams and call.name and not self._holds_all:
                del self._held[call]
                self._streamed = call
                deltas += self._send_native(call, is_complete=False)
        return deltas

    def release_native(self) -> list[JsonObject]:
        """Return the deltas for calls that the server parsed and that were held back. Their arguments are repaired if
        they are not a JSON object."""
        held, self._held, self._streamed, self._holds_all = self._held, {}, None, False
        return [delta for call in held for delta in self._send_native(call, is_complete=True)]

    def _send_native(self, call: NativeCall, *, is_complete: bool) -> list[JsonObject]:
        """Return the deltas for a call. It gets a new index, because other calls may precede it."""
        call.index = -1
        if not call.name or self._is_excluded(call.name):
            return []
        arguments = str(call.arguments)
        if is_complete and not _has_object(call):
            event = _build_event(call, "", None)
            if isinstance(event, InvalidToolCall):
                self.unreadable.append(event)
                return []
            arguments = json.dumps(event.arguments, ensure_ascii=False)
        sent = [(name, values) for _, name, values in self.whole]
        if is_complete and (call.name, read_json_or_none(arguments)) in sent:  # some servers also leave it in the text
            return []
        call.index = len(self._ids)
        return [self._build_header(call.id or f"call_{self._turn[:23]}{call.index}", call.name, arguments)]

    def drop_cut_native(self, *, at_limit: bool) -> str | None:
        """Drop the held calls with arguments that are incomplete, or were lost or damaged at a limit. Return the name
        of the last dropped call, or None."""
        dropped = [call for call in self._held if _is_cut(call, at_limit=at_limit)]
        for call in dropped:
            del self._held[call]
        return dropped[-1].name if dropped else None

    def _build_header(self, call_id: str, name: str, arguments: str) -> JsonObject:
        self._ids.append(call_id)
        return self._kinds.build_call(len(self._ids) - 1, call_id, name, arguments)


def _has_object(call: NativeCall) -> bool:
    return isinstance(read_json_or_none(str(call.arguments)), dict)


def _is_cut(call: NativeCall, *, at_limit: bool) -> bool:
    text = str(call.arguments)
    try:
        json.loads(text or ("" if at_limit else "{}"), strict=False)
    except (ValueError, RecursionError) as error:
        has_more = str(error).startswith("Extra data")  # after a complete value
        return at_limit or (not has_more and is_cut(text.encode("utf-8", "replace")))
    return False


def _build_arguments(index: int, text: str) -> JsonObject:
    return {"tool_calls": [{"index": index, "function": {"arguments": text}}]}
