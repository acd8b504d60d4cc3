"""The commands and their options, as Typer takes them: the one that is asked for is loaded alone."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

from adapter.core.version import __version__

if TYPE_CHECKING:
    from typer._click.core import Context, Parameter

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


class _Command(TyperCommand):
    def get_params(self, ctx: Context) -> list[Parameter]:
        """Leave out the ``<bool>`` that Typer's help shows beside flags, which take no value."""
        params = super().get_params(ctx)
        for param in params:
            if isinstance(param, TyperOption) and param.is_flag:
                param.metavar = ""
        return params


def make_app(commands: Collection[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands."""
    loaded = {name: _load(name) for name in commands}
    is_one_command = len(loaded) == 1 and not any(isinstance(each, typer.Typer) for each in loaded.values())
    app = typer.Typer(
        name="adapter",
        help="Turn a language model that speaks plain text into a tool-calling agent.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        # A list of commands needs no rich, which doubles its time; options of one command stand in panels.
        rich_markup_mode="rich" if is_one_command else None,
        add_completion=True,
        context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 120},
    )
    app.callback()(_options)
    for name, command in loaded.items():
        if isinstance(command, typer.Typer):
            app.add_typer(command)
        else:
            app.command(name, cls=_Command)(command)
    return app


def _load(name: str) -> Any:
    module, _, attribute = COMMANDS[name].partition(".")
    return getattr(import_module(f"adapter.cli.{module}"), attribute)


def requested_command(arguments: list[str]) -> Collection[str]:
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
