"""Write new files next to their targets, so that a change only has to rename them.

The order of calls is: fsync the file, rename it, fsync the directory (OSDI'14, "All file systems are not created
equal"). The new file gets the mode, owner, access control list and other extended attributes of the old file. A file
with several hard links is not replaced, because its other names would keep the old content.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from adapter.core.errors import ToolError
from adapter.workspace.changes.transactions import StagedContent
from adapter.workspace.paths import tree_ops
from adapter.workspace.paths.descriptor_syscalls import calls
from adapter.workspace.paths.open_flags import NEW_FILE
from adapter.workspace.paths.resolved_path import ResolvedPath, hold_descriptor


def stage_new_file(
    data: bytes, old: os.stat_result | None, attributes: Mapping[str, bytes] | None = None
) -> StagedContent:
    """Stage a file with the content ``data``, and the mode, owner and extended attributes of the old file."""

    def make(dirfd: int, name: str) -> None:
        with hold_descriptor(calls.open_file(name, dirfd, NEW_FILE, 0o666)) as descriptor:
            tree_ops.write_all(descriptor, data)
            if old is not None:
                tree_ops.adopt_owner(descriptor, old)
                calls.fchmod(descriptor, stat.S_IMODE(old.st_mode))
                tree_ops.adopt_attributes(descriptor, attributes or {})
            os.fsync(descriptor)

    return StagedContent(make, data)


def check_replaceable(resolved: ResolvedPath) -> None:
    """Raise ToolError unless the path does not exist or is a writable regular file."""
    if resolved.status is not None and not resolved.is_file:
        kind = "a directory" if resolved.is_directory else "not a regular file"
        raise ToolError(f"{resolved.display_path} is {kind}; give the path of a file")
    if resolved.status is not None and not resolved.status.st_mode & stat.S_IWUSR:
        raise ToolError(f"{resolved.display_path} is read-only and was not changed. Ask the user to make it writable")
