"""Which paths and names are let through at all, before anything is opened."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from itertools import islice

from rapidfuzz import fuzz, process

from adapter.core.errors import ToolError
from adapter.core.text.display_escaping import escape_for_display

MAX_PATH_BYTES = 4_096
"""Of a path, as on Linux and macOS (PATH_MAX)."""
MAX_NAME_BYTES = 255
"""Of a name in a path, as on Linux and macOS (NAME_MAX)."""

_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Code points that HFS+ leaves out when it compares names (git CVE-2014-9390)."""
OWN_PREFIX = ".adapter-"
_OWN_NAME = re.compile(r"\.adapter-[0-9a-f]{16}\.(?:new|old)")
_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9\u00b9\u00b2\u00b3])(?:\..*)?", re.IGNORECASE
)
"""What Windows takes for a device, with any ending (Naming Files, Paths, and Namespaces, Microsoft Learn)."""
_UNPORTABLE = re.compile(r'[<>:"|?*]')
_SHORT_NAME = re.compile(r"git~\d+")
"""What NTFS may call ``.git`` in 8.3 spelling (git CVE-2019-1353)."""


def check_path(path: str) -> None:
    """Raises ToolError for what cannot be a path here."""
    if not path:
        raise ToolError("the path is empty; give a path relative to the workspace root, or '.' for the root itself")
    if "\0" in path:
        raise ToolError("the path contains a NUL character; give it without")
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        raise ToolError(
            f"the path {escape_for_display(path)!r} is not valid text (a lone surrogate); write it anew"
        ) from None
    if size > MAX_PATH_BYTES:
        raise ToolError(f"the path is {size} bytes long; at most {MAX_PATH_BYTES} are possible")
    longest = max(len(part.encode()) for part in path.split("/")) if size > MAX_NAME_BYTES else 0
    if longest > MAX_NAME_BYTES:
        raise ToolError(f"a name in the path is {longest} bytes long; at most {MAX_NAME_BYTES} are possible")
    if path == "~" or path.startswith("~/"):
        raise ToolError(
            f"{escape_for_display(path)!r} is outside the workspace; give a path relative to the workspace root"
        )


def check_creatable(name: str) -> None:
    """Raises ToolError for names that nobody means to make, or that other systems cannot have."""
    if "\\" in name:
        raise ToolError(f"{escape_for_display(name)!r} contains a backslash; separate directories by '/'")
    if escape_for_display(name) != name:
        raise ToolError(f"the name {escape_for_display(name)!r} contains control characters; choose a plain one")
    if _RESERVED.fullmatch(name):
        raise ToolError(f"the name {name!r} means a device on Windows, where nobody could check it out; choose another")
    if (unportable := _UNPORTABLE.search(name)) or name.endswith((".", " ")):
        what = f"contains {unportable[0]!r}" if unportable else f"ends in {name[-1]!r}"
        raise ToolError(f"the name {name!r} {what}, which Windows does not take; choose another")


def is_git(name: str) -> bool:
    """Whether some file system would take ``name`` for ``.git``, however it is spelled."""
    plain = _IGNORED_BY_HFS.sub("", unicodedata.normalize("NFKC", name))
    plain = plain.split(":", 1)[0].rstrip(". ").casefold()
    return plain == ".git" or _SHORT_NAME.fullmatch(plain) is not None


def temp_name(name: str, suffix: str) -> str:
    """What stands beside ``name`` while it is being changed."""
    return f"{OWN_PREFIX}{hashlib.sha256(name.encode(errors='surrogateescape')).hexdigest()[:16]}.{suffix}"


def is_own_temp_file(name: str) -> bool:
    """Whether ``name`` stands beside a file that is being changed: neither shown nor given to tools."""
    return name.startswith(OWN_PREFIX) and _OWN_NAME.fullmatch(name) is not None


def nearest_name(name: str, dirfd: int) -> str | None:
    """The name in the directory that ``name`` was probably meant to be."""
    try:
        own = os.open(".", os.O_RDONLY, dir_fd=dirfd)  # scanning moves a descriptor's position
        try:
            with os.scandir(own) as entries:
                names = sorted(entry.name for entry in islice(entries, 2_000))
        finally:
            os.close(own)
    except OSError:
        return None
    found = process.extractOne(name, names, scorer=fuzz.ratio, score_cutoff=70)
    return found[0] if found else None
