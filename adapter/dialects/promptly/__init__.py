"""Promptly's tools: built-in tools, and shell tools, which run programs as a JSON file defines.

::

    {"shellCommands": [{
      "name": "ShowFileTree", "description": "Visual directory tree listing", "executable": "tree",
      "argumentTemplate": [["-L", "{{depth}}"], ["{(path)}"]],
      "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "depth": {"type": "integer"}},
                     "required": ["path"]},
      "echoOutput": false, "truncateOutput": true, "exclusiveArgumentTemplate": false, "optIn": false
    }]}

A group in ``argumentTemplate`` is used if all its placeholders have a value. With ``exclusiveArgumentTemplate``, only
the first complete group is used. ``{{name}}`` is replaced with a value, ``{(name)}`` with a path inside the workspace.
The program runs without a shell, so each token is one argument, whatever it contains. If a token's value is an array,
the token is repeated for each item. An empty array counts as a missing value, and a missing value is replaced with its
``default``. A value never becomes an option: if a token begins with a placeholder, a value that begins with ``-`` is
rejected unless ``--`` precedes it.

A file may also be a plain list of entries, or a single entry. Source: Promptly's "Shell tools" document and, for
undocumented details, the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files

from adapter.core.errors import UsageError
from adapter.dialects.dialect import Dialect
from adapter.dialects.promptly import builtin_tools as tools
from adapter.dialects.promptly.tools_file_entries import ShellTool, parse_entries
from adapter.tools.tool import Tool

__all__ = [
    "BUILT_IN", "DIALECT", "OPT_IN", "DefaultTool", "load_default_entries", "load_default_text", "make_dialect",
    "tool_files", "tools_file_entries",
]  # fmt: skip

BUILT_IN = (
    *(tools.WriteToFile, tools.SearchAndReplace, tools.MakeDirectories, tools.RemoveFiles),
    *(tools.MoveFiles, tools.CopyFiles, tools.ShowFileContents, tools.LineCount),
    *(tools.ListFiles, tools.PromptlyFindFiles, tools.SearchText),
    *(tools.RipGrep, tools.RipGrepWithGlob, tools.RipGrepIncludingHidden),
)
OPT_IN = frozenset({tools.RipGrepIncludingHidden.naming.name})
"""Built-in tools that are offered only if ``include`` names them."""


@cache
def load_default_text() -> str:
    """Return the text of the shipped tools file."""
    return files("adapter.dialects").joinpath("promptly_tools.json").read_text(encoding="utf-8")


class DefaultTool(ShellTool):
    """A shipped entry, offered only if its program is installed. The user's own tools are always offered. If a program
    is missing, the call reports this."""

    def build_tool(self) -> Tool:
        return replace(super().build_tool(), program=self.executable)


def load_default_entries() -> list[ShellTool]:
    entries = parse_entries(load_default_text(), "the shipped tools file")
    return [DefaultTool.model_construct(**dict(entry)) for entry in entries]


def make_dialect(entries: Iterable[ShellTool], include: Sequence[str] = (), exclude: Sequence[str] = ()) -> Dialect:
    """Build the dialect from the built-in tools and ``entries``. Of several tools with the same name, the first entry
    is used.

    ``include``: offer only tools whose names contain one of these strings, even opt-in tools. If it is empty, all but
    opt-in tools are offered. ``exclude``: do not offer tools whose names contain one of these strings. Matching is
    case-sensitive. Raises UsageError if a string in ``include`` matches nothing, or if no tool remains.
    """
    first: dict[str, ShellTool] = {}
    for entry in entries:
        first.setdefault(entry.name, entry)
    offered = {kind.naming.name: kind.naming.name in OPT_IN for kind in BUILT_IN}
    offered |= {name: entry.opt_in for name, entry in first.items()}
    for wanted in include:
        if not any(wanted in name for name in offered):
            raise UsageError(f"no tool's name contains {wanted!r}; available: {', '.join(offered)}")
    included = [
        name for name, opt_in in offered.items() if (any(each in name for each in include) if include else not opt_in)
    ]
    chosen = {name for name in included if not any(unwanted in name for unwanted in exclude)}
    if not chosen:
        raise UsageError(f"include and exclude leave out every tool ({', '.join(offered)}); change one of them")
    return Dialect(
        name="promptly",
        title="Promptly",
        classes=[kind for kind in BUILT_IN if kind.naming.name in chosen - first.keys()],
        defined=tuple(entry.build_tool() for entry in first.values() if entry.name in chosen),
    )


DIALECT = make_dialect(load_default_entries())
