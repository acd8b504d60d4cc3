"""Read information about a file: size, type, times and number of lines."""

from __future__ import annotations

import os
import stat
import time

from adapter.core.errors import ToolError
from adapter.tools import operations as ops
from adapter.workspace.paths.resolved_path import require_existing
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.paths.tree_ops import CHUNK_BYTES

COUNTING_SECONDS = 10.0
"""Maximum time to count the lines of a file, in seconds: enough for a few gigabytes."""


def get_info(root: WorkspaceRoot, operation: ops.Stat) -> ops.FileInfo:
    """Return file information, following links inside the root.

    Raises ToolError if the file cannot be read, or if counting its lines takes too long.
    """
    lines = _count_lines(root, operation.path) if operation.count_lines else None
    with root.locate(operation.path) as resolved:
        require_existing(resolved)
        status = resolved.status
        assert status is not None
        return ops.FileInfo(
            path=resolved.display_path,
            size=status.st_size,
            is_directory=resolved.is_directory,
            is_file=resolved.is_file,
            modified=int(status.st_mtime),
            readonly=not status.st_mode & stat.S_IWUSR,
            lines=lines,
        )


def _count_lines(root: WorkspaceRoot, path: str) -> int:
    lines = 0
    deadline = time.monotonic() + COUNTING_SECONDS
    with root.open_file(path) as (descriptor, resolved):
        while block := os.read(descriptor, CHUNK_BYTES):
            lines += block.count(b"\n")
            if time.monotonic() > deadline:
                raise ToolError(
                    f"{resolved.display_path} has more than {lines} lines: counting stopped after "
                    f"{COUNTING_SECONDS:g} s. Size: {resolved.status.st_size if resolved.status else 0} bytes. Use wc"
                )
    return lines
