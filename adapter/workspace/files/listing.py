"""List directories, and find files by name or glob."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from time import localtime, strftime

from adapter.core.errors import ToolError
from adapter.core.text.display_escaping import escape_for_display
from adapter.tools.operations import FindByName, Glob, Listing, ListingEntry, PathList, Tree
from adapter.workspace.paths.gitignore import COMMON_DIRECTORIES
from adapter.workspace.paths.globs import GlobMatcher
from adapter.workspace.paths.resolver import WorkspaceRoot
from adapter.workspace.paths.walk import Node, Walk

MAX_COUNTED = 20_000
"""Maximum number of entries counted beyond a listing's limit, so that a huge directory is not read to its end."""


def list_tree(root: WorkspaceRoot, operation: Tree) -> Listing:
    """List the entries down to ``depth`` levels, each directory before its contents."""
    if operation.depth < 1:
        raise ToolError(f"depth must be at least 1, got {operation.depth}")
    skip = COMMON_DIRECTORIES if operation.skip_common else frozenset[str]()
    ignore = [GlobMatcher(pattern, case_sensitive=True) for pattern in operation.ignore]
    walk = Walk(root, operation.path, operation.depth, skip, operation.gitignore, ignore)
    walk.directories_first = operation.order == "directories_first"
    entries: list[ListingEntry] = []
    omitted = 0
    for node in walk:
        if len(entries) < operation.limit:
            with suppress(FileNotFoundError):  # deleted meanwhile
                entries.append(_build_entry(node, operation.details))
            continue
        omitted += 1
        if omitted >= MAX_COUNTED:
            break
    return Listing(_format_path(walk.parts), tuple(entries), omitted, notes=tuple(walk.notes))


def _build_entry(node: Node, details: bool) -> ListingEntry:
    entry = ListingEntry(escape_for_display(node.path), node.depth, node.is_directory)
    if not details:
        return entry
    status = node.read_status()
    return replace(entry, size=status.st_size, modified=strftime("%Y-%m-%d %H:%M", localtime(status.st_mtime)))


def find_by_name(root: WorkspaceRoot, operation: FindByName) -> PathList:
    """Find files and directories whose name contains the text, ignoring case. Text with ``*`` or ``?`` is a glob.

    Build and dependency directories are left out: their thousands of files would hide the relevant ones.
    """
    if not operation.text:
        raise ToolError("the pattern is empty; pass part of a file name")
    if operation.max_depth is not None and operation.max_depth < 1:
        raise ToolError(f"max_depth must be at least 1, got {operation.max_depth}")
    text = operation.text.casefold()
    matcher = GlobMatcher(f"**/{operation.text}") if "*" in text or "?" in text else None

    def may_match(name: str) -> bool:
        return matcher.may_match(name) if matcher else text in name.casefold()

    walk = Walk(root, operation.path, depth=operation.max_depth, skip=COMMON_DIRECTORIES, accept_name=may_match)
    accepts = (lambda node: matcher.matches(node.path)) if matcher else (lambda node: may_match(node.name))
    return _collect(walk, accepts, operation.limit)


def find_by_glob(root: WorkspaceRoot, operation: Glob) -> PathList:
    """Find files, including hidden files, whose path relative to ``path`` matches a glob.

    The operation can also include directories, or leave out ignored files. Build and dependency directories are
    searched only if the pattern names them.
    """
    inside = root.path.rstrip("/") + "/"
    if operation.pattern.startswith(inside):  # an absolute pattern replaces the path
        operation = replace(operation, pattern=operation.pattern.removeprefix(inside), path=".")
    matcher = GlobMatcher(operation.pattern, operation.case_sensitive)
    skip = COMMON_DIRECTORIES - set(operation.pattern.split("/"))
    walk = Walk(root, operation.path, skip=skip, gitignore=operation.gitignore, accept_name=matcher.may_match)

    def accepts(node: Node) -> bool:
        return (operation.directories or not node.is_directory) and matcher.matches(node.path)

    return (_find_newest if operation.order == "newest" else _collect)(walk, accepts, operation.limit)


def _find_newest(walk: Walk, accepts: Callable[[Node], bool], limit: int) -> PathList:
    """Return the ``limit`` most recently modified matches."""
    matches: list[tuple[int, str]] = []
    for node in walk:
        if accepts(node):
            with suppress(FileNotFoundError):  # deleted meanwhile
                matches.append((-node.read_status().st_mtime_ns, "/".join((*walk.parts, node.path))))
    paths = tuple(escape_for_display(path) for _, path in sorted(matches)[:limit])
    return PathList(paths, len(matches) > limit, notes=tuple(walk.notes))


def _collect(walk: Walk, accepts: Callable[[Node], bool], limit: int) -> PathList:
    paths: list[str] = []
    truncated = False
    for node in walk:
        if not accepts(node):
            continue
        if len(paths) >= limit:
            truncated = True
            break
        paths.append(escape_for_display("/".join((*walk.parts, node.path))))
    return PathList(tuple(paths), truncated, notes=tuple(walk.notes))


def _format_path(parts: tuple[str, ...]) -> str:
    return escape_for_display("/".join(parts)) or "."
