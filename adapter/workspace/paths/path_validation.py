"""Validate paths and names before they are opened."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import islice

from rapidfuzz import fuzz, process

from adapter.core.errors import ToolError
from adapter.core.text.display_escaping import escape_for_display
from adapter.workspace.paths.descriptor_syscalls import calls

MAX_PATH_BYTES = 4_096
"""Maximum length of a path in bytes, as on Linux and macOS (PATH_MAX)."""
MAX_NAME_BYTES = 255
"""Maximum length of a name in bytes, as on Linux and macOS (NAME_MAX)."""
MAX_DIRECTORIES = 500
"""Maximum number of directories that are searched for a file of the same name."""
MAX_NAMES = 2_000
"""Maximum number of names in a directory that are searched for a suggestion."""

_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Code points that HFS+ ignores when it compares names (git CVE-2014-9390)."""
OWN_PREFIX = ".adapter-"
_OWN_NAME = re.compile(r"\.adapter-[0-9a-f]{16}\.(?:new|old)", re.IGNORECASE)
_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9\u00b9\u00b2\u00b3])(?:\..*)?", re.IGNORECASE
)
"""Names that Windows reserves for devices, with any extension (Naming Files, Paths, and Namespaces, Microsoft
Learn)."""
_UNPORTABLE = re.compile(r'[<>:"|?*]')
_SHORT_NAME = re.compile(r"git~\d+")
"""Pattern of the 8.3 names that NTFS may use for ``.git`` (git CVE-2019-1353)."""


def check_path(path: str) -> None:
    """Raise ToolError if ``path`` is empty, too long, has invalid characters, or starts with ``~``."""
    if not path:
        raise ToolError("the path is empty; give a path relative to the workspace root, or '.' for the root itself")
    if "\0" in path:
        raise ToolError("the path contains a NUL character; remove it")
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        raise ToolError(
            f"the path {escape_for_display(path)!r} is not valid text (a lone surrogate); write it again"
        ) from None
    if size > MAX_PATH_BYTES:
        raise ToolError(f"the path has {size} bytes; the maximum is {MAX_PATH_BYTES}. Use a shorter path")
    longest = max(len(part.encode()) for part in path.split("/")) if size > MAX_NAME_BYTES else 0
    if longest > MAX_NAME_BYTES:
        raise ToolError(f"a name in the path has {longest} bytes; the maximum is {MAX_NAME_BYTES}. Use a shorter name")
    if path == "~" or path.startswith("~/"):
        raise ToolError(
            f"{escape_for_display(path)!r} is outside the workspace; give a path relative to the workspace root"
        )


def check_creatable(name: str) -> None:
    """Raise ToolError if ``name`` is probably a mistake, or is not allowed on Windows or macOS."""
    if "\\" in name:
        raise ToolError(f"{escape_for_display(name)!r} contains a backslash; separate directories with '/'")
    if escape_for_display(name) != name:
        raise ToolError(f"the name {escape_for_display(name)!r} contains control characters; choose a plain one")
    if _RESERVED.fullmatch(name):
        raise ToolError(f"the name {name!r} is reserved for a device on Windows; choose another")
    if (unportable := _UNPORTABLE.search(name)) or name.endswith((".", " ")):
        problem = f"contains {unportable[0]!r}" if unportable else f"ends in {name[-1]!r}"
        raise ToolError(f"the name {name!r} {problem}, which Windows does not allow; choose another")


def is_git(name: str) -> bool:
    """Return whether any file system would treat ``name`` as ``.git``."""
    plain = _IGNORED_BY_HFS.sub("", unicodedata.normalize("NFKC", name))
    plain = plain.split(":", 1)[0].rstrip(". ").casefold()
    return plain == ".git" or _SHORT_NAME.fullmatch(plain) is not None


def build_temp_name(name: str, suffix: str) -> str:
    """Return the name of the temporary file created by a change next to ``name``."""
    return f"{OWN_PREFIX}{hashlib.sha256(name.encode(errors='surrogateescape')).hexdigest()[:16]}.{suffix}"


def is_own_temp_file(name: str) -> bool:
    """Return whether ``name`` is a temporary file made during a change. Such files are hidden from tools."""
    return name[: len(OWN_PREFIX)].casefold() == OWN_PREFIX and _OWN_NAME.fullmatch(name) is not None


def find_nearest_name(name: str, dirfd: int) -> str | None:
    """Return the name in the directory that is most similar to ``name``, or None if none is similar."""
    try:
        names = [entry for entry, _ in _list_names(dirfd)]
    except OSError:
        return None
    best = process.extractOne(name, names, scorer=fuzz.ratio, score_cutoff=70)
    return best[0] if best else None


def find_file_below(name: str, dirfd: int) -> str:
    """Return the path of a file called ``name`` in the directories below, relative to the open directory ``dirfd``, or
    "" if there is none. Hidden directories, and those that cannot be read, are skipped. At most `MAX_DIRECTORIES` are
    searched, on three levels."""
    return _find_below(name, dirfd, 3, iter(range(MAX_DIRECTORIES)))


def _find_below(name: str, dirfd: int, levels: int, budget: Iterator[int]) -> str:
    try:
        entries = _list_names(dirfd)
    except OSError:
        return ""
    if (name, False) in entries:
        return name
    for directory in [entry for entry, is_directory in entries if is_directory and entry[0] != "."] if levels else ():
        if next(budget, None) is None:
            return ""
        with suppress(OSError):
            child = calls.open_directory(directory, dirfd)
            try:
                if found := _find_below(name, child, levels - 1, budget):
                    return f"{directory}/{found}"
            finally:
                calls.close(child)
    return ""


def find_matching_names(pattern: str, dirfd: int) -> list[str]:
    r"""Return the names in the directory that match a glob pattern, or a simple regular expression such as
    ``.*\.tmp``."""
    glob = pattern.replace(".*", "*").replace("\\.", ".")
    try:
        return [name for name, _ in _list_names(dirfd) if fnmatchcase(name, glob)]
    except OSError:
        return []


def _list_names(dirfd: int) -> list[tuple[str, bool]]:
    """Return the names in a directory, sorted, each with whether it is a directory."""
    scanned = calls.open_directory(".", dirfd)  # a scan moves the descriptor's position
    try:
        with calls.scandir(scanned) as entries:
            return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in islice(entries, MAX_NAMES))
    finally:
        calls.close(scanned)
