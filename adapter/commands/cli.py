"""The command line: ``adapter parse | prompt | edit | undo | run | mcp | serve | probe | eval | replay | demo ...``.

Data goes to stdout, everything for people to stderr. Exit codes: 0 done, 1 not
done (nothing found, a difference, a model that gave up), 2 wrong use, 3 no
model server, 130 stopped with Ctrl-C. Each command imports what it needs when
it runs, so that ``--help`` and ``parse`` start quickly. What models and files say is printed
with its control characters spelled out; ``--json`` has every character, escaped.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import typer

from adapter.commands import tool
from adapter.commands.doctor import doctor
from adapter.commands.edit import edit, undo
from adapter.commands.eval import evaluate
from adapter.commands.mcp import mcp
from adapter.commands.output import print_visible
from adapter.commands.parse import parse
from adapter.commands.probe import probe
from adapter.commands.prompt import prompt
from adapter.commands.replay import replay
from adapter.commands.run import demo, run, setup
from adapter.commands.serve import serve
from adapter.values.errors import AdapterError, TransportError, UsageError
from adapter.values.version import __version__

app = typer.Typer(
    name="adapter",
    help="Turn a language model that speaks plain text into a tool-calling agent.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
)
app.add_typer(tool.app)
for command in (parse, prompt, edit, undo, run, mcp, serve, probe, evaluate, demo, setup, doctor, replay):
    app.command("eval" if command is evaluate else None)(command)


def main() -> None:
    """Run the command line; errors of ours become one message and an exit code."""
    _open_what_is_closed()
    try:
        app()
    except TransportError as error:
        _fail(error, 3)
    except UsageError as error:
        _fail(error, 2)
    except AdapterError as error:
        _fail(error, 1)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; that is no error of ours
        raise SystemExit(0) from None


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


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass
