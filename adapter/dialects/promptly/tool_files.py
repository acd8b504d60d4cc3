"""Promptly's tools files: where they are, which of their tools count, and how they are changed.

In the order in which the first tool of a name counts: ``tools.json`` in the
current directory, ``~/.config/promptly/tools.json``, and the file that ships
with the program. With another basename than ``tools`` the shipped one is left
out, and one of the two others must be there.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from adapter.core.arguments import reason
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.dialects.promptly import default_entries, default_text, make_dialect
from adapter.dialects.promptly.tool_entry import ENTRIES_KEY, ShellTool, parse_entries, parse_entry
from adapter.dialects.toolset import Dialect

DEFAULT_BASENAME = "tools"


@dataclass(frozen=True, slots=True)
class DefinedTool:
    """A tool and the file that defines it; ``file`` is None for one that ships with the program."""

    tool: ShellTool
    file: Path | None

    @property
    def source(self) -> str:
        if self.file is None:
            return "default"
        return "local" if self.file.parent == Path() else "user"


@dataclass(frozen=True, slots=True)
class ToolSelection:
    """Which tools a command line asks for."""

    basename: str = DEFAULT_BASENAME
    include: Sequence[str] = field(default_factory=tuple)
    exclude: Sequence[str] = field(default_factory=tuple)


def local_file(basename: str = DEFAULT_BASENAME) -> Path:
    return Path(_file_name(basename))


def user_file(basename: str = DEFAULT_BASENAME) -> Path:
    return Path.home() / ".config" / "promptly" / _file_name(basename)


def find_tools(basename: str = DEFAULT_BASENAME) -> list[DefinedTool]:
    """All tools, those that count before those of the same name that do not. Raises UsageError for a file
    that cannot be used."""
    places = [file for file in (local_file(basename), user_file(basename)) if file.is_file()]
    found = [DefinedTool(tool, file) for file in places for tool in parse_entries(_text(file), str(file))]
    if _file_name(basename) == _file_name(DEFAULT_BASENAME):
        return [*found, *(DefinedTool(tool, None) for tool in default_entries())]
    if not places:
        raise UsageError(f"no tools file {local_file(basename)} here and no {user_file(basename)}")
    return found


def load_dialect(choice: ToolSelection | None = None) -> Dialect:
    """The dialect of these tools."""
    choice = choice or ToolSelection()
    return make_dialect([each.tool for each in find_tools(choice.basename)], choice.include, choice.exclude)


def target_file(config_file: Path | None) -> Path:
    """The file that a change goes to: the one named, else the local one if it is there, else the user's."""
    if config_file is not None:
        return config_file
    return local_file() if local_file().is_file() else user_file()


def add_tool(entry: JsonObject, file: Path) -> None:
    """Add an entry to ``file``, which is created if need be. Raises UsageError when it is wrong or there already."""
    tool = parse_entry(entry, "the new tool")
    entries = _entries(file) if file.exists() else []
    if any(isinstance(other, dict) and other.get("name") == tool.name for other in entries):
        raise UsageError(f"{file} has a tool {tool.name!r} already; remove it first, or choose another id")
    _save(file, [*entries, entry])


def remove_tool(name: str, file: Path) -> bool:
    """Take the entry out of ``file``. False when it holds none of that name."""
    if not file.exists():
        return False
    entries = _entries(file)
    kept = [entry for entry in entries if entry["name"] != name]
    if len(kept) == len(entries):
        return False
    _save(file, kept)
    return True


def install_defaults(basename: str = DEFAULT_BASENAME) -> Path:
    """Write the shipped tools file to the user's configuration. Raises UsageError when one is there."""
    file = user_file(basename)
    if file.exists():
        raise UsageError(f"{file} is there already; nothing was changed. Move it away to get the shipped one")
    _write(file, default_text())
    return file


def _file_name(basename: str) -> str:
    if not basename or Path(basename).name != basename:
        raise UsageError(f"--tools takes the base name of a file, such as 'tools', not {basename!r}")
    return basename if basename.endswith(".json") else f"{basename}.json"


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {reason(error)}") from error


def _entries(file: Path) -> list[Json]:
    """The entries as they are written, once they are known to be right."""
    text = _text(file)
    parse_entries(text, str(file))
    content = json.loads(text)
    if isinstance(content, dict):
        return list(content.get(ENTRIES_KEY, [content]))
    return list(content)


def _save(file: Path, entries: Sequence[Json]) -> None:
    """Keep the form of the file, and what else stands in it."""
    content: Json = {ENTRIES_KEY: list(entries)}
    if file.exists():
        old = json.loads(_text(file))
        if isinstance(old, list):
            content = list(entries)
        elif ENTRIES_KEY in old:
            content = old | content
    _write(file, json.dumps(content, ensure_ascii=False, indent=2) + "\n")


def _write(file: Path, text: str) -> None:
    """All of it or nothing; through a link, to the file it leads to."""
    file = file.resolve()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        mode = file.stat().st_mode & 0o777 if file.exists() else 0o644
        descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as temporary:
                temporary.write(text)
                os.fchmod(temporary.fileno(), mode)
                temporary.flush()
                os.fsync(temporary.fileno())
            Path(name).replace(file)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}; nothing was changed") from error
