"""docs/commands.md names every command and option, as the program itself does.

python -m tests.test_commands_page      writes the page anew
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import typer

from adapter.cli.app import COMMANDS, make_app

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"
HEAD = """# Commands and options

What `adapter COMMAND --help` says, of all of them. Data goes to standard output, everything for people to standard
error. `--json`, where there is one, has every character of a model's text, escaped. This page is made from the program
by `python -m tests.test_commands_page`.

| exit code | meaning |
|---|---|
| 0 | Done. |
| 1 | Not done: no call found, a difference, a patch that does not fit, a model that gave up, a full disk. |
| 2 | Wrong use: an unknown option, a value, a file or a folder that cannot be used. |
| 3 | No model server answers. For `adapter tool`: there is no such tool. |
| 130 | Stopped with Ctrl-C. |
"""
_ESCAPED = str.maketrans({"|": "\\|", "<": "&lt;", "*": "\\*", "_": "\\_", "\n": " "})


def commands(group: Any, name: str = "adapter") -> Iterator[tuple[str, Any]]:
    """By their whole names; of a group, those in it."""
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} {word}")
        else:
            yield f"{name} {word}", command


def table(parameters: list[Any], context: Any) -> Iterator[str]:
    yield "| | |\n|---|---|\n"
    for parameter in parameters:
        name, said = parameter.get_help_record(context)
        yield f"| `{name.replace('|', '/')}` | {said.translate(_ESCAPED)} |\n"


def section(name: str, command: Any) -> Iterator[str]:
    context = typer.Context(command)
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    words = [each.display_name_raw if each.required else f"[{each.display_name_raw}]" for each in arguments]
    yield f"\n## {name}\n\n```text\n{' '.join([name, *words, '[OPTIONS]'])}\n```\n\n{command.help.strip()}\n"
    if arguments:
        yield from ("\n", *table(arguments, context))

    def panel(option: Any) -> str:
        return option.rich_help_panel or "Options"

    names = list(dict.fromkeys(map(panel, options)))
    for title, group in groupby(sorted(options, key=lambda each: names.index(panel(each))), panel):
        yield from (f"\n**{title}**\n\n", *table(list(group), context))


def page() -> str:
    group = typer.main.get_command(make_app())
    return HEAD + "".join(part for name, command in commands(group) for part in section(name, command))


def test_the_page_is_what_the_program_says():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.test_commands_page"


def test_every_command_is_on_it():
    """With its options: those of `serve` have to be many."""
    text = page()
    assert {line.split()[2] for line in text.splitlines() if line.startswith("## adapter")} == COMMANDS.keys()
    assert text.partition("## adapter serve\n")[2].partition("\n## ")[0].count("\n| `-") > 20


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
