"""The commands and their options, as Typer takes them: the one that is asked for is loaded alone."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Annotated

import typer

from adapter.values.version import __version__

COMMANDS = {
    "parse": "parse.parse",
    "read": "read.read",
    "derive": "derive.derive",
    "prompt": "prompt.prompt",
    "edit": "edit.edit",
    "undo": "edit.undo",
    "run": "run.run",
    "chat": "chat.chat",
    "mcp": "mcp.mcp",
    "serve": "serve.serve",
    "probe": "probe.probe",
    "eval": "eval.evaluate",
    "demo": "run.demo",
    "setup": "run.setup",
    "doctor": "doctor.doctor",
    "replay": "replay.replay",
    "view": "view.view",
    "export": "export.export",
    "tool": "tool.app",
    "plugin": "plugin.plugin",
}
"""Where each command is in this folder: a function, or a Typer app of several."""


def make_app(commands: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands."""
    app = typer.Typer(
        name="adapter",
        help="Turn a language model that speaks plain text into a tool-calling agent.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # rich and markdown-it take as long to load as all else
        add_completion=True,
        context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 120},
    )
    app.callback()(_options)
    for name in commands:
        module, _, attribute = COMMANDS[name].partition(".")
        command = getattr(import_module(f"adapter.commands.{module}"), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command)
        else:
            app.command(name)(command)
    return app


def wanted(arguments: list[str]) -> Iterable[str]:
    """The command that stands first; all where none does, for help, and for one that does not exist."""
    return arguments[1:2] if len(arguments) > 1 and arguments[1] in COMMANDS else COMMANDS


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"toolcall-adapter {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass
