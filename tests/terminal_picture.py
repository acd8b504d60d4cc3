"""The picture of a terminal in the README: ``python -m tests.generate --pictures`` draws the program's output.

An SVG of text, without external fonts or parts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path

from pyte.screens import Char

from tests.agent.test_agent import in_pieces
from tests.cli.terminal import Terminal
from tests.scripted_server import CHAT, MODELS, ScriptedServer, as_json

PICTURE = Path(__file__).parent.parent / "docs" / "run.svg"
COLUMNS = 88
TASK = "Let the server listen on port 9000"
SETTINGS = "[server]\nhost = 127.0.0.1\nport = 8000\ndebug = no\n"
SAID = (
    '<think>The port is in settings.ini.</think><tool_call>\n{"name": "ReadFile", "arguments": '
    '{"file_path": "settings.ini"}}\n</tool_call>',
    'I change it.\n<tool_call>\n{"name": "apply_edit", "arguments": {"path": "settings.ini", '
    '"old_text": "port = 8000", "new_text": "port = 9000"}}\n</tool_call>',
    "The server now listens on port 9000.",
)

SANDBOX = "sandbox: bubblewrap; changes only in the workspace; no network"
"""The line about the sandbox, drawn on every machine, whichever sandbox it has."""
WIDTH, HEIGHT, MARGIN = 8.4, 19, 18
"""Sizes of a character, of a line, and of the margin, in pixels at font size 14."""
BACKGROUND, FOREGROUND = "#1e1e2e", "#cdd6f4"
COLORS = {
    "red": "#f38ba8",
    "green": "#a6e3a1",
    "brown": "#f9e2af",
    "blue": "#89b4fa",
    "magenta": "#f5c2e7",
    "cyan": "#94e2d5",
    "brightblack": "#7f849c",
}

Run = tuple[int, str, str]
"""The first column, the text and the style."""


def lines() -> list[list[Run]]:
    """Return the terminal of a user who lets a model change a file and approves it."""
    with tempfile.TemporaryDirectory() as name, ScriptedServer() as server:
        folder = Path(name)
        (folder / "settings.ini").write_text(SETTINGS, encoding="utf-8")
        server.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "qwen3-4b", "object": "model"}]}))
        server.on(CHAT, *map(in_pieces, SAID))
        terminal = Terminal(["run", TASK, "--base-url", server.url], folder, columns=COLUMNS)
        terminal.type("y\r", after="a reason for the model:")
        assert terminal.end() == 0, terminal.text
        shown = terminal.cells[: len(terminal.lines)]
        command = [(0, "$ ", "fill:#7f849c"), (2, f'adapter run "{TASK}"', "font-weight:bold")]
        rows = [
            [(at, text.replace(server.url, "http://127.0.0.1:8080"), how) for at, text, how in runs(row)]
            for row in shown
        ]
        starts = ["".join(text for _, text, _ in row)[:3] for row in rows]
        rows[starts.index("san") : starts.index(".. ")] = [[(0, SANDBOX, "")]]
        return [command, *rows]


def runs(row: list[Char]) -> Iterator[Run]:
    at = 0
    for how, cells in groupby(row, drawn):
        text = "".join(cell.data for cell in cells)
        if text.strip():
            yield at, text.rstrip(), how
        at += len(text)


def drawn(cell: Char) -> str:
    color = COLORS.get(cell.fg)
    return ";".join([*([f"fill:{color}"] if color else []), *(["font-weight:bold"] if cell.bold else [])])


def picture(rows: list[list[Run]]) -> str:
    wide, high = round(COLUMNS * WIDTH + 2 * MARGIN), len(rows) * HEIGHT + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
        f'font-family="ui-monospace,Menlo,Consolas,monospace" font-size="14" fill="{FOREGROUND}">',
        f'<rect width="{wide}" height="{high}" rx="8" fill="{BACKGROUND}"/>',
    ]
    for number, row in enumerate(rows, 1):
        for at, text, how in row:
            start = len(text) - len(text.lstrip())
            place = f'x="{MARGIN + (at + start) * WIDTH:.1f}" y="{MARGIN + number * HEIGHT - 5}"'
            size = f'textLength="{len(text.strip()) * WIDTH:.1f}"'
            style = f' style="{how}"' if how else ""
            parts.append(f'<text {place} {size} xml:space="preserve"{style}>{escape(text.strip())}</text>')
    return "\n".join([*parts, "</svg>\n"])
