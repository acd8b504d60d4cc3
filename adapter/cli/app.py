"""Build the Typer application. Only the requested command's module is imported."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

from adapter.cli.options import HELP_ALL_HINT, explain_invalid_option, refuse_empty_paths, show_hidden_options
from adapter.cli.shell_completion import complete_values
from adapter.core.version import __version__

if TYPE_CHECKING:
    from typer._click.core import Context, Parameter

_NAMES = (
    "parse", "read", "derive", "learn", "prompt", "edit", "undo", "run", "chat", "mcp", "serve", "probe", "eval",
    "demo", "setup", "doctor", "replay", "view", "playground", "export", "tool", "plugin",
)  # fmt: skip
_OTHERS = {"eval": "eval.evaluate", "tool": "tool.app", "plugin": "engine_plugin.plugin"}
COMMANDS = {name: f"{name}.{name}" for name in _NAMES} | _OTHERS
"""Module and attribute of each command. The attribute is a function, or a Typer application with subcommands."""


class _Command(TyperCommand):
    """A command whose advanced options are hidden from its ``--help``; ``--help-all`` shows them."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        for param in self.params:
            complete_values(param)
        if any(getattr(param, "hidden", False) for param in self.params):
            self.epilog = HELP_ALL_HINT

    def get_params(self, ctx: Context) -> list[Parameter]:
        """Return the parameters, without the ``<bool>`` after flags in Typer's help, because flags take no value."""
        params = super().get_params(ctx)
        for param in params:
            if isinstance(param, TyperOption) and param.is_flag:
                param.metavar = ""
        return params

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            explain_invalid_option(error, ctx)
            raise

    def shell_complete(self, ctx: Context, incomplete: str) -> Any:
        show_hidden_options(self)
        return super().shell_complete(ctx, incomplete)


def make_app(commands: Collection[str] = COMMANDS) -> typer.Typer:
    """Build the application with ``commands``."""
    loaded = {name: _load(name) for name in commands}
    is_one_command = len(loaded) == 1 and not any(isinstance(each, typer.Typer) for each in loaded.values())
    app = typer.Typer(
        name="adapter",
        help="Turn a language model that generates plain text into a tool-calling agent.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        # Only a single command's help needs rich, for its option panels. Listing commands with rich takes twice the
        # time.
        rich_markup_mode="rich" if is_one_command else None,
        add_completion=True,
        context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 120},
    )
    app.callback()(_accept_version)
    for name, command in loaded.items():
        if isinstance(command, typer.Typer):
            for each in command.registered_commands:
                refuse_empty_paths(each.callback)  # type: ignore[arg-type]  # all are functions
            app.add_typer(command)
        else:
            variables = {"auto_envvar_prefix": ENV_PREFIX} if name == "serve" else {}
            refuse_empty_paths(command)
            app.command(name, cls=_Command, context_settings=variables)(command)
    return app


ENV_PREFIX = "ADAPTER"
"""Prefix of the environment variables for options of `serve`: ``ADAPTER_MAX_STREAMS`` is ``--max-streams``."""


def _load(name: str) -> Any:
    module, _, attribute = COMMANDS[name].partition(".")
    return getattr(import_module(f"adapter.cli.{module}"), attribute)


def find_requested_command(arguments: list[str]) -> Collection[str]:
    """Return the requested command's name. For help or an unknown command, return the names of all commands."""
    return arguments[1:2] if len(arguments) > 1 and arguments[1] in COMMANDS else COMMANDS


def _print_version(is_requested: bool) -> None:
    if is_requested:
        print(f"toolcall-adapter {__version__}")
        raise typer.Exit


def _accept_version(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass
