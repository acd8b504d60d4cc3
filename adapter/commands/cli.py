"""The command line: ``adapter parse | read | derive | prompt | edit | undo | run | chat | mcp | serve | probe ...``.

Data goes to stdout, everything for people to stderr. Exit codes: 0 done, 1 not
done (nothing found, a difference, a model that gave up), 2 wrong use, 3 no
model server, 130 stopped with Ctrl-C. The command that is asked for is loaded alone, and imports
what it needs when it runs. What models and files say is printed with its control characters
spelled out; ``--json`` has every character, escaped.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated, NoReturn

import typer

from adapter.commands.output import print_visible
from adapter.values.errors import AdapterError, TransportError, UsageError
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
        add_completion=True,
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


def main() -> None:
    """Run the command line; errors of ours become one message and an exit code."""
    _open_what_is_closed()
    try:
        make_app(_wanted(sys.argv))()
    except TransportError as error:
        _fail(error, 3)
    except UsageError as error:
        _fail(error, 2)
    except AdapterError as error:
        _fail(error, 1)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; that is no error of ours
        raise SystemExit(0) from None


def _wanted(arguments: list[str]) -> Iterable[str]:
    """The command that stands first; all where none does, for help, and for one that does not exist."""
    return arguments[1:2] if len(arguments) > 1 and arguments[1] in COMMANDS else COMMANDS


def _open_what_is_closed() -> None:
    """A stream that the shell closed (``>&-``) leads nowhere; else the next file that is opened took its place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, PTH123  # for as long as the program runs


def _fail(error: AdapterError, code: int) -> NoReturn:
    from adapter.text.secrets import Secrets

    print_visible(f"adapter: {Secrets(os.environ).redact(str(error))}", to_stderr=True)
    raise SystemExit(code)


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
