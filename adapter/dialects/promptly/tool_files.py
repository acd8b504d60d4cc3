"""Find, load and change Promptly's tools files.

If several files define a tool with the same name, the first definition counts. The order is ``tools.json`` in the
current directory, ``~/.config/promptly/tools.json``, and the shipped file. With a basename other than ``tools``, the
shipped file is not used, and one of the other two must exist.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from adapter.core.argument_checks import explain_read_error
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.dialects.dialect import Dialect
from adapter.dialects.promptly import load_default_entries, load_default_text, make_dialect
from adapter.dialects.promptly.tools_file_entries import ENTRIES_KEY, ShellTool, parse_entries, parse_entry

DEFAULT_BASENAME = "tools"


@dataclass(frozen=True, slots=True)
class DefinedTool:
    """A tool and the file that defines it. ``file`` is None for a shipped tool."""

    tool: ShellTool
    file: Path | None

    @property
    def source(self) -> str:
        if self.file is None:
            return "default"
        return "local" if self.file.parent == Path() else "user"


@dataclass(frozen=True, slots=True)
class ToolSelection:
    """The command-line options that select tools. ``local`` is the local file's approved text, "" to ignore the file,
    or None to read it."""

    basename: str = DEFAULT_BASENAME
    include: Sequence[str] = field(default_factory=tuple)
    exclude: Sequence[str] = field(default_factory=tuple)
    local: str | None = None


def find_local_file(basename: str = DEFAULT_BASENAME) -> Path:
    return Path(_build_file_name(basename))


def find_user_file(basename: str = DEFAULT_BASENAME) -> Path:
    return Path.home() / ".config" / "promptly" / _build_file_name(basename)


def find_tools(basename: str = DEFAULT_BASENAME, local: str | None = None) -> list[DefinedTool]:
    """Return all tools, including overridden ones, which follow the tools that override them. ``local``: see
    `ToolSelection`. Raises UsageError for an invalid file."""
    existing = {
        file: _read_text(file) for file in (find_local_file(basename), find_user_file(basename)) if file.is_file()
    }
    if local is not None:
        existing.pop(find_local_file(basename), None)
        existing = {find_local_file(basename): local, **existing} if local else existing
    found = [DefinedTool(tool, file) for file, text in existing.items() for tool in parse_entries(text, str(file))]
    if _build_file_name(basename) == _build_file_name(DEFAULT_BASENAME):
        return [*found, *(DefinedTool(tool, None) for tool in load_default_entries())]
    if not existing:
        raise UsageError(
            f"tools file not found: neither {find_local_file(basename)} nor {find_user_file(basename)} exists. "
            "Create one of them, or pass the name of another with --tools."
        )
    return found


def load_dialect(selection: ToolSelection | None = None) -> Dialect:
    """Load the dialect with the selected tools."""
    selection = selection or ToolSelection()
    return make_dialect(
        [each.tool for each in find_tools(selection.basename, selection.local)], selection.include, selection.exclude
    )


def find_target_file(config_file: Path | None) -> Path:
    """Return the file to change: ``config_file`` if given, else the local file if it exists, else the user's file."""
    if config_file is not None:
        return config_file
    return find_local_file() if find_local_file().is_file() else find_user_file()


def add_tool(entry: JsonObject, file: Path) -> None:
    """Add an entry to ``file``, creating the file if missing. Raises UsageError if the entry is invalid or its name is
    taken."""
    tool = parse_entry(entry, "the new tool")
    entries = _read_entries(file) if file.exists() else []
    if any(isinstance(other, dict) and other.get("name") == tool.name for other in entries):
        raise UsageError(f"{file} already has a tool {tool.name!r}; remove it first, or choose another name")
    _save(file, [*entries, entry])


def remove_tool(name: str, file: Path) -> bool:
    """Remove the entry ``name`` from ``file``. Return False if it is not there."""
    if not file.exists():
        return False
    entries = _read_entries(file)
    remaining = [entry for entry in entries if entry["name"] != name]
    if len(remaining) == len(entries):
        return False
    _save(file, remaining)
    return True


def install_defaults(basename: str = DEFAULT_BASENAME) -> Path:
    """Write the shipped tools file to the user's configuration. Raises UsageError if the file already exists."""
    file = find_user_file(basename)
    if file.exists():
        raise UsageError(f"{file} already exists; nothing was changed. Rename it to install the shipped file.")
    _write(file, load_default_text())
    return file


def _build_file_name(basename: str) -> str:
    if not basename or Path(basename).name != basename:
        raise UsageError(f"--tools must be the base name of a file, such as 'tools'; got {basename!r}")
    return basename if basename.endswith(".json") else f"{basename}.json"


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {explain_read_error(error)}") from error


def _read_entries(file: Path) -> list[Json]:
    """Validate a file's entries, and return them verbatim."""
    text = _read_text(file)
    parse_entries(text, str(file))
    content = json.loads(text)
    if isinstance(content, dict):
        return list(content.get(ENTRIES_KEY, [content]))
    return list(content)


def _save(file: Path, entries: Sequence[Json]) -> None:
    """Replace the entries in ``file``, but keep its structure and other keys."""
    content: Json = {ENTRIES_KEY: list(entries)}
    if file.exists():
        old = json.loads(_read_text(file))
        if isinstance(old, list):
            content = list(entries)
        elif ENTRIES_KEY in old:
            content = old | content
    _write(file, json.dumps(content, ensure_ascii=False, indent=2) + "\n")


def _write(file: Path, text: str) -> None:
    """Write the file atomically. If it is a symbolic link, replace the link's target."""
    file = file.resolve()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        mode = file.stat().st_mode & 0o777 if file.exists() else 0o644
        descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as temporary:
                temporary.write(text)
                Path(name).chmod(mode)
                temporary.flush()
                os.fsync(temporary.fileno())
            Path(name).replace(file)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}; nothing was changed") from error
