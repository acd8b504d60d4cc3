"""Promptly's shell tools: programs that a user allows, each an entry in a JSON file.

::

    {"shellCommands": [{
      "name": "ShowFileTree", "description": "Visual directory tree listing", "executable": "tree",
      "argumentTemplate": [["-L", "{{depth}}"], ["{(path)}"]],
      "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "depth": {"type": "integer"}},
                     "required": ["path"]},
      "echoOutput": false, "truncateOutput": true, "exclusiveArgumentTemplate": false, "optIn": false
    }]}

Each group of ``argumentTemplate`` is kept when all its placeholders have a value
and dropped otherwise; with ``exclusiveArgumentTemplate`` only the first that can
be kept is used. ``{{name}}`` stands for a value, ``{(name)}`` for a path inside
the workspace. There is no shell: one token is one argument, whatever is in it. A
token that holds an array is repeated for each item; an empty array is a missing
value, and a missing one with a ``default`` has that. A value is never taken for an option: where a token begins with a
placeholder, a value that begins with ``-`` is refused unless ``--`` stands before it.

A file may also hold a plain list of entries, or one entry. Source: Promptly's
"Shell tools" document; where it is silent, the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files

from adapter.core.errors import UsageError
from adapter.dialects.promptly.builtin_tools import (
    CopyFiles,
    LineCount,
    ListFiles,
    MakeDirectories,
    MoveFiles,
    PromptlyFindFiles,
    RemoveFiles,
    RipGrep,
    RipGrepIncludingHidden,
    RipGrepWithGlob,
    SearchAndReplace,
    SearchText,
    ShowFileContents,
    WriteToFile,
)
from adapter.dialects.promptly.tool_entry import ShellTool, parse_entries
from adapter.dialects.toolset import Dialect
from adapter.tools.tool import Tool

__all__ = [
    "BUILT_IN",
    "DIALECT",
    "OPT_IN",
    "DefaultTool",
    "default_entries",
    "default_text",
    "make_dialect",
    "tool_entry",
    "tool_files",
]

BUILT_IN = (
    *(WriteToFile, SearchAndReplace, MakeDirectories, RemoveFiles, MoveFiles, CopyFiles),
    *(ShowFileContents, LineCount, ListFiles, PromptlyFindFiles),
    *(SearchText, RipGrep, RipGrepWithGlob, RipGrepIncludingHidden),
)


OPT_IN = frozenset({RipGrepIncludingHidden.naming.name})
"""Of the built-in ones those that wait for an ``include``."""


@cache
def default_text() -> str:
    """The shipped tools file."""
    return files("adapter.dialects").joinpath("promptly_tools.json").read_text(encoding="utf-8")


class DefaultTool(ShellTool):
    """An entry of ours: who has not installed its program is not offered it. What users define is always offered,
    so that a program they lack is told."""

    def tool(self) -> Tool:
        return replace(super().tool(), program=self.executable)


def default_entries() -> list[ShellTool]:
    entries = parse_entries(default_text(), "the shipped tools file")
    return [DefaultTool.model_construct(**dict(entry)) for entry in entries]


def make_dialect(entries: Iterable[ShellTool], include: Sequence[str] = (), exclude: Sequence[str] = ()) -> Dialect:
    """The dialect with the built-in tools and ``entries``, of which the first of a name counts, also before a
    built-in one.

    ``include``: only tools whose names contain one of these, opt-in ones among
    them; without it all but the opt-in ones. ``exclude``: none whose names
    contain one of these. Letters count as they are. Raises UsageError when
    an ``include`` matches nothing, and when no tool is left.
    """
    first: dict[str, ShellTool] = {}
    for entry in entries:
        first.setdefault(entry.name, entry)
    offered = {kind.naming.name: kind.naming.name in OPT_IN for kind in BUILT_IN} | {
        name: entry.opt_in for name, entry in first.items()
    }
    for wanted in include:
        if not any(wanted in name for name in offered):
            raise UsageError(f"no tool's name contains {wanted!r}; there are: {', '.join(offered)}")
    chosen = {
        name
        for name, opt_in in offered.items()
        if (any(wanted in name for wanted in include) if include else not opt_in)
        and not any(unwanted in name for unwanted in exclude)
    }
    if not chosen:
        raise UsageError(f"no tool is left of: {', '.join(offered)}; include or exclude others")
    return Dialect(
        name="promptly",
        title="Promptly",
        classes=[kind for kind in BUILT_IN if kind.naming.name in chosen - first.keys()],
        defined=tuple(entry.tool() for entry in first.values() if entry.name in chosen),
    )


DIALECT = make_dialect(default_entries())
