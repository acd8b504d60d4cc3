"""Draw the picture of a chat in docs/agent.md from a real terminal, for ``python -m tests.generate --pictures``."""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path

import pyte
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tests.cli.terminal import Terminal
from tests.cli.test_console import answer
from tests.scripted_server import CHAT, MODELS, ScriptedServer, as_json

PICTURE = Path(__file__).parent.parent / "docs" / "chat.svg"
COLUMNS = 84
CALL = '<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>'
COLORS = {"brightblack": "#999999", "brown": "yellow"}
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
"""Without fonts from elsewhere."""


def picture() -> str:
    """Return the SVG, from the first message to the last answer."""
    with tempfile.TemporaryDirectory() as name, ScriptedServer() as server:
        folder = Path(name)
        (folder / "settings.ini").write_text("[server]\nport = 8000\n", encoding="utf-8")
        server.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "qwen3:4b", "object": "model"}]}))
        server.on(
            CHAT,
            answer(CALL % ("read_file", '{"path": "settings.ini"}'), reasoning_content="I look at the settings first."),
            answer("It listens on port 8000."),
            answer(CALL % ("edit", '{"file": "settings.ini", "old_text": "8000", "new_text": "9000",}')),
            answer("It is 9000 now."),
        )
        environ = {"PROMPT_TOOLKIT_NO_CPR": "1", "XDG_STATE_HOME": str(folder / "state")}
        terminal = _Dimmed(["chat", "--base-url", server.url], folder, columns=COLUMNS, environ=environ)
        terminal.type("Which port does the server use?\r", after="\n>")
        terminal.type("Make it 9000\r", after="8000.\n>")
        terminal.type("y\n", after="a reason for the model:")
        terminal.type("/undo\r", after="9000 now.\n>")
        terminal.type("/exit\r", after="+port = 8000\n>")
        assert terminal.end() == 0, terminal.text
        rows = terminal.rows()
    first = next(number for number, row in enumerate(rows) if row.plain.startswith("> "))
    last = next(number for number, row in enumerate(rows) if row.plain.startswith("> /exit"))
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), color_system="truecolor", legacy_windows=False)
    for row in rows[first:last]:
        console.print(row, soft_wrap=True)
    return console.export_svg(title="adapter chat", theme=MONOKAI, code_format=FORMAT, unique_id="chat")


class _Dimmed(Terminal):
    """A terminal that shows dim text in gray, which pyte does not support."""

    def rows(self) -> list[Text]:
        screen = pyte.Screen(COLUMNS, self._screen.lines)
        pyte.ByteStream(screen).feed(self.shown.replace(b"\x1b[2m", b"\x1b[90m"))
        found = []
        for number in range(screen.lines):
            text = Text()
            for column in range(COLUMNS):
                cell = screen.buffer[number][column]
                text.append(cell.data, Style(color=COLORS.get(cell.fg, cell.fg), bold=cell.bold))
            text.rstrip()
            found.append(text)
        return found
