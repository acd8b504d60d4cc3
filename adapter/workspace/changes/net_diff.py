"""Combine several changes into one diff per file, from its content before the first change to its current content."""

from __future__ import annotations

from collections.abc import Iterable

from adapter.core.errors import ToolError
from adapter.core.text.diffs import render_unified_diff
from adapter.core.text.display_escaping import escape_for_display
from adapter.workspace.changes.journal import ChangeRecord, ChangeStep, open_subdirectory
from adapter.workspace.changes.text_codec import decode_for_diff
from adapter.workspace.changes.undo_plan import read_file_bytes
from adapter.workspace.paths.resolver import WorkspaceRoot


def render_net_diff(root: WorkspaceRoot, store_fd: int, changes: Iterable[tuple[str, ChangeRecord]]) -> str:
    """Return the combined diff. ``changes``: directory names in the store ``store_fd``, with records, oldest first."""
    net = _NetDiff()
    for name, record in changes:
        with open_subdirectory(store_fd, name) as stored_fd:
            for index, step in enumerate(record.steps):
                net.add(step, read_file_bytes(str(index), stored_fd) if step.before or step.kind == "take" else None)
    return "".join(net.render_diffs(root))


class _NetDiff:
    def __init__(self) -> None:
        self._before: dict[str, bytes | None] = {}  # by the file's original path
        self._first: dict[str, str] = {}  # original path by current path

    def add(self, step: ChangeStep, before: bytes | None) -> None:
        if step.kind == "move":
            below = [path for path in self._first if f"{path}/".startswith(f"{step.path}/")]
            for path in [step.path, *(path for path in below if path != step.path)]:
                self._first[step.destination + path[len(step.path) :]] = self._first.pop(path, path)
        elif step.kind != "directory":
            self._before.setdefault(self._first.setdefault(step.path, step.path), before)

    def render_diffs(self, root: WorkspaceRoot) -> Iterable[str]:
        for path, first in sorted(self._first.items()):
            now = _read_current_content(root, path)
            if path != first:
                yield f"rename from {escape_for_display(first)}\nrename to {escape_for_display(path)}\n"
            if first in self._before and (now, self._before[first]) != (None, None):
                yield render_unified_diff(
                    decode_for_diff(self._before[first], first), decode_for_diff(now, path), escape_for_display(path)
                )


def _read_current_content(root: WorkspaceRoot, path: str) -> bytes | None:
    try:
        with root.locate(f"./{path}", follow=False, parents="imagine") as resolved:
            return read_file_bytes(resolved.name, resolved.dirfd) if resolved.dirfd >= 0 and resolved.is_file else None
    except (ToolError, OSError):
        return None
