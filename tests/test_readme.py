"""The programs of the README run, and its numbers and the tables of docs/ match the code.

``python -m tests.generate`` writes the tables between ``<!-- table: NAME -->`` and ``<!-- end -->``.
"""

import inspect
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import adapter
from adapter.cli.doctor_checks import EXTRAS
from adapter.cli.slash_commands import COMMANDS
from adapter.cli.user_config import Config, read_toml
from adapter.conversation.guardrails.registry import GUARDRAILS
from adapter.core.events import ToolCall
from adapter.core.rejection_codes import REJECTION_REASONS
from adapter.core.repair_codes import REPAIRS
from adapter.parsing.formats import FORMATS
from tests.conversation.guardrails.test_guardrails import message_of
from tests.scripted_server import CHAT, as_json
from tests.server.test_wrap import CALL, completion
from tests.serving import serving

README_FILE = Path(__file__).parent.parent / "README.md"
README = README_FILE.read_text(encoding="utf-8")
DOCS = README_FILE.parent / "docs"
AGENT = (DOCS / "agent.md").read_text(encoding="utf-8")
MOST_LINES = 160


def test_the_python_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-project").mkdir()
    (tmp_path / "my-project" / "notes.txt").write_text("remember\n", encoding="utf-8")
    example = re.search(r"<!-- python: library -->\n```python\n(.*?)```", README, re.DOTALL)
    assert example is not None
    names: dict[str, Any] = {}
    exec(example.group(1), names)
    (result,) = names["results"]
    assert result.ok
    assert "remember" in result.content
    assert [event.name for event in names["events"] if isinstance(event, ToolCall)] == ["read_file"]


def test_the_server_and_the_wrapped_client_return_calls(scripted, capsys):
    """With a server that supports only text: the command with a free port, and the example unchanged."""
    pytest.importorskip("aiohttp", reason="needs the server: pip install 'toolcall-adapter[server]'")
    scripted.on(CHAT, as_json(200, completion(CALL)))
    command = re.search(r"<!-- command: serve -->\n```sh\nadapter serve --upstream (\S+)\n```", README)
    example = re.search(r"<!-- python: wrap -->\n```python\n(.*?)```", README, re.DOTALL)
    assert command is not None
    assert example is not None
    with serving(scripted.url) as url:
        for base_url in (scripted.url, url):
            exec(example.group(1).replace(command.group(1), base_url.removesuffix("/v1")), {})
            assert "name='read_file'" in capsys.readouterr().out


def formats_table() -> str:
    """Render the formats with the first lines of their modules."""
    rows = ["| name | format of calls | aliases |", "|---|---|---|"]
    for name, entry in FORMATS.items():
        summary = (import_module(f"adapter.parsing.formats.{name}").__doc__ or "").split("\n")[0]
        summary = summary.replace("``", "`").replace("|", "\\|").rstrip(".")
        rows.append(f"| `{name}` | {summary} | {', '.join(entry.aliases)} |")
    return "\n".join(rows)


def conformance_table() -> str:
    """Render the results that tests/test_canitoolcall.py asserts; skip if the suite is not installed."""
    from tests import test_canitoolcall

    return test_canitoolcall.conformance_table()


def public_table() -> str:
    """Render the public names with the first sentences of their docstrings."""
    names = [name for name in adapter.__all__ if name not in adapter.ALIASES]
    return _two_columns("name", "meaning", {name: _first_sentence(getattr(adapter, name)) for name in names})


def aliases_table() -> str:
    """Render the names that were renamed and still work."""
    return _two_columns("old name", "new name", {old: f"`{new}`" for old, new in adapter.ALIASES.items()})


def _first_sentence(documented: object) -> str:
    paragraph = " ".join((inspect.getdoc(documented) or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.)\s", paragraph)[0].rstrip(".:").replace("``", "`")


def guardrails_table() -> str:
    rows = ["| name | recognizes | stops | drops |", "|---|---|---|---|"]
    for name, each in GUARDRAILS.items():
        marks = "yes" if each.stops else "", "yes" if each.drops else ""
        rows.append(f"| `{name}` | {each.recognizes} | {' | '.join(marks)} |")
    return "\n".join(rows)


def guardrail_example() -> str:
    """Show the message of one guardrail."""
    return f"```text\n{message_of('wrong_arguments').replace('&lt;', '<').strip()}\n```"


def rejections_table() -> str:
    return _two_columns("reason", "not a call because", REJECTION_REASONS)


def fixes_table() -> str:
    return _two_columns("name", "repair", REPAIRS)


def extras_table() -> str:
    return _two_columns("extra", "brings", EXTRAS)


def chat_table() -> str:
    commands = {f"/{name} {each.argument}".rstrip(): each.summary for name, each in COMMANDS.items()}
    return _two_columns("command", "effect", commands)


def _two_columns(left: str, right: str, texts: Mapping[str, str]) -> str:
    rows = (f"| `{name}` | {text} |" for name, text in texts.items())
    return "\n".join([f"| {left} | {right} |", "|---|---|", *rows])


TABLES = {
    "guardrails": (DOCS / "reliability.md", guardrails_table),
    "guardrail example": (DOCS / "reliability.md", guardrail_example),
    "public": (DOCS / "api.md", public_table),
    "aliases": (DOCS / "api.md", aliases_table),
    "formats": (DOCS / "formats.md", formats_table),
    "conformance": (DOCS / "performance.md", conformance_table),
    "rejections": (DOCS / "troubleshooting.md", rejections_table),
    "fixes": (DOCS / "troubleshooting.md", fixes_table),
    "extras": (DOCS / "install.md", extras_table),
    "chat": (DOCS / "agent.md", chat_table),
}
"""The page of each table, and the function that renders it."""


def with_table(text: str, name: str) -> str:
    before, rest = text.split(f"<!-- table: {name} -->\n")
    _, after = rest.split("\n<!-- end -->", 1)
    return f"{before}<!-- table: {name} -->\n{TABLES[name][1]()}\n<!-- end -->{after}"


def with_count(text: str) -> str:
    """Update the number of formats in the README."""
    return re.sub(r"\b\d+ formats", f"{len(FORMATS)} formats", text)


def test_the_numbers_are_right():
    """The number of formats, and the results of the conformance suite."""
    assert f" {len(FORMATS)} formats" in README
    _, outputs, told, *_, detected = (
        cell.strip() for cell in conformance_table().splitlines()[-1].strip("|").split("|")
    )
    read_told, read_detected = told.partition("-")[0], detected.partition("-")[0]
    text = re.sub(r"\s+", " ", README)
    assert f"has {outputs} outputs" in text
    assert f"given, {read_told} of them are parsed exactly; if the format is detected, {read_detected}." in text


def test_it_is_short():
    """It can be read in five minutes; the rest is in docs/."""
    assert len(README.splitlines()) < MOST_LINES


def test_the_configuration_is_one(tmp_path):
    """It has every table that exists, and no other."""
    example, *_ = re.findall(r"```toml\n(.*?)```", AGENT, re.DOTALL)
    file = tmp_path / "config.toml"
    file.write_text(example)
    assert read_toml(file, Config).model_fields_set == set(Config.model_fields)
