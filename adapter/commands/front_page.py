"""What `adapter --help` shows, drawn without the library that reads command lines, which takes longer to load.

It looks as the pages do that the library draws of each command, and is shown in the place of its own, too.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import wrap

ABOUT = "Turn a language model that speaks plain text into a tool-calling agent."
OPTIONS = {
    "--version": "Show the version and exit.",
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell, to copy it or customize the installation.",
    "--help": "Show this message and exit.",
}
COMMANDS = {
    "parse": "Read tool calls out of a model's raw text.",
    "read": "Read files of a model's outputs, one row an output, and add what was read as columns.",
    "derive": "Derive how a model writes calls from its chat template.",
    "prompt": "Print a system prompt that teaches a model to call tools.",
    "edit": "Apply patches to a file, or to several: all of them, each where it was meant, or none.",
    "undo": "Take back the last change that a tool made in a folder, and only that.",
    "run": "Let a model work on a task in a folder; without a task, talk with it (`adapter chat`).",
    "chat": "Talk with a model that works in a folder.",
    "mcp": "Serve the tools of a dialect to an MCP client, over standard input and output.",
    "serve": "Serve the OpenAI interface with tool calls, in front of a model server that only knows text.",
    "probe": "Find out how a model calls tools best, and keep it as a profile for run, serve and wrap.",
    "eval": "Measure how often a model finishes tasks of several steps, with the server's own tools and with ours.",
    "demo": "Watch the built-in model edit a file of a sample workspace.",
    "setup": "Fetch the built-in model, so that later runs need no network.",
    "doctor": "Say what is there on this machine, what confines commands, what is missing, and what to do about it.",
    "replay": "Run recorded conversations again, offline, and compare. What commands gave is taken from the record.",
    "view": "Show what a model was sent, what it wrote and what became of that, as a page for a browser.",
    "export": "Write recordings and transcripts as a training set: one line for each answer of the model.",
    "plugin": "Print the file that gives an engine our parsers: vllm serve ... --tool-parser-plugin "
    '"$(adapter plugin vllm)".',
    "tool": "List and change the shell tools of the dialect promptly.",
}
"""The first paragraph of each command's own help."""

NARROWEST = 60
"""Columns; in fewer the page's lines are broken by the terminal."""
_ASCII = str.maketrans("╭╮╰╯─│", "++++-|")


def print_front_page(*, end: str = "\n") -> None:
    """As wide as the terminal; with colours where there is one that wants them (https://no-color.org), and that needs
    no call of the system's before, as Windows' own does."""
    wants = sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and os.name != "nt"
    has_colours = not os.environ.get("NO_COLOR") and (wants or bool(os.environ.get("FORCE_COLOR")))
    page = front_page(_program(), shutil.get_terminal_size().columns, has_colours=has_colours)
    print(page if (sys.stdout.encoding or "").lower().startswith("utf") else page.translate(_ASCII), end=end)


def front_page(program: str, columns: int, *, has_colours: bool = False) -> str:
    """``program``: how the command line was called."""
    columns = max(columns, NARROWEST)
    usage = f" Usage: {program} [OPTIONS] COMMAND [ARGS]...".ljust(columns)
    about = [f" {line}" for line in wrap(ABOUT, columns - 2, break_on_hyphens=False)]
    lines = ["", _styled(usage, "1", has_colours), "", *about, ""]
    options = {f"{name:<28}<bool>": said for name, said in OPTIONS.items()}
    return "\n".join(
        [
            *(line.ljust(columns) for line in lines),
            *_box("Options", options, columns, has_colours=has_colours),
            *_box("Commands", COMMANDS, columns, has_colours=has_colours),
            "",
        ]
    )


def _box(title: str, rows: Mapping[str, str], columns: int, *, has_colours: bool) -> list[str]:
    """Lines of a table of names and what is said of them, with a border."""
    left = max(map(len, rows))
    space = columns - left - len("│    │")
    edge = _styled("│", "2", has_colours)
    lines = [_styled(f"╭─ {title} {'─' * (columns - len(title) - 5)}╮", "2", has_colours)]
    for name, said in rows.items():
        for number, line in enumerate(wrap(said, space, break_on_hyphens=False)):
            shown = _styled(f"{'' if number else name:<{left}}", "1;36", has_colours)
            lines.append(f"{edge} {shown}  {line:<{space}} {edge}")
    return [*lines, _styled(f"╰{'─' * (columns - 2)}╯", "2", has_colours)]


def _styled(text: str, style: str, has_colours: bool) -> str:
    return f"\033[{style}m{text}\033[0m" if has_colours else text


def _program() -> str:
    name = Path(sys.argv[0])
    return f"python -m {name.parent.name}" if name.name == "__main__.py" else name.name
