"""The programs of examples/ print what their docstrings say, and docs/examples.md shows them as they are.

    python -m tests.test_examples       writes the page anew

Where one needs a model server, a scripted one stands at its address.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_agent import in_pieces
from tests.scripted_server import CHAT, MODELS, ScriptedServer, as_json
from tests.server.test_wrap import completion

ROOT = Path(__file__).parent.parent
FILES = {file.stem: file for file in sorted((ROOT / "examples").glob("*.py"))}
PAGE = ROOT / "docs" / "examples.md"
WRITTEN = "http://127.0.0.1:8080"
MOST_LINES = 60
HEAD = """# Short programs

One idea each, in `examples/`. The docstring of each says what it prints, and the tests run them all. Where one needs a
model server, put yours in the place of `http://127.0.0.1:8080`.
"""


def call(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


ANSWERS: dict[str, list[Any]] = {
    "wrap_openai": [completion(call("get_weather", '{"city": "Bern"}')), completion("It rains in Bern.")],
    "own_tools": [
        call("open_invoices", '{"customer": "Acme"}'),
        call("write_file", '{"path": "invoices.txt", "content": "Acme-1\\nAcme-2\\nAcme-3\\n"}'),
        "I wrote 3 invoices into invoices.txt.",
    ],
    "async_agents": ["It is empty."],
    "serve_and_ask": [call("get_weather", '{"city": "Bern"}')],
}
"""By program, what the model says: completions to whoever asks for whole answers, text to whoever wants a stream."""


def about(name: str) -> tuple[str, str]:
    """Its first sentence, and what it prints."""
    sentence, _, printed = (ast.get_docstring(ast.parse(FILES[name].read_text(encoding="utf-8"))) or "").partition(
        "\n\n"
    )
    return sentence, printed + "\n"


def page() -> str:
    parts = [HEAD]
    for name, file in FILES.items():
        sentence, printed = about(name)
        code = file.read_text(encoding="utf-8").split('"""', 2)[2].strip()
        parts.append(
            f"\n## {name.replace('_', ' ').capitalize()}\n\n{sentence}\n\n"
            f'```py title="examples/{name}.py"\n{code}\n```\n\nprints\n\n```text\n{printed}```\n'
        )
    return "".join(parts)


@pytest.mark.parametrize("name", FILES)
def test_a_program_prints_what_it_says(name, scripted: ScriptedServer, tmp_path, monkeypatch, capsys):
    """As it stands, but for the server's address."""
    (tmp_path / "my-project").mkdir()
    monkeypatch.chdir(tmp_path)
    scripted.on(MODELS, as_json(200, {"object": "list", "data": [{"id": "m", "object": "model"}]}))
    for said in ANSWERS.get(name, []):
        scripted.on(CHAT, in_pieces(said) if isinstance(said, str) else as_json(200, said))
    source = FILES[name].read_text(encoding="utf-8").replace(WRITTEN, scripted.url)
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(FILES[name])}
    exec(compile(source, str(FILES[name]), "exec"), names)
    assert capsys.readouterr().out == about(name)[1]


def test_the_agent_with_tools_of_its_own_did_write(scripted, tmp_path, monkeypatch, capsys):
    """Its example says so, and the file is there."""
    test_a_program_prints_what_it_says("own_tools", scripted, tmp_path, monkeypatch, capsys)
    assert (tmp_path / "my-project" / "invoices.txt").read_text(encoding="utf-8") == "Acme-1\nAcme-2\nAcme-3\n"


def test_they_are_short():
    """Each can be read at a glance."""
    assert {
        name: lines for name, file in FILES.items() if (lines := len(file.read_text().splitlines())) > MOST_LINES
    } == {}
    assert len(FILES) >= 10


def test_the_page_shows_them():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.test_examples"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
