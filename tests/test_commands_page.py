"""docs/commands.md documents every command and option of the program.

python -m tests.test_commands_page      generates the page
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import typer

from adapter.cli.app import COMMANDS, make_app
from adapter.cli.options import show_hidden_options

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"
HEAD = """# Commands and options

All commands with their options, as `adapter COMMAND --help` shows them. `run`, `chat` and `serve` have advanced options
that only `--help-all` shows. Data goes to standard output, everything for the user to standard error. The output of
`--json` contains every character of a model's text, escaped. `python -m tests.test_commands_page` generates this page.

| exit code | meaning |
|---|---|
| 0 | Success. |
| 1 | Failure: no call found, a difference, a patch that does not apply, a model that gave up, a full disk. |
| 2 | Wrong use: an unknown option, or an invalid value, file or folder. |
| 3 | No model server answers. For `adapter tool`: the tool does not exist. |
| 130 | Stopped with Ctrl-C. |
"""
_ESCAPED = str.maketrans({"|": "\\|", "<": "&lt;", "*": "\\*", "_": "\\_", "\n": " "})


def commands(group: Any, name: str = "adapter") -> Iterator[tuple[str, Any]]:
    """Yield every command with its full name, including the commands of a group."""
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} {word}")
        else:
            yield f"{name} {word}", command


def table(parameters: list[Any], context: Any) -> Iterator[str]:
    yield "| | |\n|---|---|\n"
    for parameter in parameters:
        name, text = parameter.get_help_record(context)
        yield f"| `{name.replace('|', '/')}` | {text.translate(_ESCAPED)} |\n"


def section(name: str, command: Any) -> Iterator[str]:
    show_hidden_options(command)
    context = typer.Context(command)
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
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


def test_commands_page_matches_the_program():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.test_commands_page"


def test_commands_page_lists_every_command_and_hidden_options():
    text = page()
    assert {line.split()[2] for line in text.splitlines() if line.startswith("## adapter")} == COMMANDS.keys()
    assert text.partition("## adapter serve\n")[2].partition("\n## ")[0].count("\n| `-") > 30


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
