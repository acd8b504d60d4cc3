"""Walk a directory tree through descriptors, within limits and in a fixed order, without following links."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypeAlias

from adapter.core.errors import ToolError
from adapter.core.text.display_escaping import escape_for_display
from adapter.workspace.paths.descriptor_syscalls import calls
from adapter.workspace.paths.gitignore import MAX_IGNORE_BYTES, IgnoreFile, is_ignored, parse_ignore_file
from adapter.workspace.paths.globs import GlobMatcher
from adapter.workspace.paths.path_validation import is_own_temp_file
from adapter.workspace.paths.resolved_path import ResolvedPath, open_child_directory, open_regular
from adapter.workspace.paths.resolver import WorkspaceRoot


@dataclass(frozen=True, slots=True)
class WalkLimits:
    entries: int = 200_000
    """Maximum number of entries in a walk, not counting those that ``accept_name`` rejects."""
    names: int = 2_000_000
    """Maximum number of names read from one directory."""
    depth: int = 64
    """Maximum number of directory levels."""
    seconds: float = 10.0
    """Maximum duration of a walk; the entries found by then are kept."""


class Node(NamedTuple):  # made for every entry of a tree: three times as fast as a frozen dataclass
    """An entry found by a walk. ``dirfd`` and ``name`` are valid until the next entry.

    ``path``: path relative to the start of the walk. ``depth``: 1 for direct entries of the start. An entry that is
    neither a directory nor a regular file is a link, pipe, socket or device.
    """

    dirfd: int
    name: str
    path: str
    depth: int
    is_directory: bool
    is_file: bool

    def read_status(self) -> os.stat_result:
        """Return the current file status of the entry."""
        return calls.stat(self.name, self.dirfd)

    def resolve(self, above: tuple[str, ...]) -> ResolvedPath:
        """Return the node as a path below the root, with its current status. ``above``: components of the start."""
        return ResolvedPath(self.dirfd, self.name, (*above, *self.path.split("/")), self.read_status())


_Entry: TypeAlias = tuple[str, bool, bool]
"""The name of an entry, whether it is a directory, and whether it is a regular file."""


@dataclass(slots=True)
class _Level:
    descriptor: int
    prefix: str
    entries: Iterator[_Entry]
    rules: tuple[IgnoreFile, ...]


@dataclass(slots=True)
class Walk:
    """Iterates over the nodes below ``start``: parents before children, names sorted."""

    root: WorkspaceRoot
    start: str = "."
    depth: int | None = None
    """Maximum number of levels."""
    skip: frozenset[str] = frozenset()
    """Names of directories to leave out."""
    gitignore: bool = False
    """True to apply the ignore files from the root down."""
    ignore: Sequence[GlobMatcher] = ()
    """Patterns of names and paths to leave out."""
    accept_name: Callable[[str], bool] = lambda _: True
    """Filter for the names of entries that are not directories."""
    directories_first: bool = False
    """True to sort directories before files, and to ignore case."""
    limits: WalkLimits = WalkLimits()
    notes: list[str] = field(default_factory=list)
    """The limits that ended the walk early."""
    parts: tuple[str, ...] = ()
    """Components of the start below the root, set when the walk begins."""
    _levels: list[_Level] = field(default_factory=list)
    _seen: int = 0

    def __iter__(self) -> Iterator[Node]:
        deadline = time.monotonic() + self.limits.seconds
        with self.root.open_directory(self.start) as (descriptor, resolved):
            self.parts = resolved.parts
            rules = self._find_rules_above() if self.gitignore else ()
            try:
                self._descend(calls.dup(descriptor), "", rules)
                yield from self._walk_nodes(deadline)
            finally:
                while self._levels:
                    calls.close(self._levels.pop().descriptor)

    def _walk_nodes(self, deadline: float) -> Iterator[Node]:
        max_depth = self.limits.depth if self.depth is None else min(self.depth, self.limits.depth)
        while self._levels:
            level = self._levels[-1]
            entry = next(level.entries, None)
            if entry is None:
                calls.close(self._levels.pop().descriptor)
                continue
            name, is_directory, is_file = entry
            path = level.prefix + name
            self._seen += 1
            if self._seen > self.limits.entries:
                self._stop(f"{self.limits.entries} entries")
                return
            if time.monotonic() > deadline:
                self._stop(f"{self.limits.seconds:g} s")
                return
            depth = len(self._levels)
            yield Node(level.descriptor, name, path, depth, is_directory, is_file)
            if is_directory and depth < max_depth:
                self._enter(level, name, path)
            elif is_directory and depth >= self.limits.depth:
                self._stop(f"{self.limits.depth} levels")

    def _enter(self, level: _Level, name: str, path: str) -> None:
        try:
            descriptor = open_child_directory(name, level.descriptor)
        except (OSError, ToolError):
            self.notes.append(f"{escape_for_display(path)} could not be opened and was left out")
            return
        self._descend(descriptor, path + "/", level.rules)

    def _descend(self, descriptor: int, prefix: str, rules: tuple[IgnoreFile, ...]) -> None:
        try:
            entries = self._list_entries(descriptor)
        except OSError:
            calls.close(descriptor)
            raise
        if self.gitignore:
            rules = (*rules, *_read_ignore_file(descriptor, self._join_below_root(prefix), self.notes))
        self._levels.append(_Level(descriptor, prefix, iter(self._filter(entries, prefix, rules)), rules))

    def _list_entries(self, descriptor: int) -> list[_Entry]:
        with calls.scandir(descriptor) as scan:
            named = (
                (entry.name, entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False))
                for entry in islice(scan, self.limits.names)
                if self.accept_name(entry.name) or entry.is_dir(follow_symlinks=False)
            )
            entries = list(islice(named, self.limits.entries + 1))
            if next(scan, None) is not None and len(entries) <= self.limits.entries:
                self._stop(f"{self.limits.names} names in a directory")
        if self.directories_first:
            return sorted(entries, key=lambda entry: (not entry[1], entry[0].casefold(), entry[0]))
        return sorted(entries)

    def _filter(self, entries: Sequence[_Entry], prefix: str, rules: Sequence[IgnoreFile]) -> list[_Entry]:
        """Return the entries of a directory that are not hidden, skipped or ignored."""
        above = self._join_below_root(prefix)
        kept: list[_Entry] = []
        for entry in entries:
            name, is_directory, _ = entry
            if is_directory and (name in self.skip or self.root.is_hidden((*above.split("/")[:-1], name))):
                continue
            if is_own_temp_file(name) or (self.ignore and self._is_named(prefix, name)):
                continue
            if rules and is_ignored(above + name + "/" if is_directory else above + name, rules):
                continue
            kept.append(entry)
        return kept

    def _is_named(self, prefix: str, name: str) -> bool:
        return any(glob.matches(name) or glob.matches(prefix + name) for glob in self.ignore)

    def _join_below_root(self, prefix: str) -> str:
        return "".join(part + "/" for part in self.parts) + prefix

    def _find_rules_above(self) -> tuple[IgnoreFile, ...]:
        """Return the ignore files from the root down to the start's parent."""
        files: list[IgnoreFile] = []
        for length in range(len(self.parts)):
            above = self.parts[:length]
            with self.root.open_directory("/".join(above) or ".") as (descriptor, _):
                files += _read_ignore_file(descriptor, "".join(part + "/" for part in above), self.notes)
        return tuple(files)

    def _stop(self, limit: str) -> None:
        note = f"the search stopped at its limit of {limit}; give a narrower path"
        if note not in self.notes:
            self.notes.append(note)


def list_files_below(root: WorkspaceRoot, start: str = ".", limit: int = 1_000) -> list[str]:
    """Return at most ``limit`` paths of files below ``start``, hidden ones included, links not."""
    walk = Walk(root, start)
    found = (node for node in walk if node.is_file)
    return ["/".join((*walk.parts, node.path)) for node in islice(found, limit)]


def _read_ignore_file(descriptor: int, base: str, notes: list[str]) -> list[IgnoreFile]:
    """Parse the ``.gitignore`` in an open directory. Return [] if there is none, or if it cannot be read."""
    try:
        status = calls.stat(".gitignore", descriptor)
        with open_regular(ResolvedPath(descriptor, ".gitignore", (".gitignore",), status)) as file:
            text = os.read(file, MAX_IGNORE_BYTES).decode("utf-8", "replace")
        if status.st_size > MAX_IGNORE_BYTES:
            notes.append(f"only the first {MAX_IGNORE_BYTES} bytes of {escape_for_display(base)}.gitignore were read")
    except (OSError, ToolError):
        return []
    return [parse_ignore_file(text, base)]
