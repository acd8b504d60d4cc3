"""What the operating system refused, in words a model or a user can act on."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from adapter.core.errors import ToolError

_REASONS: dict[int, tuple[str, str]] = {
    errno.ENOSPC: ("No space left on device", "Free some space, then try again."),
    errno.EDQUOT: ("The disk quota is used up", "Free some space, then try again."),
    errno.EFBIG: ("The file would be larger than the system allows", "Write less, or split it into several files."),
    errno.EROFS: ("The file system is read-only", "Choose another place, or ask the user to make it writable."),
    errno.EACCES: ("Permission denied", "Choose another path, or ask the user for access."),
    errno.EPERM: ("The operation is not permitted", "Choose another path, or ask the user for access."),
    errno.EIO: ("The disk reported an input/output error", "Tell the user; trying again may not help."),
    errno.EMFILE: ("Too many files are open", "Try again later."),
    errno.ENFILE: ("Too many files are open", "Try again later."),
    errno.ENOENT: ("It does not exist any more", "List the directory to see what is there."),
    errno.EEXIST: ("Something is already there", "Choose another path, or delete it first."),
    errno.ENOTEMPTY: ("The directory is not empty", "List it to see what is there."),
    errno.ELOOP: ("It changed into a link while it was being opened", "Try again."),
    errno.ENOTDIR: ("A part of the path is not a directory", "Check the path."),
    errno.EISDIR: ("It is a directory", "Give the path of a file."),
    errno.EXDEV: ("The two paths are on different file systems", "Copy it, then delete the original."),
    errno.EBUSY: ("It is in use", "Try again later."),
    errno.ETXTBSY: ("It is a program that is running", "Stop it, then try again."),
    errno.ENAMETOOLONG: ("The name is too long", "Choose a shorter one."),
}

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What is said where nothing more can be written."""


def explain_os_error(error: OSError, consequence: str) -> ToolError:
    """The error as ``<reason>: <consequence>. <next step>``."""
    fallback = (error.strerror or type(error).__name__, "Check the path, then try again.")
    reason, next_step = _REASONS.get(error.errno or 0, fallback)
    return ToolError(f"{reason}: {consequence}. {next_step}")


@contextmanager
def os_errors_explained(consequence: str) -> Iterator[None]:
    """Turns an OSError of the body into a ToolError that says ``consequence``."""
    try:
        yield
    except OSError as error:
        raise explain_os_error(error, consequence) from error


@contextmanager
def memory_errors_as_tool_errors(what: str) -> Iterator[None]:
    """Turns it into a ToolError that the body needed more memory, or a deeper stack, than there is."""
    try:
        yield
    except (MemoryError, RecursionError) as error:
        raise ToolError(f"{what} needed more memory than there is and was given up. Ask for less at a time") from error
