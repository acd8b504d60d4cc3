"""Convert operating system errors to messages that include the next step for a model or user."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from adapter.core.errors import ToolError

_REASONS: dict[int, tuple[str, str]] = {
    errno.ENOSPC: ("No space left on device", "Free some space, then try again."),
    errno.EDQUOT: ("The disk quota is used up", "Free some space, then try again."),
    errno.EFBIG: ("The file would be larger than the system allows", "Write less, or split it into several files."),
    errno.EROFS: ("The file system is read-only", "Choose another path, or ask the user to make it writable."),
    errno.EACCES: ("Permission denied", "Choose another path, or ask the user for access."),
    errno.EPERM: ("The operation is not permitted", "Choose another path, or ask the user for access."),
    errno.EIO: ("The disk reported an input/output error", "Inform the user; trying again may not help."),
    errno.EMFILE: ("Too many files are open", "Try again later."),
    errno.ENFILE: ("Too many files are open", "Try again later."),
    errno.ENOENT: ("It no longer exists", "List the directory to see what is there."),
    errno.EEXIST: ("Something is already there", "Choose another path, or delete it first."),
    errno.ENOTEMPTY: ("The directory is not empty", "List it to see what is there."),
    errno.ELOOP: ("It changed into a link while it was being opened", "Try again."),
    errno.ENOTDIR: ("A part of the path is not a directory", "Check the path."),
    errno.EISDIR: ("It is a directory", "Give the path of a file."),
    errno.EXDEV: ("The two paths are on different file systems", "Copy it, then delete the original."),
    errno.EBUSY: ("It is in use", "Try again later."),
    errno.ETXTBSY: ("It is a program that is running", "Stop it, then try again."),
    errno.ESTALE: (
        "Another program replaced a directory of the path at the same moment",
        "Something may have been changed in the directory that replaced it: inform the user.",
    ),
    errno.ENAMETOOLONG: ("The name is too long", "Choose a shorter one."),
}

_HELD_OPEN = {32, 33}
"""Windows' error codes for a file that another program has open (ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION)."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Error numbers that mean that the storage is full."""


def explain_os_error(error: OSError, consequence: str) -> ToolError:
    """Format the error as ``<reason>: <consequence>. <next step>``."""
    fallback = (error.strerror or type(error).__name__, "Check the path, then try again.")
    number = errno.EBUSY if getattr(error, "winerror", None) in _HELD_OPEN else error.errno
    reason, next_step = _REASONS.get(number or 0, fallback)
    return ToolError(f"{reason}: {consequence}. {next_step}")


@contextmanager
def convert_os_errors(consequence: str) -> Iterator[None]:
    """Convert an OSError raised in the ``with`` body to a ToolError that states ``consequence``."""
    try:
        yield
    except OSError as error:
        raise explain_os_error(error, consequence) from error


@contextmanager
def convert_memory_errors(subject: str) -> Iterator[None]:
    """Convert a MemoryError or RecursionError raised in the ``with`` body to a ToolError about ``subject``."""
    try:
        yield
    except (MemoryError, RecursionError) as error:
        raise ToolError(f"{subject} ran out of memory and was aborted. Request less at a time") from error
