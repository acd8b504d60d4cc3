"""Remember the file contents that the model has read, so that it does not unknowingly overwrite newer content."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from adapter.core.errors import ToolError
from adapter.core.text.diffs import describe_changed_lines
from adapter.workspace.changes.text_codec import decode
from adapter.workspace.paths import tree_ops

MAX_SEEN_BYTES = 32 * 1024 * 1024
"""Maximum total size of remembered contents, in bytes. Beyond it, only fingerprints of the oldest contents are kept."""
MAX_SEEN_FILES = 10_000
"""Maximum number of files remembered."""


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """A file's content as the model last read or changed it, and as the model last read or wrote the whole file."""

    fingerprint: str
    data: bytes | None
    read: bytes | None

    @property
    def size(self) -> int:
        return len(self.data or b"") + (len(self.read or b"") if self.read is not self.data else 0)


class ReadTracker:
    """Remembers the content of each file when the model last read or wrote it, by path components below the root."""

    def __init__(self) -> None:
        self._snapshots: OrderedDict[tuple[str, ...], _Snapshot] = OrderedDict()
        self._bytes = 0

    def note(self, parts: tuple[str, ...], data: bytes, *, is_patched: bool = False) -> None:
        """Remember ``data``, which the model has read or written. ``is_patched``: the model only changed a part."""
        previous = self._snapshots.get(parts)
        read = (previous.read if previous else None) if is_patched else data
        self.forget(parts)
        self._snapshots[parts] = _Snapshot(tree_ops.fingerprint_bytes(data), data, read)
        self._bytes += self._snapshots[parts].size
        for old, snapshot in list(self._snapshots.items()) if self._bytes > MAX_SEEN_BYTES else ():
            if self._bytes > MAX_SEEN_BYTES:
                self._bytes -= snapshot.size
                self._snapshots[old] = _Snapshot(snapshot.fingerprint, None, None)
        while len(self._snapshots) > MAX_SEEN_FILES:
            self.forget(next(iter(self._snapshots)))

    def forget(self, parts: tuple[str, ...]) -> None:
        snapshot = self._snapshots.pop(parts, None)
        self._bytes -= snapshot.size if snapshot else 0

    def move(self, source: tuple[str, ...], destination: tuple[str, ...]) -> None:
        """Move the remembered contents of ``source`` and of the files below it to ``destination``."""
        for parts in [parts for parts in self._snapshots if parts[: len(source)] == source]:
            self._snapshots[destination + parts[len(source) :]] = self._snapshots.pop(parts)

    def save(self) -> list[tuple[tuple[str, ...], _Snapshot]]:
        """Return the state for `restore`."""
        return list(self._snapshots.items())

    def restore(self, saved: list[tuple[tuple[str, ...], _Snapshot]]) -> None:
        self._snapshots = OrderedDict(saved)
        self._bytes = sum(snapshot.size for snapshot in self._snapshots.values())

    def knows(self, parts: tuple[str, ...]) -> bool:
        return parts in self._snapshots

    def list_earlier_versions(self, parts: tuple[str, ...], data: bytes) -> list[bytes]:
        """Return the remembered contents that differ from ``data``, the newest first."""
        snapshot = self._snapshots.get(parts)
        versions = (snapshot.data, snapshot.read) if snapshot else ()
        return [version for version in dict.fromkeys(versions) if version is not None and version != data]

    def describe_change(self, parts: tuple[str, ...], data: bytes) -> str:
        """Describe how ``data`` differs from the remembered content. Return "" if both are equal, or if no content of
        the file is remembered."""
        snapshot = self._snapshots.get(parts)
        if snapshot is None or snapshot.fingerprint == tree_ops.fingerprint_bytes(data):
            return ""
        try:
            if snapshot.data is not None:
                return describe_changed_lines(decode(snapshot.data, "").text, decode(data, "").text)
        except ToolError:
            pass
        return f"it has {len(data)} bytes now"
