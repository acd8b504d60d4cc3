"""`adapter parse` and `adapter replay` as pipelines write them, understood without the library for command lines.

That library takes longer to load than a text takes to be read. A line that says anything else than the words below,
help and mistakes among it, is left to the library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple


class Plain(NamedTuple):
    """What may follow a command's name: words that a value follows and words by themselves, with the argument of
    `show` in ``module`` that each is for; ``file``: which argument any other word is, once or, in a list, often."""

    module: str
    file: str
    takes_several: bool
    flags: Mapping[str, str]
    options: Mapping[str, str]


COMMANDS = {
    "parse": Plain(
        "adapter.commands.parsed",
        "file",
        takes_several=False,
        flags={"--json": "as_json"},
        options={
            "--format": "format",
            "--dialect": "dialect",
            "--finish-reason": "finish_reason",
            "--policy": "policy",
        },
    ),
    "replay": Plain(
        "adapter.commands.replayed",
        "paths",
        takes_several=True,
        flags={"--json": "as_json", "--update": "update"},
        options={},
    ),
}


def plain_command(words: Sequence[str]) -> Callable[[], None] | None:
    """What does as ``words``, after ``adapter``, say; None where they say more."""
    command = COMMANDS.get(words[0]) if words else None
    given = None if command is None else plain_arguments(command, words[1:])
    return None if command is None or given is None else partial(import_module(command.module).show, **given)


def plain_arguments(command: Plain, words: Sequence[str]) -> dict[str, Any] | None:
    """The arguments of `show` that ``words``, after the command's name, say; None where they say more."""
    given: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        name = command.options.get(word) or command.flags.get(word) or command.file
        value = next(rest, None) if word in command.options else word
        if value is None or (value.startswith("-") and value != "-" and word not in command.flags):
            return None
        if name == command.file and command.takes_several:
            given.setdefault(name, []).append(value)
        elif name in given:
            return None
        else:
            given[name] = True if word in command.flags else value
    return given
