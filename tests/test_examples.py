"""The programs of examples/ print what their docstrings show, and each is on one page of docs/ between two comments:

    <!-- example: stream --> ... <!-- end -->

``python -m tests.generate`` writes them there. A scripted server takes the place of a model server.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_agent import in_pieces
from tests.scripted_server import CHAT, MODELS, ScriptedServer, as_json
from tests.server.test_wrap import completion

ROOT = Path(__file__).parent.parent
FILES = {file.stem: file for file in sorted((ROOT / "examples").glob("*.py"))}
PAGES = sorted((ROOT / "docs").glob("*.md"))
WRITTEN = "http://127.0.0.1:8080"
MOST_LINES = 60
_SHOWN = re.compile(r"(<!-- example: (\w+) -->\n).*?(?=\n<!-- end -->)", re.DOTALL)


def call(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


ANSWERS: dict[str, list[Any]] = {
    "wrap_openai": [completion(call("get_weather", '{"city": "Bern"}')), completion("It rains in Bern.")],
    "only_own_tools": [call("open_invoices", '{"customer": "Acme"}'), "Acme has 3 open invoices."],
    "own_tools": [
        call("open_invoices", '{"customer": "Acme"}'),
        call("write_file", '{"path": "invoices.txt", "content": "Acme-1\\nAcme-2\\nAcme-3\\n"}'),
        "I wrote 3 invoices into invoices.txt.",
    ],
    "async_agents": ["It is empty."],
    "serve_and_ask": [call("get_weather", '{"city": "Bern"}')],
}
"""The model's answers by program: completions for plain requests, text for streams."""


def about(name: str) -> tuple[str, str]:
    """Return the first sentence of its docstring, and the output shown below that."""
    sentence, _, printed = (ast.get_docstring(ast.parse(FILES[name].read_text(encoding="utf-8"))) or "").partition(
        "\n\n"
    )
    return sentence, printed + "\n"


def shown(name: str) -> str:
    """Render the program and its output in Markdown."""
    sentence, printed = about(name)
    code = FILES[name].read_text(encoding="utf-8").split('"""', 2)[2].strip()
    return f'{sentence}\n\n```py title="examples/{name}.py"\n{code}\n```\n\n```text title="Output"\n{printed}```'


def with_programs(text: str) -> str:
    return _SHOWN.sub(lambda match: match[1] + shown(match[2]), text)


@pytest.mark.parametrize("name", FILES)
def test_program_prints_its_documented_output(name, scripted: ScriptedServer, tmp_path, monkeypatch, capsys):
    """Only the server's address is replaced."""
    (tmp_path / "my-project").mkdir()
    monkeypatch.chdir(tmp_path)
    scripted.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "m", "object": "model"}]}))
    for said in ANSWERS.get(name, []):
        scripted.on(CHAT, in_pieces(said) if isinstance(said, str) else as_json(200, said))
    source = FILES[name].read_text(encoding="utf-8").replace(WRITTEN, scripted.url)
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(FILES[name])}
    exec(compile(source, str(FILES[name]), "exec"), names)
    assert capsys.readouterr().out == about(name)[1]


def test_agent_with_own_tools_writes_the_file(scripted, tmp_path, monkeypatch, capsys):
    """The answer of the example claims it, so the file must exist."""
    test_program_prints_its_documented_output("own_tools", scripted, tmp_path, monkeypatch, capsys)
    assert (tmp_path / "my-project" / "invoices.txt").read_text(encoding="utf-8") == "Acme-1\nAcme-2\nAcme-3\n"


def test_programs_are_short():
    """Each fits on a screen."""
    assert {
        name: lines for name, file in FILES.items() if (lines := len(file.read_text().splitlines())) > MOST_LINES
    } == {}
    assert len(FILES) >= 10


def test_each_is_shown_once():
    """On the page about its subject."""
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    assert sorted(name for text in texts for _, name in _SHOWN.findall(text)) == sorted(FILES)
