"""What the model was shown of files, to tell it when it is about to act on an old state of one."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from adapter.core.errors import ToolError
from adapter.core.text.diffs import changed_lines
from adapter.workspace.changes.text_codec import decode
from adapter.workspace.paths import tree_ops

MAX_SEEN_BYTES = 32 * 1024 * 1024
"""Texts remembered, to say which lines changed; of older ones only that they changed is known."""
MAX_SEEN_FILES = 10_000
"""Of which it is remembered that the model read them."""


@dataclass(frozen=True, slots=True)
class _Sight:
    fingerprint: str
    data: bytes | None


class ReadTracker:
    """The content of each file when the model last read or wrote it in this session, by components below the root."""

    def __init__(self) -> None:
        self._sights: OrderedDict[tuple[str, ...], _Sight] = OrderedDict()
        self._bytes = 0

    def note(self, parts: tuple[str, ...], data: bytes) -> None:
        self.forget(parts)
        self._sights[parts] = _Sight(tree_ops.fingerprint_of(data), data)
        self._bytes += len(data)
        for old, sight in list(self._sights.items()) if self._bytes > MAX_SEEN_BYTES else ():
            if self._bytes > MAX_SEEN_BYTES and sight.data is not None:
                self._bytes -= len(sight.data)
                self._sights[old] = _Sight(sight.fingerprint, None)
        while len(self._sights) > MAX_SEEN_FILES:
            self.forget(next(iter(self._sights)))

    def forget(self, parts: tuple[str, ...]) -> None:
        sight = self._sights.pop(parts, None)
        self._bytes -= len(sight.data or b"") if sight else 0

    def move(self, source: tuple[str, ...], destination: tuple[str, ...]) -> None:
        """What was known of ``source``, or below it, is known of ``destination``."""
        for parts in [parts for parts in self._sights if parts[: len(source)] == source]:
            self._sights[destination + parts[len(source) :]] = self._sights.pop(parts)

    def saved(self) -> list[tuple[tuple[str, ...], _Sight]]:
        """What `restore` goes back to."""
        return list(self._sights.items())

    def restore(self, saved: list[tuple[tuple[str, ...], _Sight]]) -> None:
        self._sights = OrderedDict(saved)
        self._bytes = sum(len(sight.data or b"") for sight in self._sights.values())

    def knows(self, parts: tuple[str, ...]) -> bool:
        return parts in self._sights

    def change_of(self, parts: tuple[str, ...], data: bytes) -> str:
        """What is different in ``data`` from what was seen, in words; "" when it was not seen or is the same."""
        sight = self._sights.get(parts)
        if sight is None or sight.fingerprint == tree_ops.fingerprint_of(data):
            return ""
        try:
            if sight.data is not None:
                return changed_lines(decode(sight.data, "").text, decode(data, "").text)
        except ToolError:
            pass
        return f"it has {len(data)} bytes now"
