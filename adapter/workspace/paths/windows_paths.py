"""Split and check paths by the rules of Windows, on any system.

Sources: Naming Files, Paths, and Namespaces (Microsoft Learn); the rules on 8.3 names of git's CVE-2019-1353.
"""

from __future__ import annotations

import re
import sys
from typing import NamedTuple

IS_WINDOWS = sys.platform == "win32"
_DRIVE = re.compile(r"([A-Za-z]):(/?)(.*)", re.DOTALL)
_SHORT_NAME = re.compile(r"[^.]{1,6}~[0-9]{1,6}(?:\.[^.]{0,3})?")


class WindowsPath(NamedTuple):
    """A path in two parts: the anchor, and the components after it."""

    anchor: str
    """``c:/`` for a drive, ``//server/share/`` for a share, ``/`` for the root of the current drive, ``c:`` for a path
    relative to the current directory of a drive, ``//./`` for a device, "" for a relative path.
    """
    parts: tuple[str, ...]
    """The components, without empty ones and ``.``."""


def split_windows_path(path: str) -> WindowsPath:
    """Split a path that is written with slashes or backslashes."""
    plain = path.replace("\\", "/")
    if plain.startswith(("//?/", "//./")):
        rest = plain[4:]
        if plain[2] == "?" and (drive := _DRIVE.fullmatch(rest)) and drive[2]:
            return WindowsPath(f"{drive[1].lower()}:/", split_components(drive[3]))
        if plain[2] == "?" and rest[:4].lower() == "unc/":
            return split_windows_path(f"//{rest[4:]}")
        return WindowsPath("//./", split_components(rest))
    if plain.startswith("//"):
        server, _, rest = plain[2:].partition("/")
        share, _, rest = rest.partition("/")
        return WindowsPath(f"//{server}/{share}/".lower(), split_components(rest))
    if drive := _DRIVE.fullmatch(plain):
        return WindowsPath(f"{drive[1].lower()}:{drive[2]}", split_components(drive[3]))
    return WindowsPath("/" if plain.startswith("/") else "", split_components(plain))


def is_below(parts: tuple[str, ...], above: tuple[str, ...]) -> bool:
    """Return whether ``parts`` is ``above`` or below it, ignoring case as Windows does."""
    start = parts[: len(above)]
    return [part.casefold() for part in start] == [part.casefold() for part in above]


def is_short_name(name: str) -> bool:
    """Return whether ``name`` may be an 8.3 alias of a longer name, such as ``PROGRA~1`` for ``Program Files``."""
    return _SHORT_NAME.fullmatch(name) is not None


def split_components(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part not in ("", "."))
