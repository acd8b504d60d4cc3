"""docs/commands.md lists every command and option, generated from the program by ``python -m tests.generate``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import typer

from adapter.cli.app import COMMANDS, make_app
from adapter.cli.options import show_hidden_options

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"
HEAD = """# Commands and options

Look up every command and option, including those that only `--help-all` of `run`, `chat` and `serve` shows. Options
shared with `adapter run` are described there. Results go to standard output, messages to standard error. With `--json`,
a model's text is complete, and control characters in it are JSON escapes.

| exit code | meaning |
|---|---|
| 0 | Success. |
| 1 | Failure: no call found, a difference, a rejected patch, a model that gave up, a full disk. |
| 2 | Wrong usage: an unknown option, or a value, file or folder that cannot be used. |
| 3 | No model server answers. For `adapter tool`: the tool does not exist. |
| 130 | Stopped with Ctrl-C. |
"""
_REFERENCE = "adapter run"
"""The command whose options are described only once; options that other commands share with it are only named."""
_ESCAPED = str.maketrans({"|": "\\|", "<": "&lt;", "*": "\\*", "_": "\\_", "\n": " "})


def commands(group: Any, name: str = "adapter") -> Iterator[tuple[str, Any]]:
    """Yield every command with its full name, including the commands of a group."""
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} {word}")
        else:
            yield f"{name} {word}", command


def rows(parameters: list[Any], context: Any) -> dict[str, str]:
    """Return the row of each parameter in a table, by the parameter's first name."""
    found = {}
    for parameter in parameters:
        name, text = parameter.get_help_record(context)
        found[parameter.opts[0]] = f"| `{name.replace('|', '/')}` | {text.translate(_ESCAPED)} |\n"
    return found


def table(kind: str, lines: Iterable[str]) -> str:
    return f"\n| {kind} | meaning |\n|---|---|\n{''.join(lines)}"


def section(name: str, command: Any, reference: dict[str, None]) -> Iterator[str]:
    """Yield the section of a command. ``reference`` has the rows of `_REFERENCE`; that command's section has all."""
    context = typer.Context(command)
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    words = [each.display_name_raw if each.required else f"[{each.display_name_raw}]" for each in arguments]
    yield f"\n## {name}\n\n```text\n{' '.join([name, *words, '[OPTIONS]'])}\n```\n\n{command.help.strip()}\n"
    if arguments:
        yield table("argument", rows(arguments, context).values())

    option_rows = rows(options, context)
    shared = {option: row for option, row in option_rows.items() if row in reference and name != _REFERENCE}
    missing = [row.split("`")[1].split()[0] for row in reference if row not in option_rows.values()]
    own = [each for each in options if each.opts[0] not in shared]

    def panel(option: Any) -> str:
        return option.rich_help_panel or "Options"

    titles = list(dict.fromkeys(map(panel, own)))
    for title, group in groupby(sorted(own, key=lambda each: titles.index(panel(each))), panel):
        yield f"\n**{title}**\n{table('option', [option_rows[each.opts[0]] for each in group])}"
    if shared:
        link = f"[`{_REFERENCE}`](#{_REFERENCE.replace(' ', '-')})"
        few = len(missing) < len(shared)
        names = ", ".join(f"`{each}`" for each in (missing if few else shared))
        yield f"\nAll options of {link} except {names}.\n" if few else f"\nAs in {link}: {names}.\n"


def page() -> str:
    found = dict(commands(typer.main.get_command(make_app())))
    for command in found.values():
        show_hidden_options(command)
    run = found[_REFERENCE]
    options = [each for each in run.params if each.param_type_name == "option"]
    reference = dict.fromkeys(rows(options, typer.Context(run)).values())
    return HEAD + "".join(part for name, command in found.items() for part in section(name, command, reference))


def test_commands_page_lists_every_command_and_hidden_options():
    text = page()
    assert {line.split()[2] for line in text.splitlines() if line.startswith("## adapter")} == COMMANDS.keys()
    assert text.partition("## adapter serve\n")[2].partition("\n## ")[0].count("\n| `-") > 30


def test_options_shared_with_run_are_described_once():
    chat = page().partition("## adapter chat\n")[2].partition("\n## ")[0]
    assert "All options of [`adapter run`](#adapter-run) except `--record`." in chat
    assert "| `--sandbox" not in chat
    assert "| `--resume" in chat
