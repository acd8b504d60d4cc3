"""Identify the programs and scripts that a command line runs, so that an approval covers their content."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from adapter.core.errors import ToolError
from adapter.core.program_lookup import find_program, list_executable_names
from adapter.tools.operations.shell_analysis import iter_possible_programs
from adapter.workspace.paths import tree_ops
from adapter.workspace.paths.resolver import WorkspaceRoot

MAX_PROGRAMS = 1_000
"""Maximum number of programs and scripts of a command; a command with more is refused."""


def identify_programs(root: WorkspaceRoot, cwd: str, line: str, search_path: str) -> dict[str, str]:
    """Return the identity of each program and script that ``line`` may run in ``cwd``, by its path."""
    return identify_files(root, cwd, iter_possible_programs(line), search_path)


def identify_files(root: WorkspaceRoot, cwd: str, words: Iterable[str], search_path: str) -> dict[str, str]:
    """Return the identities, by path, of the words that are files in ``cwd`` or programs in ``search_path``. Raises
    ToolError for more than `MAX_PROGRAMS` words."""
    identities: dict[str, str] = {}
    different = dict.fromkeys(words)
    if len(different) > MAX_PROGRAMS:
        raise ToolError(f"the command names more than {MAX_PROGRAMS:,} programs and files; split it into several")
    for word in different:
        is_absolute = os.path.isabs(word)  # noqa: PTH117
        for name in dict.fromkeys((word, *list_executable_names(word))):
            with suppress(ToolError, OSError), root.locate(name if is_absolute else f"{cwd}/{name}") as resolved:
                if resolved.is_file and resolved.status is not None:
                    identities["/".join(resolved.parts)] = tree_ops.build_identity(resolved.status)
        program = word if is_absolute else None if "/" in word else find_program(word, search_path)
        if program is not None:
            with suppress(OSError, ValueError):
                identities[program] = tree_ops.build_identity(os.stat(program))
    return identities
