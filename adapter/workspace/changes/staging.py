"""New files, ready beside their place: the change that brings them there is made by renaming alone.

Order of calls: fsync file, rename, fsync directory (OSDI'14, "All file systems
are not created equal"). The new file has the mode, owner, access list and other extended
attributes of the old one. A file that has another name, a hard link, is not
replaced: the two names would be two files then.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from adapter.core.errors import ToolError
from adapter.workspace.changes.transactions import StagedContent
from adapter.workspace.paths import tree_ops
from adapter.workspace.paths.resolved_path import NEW_FILE, ResolvedPath

_OWNER_WRITE = stat.S_IWUSR


def new_file(data: bytes, old: os.stat_result | None, attributes: Mapping[str, bytes] | None = None) -> StagedContent:
    """A file with this content, and the mode, owner and extended attributes of the old one."""

    def make(dirfd: int, name: str) -> None:
        descriptor = os.open(name, NEW_FILE, 0o666, dir_fd=dirfd)
        try:
            tree_ops.write_all(descriptor, data)
            if old is not None:
                tree_ops.adopt_owner(descriptor, old)
                os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
                tree_ops.adopt_attributes(descriptor, attributes or {})
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    return StagedContent(make, data)


def check_replaceable(place: ResolvedPath) -> None:
    """Raises ToolError unless ``place`` is free or a writable regular file."""
    if place.status is not None and not place.is_file:
        kind = "a directory" if place.is_directory else "not a regular file"
        raise ToolError(f"{place.shown} is {kind}; give the path of a file")
    if place.status is not None and not place.status.st_mode & _OWNER_WRITE:
        raise ToolError(f"{place.shown} is read-only and was not changed. Ask the user to make it writable")
